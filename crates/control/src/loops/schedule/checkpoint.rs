//! A state that is kept.

/// A checkpoint: a state, and the slot that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Checkpoint {
    pub(crate) state: usize,
    pub(crate) slot: usize,
}
