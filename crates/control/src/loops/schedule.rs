//! Checkpoint schedules: which states of a loop are kept, and which are recomputed, for a gradient in fixed memory.
//!
//! A loop makes `n` steps; step `i` computes state `i + 1` from state `i`, and reversing step `i` needs state `i`. There are
//! `slots` for checkpoints; state 0 has one of them. Besides, there is one *working state*: the one that steps are run on.
//!
//! Nothing here touches a tensor: a schedule only decides. The forward pass calls [`FixedLengthSchedule::slot_for`] or
//! [`OnlineSchedule::slot_for`] before each step; the backward pass executes the actions of a [`BackwardSchedule`].
//!
//! # The last state
//!
//! The formulas assume that the backward pass begins with state `n - 1` as the working state: the last step leaves its input
//! intact. A loop that updates its states in place, or that learns only from state `n` that it is over, has state `n` instead.
//! That is the same problem with one more step, whose reversal is free: checkpoint as for `n + 1` steps
//! ([`FixedLengthSchedule::new`]`(n + 1, slots)`), reverse with [`BackwardSchedule::after_overwrite`], and
//! [`recomputed_steps`]`(n + 1, slots)` steps are recomputed.

mod backward;
mod checkpoint;
mod fixed_length;
mod formula;
mod online;
#[cfg(test)]
mod tests;

pub(crate) use backward::{BackwardAction, BackwardSchedule};
pub(crate) use fixed_length::FixedLengthSchedule;
pub(crate) use formula::recomputed_steps;
pub(crate) use online::OnlineSchedule;
