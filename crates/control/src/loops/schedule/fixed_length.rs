//! Checkpoints of a forward pass of known length.

use super::checkpoint::Checkpoint;
use super::formula::split;

/// Which states a forward pass of known length keeps: those from which the fewest steps are recomputed.
#[derive(Debug, Clone)]
pub(crate) struct FixedLengthSchedule {
    n: usize,
    slots: usize,
    used: usize,
    next: usize,
}

impl FixedLengthSchedule {
    /// For `n` steps, after which state `n - 1` is the working state.
    pub(crate) fn new(n: usize, slots: usize) -> Self {
        Self { n, slots: slots.max(1), used: 0, next: 0 }
    }

    /// The slot for this state, if it is kept. To be called with 0, 1, 2, ... before each step.
    #[inline]
    pub(crate) fn slot_for(&mut self, state: usize) -> Option<usize> {
        (state == self.next).then(|| self.advance())
    }

    /// Takes a slot for the state `next`, and determines the one after it.
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

    /// The checkpoints after a forward pass of `n` steps, by rising state.
    pub(crate) fn checkpoints(n: usize, slots: usize) -> Vec<Checkpoint> {
        let mut schedule = Self::new(n, slots);
        let mut checkpoints = Vec::new();
        while schedule.next < n {
            let state = schedule.next;
            checkpoints.push(Checkpoint { state, slot: schedule.advance() });
        }
        checkpoints
    }
}
