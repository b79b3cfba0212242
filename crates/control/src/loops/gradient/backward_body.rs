//! The body of a backward pass.

use crate::loops::definition::LoopOp;
use crate::loops::step_gradient::StepGradient;
use crate::vjp::or_zeros;
use taut_autodiff::joint::InputGradient;
use taut_core::{Graph, Result, Spec, Tensor, record, trace};

/// What a backward step computes with.
pub(super) struct BackwardStep {
    /// The inputs of [`StepGradient::backward`] up to the sums: residuals, gradients of the active states, gradients of the active
    /// stacks.
    pub(super) inputs: Vec<Tensor>,
    /// The gradients of the active captures, summed over the steps so far.
    pub(super) capture_sums: Vec<Tensor>,
    /// The values of states before the step, which the backward step of the previous step reads as those after it.
    pub(super) next_states: Vec<Tensor>,
}

/// Traces the body of a backward pass, from inputs of these specs to the gradients of the active states, the sums for the
/// active captures, the next states, and the gradients of the active slices. `arrange` picks the values of a step from the inputs.
pub(super) fn trace_backward_body(
    op: &LoopOp,
    gradient: &StepGradient,
    specs: &[Spec],
    arrange: impl FnOnce(&[Tensor]) -> Result<BackwardStep>,
) -> Result<Graph> {
    let body = op.signature().body_inputs;
    let active = &gradient.active;
    let traced = record::without_recording(|| {
        trace(specs, |arguments| {
            let BackwardStep { mut inputs, capture_sums, next_states } = arrange(arguments)?;
            inputs.extend_from_slice(&capture_sums);
            let found = gradient.backward.run(&inputs)?;
            let gradient_of = |input: usize| match gradient.input_gradients[input] {
                InputGradient::Dense(output) => Some(found[output].clone()),
                _ => None,
            };
            let mut results = Vec::new();
            for &k in &active.states {
                results.push(or_zeros(gradient_of(body.states.at(k)), op.state_spec(k))?);
            }
            for (&i, sum) in active.captures.iter().zip(capture_sums) {
                results.push(gradient_of(body.captures.at(i)).unwrap_or(sum));
            }
            results.extend(next_states);
            for &i in &active.slices {
                results.push(or_zeros(gradient_of(body.slices.at(i)), op.slice_spec(i))?);
            }
            Ok(results)
        })
    })?;
    Ok(traced.graph)
}
