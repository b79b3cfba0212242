//! What the traces of a function need of its options.

use crate::budget::MemoryBudget;
use taut_exec::ExecutableOptions;

/// The options of a function that its traces need.
pub(crate) struct FunctionOptions {
    /// The function's name, for messages.
    pub(crate) name: String,
    pub(crate) executable: ExecutableOptions,
    pub(crate) budget: Option<MemoryBudget>,
}
