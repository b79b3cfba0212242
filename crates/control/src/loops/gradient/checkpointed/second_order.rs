//! The gradient of a checkpointed backward pass: by loops that save every step.

use super::definition::CheckpointedBackward;
use crate::loops::gradient::backward_loop::{OutputGradients, recomputed_vjp, with_limit};
use crate::specs::stacked_spec;
use crate::vjp::{or_zeros, saved_inputs};
use taut_autodiff::{GradientTape, joint, optimization_barrier};
use taut_core::{Gradient, Gradients, Result, Spec, Tensor, VjpCall};

pub(super) fn vjp(op: &CheckpointedBackward, call: &mut VjpCall<'_>) -> Result<Gradients> {
    // Each a tensor of its own: a tensor that is both a state and a capture has two gradients here.
    let inputs = saved_inputs(call)?;
    let inputs: Vec<Tensor> =
        inputs.iter().map(|input| optimization_barrier(input, &[])).collect::<Result<_>>()?;
    // The checkpoints are computed from the first states, and no gradient flows through them.
    let is_wanted = |i: usize| call.wants(i) && inputs[i].dtype().is_inexact();
    let sources: Vec<usize> = (0..inputs.len()).filter(|&i| is_wanted(i)).collect();
    let tape = GradientTape::new();
    let watched: Vec<Tensor> = sources.iter().map(|&i| inputs[i].clone()).collect();
    tape.watch(&watched);
    let outputs = recomputed_outputs(op, &inputs)?;
    // The first output is the checkpoint buffer.
    let (mut with_gradient, mut gradients) = (Vec::new(), Vec::new());
    for n in 0..outputs.len() {
        if let Some(gradient) = call.take_gradient(1 + n) {
            with_gradient.push(n);
            gradients.push(gradient);
        }
    }
    let mut found: Gradients = (0..inputs.len()).map(|_| None).collect();
    let answers = joint::vjp(&tape, &outputs, &with_gradient, &gradients, watched)?;
    for (&i, gradient) in sources.iter().zip(answers) {
        found[i] = gradient.map(Gradient::dense).transpose()?.map(Gradient::Dense);
    }
    Ok(found)
}

/// The outputs after the checkpoint buffer, computed by recorded loops.
fn recomputed_outputs(op: &CheckpointedBackward, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let (signature, active) = (op.signature(), &op.gradient.active);
    let count = signature.count.of(inputs);
    let forward = with_limit(&op.forward, count.first())?;
    let positions = forward.signature().inputs;
    let loop_inputs: Vec<Tensor> = (if positions.count.len() == 1 { count } else { &[] })
        .iter()
        .chain(signature.inputs.states.of(inputs))
        .chain(signature.inputs.slices.of(inputs))
        .chain(signature.inputs.captures.of(inputs))
        .cloned()
        .collect();
    let mut given = OutputGradients {
        states: vec![None; forward.arity.states],
        stacks: vec![None; forward.arity.stacks],
        ..OutputGradients::default()
    };
    for (&k, gradient) in active.states.iter().zip(signature.inputs.state_gradients.of(inputs)) {
        given.states[k] = Some(gradient.clone());
    }
    for (&k, gradient) in active.stacks.iter().zip(signature.inputs.stack_gradients.of(inputs)) {
        given.stacks[k] = Some(gradient.clone());
    }
    given.capture_sums = vec![None; forward.arity.captures];
    for (&i, sum) in active.captures.iter().zip(signature.inputs.capture_sums.of(inputs)) {
        given.capture_sums[i] = Some(sum.clone());
    }
    let mut found = recomputed_vjp(&forward, active.wanted(positions), &loop_inputs, given)?;
    let mut take = |position: usize, spec: &Spec| match found.get_mut(position).and_then(Option::take) {
        Some(gradient) => gradient.dense(),
        None => or_zeros(None, spec),
    };
    let mut outputs = Vec::new();
    for &k in &active.states {
        outputs.push(take(positions.states.at(k), forward.state_spec(k))?);
    }
    for &i in &active.captures {
        outputs.push(take(positions.captures.at(i), forward.capture_spec(i))?);
    }
    for &i in &active.slices {
        let spec = stacked_spec(forward.steps.limit(), forward.slice_spec(i));
        outputs.push(take(positions.slices.at(i), &spec)?);
    }
    Ok(outputs)
}
