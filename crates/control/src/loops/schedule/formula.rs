//! How many steps have to be recomputed, and where to place the next checkpoint.

/// The fewest forward steps with which `n` steps can be reversed in this many slots, the forward pass to state `n - 1` included.
///
/// With `c` slots and no step run more than `r` times, `C(c + r, c)` steps can be reversed. For the smallest `r` that is
/// enough for `n`, the total is `r n - C(c + r, r - 1)` (Griewank and Walther's Revolve). Saturates.
pub(crate) fn forward_steps(n: usize, slots: usize) -> u64 {
    if n <= 1 {
        return 0;
    }
    let (r, less) = repetitions(n, slots);
    let (n, c) = (n as u128, slots.clamp(1, n) as u128);
    // C(c + r, r - 1) from C(c + r - 1, c), which is below `n`.
    let spared = less as u128 * (c + r as u128) / (c + 1);
    u64::try_from(r as u128 * n - spared).unwrap_or(u64::MAX)
}

/// How many steps the backward pass recomputes after a forward pass of known length: [`forward_steps`] less those of the
/// forward pass.
pub(crate) fn recomputed_steps(n: usize, slots: usize) -> u64 {
    forward_steps(n, slots).saturating_sub(n.saturating_sub(1) as u64)
}

/// The smallest `r` with `C(c + r, c) >= n`, and `C(c + r - 1, c)`, for `n >= 2`.
pub(super) fn repetitions(n: usize, slots: usize) -> (usize, usize) {
    const LINEAR_SEARCH: u128 = 32;
    let c = slots.clamp(1, n) as u128;
    let mut less = 1;
    for r in 1..=LINEAR_SEARCH {
        let more = c.saturating_add(r).saturating_mul(less) / r;
        if more >= n as u128 {
            return (r as usize, less as usize);
        }
        less = more;
    }
    // Few slots and many repetitions: bisect. `C(c + r, c) > r`, so `n` repetitions are enough.
    let (mut low, mut high) = (LINEAR_SEARCH, n as u128);
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

/// `C(a + b, a)`, or any number `>= enough` if it is that large.
pub(super) fn binomial(a: u128, b: u128, enough: u128) -> u128 {
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

/// How many steps to advance from a checkpoint before the next one, when `steps >= 2` steps are to be reversed from there with this
/// many slots, the first checkpoint's included. `steps - 1` means all of them, without another checkpoint.
pub(super) fn split(steps: usize, slots: usize) -> usize {
    if slots <= 1 {
        return steps - 1;
    }
    let (r, less) = repetitions(steps, slots);
    let c = slots.min(steps);
    // Both parts must stay in the range of lengths for which their slots and repetitions are optimal. Of the splits that
    // do, the shortest first part leads to the fewest stores.
    let (less, steps) = (less as u128, steps as u128);
    let first = less * (r - 1) as u128 / (c + r - 1) as u128;
    let rest = less.saturating_mul(c as u128) / r as u128;
    first.max(steps.saturating_sub(rest)).max(1) as usize
}
