//! Running a loop.
//!
//! The states live in the op's outputs, where the body updates them in place. Apart from that, a run needs the memory of one
//! body, whatever the number of steps.

use super::checkpoints::CheckpointWriter;
use super::definition::LoopOp;
use super::rows::{StackRows, StepInputs, step_count};
use super::signature::StepCount;
use crate::body::Body;
use crate::runner::BodyRunner;
use crate::scratch::{aligned, input_bytes, take_front};
use smallvec::SmallVec;
use taut_core::Result;
use taut_kernels::{Arg, ViewMut};

/// The scratch memory of a loop whose bodies are prepared: second buffers, the condition's result, and an arena for body and
/// condition, which never run at the same time.
pub(super) fn scratch_bytes(op: &LoopOp) -> usize {
    let (result, arena) =
        op.condition.as_ref().map_or((0, 0), |condition| (aligned(1), condition.arena_bytes()));
    op.body.second_buffer_bytes() + result + op.body.arena_bytes().max(arena)
}

/// Runs all steps of a loop.
pub(super) fn run(
    op: &LoopOp,
    inputs: &[Arg<'_>],
    outputs: &mut [ViewMut<'_>],
    scratch: &mut [u8],
) -> Result<()> {
    let mut scratch = scratch;
    let signature = op.signature().inputs;
    let step_inputs = StepInputs::new(
        signature.slices.of(inputs).iter(),
        (0..op.arity.slices).map(|i| op.slice_spec(i)),
        signature.captures.of(inputs).iter(),
    );
    let Outputs { mut states, count, mut stacks, checkpoint_buffer } = Outputs::new(op, outputs);
    for (state, initial) in states.iter_mut().zip(signature.states.of(inputs)) {
        if let Arg::View(_) = initial {
            state.copy_from_slice(input_bytes(initial));
        }
    }
    let mut writer = op.checkpoints.zip(checkpoint_buffer).map(|(checkpoints, buffer)| {
        CheckpointWriter::new(op.steps, checkpoints.count, op.checkpoint_bytes(), buffer)
    });
    let mut body = BodyRunner::new(&op.body, &mut scratch)?;
    let condition = op.condition.as_ref().map(|condition| Condition::new(condition, &mut scratch));
    let mut condition = condition.transpose()?;
    let arena = scratch;
    let limit = op.steps.limit();
    let steps = match op.steps {
        StepCount::Input(_) => step_count(&inputs[0]).min(limit),
        _ => limit,
    };
    let mut step = 0;
    while step < steps {
        let row = if op.reverse { steps - 1 - step } else { step };
        let index = (op.first_index + row) as i64;
        let index = bytemuck::bytes_of(&index);
        if let Some(condition) = &mut condition
            && !condition.holds(index, &states, step_inputs.at(row), arena)?
        {
            break;
        }
        if let Some(writer) = &mut writer {
            writer.maybe_checkpoint(step, &states);
        }
        let rows = stacks.iter_mut().map(|stack| stack.row(row));
        body.run([index], &mut states, step_inputs.at(row), rows, arena)?;
        step += 1;
    }
    body.finish(&mut states);
    if step < limit {
        stacks.iter_mut().for_each(|stack| stack.zero_from(step));
    }
    if let Some(count) = count {
        count.copy_from_slice(bytemuck::bytes_of(&(step as i64)));
    }
    Ok(())
}

/// The memory of a loop's outputs.
struct Outputs<'a> {
    states: SmallVec<[&'a mut [u8]; 8]>,
    count: Option<&'a mut [u8]>,
    stacks: SmallVec<[StackRows<'a>; 8]>,
    checkpoint_buffer: Option<&'a mut [u8]>,
}

impl<'a> Outputs<'a> {
    fn new(op: &LoopOp, outputs: &'a mut [ViewMut<'_>]) -> Outputs<'a> {
        let signature = op.signature().outputs;
        let (mut states, mut stacks) = (SmallVec::new(), SmallVec::new());
        let (mut count, mut checkpoint_buffer) = (None, None);
        for (position, output) in outputs.iter_mut().enumerate() {
            let bytes = output.bytes();
            if let Some(k) = signature.stack_at(position) {
                stacks.push(StackRows::new(bytes, op.stack_spec(k)));
            } else if signature.states.index_of(position).is_some() {
                states.push(bytes);
            } else if signature.count.index_of(position).is_some() {
                count = Some(bytes);
            } else {
                checkpoint_buffer = Some(bytes);
            }
        }
        Outputs { states, count, stacks, checkpoint_buffer }
    }
}

/// The condition of a `while`, with memory for its result.
struct Condition<'a> {
    runner: BodyRunner<'a>,
    result: &'a mut [u8],
}

impl<'a> Condition<'a> {
    #[expect(clippy::mut_mut, reason = "the borrowed slice itself is made shorter")]
    fn new(condition: &'a Body, scratch: &mut &'a mut [u8]) -> Result<Condition<'a>> {
        let result = &mut take_front(scratch, aligned(1))[..1];
        Ok(Condition { runner: BodyRunner::new(condition, scratch)?, result })
    }

    /// Whether another step is made.
    fn holds<'r>(
        &mut self,
        index: &[u8],
        states: &[&mut [u8]],
        rest: impl Iterator<Item = &'r [u8]>,
        arena: &mut [u8],
    ) -> Result<bool> {
        let states = states.iter().map(|state| &**state);
        self.runner.run([index].into_iter().chain(states), &mut [], rest, [&mut *self.result], arena)?;
        Ok(self.result[0] != 0)
    }
}
