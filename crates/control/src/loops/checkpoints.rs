//! Checkpoints: states of a loop that are kept at chosen steps, so that the backward pass can recompute the others.
//!
//! They are in the rows of one output, the *checkpoint buffer*. Row `s - 1` holds slot `s` of the schedule; slot 0 is the
//! first state, which is an input of the loop. The last row is the working state of the backward pass: a forward pass of
//! fixed length leaves the state before its last step there.

use super::schedule::{FixedLengthSchedule, OnlineSchedule};
use super::signature::StepCount;
use crate::scratch::{aligned, take_front};
use smallvec::SmallVec;

/// The checkpoints of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoints {
    /// How many states are kept, the first included. This is the number of rows of the buffer, too.
    pub(crate) count: usize,
    /// How many stacks come before the buffer among the outputs. Residual stacks, which only gradients read, come after it.
    pub(crate) stacks_before: usize,
}

/// The bytes of a row: states of these sizes, each aligned.
pub(crate) fn row_bytes(states: impl Iterator<Item = usize>) -> usize {
    states.map(aligned).sum()
}

/// The states in a row.
pub(crate) fn states_in_row(
    mut row: &mut [u8],
    sizes: impl Iterator<Item = usize>,
) -> SmallVec<[&mut [u8]; 8]> {
    sizes.map(|bytes| &mut take_front(&mut row, aligned(bytes))[..bytes]).collect()
}

/// Copies states of a forward pass to the checkpoint buffer, as the schedule decides.
pub(crate) struct CheckpointWriter<'a> {
    schedule: ForwardSchedule,
    /// The last step, if it is known: the state before it goes to the last row.
    last_step: Option<usize>,
    buffer: &'a mut [u8],
    count: usize,
    row_bytes: usize,
}

enum ForwardSchedule {
    FixedLength(FixedLengthSchedule),
    Online(OnlineSchedule),
}

impl<'a> CheckpointWriter<'a> {
    pub(crate) fn new(
        steps: StepCount,
        count: usize,
        row_bytes: usize,
        buffer: &'a mut [u8],
    ) -> CheckpointWriter<'a> {
        let (schedule, last_step) = match steps {
            StepCount::Fixed(steps) => {
                (ForwardSchedule::FixedLength(FixedLengthSchedule::new(steps, count)), steps.checked_sub(1))
            }
            _ => (ForwardSchedule::Online(OnlineSchedule::new(count)), None),
        };
        CheckpointWriter { schedule, last_step, buffer, count, row_bytes }
    }

    /// Keeps the states before a step, if the schedule decides so. To be called before every step, in order.
    pub(crate) fn maybe_checkpoint(&mut self, step: usize, states: &[&mut [u8]]) {
        let slot = match &mut self.schedule {
            ForwardSchedule::FixedLength(schedule) => schedule.slot_for(step),
            ForwardSchedule::Online(schedule) => schedule.slot_for(step),
        };
        let row = slot.and_then(|slot| slot.checked_sub(1));
        let working_row = (self.last_step == Some(step)).then(|| self.count.saturating_sub(1));
        for row in row.into_iter().chain(working_row) {
            let row = &mut self.buffer[row * self.row_bytes..(row + 1) * self.row_bytes];
            let kept = states_in_row(row, states.iter().map(|state| state.len()));
            kept.into_iter().zip(states).for_each(|(kept, state)| kept.copy_from_slice(state));
        }
    }
}
