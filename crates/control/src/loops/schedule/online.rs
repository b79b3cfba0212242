//! Online checkpointing: a forward pass whose length is not known in advance.

use super::checkpoint::Checkpoint;
use super::formula::{binomial, forward_steps};

/// Which states a forward pass of unknown length keeps. After each step, the checkpoints are good for ending there.
///
/// **While two runs of each step are enough**, with `c` slots for `n < (c + 1)(c + 2) / 2`, as few steps are recomputed as
/// possible: [`recomputed_steps`](super::recomputed_steps)`(n + 1, c)`, state `n` being the working state. The states are kept in a
/// fixed pattern: one by one, between milestones that stay, `c + 1`, `c`, `c - 1`, ... steps apart.
///
/// **Beyond that**, no rule can be optimal for every length. A state is kept when a backward pass from here recomputes fewer steps
/// with it, in spite of the checkpoint that it replaces: the one whose loss costs least. Measured for all `n` up to 20,000, the
/// recomputed steps are at most 1.231 times the fewest possible for 2 slots, 1.114 times for 3 and 4, 1.083 times for 5 to 8, and 1.062
/// times for 9 to 40.
#[derive(Debug, Clone)]
pub(crate) struct OnlineSchedule {
    slots: usize,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    Pattern(Pattern),
    Weighed(Weighed),
}

impl OnlineSchedule {
    /// For a forward pass that starts at state 0.
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots: slots.max(1), rule: Rule::Pattern(Pattern::default()) }
    }

    /// The slot for this state, if it is kept; it replaces the checkpoint in the slot. To be called with
    /// 0, 1, 2, ... before each step.
    #[inline]
    pub(crate) fn slot_for(&mut self, state: usize) -> Option<usize> {
        match &mut self.rule {
            Rule::Pattern(pattern) => {
                let slot = pattern.slot_for(state, self.slots);
                if pattern.milestones == self.slots {
                    self.rule = Rule::Weighed(Weighed::new(&pattern.states));
                }
                slot
            }
            Rule::Weighed(weighed) => (state >= weighed.due).then(|| weighed.keep(state)),
        }
    }

    /// The checkpoints now, by rising state.
    pub(crate) fn checkpoints(&self) -> Vec<Checkpoint> {
        let mut checkpoints: Vec<_> = match &self.rule {
            Rule::Pattern(pattern) => {
                let states = pattern.states.iter().enumerate();
                states.map(|(slot, &state)| Checkpoint { state, slot }).collect()
            }
            Rule::Weighed(weighed) => weighed.ranked.iter().map(|ranked| ranked.checkpoint).collect(),
        };
        checkpoints.sort_unstable();
        checkpoints
    }

    /// The checkpoints after a forward pass of `n` steps.
    pub(crate) fn checkpoints_after(n: usize, slots: usize) -> Vec<Checkpoint> {
        let mut schedule = Self::new(slots);
        for state in 0..n {
            schedule.slot_for(state);
        }
        schedule.checkpoints()
    }
}

/// Slots below `milestones` hold states that stay. The others are filled in order, with the states from `start` on; when
/// they are full, one state is skipped and the next is a milestone, in the first of them.
///
/// So the gaps from milestone to milestone are `c + 1`, `c`, ..., each as long as the slots after it can reverse
/// with every step recomputed once, and the states in between are kept, or were replaced by later ones.
#[derive(Debug, Clone, Default)]
struct Pattern {
    states: Vec<usize>,
    milestones: usize,
    start: usize,
}

impl Pattern {
    fn slot_for(&mut self, state: usize, slots: usize) -> Option<usize> {
        let slot = self.milestones + (state - self.start);
        if slot >= slots {
            self.milestones += 1;
            self.start = state + 1;
            return None;
        }
        match self.states.get_mut(slot) {
            Some(kept) => *kept = state,
            None => self.states.push(state),
        }
        Some(slot)
    }
}

/// Replaces the checkpoint whose loss costs least, as soon as a later one is worth more.
///
/// With `c` slots, the gap after the checkpoint of rank `p` is reversed with `c - p` slots: those of the checkpoints before it are
/// taken. Dropping the checkpoint of rank `j` joins two gaps, which costs steps, and gives each gap after it one more slot,
/// which saves steps. The cost of dropping rank `j` within the first `p` gaps does not depend on the rest: so the cheapest is found from
/// left to right, and only the ranks after the one dropped last have to be computed again.
#[derive(Debug, Clone)]
struct Weighed {
    /// By rising state.
    ranked: Vec<RankedCheckpoint>,
    /// No state before this one is worth a slot.
    due: usize,
    patience: usize,
    table: StepTable,
}

/// A checkpoint, and what dropping one up to its rank costs.
#[derive(Debug, Clone, Copy)]
struct RankedCheckpoint {
    checkpoint: Checkpoint,
    /// The recomputed steps, in the gaps up to the next checkpoint, that dropping the cheapest of the ranks 1 to this one costs.
    loss: i64,
    /// The rank of that cheapest checkpoint.
    cheapest: usize,
}

impl RankedCheckpoint {
    fn new(state: usize, slot: usize) -> Self {
        Self { checkpoint: Checkpoint { state, slot }, loss: NEVER, cheapest: 0 }
    }

    fn state(&self) -> usize {
        self.checkpoint.state
    }
}

/// The loss of a checkpoint that cannot be dropped; sums of a few do not overflow.
const NEVER: i64 = i64::MAX / 4;

impl Weighed {
    fn new(states: &[usize]) -> Self {
        let states = states.iter().enumerate();
        let ranked: Vec<_> = states.map(|(slot, &state)| RankedCheckpoint::new(state, slot)).collect();
        let table = StepTable::new(ranked.len());
        let mut new = Self { ranked, due: 0, patience: 1, table };
        new.weigh(1);
        new
    }

    /// Keeps this state in the slot of the checkpoint that is worth least.
    fn keep(&mut self, state: usize) -> usize {
        let last = self.ranked.len() - 1;
        let [inner, outer] = self.losses(state);
        let dropped = if inner <= outer { self.ranked[last - 1].cheapest } else { last };
        let slot = self.ranked[dropped].checkpoint.slot;
        self.ranked.copy_within(dropped + 1.., dropped);
        self.ranked[last] = RankedCheckpoint::new(state, slot);
        self.weigh(dropped.saturating_sub(1).max(1));
        slot
    }

    /// How many more steps are recomputed if this state is kept and the cheapest checkpoint but the last is dropped for it, and if the
    /// last one is.
    fn losses(&self, state: usize) -> [i64; 2] {
        let [.., before, last] = &self.ranked[..] else { return [NEVER; 2] };
        let (gap, since) = (last.state() - before.state(), state - last.state());
        let outer = self.table.steps(gap + since, 2) - self.table.steps(gap, 2);
        [before.loss + self.table.steps(since, 2), outer]
    }

    /// Computes the losses again from rank `from` on, and the next state that is worth a slot.
    fn weigh(&mut self, from: usize) {
        let c = self.ranked.len();
        if c == 1 {
            self.due = usize::MAX;
            return;
        }
        let gap = |ranked: &[RankedCheckpoint], p: usize| ranked[p + 1].state() - ranked[p].state();
        let mut ahead = gap(&self.ranked, from - 1);
        let mut own = self.table.steps(ahead, c - from + 1);
        for p in from..c - 1 {
            let here = gap(&self.ranked, p);
            let (narrow, wide) = (self.table.steps(here, c - p), self.table.steps(here, c - p + 1));
            let joined = self.table.steps(ahead + here, c - p + 1) - own - narrow;
            let before = self.ranked[p - 1];
            let kept = before.loss + wide - narrow;
            let ranked = &mut self.ranked[p];
            (ranked.loss, ranked.cheapest) =
                if kept <= joined { (kept, before.cheapest) } else { (joined, p) };
            (ahead, own) = (here, narrow);
        }
        self.patience = self.patience();
        self.due = self.ranked[c - 1].state() + self.patience;
    }

    /// The distance from the last checkpoint to the first state that is worth a slot: recomputing from the last checkpoint to there, with
    /// one slot, takes more steps than dropping the cheapest checkpoint for it.
    fn patience(&self) -> usize {
        let last = self.ranked[self.ranked.len() - 1].state();
        let worth = |since: usize| {
            let [inner, outer] = self.losses(last + since);
            inner.min(outer) < (since * (since + 1) / 2) as i64
        };
        // The saving grows faster than linearly with the distance, and the distance changes little from state to state.
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

/// [`forward_steps`] from a table.
#[derive(Debug, Clone)]
struct StepTable {
    /// `C(c + r, c)` for each number of slots `c` (rows) and for rising `r` (columns).
    reach: Vec<usize>,
    width: usize,
}

impl StepTable {
    /// Beyond this length or this many repetitions, the formula is used.
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
        // A linear search is faster in short rows.
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
