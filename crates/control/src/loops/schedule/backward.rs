//! The backward pass through a loop.

use super::checkpoint::Checkpoint;
use super::formula::split;

/// One action of the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackwardAction {
    /// Copy a checkpoint to the working state.
    Load(Checkpoint),
    /// Run `steps` steps forward on the working state, which is state `from`.
    Advance { from: usize, steps: usize },
    /// Copy the working state to a slot.
    Store(Checkpoint),
    /// Reverse this step. Its state is in the slot; `None`: it is the working state. Neither is needed again.
    Reverse { step: usize, slot: Option<usize> },
}

/// The actions that reverse steps `n - 1`, ..., 0 from the checkpoints of a forward pass, with as few recomputed steps as
/// the checkpoints and the slots allow.
#[derive(Debug, Clone)]
pub(crate) struct BackwardSchedule {
    /// Checkpoints of steps not reversed yet, by rising state.
    checkpoints: Vec<Checkpoint>,
    free: Vec<usize>,
    working: Option<usize>,
    /// Steps not reversed yet.
    left: usize,
}

impl BackwardSchedule {
    /// From these checkpoints, state 0 among them, with state `n - 1` as the working state.
    pub(crate) fn new(checkpoints: &[Checkpoint], n: usize, slots: usize) -> Self {
        Self { working: n.checked_sub(1), ..Self::after_overwrite(checkpoints, n, slots) }
    }

    /// As [`BackwardSchedule::new`], after a last step that overwrote state `n - 1`: the working state is not used.
    pub(crate) fn after_overwrite(checkpoints: &[Checkpoint], n: usize, slots: usize) -> Self {
        // A loop of `n` steps never has more than `n` checkpoints.
        let capacity = slots.clamp(1, n.max(1));
        let mut kept = Vec::with_capacity(capacity);
        kept.extend(checkpoints.iter().copied().filter(|checkpoint| checkpoint.state < n));
        kept.sort_unstable();
        let mut taken: Vec<usize> = kept.iter().map(|checkpoint| checkpoint.slot).collect();
        taken.sort_unstable();
        let unused = (0..slots.max(1)).filter(|slot| taken.binary_search(slot).is_err());
        let mut free = Vec::with_capacity(capacity);
        free.extend(unused.take(capacity.saturating_sub(kept.len())));
        Self { checkpoints: kept, free, working: None, left: n }
    }

    /// The next action; `None` when all steps are reversed.
    pub(crate) fn next(&mut self) -> Option<BackwardAction> {
        let step = self.left.checked_sub(1)?;
        if let Some(Checkpoint { slot, .. }) = self.checkpoints.pop_if(|kept| kept.state == step) {
            self.free.push(slot);
            self.left = step;
            self.working = None;
            return Some(BackwardAction::Reverse { step, slot: Some(slot) });
        }
        if self.working == Some(step) {
            self.left = step;
            self.working = None;
            return Some(BackwardAction::Reverse { step, slot: None });
        }
        let &nearest = self.checkpoints.last()?;
        let Some(now) = self.working else {
            self.working = Some(nearest.state);
            return Some(BackwardAction::Load(nearest));
        };
        if now != nearest.state
            && let Some(slot) = self.free.pop()
        {
            let stored = Checkpoint { state: now, slot };
            self.checkpoints.push(stored);
            return Some(BackwardAction::Store(stored));
        }
        let steps = split(self.left - now, self.free.len() + 1);
        self.working = Some(now + steps);
        Some(BackwardAction::Advance { from: now, steps })
    }
}
