//! Memory budgets: which plans a function has, and which one a budget chooses.

mod bytes;
mod frontier;
mod passes;
mod spill;

pub use bytes::MemoryBudget;
pub use frontier::{FrontierRow, MemoryFrontier};
pub(crate) use passes::{Passes, PlannedPasses};
