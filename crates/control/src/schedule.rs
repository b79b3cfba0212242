//! When to keep a loop's states and when to compute them again, for a gradient in fixed memory.
//!
//! A loop makes `n` steps; step `i` takes state `i` to state `i + 1`, and going back through it needs state `i`
//! to reverse step `i`. There are `slots` places for states; state 0 has one of them. Besides, there is one *working state*:
//! the one that steps are run on.
//!
//! Nothing here touches a tensor: these are the moves, and somebody else makes them. The sweep forward asks [`Known::keep`]
//! or [`Online::keep`] before each step; the way back does what [`Back::next`] says.
//!
//! # The last state
//!
//! The formulas let the way back begin with state `n - 1` at hand: the last step leaves its input alone. A loop that works
//! in place, or learns only from state `n` that it is over, has state `n` instead. That is the same problem with one
//! more step, whose reversal costs nothing: keep as for `n + 1` steps ([`Known::new`]`(n + 1, slots)`), go back with
//! [`Back::overwritten`], and [`recomputed`]`(n + 1, slots)` steps are run again.

mod back;
mod online;
#[cfg(test)]
mod tests;

pub use back::{Back, Move};
pub use online::Online;

/// The fewest forward steps that reverse `n` steps with this many slots, the first sweep to state `n - 1` included.
///
/// With `c` slots and no step run more than `r` times, `C(c + r, c)` steps can be reversed. For the smallest `r` with which
/// `n` can, the total is `r n - C(c + r, r - 1)` (Griewank and Walther's Revolve). Saturates.
pub fn forward_steps(n: usize, slots: usize) -> u64 {
    if n <= 1 {
        return 0;
    }
    let (r, less) = repetitions(n, slots);
    let (n, c) = (n as u128, slots.clamp(1, n) as u128);
    // C(c + r, r - 1) from C(c + r - 1, c), which is below `n`.
    let spared = less as u128 * (c + r as u128) / (c + 1);
    u64::try_from(r as u128 * n - spared).unwrap_or(u64::MAX)
}

/// How many steps the way back runs again after a sweep of known length: [`forward_steps`] less the sweep's own.
pub fn recomputed(n: usize, slots: usize) -> u64 {
    forward_steps(n, slots).saturating_sub(n.saturating_sub(1) as u64)
}

/// The smallest `r` with `C(c + r, c) >= n`, and `C(c + r - 1, c)`, for `n >= 2`.
fn repetitions(n: usize, slots: usize) -> (usize, usize) {
    const IN_TURN: u128 = 32;
    let c = slots.clamp(1, n) as u128;
    let mut less = 1;
    for r in 1..=IN_TURN {
        let more = c.saturating_add(r).saturating_mul(less) / r;
        if more >= n as u128 {
            return (r as usize, less as usize);
        }
        less = more;
    }
    // Few slots and many repetitions: halve the range. `C(c + r, c) > r`, so `n` repetitions are enough.
    let (mut low, mut high) = (IN_TURN, n as u128);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if binomial(c, middle, n as u128) >= n as u128 {
            high = middle;
        } else {
            low = middle;
        }
    }
    (high as usize, binomial(c, high - 1, n as u128) as usize)
}

/// `C(a + b, a)`, or something not below `enough` if it is not below that.
fn binomial(a: u128, b: u128, enough: u128) -> u128 {
    let (few, many) = (a.min(b), a.max(b));
    let mut product = 1_u128;
    for i in 1..=few {
        product = product.saturating_mul(many + i) / i;
        if product >= enough {
            break;
        }
    }
    product
}

/// How far to go before the next state is kept, when `steps >= 2` steps are to be reversed from a kept state, with this many
/// slots, that state's included. `steps - 1` says: all the way, without keeping another.
fn split(steps: usize, slots: usize) -> usize {
    if slots <= 1 {
        return steps - 1;
    }
    let (r, less) = repetitions(steps, slots);
    let c = slots.min(steps);
    // Both parts stay in the range of lengths for which their slots and repetitions are best. Of the splits that do,
    // the shortest first part leads to the fewest stores.
    let (less, steps) = (less as u128, steps as u128);
    let first = less * (r - 1) as u128 / (c + r - 1) as u128;
    let rest = less.saturating_mul(c as u128) / r as u128;
    first.max(steps.saturating_sub(rest)).max(1) as usize
}

/// Which states a sweep of known length keeps: those from which the way back is the shortest possible.
#[derive(Debug, Clone)]
pub struct Known {
    n: usize,
    slots: usize,
    used: usize,
    next: usize,
}

impl Known {
    /// For a sweep of `n` steps, of which state `n - 1` will be at hand at its end.
    pub fn new(n: usize, slots: usize) -> Self {
        Self { n, slots: slots.max(1), used: 0, next: 0 }
    }

    /// The slot for this state, if it is to be kept. To be called with 0, 1, 2, ... before each step.
    #[inline]
    pub fn keep(&mut self, state: usize) -> Option<usize> {
        (state == self.next).then(|| self.advance())
    }

    /// Gives the state that waits for a slot the next one, and says in `next` which is to wait now.
    fn advance(&mut self) -> usize {
        let slot = self.used;
        self.used += 1;
        let left = self.n.saturating_sub(self.next);
        let free = self.slots - slot;
        self.next = match left {
            3.. if free > 1 => self.next + split(left, free),
            _ => usize::MAX,
        };
        slot
    }
}

/// What the slots hold after a sweep of `n` steps, as (state, slot), by rising state.
///
/// For a sweep of unknown length this asks [`Online::keep`] for all `n` states again.
pub fn at_end(n: usize, slots: usize, known: bool) -> Vec<(usize, usize)> {
    if known {
        let mut sweep = Known::new(n, slots);
        let mut kept = Vec::new();
        while sweep.next < n {
            kept.push((sweep.next, sweep.advance()));
        }
        kept
    } else {
        let mut sweep = Online::new(slots);
        for state in 0..n {
            sweep.keep(state);
        }
        sweep.kept()
    }
}
