//! The vector-Jacobian product of a loop.

use super::backward_loop::{
    ForwardValues, OutputGradients, apply_backward_loop, input_gradients, recomputed_vjp, with_limit,
};
use super::checkpointed::checkpointed_vjp;
use super::forward::forward_with_residuals;
use crate::loops::definition::LoopOp;
use crate::vjp::{is_backward_recorded, saved_inputs};
use taut_core::{Gradients, Result, SavedValue, Tensor, VjpCall, apply_many};

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
            let is_unlimited = op.steps.limit() == usize::MAX && count.as_ref().is_none_or(Tensor::is_traced);
            if is_unlimited && !is_backward_recorded(call) {
                return vjp_from_new_checkpoints(op, call);
            }
            let (op, wanted) = (with_limit(op, count.as_ref())?, call.wanted);
            let inputs = saved_inputs(call)?;
            let given = OutputGradients::take(call, &op, None);
            recomputed_vjp(&op, wanted, &inputs, given)
        }
    }
}

/// The gradients of a loop of unknown length that was not recorded: it runs again, and keeps checkpoints.
fn vjp_from_new_checkpoints(op: &LoopOp, call: &mut VjpCall<'_>) -> Result<Gradients> {
    let Some(forward) = forward_with_residuals(&op.without_gradient(), call.wanted)? else {
        return Ok(Gradients::new());
    };
    let Some(gradient) = forward.gradient.clone() else { return Ok(Gradients::new()) };
    let made = apply_many(&forward, saved_inputs(call)?)?;
    let mut outputs: Vec<SavedValue> =
        made.into_iter().map(|value| SavedValue { spec: value.spec().clone(), value: Some(value) }).collect();
    // The checkpoints are the last output.
    let mut gradients = std::mem::take(&mut call.gradients);
    gradients.resize(outputs.len(), None);
    let mut again = VjpCall {
        inputs: call.inputs,
        outputs: &mut outputs,
        residual: None,
        wanted: call.wanted,
        gradients,
        sums: std::mem::take(&mut call.sums),
    };
    checkpointed_vjp(&forward, &gradient, &mut again)
}
