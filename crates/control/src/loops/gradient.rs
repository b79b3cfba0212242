//! The gradient of a loop is a loop.
//!
//! The gradient of the body needs some values of each step. Those that change from step to step are written to further
//! stacks of the forward loop ([`forward_with_residuals`]); captures and slices are inputs anyway. The backward loop reads those
//! rows from the last to the first, carries the gradients of the states, sums those of the captures, and writes those of the
//! slices. A loop without states saves nothing: each of its steps can be recomputed on its own.
//!
//! With a budget, the forward loop keeps some states instead, and the backward pass is a
//! [`CheckpointedBackward`](checkpointed::CheckpointedBackward). A `while` that is differentiated eagerly runs in
//! [segments].

mod activity;
mod backward_body;
mod backward_loop;
mod checkpointed;
mod forward;
mod segments;
mod vjp;

pub(crate) use activity::backward_arena_bytes;
pub(crate) use forward::{forward_with_residuals, saves};
pub(crate) use segments::run_in_segments;
pub(crate) use vjp::vjp;
