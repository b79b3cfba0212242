//! Running a checkpointed backward pass.

use super::definition::CheckpointedBackward;
use crate::loops::checkpoints::states_in_row;
use crate::loops::rows::{StackRows, StepInputs, step_count};
use crate::loops::schedule::{
    BackwardAction, BackwardSchedule, FixedLengthSchedule, OnlineSchedule, recomputed_steps,
};
use crate::runner::BodyRunner;
use crate::scratch::input_bytes;
use smallvec::SmallVec;
use taut_core::Result;
use taut_kernels::{Arg, ViewMut};

/// The scratch memory: second buffers, and an arena for the two bodies, which never run at the same time.
pub(super) fn scratch_bytes(op: &CheckpointedBackward) -> usize {
    let second_buffers = op.advance.second_buffer_bytes() + op.reverse.second_buffer_bytes();
    second_buffers + op.advance.arena_bytes().max(op.reverse.arena_bytes())
}

/// Runs the backward pass.
pub(super) fn run(
    op: &CheckpointedBackward,
    inputs: &[Arg<'_>],
    outputs: &mut [ViewMut<'_>],
    scratch: &mut [u8],
) -> Result<()> {
    let signature = op.signature();
    let carried = signature.buffer.of(inputs).iter().chain(&inputs[signature.inputs.carried()]);
    for (input, output) in carried.zip(outputs.iter_mut()) {
        if let Arg::View(_) = input {
            output.bytes().copy_from_slice(input_bytes(input));
        }
    }
    let limit = op.forward.steps.limit();
    let steps = signature.count.of(inputs).first().map_or(limit, |count| step_count(count).min(limit));
    let mut pass = BackwardPass::new(op, inputs, outputs, scratch, steps)?;
    let (is_fixed, slots) = (op.forward.steps.is_fixed(), op.checkpoints);
    // A forward pass of fixed length left the state before its last step in the working row.
    let mut schedule = if is_fixed {
        BackwardSchedule::new(&FixedLengthSchedule::checkpoints(steps, slots), steps, slots)
    } else {
        BackwardSchedule::after_overwrite(&OnlineSchedule::checkpoints_after(steps, slots), steps, slots)
    };
    while let Some(action) = schedule.next() {
        match action {
            BackwardAction::Load(checkpoint) => pass.load(checkpoint.slot),
            BackwardAction::Store(checkpoint) => pass.store(checkpoint.slot),
            BackwardAction::Advance { from, steps } => pass.advance(from, steps)?,
            BackwardAction::Reverse { step, slot } => pass.reverse(step, slot)?,
        }
    }
    let recomputed = pass.finish();
    if let Some(report) = &op.forward.report {
        let least = recomputed_steps(steps + usize::from(!is_fixed), slots);
        report.record_backward(steps, least, recomputed);
    }
    Ok(())
}

/// The memory of a backward pass.
struct BackwardPass<'a> {
    op: &'a CheckpointedBackward,
    steps: usize,
    /// The first states, which are slot 0.
    first: SmallVec<[&'a [u8]; 8]>,
    /// Slices and stack gradients by rows, and captures.
    step_inputs: StepInputs<'a>,
    /// The rows of slots 1, 2, ...
    checkpoints: &'a mut [u8],
    row_bytes: usize,
    working: SmallVec<[&'a mut [u8]; 8]>,
    /// The state gradients and capture sums.
    carried: SmallVec<[&'a mut [u8]; 8]>,
    slice_gradients: SmallVec<[StackRows<'a>; 8]>,
    advance: BodyRunner<'a>,
    reverse: BodyRunner<'a>,
    arena: &'a mut [u8],
    recomputed: u64,
}

impl<'a> BackwardPass<'a> {
    fn new(
        op: &'a CheckpointedBackward,
        inputs: &[Arg<'a>],
        outputs: &'a mut [ViewMut<'_>],
        mut scratch: &'a mut [u8],
        steps: usize,
    ) -> Result<BackwardPass<'a>> {
        let signature = op.signature();
        let first: SmallVec<[&[u8]; 8]> =
            signature.inputs.states.of(inputs).iter().map(input_bytes).collect();
        let step_inputs = StepInputs::new(
            inputs[signature.inputs.rows()].iter(),
            signature.body.rows().map(|input| op.reverse.input(input)),
            signature.inputs.captures.of(inputs).iter(),
        );
        let mut outputs = outputs.iter_mut().map(ViewMut::bytes);
        let buffer = outputs.next().unwrap_or_default();
        let carried = outputs.by_ref().take(signature.inputs.carried().len()).collect();
        let rows = outputs.zip(signature.body_slice_gradients.positions());
        let slice_gradients = rows.map(|(bytes, output)| StackRows::new(bytes, op.reverse.output(output)));
        let row_bytes = op.forward.checkpoint_bytes();
        let (checkpoints, working) = buffer.split_at_mut((op.checkpoints - 1) * row_bytes);
        Ok(BackwardPass {
            op,
            steps,
            step_inputs,
            checkpoints,
            row_bytes,
            working: states_in_row(working, first.iter().map(|state| state.len())),
            first,
            carried,
            slice_gradients: slice_gradients.collect(),
            advance: BodyRunner::new(&op.advance, &mut scratch)?,
            reverse: BodyRunner::new(&op.reverse, &mut scratch)?,
            arena: scratch,
            recomputed: 0,
        })
    }

    /// The row of slices and stacks that a step reads and writes.
    fn row(&self, step: usize) -> usize {
        if self.op.forward.reverse { self.steps - 1 - step } else { step }
    }

    fn index(&self, row: usize) -> i64 {
        (self.op.forward.first_index + row) as i64
    }

    /// Copies a checkpoint to the working state.
    fn load(&mut self, slot: usize) {
        let BackwardPass { first, checkpoints, row_bytes, working, .. } = self;
        if slot == 0 {
            working.iter_mut().zip(first).for_each(|(working, first)| working.copy_from_slice(first));
        } else {
            let kept = slot_states(checkpoints, *row_bytes, slot, first);
            working.iter_mut().zip(kept).for_each(|(working, kept)| working.copy_from_slice(kept));
        }
    }

    /// Copies the working state to a slot.
    fn store(&mut self, slot: usize) {
        let BackwardPass { first, checkpoints, row_bytes, working, .. } = self;
        let kept = slot_states(checkpoints, *row_bytes, slot, first);
        kept.into_iter().zip(working).for_each(|(kept, working)| kept.copy_from_slice(working));
    }

    /// Runs forward steps on the working state.
    fn advance(&mut self, from: usize, steps: usize) -> Result<()> {
        self.recomputed += steps as u64;
        for step in from..from + steps {
            let row = self.row(step);
            let index = self.index(row);
            let rest = self.step_inputs.first(self.op.forward.arity.slices, row);
            self.advance.run([bytemuck::bytes_of(&index)], &mut self.working, rest, [], self.arena)?;
        }
        Ok(())
    }

    /// Reverses a step whose state is in a slot, or the working state.
    fn reverse(&mut self, step: usize, slot: Option<usize>) -> Result<()> {
        let row = self.row(step);
        let index = self.index(row);
        let mut before: SmallVec<[&[u8]; 8]> = SmallVec::new();
        before.push(bytemuck::bytes_of(&index));
        match slot {
            None => before.extend(self.working.iter().map(|state| &**state)),
            Some(0) => before.extend(self.first.iter().copied()),
            Some(slot) => {
                let kept = slot_states(self.checkpoints, self.row_bytes, slot, &self.first);
                before.extend(kept.into_iter().map(|state| &*state));
            }
        }
        let rest = self.step_inputs.at(row);
        let gradients = self.slice_gradients.iter_mut().map(|gradient| gradient.row(row));
        self.reverse.run(before, &mut self.carried, rest, gradients, self.arena)
    }

    /// Moves the gradients to the outputs, and returns how many steps were recomputed.
    fn finish(mut self) -> u64 {
        self.reverse.finish(&mut self.carried);
        self.slice_gradients.iter_mut().for_each(|gradient| gradient.zero_from(self.steps));
        self.recomputed
    }
}

/// The states in a slot other than 0, each as large as the first one.
fn slot_states<'r>(
    checkpoints: &'r mut [u8],
    row_bytes: usize,
    slot: usize,
    first: &[&[u8]],
) -> SmallVec<[&'r mut [u8]; 8]> {
    let row = &mut checkpoints[(slot - 1) * row_bytes..slot * row_bytes];
    states_in_row(row, first.iter().map(|state| state.len()))
}
