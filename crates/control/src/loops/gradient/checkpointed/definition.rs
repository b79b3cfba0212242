//! The op that reverses a loop step by step, from checkpoints.

use super::signature::CheckpointedSignature;
use crate::body::Body;
use crate::loops::definition::LoopOp;
use crate::loops::gradient::backward_body::{BackwardStep, trace_backward_body};
use crate::loops::gradient::backward_loop::{OutputGradients, input_gradients};
use crate::loops::step_gradient::StepGradient;
use crate::specs::{index_spec, stacked_spec};
use crate::vjp::or_zeros;
use std::fmt;
use std::sync::Arc;
use taut_core::{Gradients, Graph, Result, Spec, Tensor, VjpCall, apply_many};

/// Reverses a loop step by step, recomputing the states between checkpoints. Its inputs and outputs are those of
/// [`CheckpointedSignature`].
#[derive(Clone)]
pub(super) struct CheckpointedBackward {
    /// The loop, without checkpoints.
    pub(super) forward: LoopOp,
    pub(super) gradient: Arc<StepGradient>,
    /// How many checkpoints there are, the first state included.
    pub(super) checkpoints: usize,
    /// One forward step, without stacks.
    pub(super) advance: Arc<Body>,
    /// One backward step.
    pub(super) reverse: Arc<Body>,
    /// Per output that is the new value of an input, that input.
    pub(super) aliases: Vec<[usize; 1]>,
}

/// The gradients of a loop that kept checkpoints.
pub(in crate::loops::gradient) fn checkpointed_vjp(
    op: &LoopOp,
    gradient: &Arc<StepGradient>,
    call: &mut VjpCall<'_>,
) -> Result<Gradients> {
    let (signature, active) = (op.signature(), &gradient.active);
    let made_count = signature.outputs.count.first().map(|count| call.output(count).cloned());
    let given_count = signature.inputs.count.first().map(|count| call.input(count).cloned());
    let count = given_count.or(made_count).transpose()?;
    let mut given = OutputGradients::take(call, op, None);
    let mut arguments: Vec<Tensor> = count.into_iter().collect();
    arguments.push(call.take_output(signature.outputs.checkpoint_buffer.at(0))?);
    for input in signature.inputs.states.positions() {
        arguments.push(call.input(input)?.clone());
    }
    for &k in &active.states {
        arguments.push(or_zeros(given.states[k].take(), op.state_spec(k))?);
    }
    for &i in &active.captures {
        arguments.push(given.take_sum(op, i)?);
    }
    for input in signature.inputs.slices.positions() {
        arguments.push(call.input(input)?.clone());
    }
    for &k in &active.stacks {
        let spec = stacked_spec(op.steps.limit(), op.stack_spec(k));
        arguments.push(or_zeros(given.stacks[k].take(), &spec)?);
    }
    for input in signature.inputs.captures.positions() {
        arguments.push(call.input(input)?.clone());
    }
    let mut found = apply_many(&CheckpointedBackward::new(op, gradient)?, arguments)?;
    found.remove(0); // the checkpoint buffer
    Ok(input_gradients(op, gradient, found))
}

impl CheckpointedBackward {
    fn new(op: &LoopOp, gradient: &Arc<StepGradient>) -> Result<CheckpointedBackward> {
        let signature = CheckpointedSignature::new(op, &gradient.active);
        let reverse = backward_step(op, gradient, signature)?;
        let updates = signature.body.carried().map(Some);
        let updates = updates.chain(signature.body_slice_gradients.positions().map(|_| None)).collect();
        let aliases = signature.buffer.positions().chain(signature.inputs.carried());
        Ok(CheckpointedBackward {
            forward: op.without_gradient(),
            gradient: gradient.clone(),
            checkpoints: op.checkpoints.map_or(1, |checkpoints| checkpoints.count),
            advance: Arc::new(forward_step(op)?),
            reverse: Arc::new(Body::new(reverse, updates)),
            aliases: aliases.map(|input| [input]).collect(),
        })
    }

    pub(super) fn signature(&self) -> CheckpointedSignature {
        CheckpointedSignature::new(&self.forward, &self.gradient.active)
    }
}

/// The body of a loop without its stacks.
fn forward_step(op: &LoopOp) -> Result<Body> {
    let (graph, signature) = (op.body.graph(), op.signature());
    let states = signature.body_outputs.states.of(&graph.outputs);
    let step = graph.part(&graph.inputs, states)?;
    Ok(Body::new(step, signature.body_inputs.states.positions().map(Some).collect()))
}

/// The graph of a backward step: from the index and the backward values.
fn backward_step(op: &LoopOp, gradient: &StepGradient, signature: CheckpointedSignature) -> Result<Graph> {
    let (active, body) = (&gradient.active, signature.body);
    let mut specs: Vec<Spec> = vec![index_spec()];
    specs.extend((0..op.arity.states).map(|k| op.state_spec(k).clone()));
    specs.extend(active.states.iter().map(|&k| op.state_spec(k).clone()));
    specs.extend(active.captures.iter().map(|&i| op.capture_spec(i).clone()));
    specs.extend((0..op.arity.slices).map(|i| op.slice_spec(i).clone()));
    specs.extend(active.stacks.iter().map(|&k| op.stack_spec(k).clone()));
    specs.extend((0..op.arity.captures).map(|i| op.capture_spec(i).clone()));
    trace_backward_body(op, gradient, &specs, |values| {
        // The residuals are all inputs of the forward step.
        let mut inputs = vec![values[0].clone()];
        for span in [body.states, body.slices, body.captures, body.state_gradients, body.stack_gradients] {
            inputs.extend_from_slice(span.of(values));
        }
        let capture_sums = body.capture_sums.of(values).to_vec();
        Ok(BackwardStep { inputs, capture_sums, next_states: Vec::new() })
    })
}

impl fmt::Debug for CheckpointedBackward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckpointedBackward({:?}, checkpoints={})", self.forward, self.checkpoints)
    }
}
