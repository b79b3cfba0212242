//! Values in a file: written after they are computed, and read back before they are needed again.
//!
//! Only a budget that names a folder ([`MemoryBudget::spill_to`](crate::MemoryBudget::spill_to)) spills. The file has no name in
//! its folder and is gone with the function. It is read and written, not mapped: mapped pages would stay resident until the system
//! takes them, so no number of bytes could be promised.

mod file;
mod graph;
mod op;

pub(crate) use file::{SpillFile, static_path};
pub(crate) use graph::with_spilled_values;
