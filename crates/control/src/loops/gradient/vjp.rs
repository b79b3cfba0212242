//! The vector-Jacobian product of a loop.

use super::backward_loop::{
    ForwardValues, OutputGradients, apply_backward_loop, input_gradients, recomputed_vjp, with_limit,
};
use super::checkpointed::checkpointed_vjp;
use crate::loops::definition::LoopOp;
use crate::vjp::{is_backward_recorded, saved_inputs};
use taut_core::{Gradients, Result, VjpCall};

/// The gradients of a loop's inputs.
pub(crate) fn vjp(op: &LoopOp, call: &mut VjpCall<'_>) -> Result<Gradients> {
    let signature = op.signature();
    match &op.gradient {
        Some(gradient) if gradient.uses_checkpoints => checkpointed_vjp(op, gradient, call),
        Some(gradient) if !is_backward_recorded(call) => {
            let given_count = signature.inputs.count.first().map(|count| call.input(count).cloned());
            let made_count = || signature.outputs.count.first().map(|count| call.output(count).cloned());
            let count = given_count.or_else(made_count).transpose()?;
            let given = OutputGradients::take(call, op, count);
            let input = |i: usize| call.input(i).cloned();
            let stack = |k: usize| call.output(signature.outputs.stack(k)).cloned();
            let last_state = |k: usize| call.output(signature.outputs.states.at(k)).cloned();
            let forward = ForwardValues { input: &input, stack: &stack, last_state: &last_state };
            let found = apply_backward_loop(op, gradient, &forward, given)?;
            Ok(input_gradients(op, gradient, found))
        }
        _ => {
            let made = signature.outputs.count.first();
            let count = made.and_then(|count| call.outputs[count].value.clone());
            let (op, wanted) = (with_limit(op, count.as_ref())?, call.wanted);
            let inputs = saved_inputs(call)?;
            let given = OutputGradients::take(call, &op, None);
            recomputed_vjp(&op, wanted, &inputs, given)
        }
    }
}
