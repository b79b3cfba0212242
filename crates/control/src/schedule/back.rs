//! The way back through a loop.

use super::split;

/// One thing to do on the way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Copy the state in this slot to the working state.
    Load {
        /// Where it lies.
        slot: usize,
        /// Which it is.
        state: usize,
    },
    /// Run this many steps forward on the working state.
    Advance {
        /// The state it is now.
        from: usize,
        /// How many.
        steps: usize,
    },
    /// Copy the working state to a slot.
    Store {
        /// Where to.
        slot: usize,
        /// Which it is.
        state: usize,
    },
    /// Reverse this step; its state lies in the slot, or is the working state. Neither is needed again.
    Reverse {
        /// Which.
        step: usize,
        /// Where its state lies; `None`: it is the working state.
        slot: Option<usize>,
    },
}

/// The moves that reverse steps `n - 1`, ..., 0 from the states that a sweep kept, with as few steps forward as
/// those states and the slots allow.
#[derive(Debug, Clone)]
pub struct Back {
    /// States kept and not yet passed, by rising state, with their slots.
    kept: Vec<(usize, usize)>,
    free: Vec<usize>,
    working: Option<usize>,
    /// Steps yet to be reversed.
    left: usize,
}

impl Back {
    /// From these (state, slot), rising, state 0 among them, with state `n - 1` as the working state.
    pub fn new(kept: &[(usize, usize)], n: usize, slots: usize) -> Self {
        Self { working: n.checked_sub(1), ..Self::overwritten(kept, n, slots) }
    }

    /// As [`Back::new`], after a last step that overwrote state `n - 1`: what the working state is does not matter.
    pub fn overwritten(kept: &[(usize, usize)], n: usize, slots: usize) -> Self {
        // A loop of `n` steps never has more than `n` states in slots.
        let room = slots.clamp(1, n.max(1));
        let mut held = Vec::with_capacity(room);
        held.extend(kept.iter().copied().filter(|&(state, _)| state < n));
        held.sort_unstable();
        let mut taken: Vec<usize> = held.iter().map(|&(_, slot)| slot).collect();
        taken.sort_unstable();
        let free = (0..slots.max(1)).filter(|slot| taken.binary_search(slot).is_err());
        let mut empty = Vec::with_capacity(room);
        empty.extend(free.take(room.saturating_sub(held.len())));
        Self { kept: held, free: empty, working: None, left: n }
    }

    /// The next move; `None` when all steps are reversed.
    pub fn next(&mut self) -> Option<Move> {
        let step = self.left.checked_sub(1)?;
        if let Some((_, slot)) = self.kept.pop_if(|(state, _)| *state == step) {
            self.free.push(slot);
            self.left = step;
            self.working = None;
            return Some(Move::Reverse { step, slot: Some(slot) });
        }
        if self.working == Some(step) {
            self.left = step;
            self.working = None;
            return Some(Move::Reverse { step, slot: None });
        }
        let &(state, slot) = self.kept.last()?;
        let Some(now) = self.working else {
            self.working = Some(state);
            return Some(Move::Load { slot, state });
        };
        if now != state
            && let Some(slot) = self.free.pop()
        {
            self.kept.push((now, slot));
            return Some(Move::Store { slot, state: now });
        }
        let steps = split(self.left - now, self.free.len() + 1);
        self.working = Some(now + steps);
        Some(Move::Advance { from: now, steps })
    }
}
