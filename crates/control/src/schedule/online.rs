//! Which states a sweep keeps that does not know how long it will be.

use super::{binomial, forward_steps};

/// Which states a sweep of unknown length keeps. After each step, what is kept is good for ending there.
///
/// **While two runs of each step are enough**, with `c` slots for `n < (c + 1)(c + 2) / 2`, the way back is the shortest
/// possible: [`recomputed`](super::recomputed)`(n + 1, c)` steps, state `n` being at hand. The states are kept in a fixed
/// pattern: one by one, over what lies between milestones that stay, `c + 1`, `c`, `c - 1`, ... steps apart.
///
/// **Beyond that**, no rule can be best for every length. A state is kept when that makes the way back from here shorter, in
/// spite of the kept one that has to go for it: the one whose loss costs least. Measured for all `n` to 20,000, the steps run again are
/// at most 1.231 times the fewest possible for 2 slots, 1.114 times for 3 and 4, 1.083 times for 5 to 8, and 1.062 times for 9 to 40.
#[derive(Debug, Clone)]
pub struct Online {
    slots: usize,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    Pattern(Pattern),
    Weighed(Weighed),
}

impl Online {
    /// For a sweep that starts at state 0.
    pub fn new(slots: usize) -> Self {
        Self { slots: slots.max(1), rule: Rule::Pattern(Pattern::default()) }
    }

    /// The slot for this state, if it is to be kept; what was in the slot is given up. To be called with
    /// 0, 1, 2, ... before each step.
    #[inline]
    pub fn keep(&mut self, state: usize) -> Option<usize> {
        match &mut self.rule {
            Rule::Pattern(pattern) => {
                let slot = pattern.keep(state, self.slots);
                if pattern.milestones == self.slots {
                    self.rule = Rule::Weighed(Weighed::new(&pattern.states));
                }
                slot
            }
            Rule::Weighed(weighed) => (state >= weighed.due).then(|| weighed.keep(state)),
        }
    }

    /// What the slots hold now, as (state, slot), by rising state.
    pub fn kept(&self) -> Vec<(usize, usize)> {
        let mut kept: Vec<_> = match &self.rule {
            Rule::Pattern(pattern) => {
                pattern.states.iter().enumerate().map(|(slot, &state)| (state, slot)).collect()
            }
            Rule::Weighed(weighed) => weighed.places.iter().map(|place| (place.state, place.slot)).collect(),
        };
        kept.sort_unstable();
        kept
    }
}

/// Slots below `milestones` hold states that stay. The others are filled in turn, with the states from `start` on; when
/// they are full, one state is passed over and the next is a milestone, in the first of them.
///
/// So the gaps from milestone to milestone are `c + 1`, `c`, ..., each as long as the slots behind it can reverse
/// with every step run once more, and the states between are there, or were given up for later ones.
#[derive(Debug, Clone, Default)]
struct Pattern {
    states: Vec<usize>,
    milestones: usize,
    start: usize,
}

impl Pattern {
    fn keep(&mut self, state: usize, slots: usize) -> Option<usize> {
        let slot = self.milestones + (state - self.start);
        if slot >= slots {
            self.milestones += 1;
            self.start = state + 1;
            return None;
        }
        match self.states.get_mut(slot) {
            Some(held) => *held = state,
            None => self.states.push(state),
        }
        Some(slot)
    }
}

/// Gives up the state whose loss costs least, as soon as a later one is worth more.
///
/// With `c` slots, the gap behind the state at place `p` is reversed with `c - p` slots: those of the states before it are
/// taken. Giving up the state at place `j` joins two gaps, which costs, and gives each gap behind it one more slot,
/// which spares. What place `j` costs within the first `p` gaps does not depend on the rest: so the cheapest is found from left to
/// right, and only what lies behind the place given up last is to be looked at again.
#[derive(Debug, Clone)]
struct Weighed {
    places: Vec<Place>,
    /// No state before this one is worth a slot.
    due: usize,
    patience: usize,
    table: Table,
}

/// A kept state, by its rank among the kept ones.
#[derive(Debug, Clone, Copy)]
struct Place {
    state: usize,
    slot: usize,
    /// What giving up the cheapest of the places 1 to here costs, in steps of the way back through the gaps up to
    /// the next place.
    loss: i64,
    cheapest: usize,
}

/// Stands for a place that cannot be given up; leaves room for sums.
const NEVER: i64 = i64::MAX / 4;

impl Weighed {
    fn new(states: &[usize]) -> Self {
        let places = states.iter().enumerate();
        let places = places.map(|(slot, &state)| Place { state, slot, loss: NEVER, cheapest: 0 }).collect();
        let mut new = Self { places, due: 0, patience: 1, table: Table::new(states.len()) };
        new.weigh(1);
        new
    }

    /// Keeps this state in the slot of the one that is worth least.
    fn keep(&mut self, state: usize) -> usize {
        let last = self.places.len() - 1;
        let [inner, outer] = self.losses(state);
        let lost = if inner <= outer { self.places[last - 1].cheapest } else { last };
        let slot = self.places[lost].slot;
        self.places.copy_within(lost + 1.., lost);
        self.places[last] = Place { state, slot, loss: NEVER, cheapest: 0 };
        self.weigh(lost.saturating_sub(1).max(1));
        slot
    }

    /// What keeping this state adds to the way back, when the cheapest of the places but the last goes for it, and when the last does.
    fn losses(&self, state: usize) -> [i64; 2] {
        let [.., before, last] = &self.places[..] else { return [NEVER; 2] };
        let (gap, since) = (last.state - before.state, state - last.state);
        let outer = self.table.steps(gap + since, 2) - self.table.steps(gap, 2);
        [before.loss + self.table.steps(since, 2), outer]
    }

    /// Finds the cheapest places again from place `from` on, and the state that is worth a slot next.
    fn weigh(&mut self, from: usize) {
        let c = self.places.len();
        if c == 1 {
            self.due = usize::MAX;
            return;
        }
        let gap = |places: &[Place], p: usize| places[p + 1].state - places[p].state;
        let mut ahead = gap(&self.places, from - 1);
        let mut own = self.table.steps(ahead, c - from + 1);
        for p in from..c - 1 {
            let here = gap(&self.places, p);
            let (narrow, wide) = (self.table.steps(here, c - p), self.table.steps(here, c - p + 1));
            let joined = self.table.steps(ahead + here, c - p + 1) - own - narrow;
            let before = self.places[p - 1];
            let kept = before.loss + wide - narrow;
            let place = &mut self.places[p];
            (place.loss, place.cheapest) = if kept <= joined { (kept, before.cheapest) } else { (joined, p) };
            (ahead, own) = (here, narrow);
        }
        self.patience = self.patience();
        self.due = self.places[c - 1].state + self.patience;
    }

    /// How far behind the last kept state the first is that is worth a slot: the way back from there to the last, with one
    /// slot, takes longer than with the cheapest place given up for it.
    fn patience(&self) -> usize {
        let last = self.places[self.places.len() - 1].state;
        let worth = |since: usize| {
            let [inner, outer] = self.losses(last + since);
            inner.min(outer) < (since * (since + 1) / 2) as i64
        };
        // What keeping a state spares grows faster and faster with the distance, and the distance changes little from state to state.
        let mut since = self.patience;
        while since > 1 && worth(since - 1) {
            since -= 1;
        }
        while !worth(since) {
            since += 1;
        }
        since
    }
}

/// [`forward_steps`] at the cost of a look-up.
#[derive(Debug, Clone)]
struct Table {
    /// `C(c + r, c)` for each number of slots `c`, for rising `r`, row after row.
    reach: Vec<usize>,
    width: usize,
}

impl Table {
    /// Loops longer than this with few slots, or with more repetitions, are computed.
    const LONGEST: u128 = 1 << 32;
    const REPETITIONS: usize = 1024;

    fn new(slots: usize) -> Self {
        let reaches = |r: &usize| binomial(slots as u128, *r as u128, Self::LONGEST) >= Self::LONGEST;
        let width = (1..Self::REPETITIONS).find(reaches).unwrap_or(Self::REPETITIONS) + 1;
        let mut reach = vec![1_usize; (slots + 2) * width];
        for at in width..reach.len() {
            if at % width > 0 {
                reach[at] = reach[at - 1].saturating_add(reach[at - width]);
            }
        }
        Self { reach, width }
    }

    #[inline]
    fn steps(&self, n: usize, slots: usize) -> i64 {
        let from = slots * self.width;
        let rows = &self.reach[from..from + 2 * self.width];
        let (row, wider) = rows.split_at(self.width);
        // Short rows are faster in turn.
        let r = if self.width <= 32 {
            row.iter().position(|&reach| reach >= n).unwrap_or(row.len())
        } else {
            row.partition_point(|&reach| reach < n)
        };
        match r {
            0 => 0,
            r if r < row.len() => (r * n) as i64 - wider[r - 1] as i64,
            _ => i64::try_from(forward_steps(n, slots)).unwrap_or(NEVER).min(NEVER),
        }
    }
}
