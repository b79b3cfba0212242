//! Loops: one op for all of them.

mod build;
mod checkpoints;
mod definition;
mod fixed_steps;
mod functions;
mod gradient;
mod op;
mod options;
mod prune;
pub mod recurrent;
mod report;
mod row_rule;
mod rows;
mod run;
mod schedule;
mod shape_invariants;
mod signature;
mod step_gradient;
mod vmap;
mod while_loop;

pub(crate) use definition::LoopOp;
pub(crate) use fixed_steps::{FixedSteps, element_count};
pub use functions::{foldl, foldr, fori_loop, scan, while_loop};
pub(crate) use gradient::backward_arena_bytes;
pub use options::Loops;
pub use report::LoopReport;
pub(crate) use shape_invariants::runs_op_by_op;
pub(crate) use signature::StepCount;
pub(crate) use vmap::loop_over_batch;
