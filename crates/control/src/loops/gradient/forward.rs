//! The forward pass of a loop that is differentiated: it saves what the backward pass needs.

use super::activity::StepDerivative;
use crate::context::residual_budget;
use crate::loops::checkpoints::Checkpoints;
use crate::loops::definition::LoopOp;
use crate::loops::signature::BodyInput;
use crate::loops::step_gradient::Residual;
use std::sync::Arc;
use taut_autodiff::joint::{JointGraph, SavedFrom, SplitGraph};
use taut_core::graph::{Origin, ValueId};
use taut_core::{Error, ErrorKind, Graph, Kernel, Result, Saves, Set, record};

/// How many states a loop of unknown length keeps without a gradient budget.
const DEFAULT_CHECKPOINTS: usize = 64;

/// The form of a loop that saves what its gradient needs; `None` if the inputs are all that it needs.
pub(crate) fn forward_with_residuals(op: &LoopOp, wanted: Set) -> Result<Option<LoopOp>> {
    if op.arity.states == 0 {
        return Ok(None);
    }
    let derivative = StepDerivative::new(op, wanted)?;
    let limit = op.steps.limit();
    if op.checkpoints.is_some() {
        // The checkpoints are outputs of a recorded call: this is the gradient of a gradient, which saves every step.
        if limit == usize::MAX {
            return Err(unbounded());
        }
        return Ok(Some(with_residual_stacks(op, derivative)?));
    }
    if limit != usize::MAX {
        let stacking = with_residual_stacks(op, derivative.clone())?;
        let rows = (op.arity.stacks..stacking.arity.stacks).map(|k| stacking.stack_spec(k).bytes());
        let bytes = rows.sum::<usize>().saturating_mul(limit);
        let inherited = || residual_budget(bytes).map(|budget| budget.max(op.checkpoint_bytes()));
        let Some(budget) = op.grad_budget.or_else(inherited) else { return Ok(Some(stacking)) };
        // Residuals of all steps fit: nothing is recomputed.
        if bytes <= budget && op.steps.is_fixed() {
            if let Some(report) = &op.report {
                report.record_forward(limit, bytes.checked_div(limit).unwrap_or(0));
                report.record_backward(limit, 0, 0);
            }
            return Ok(Some(stacking));
        }
        let limited = LoopOp { grad_budget: Some(budget), ..op.clone() };
        return with_checkpoints(&limited, derivative).map(Some);
    }
    with_checkpoints(op, derivative).map(Some)
}

/// The form of a loop that keeps as many states as the budget allows.
fn with_checkpoints(op: &LoopOp, derivative: StepDerivative) -> Result<LoopOp> {
    let one = op.checkpoint_bytes().max(1);
    let count = op.grad_budget.map_or(DEFAULT_CHECKPOINTS, |budget| budget / one);
    let count = count.clamp(1, op.steps.limit().max(1));
    if let Some(report) = &op.report {
        report.record_forward(count, one);
    }
    let mut gradient = derivative.into_recomputing_gradient(op)?;
    gradient.uses_checkpoints = true;
    let mut forward = op.clone();
    forward.checkpoints = Some(Checkpoints { count, stacks_before: op.arity.stacks });
    forward.gradient = Some(Arc::new(gradient));
    Ok(forward)
}

/// The form of a loop that writes the residuals of every step to further stacks.
pub(super) fn with_residual_stacks(op: &LoopOp, derivative: StepDerivative) -> Result<LoopOp> {
    let signature = op.signature();
    let visible = op.body.graph().outputs.len();
    let kept = kept_values(op, &derivative.joint);
    let SplitGraph { mut forward, backward, saved } = derivative.joint.split_keeping(visible, &kept)?;
    // The stacks are the outputs after the states.
    let stack_of = |output: usize| Residual::Stack(output - op.arity.states);
    let add_stack = |forward: &mut Graph, value: ValueId| {
        forward.outputs.push(value);
        stack_of(forward.outputs.len() - 1)
    };
    // The next step overwrites a state: its value before or after this step needs a stack. Those before the steps come first
    // among the saved values. One stack serves for both, and one of the loop's own may be it.
    let own_stack = |forward: &Graph, state: usize| {
        let value = forward.outputs[signature.body_outputs.states.at(state)];
        signature.body_outputs.stacks.positions().find(|&stack| forward.outputs[stack] == value)
    };
    let (mut residuals, mut old) = (Vec::new(), vec![None; op.arity.states]);
    for saved in saved {
        residuals.push(match saved {
            SavedFrom::Input(input) => match signature.body_inputs.kind(input) {
                BodyInput::State(k) => {
                    let value = forward.inputs[input];
                    old[k] = Some(forward.outputs.len() - op.arity.states);
                    add_stack(&mut forward, value)
                }
                kind => Residual::Input(kind),
            },
            SavedFrom::Output(output) => match signature.body_outputs.states.index_of(output) {
                None => stack_of(output),
                Some(state) => match (own_stack(&forward, state), old[state]) {
                    (Some(stack), _) => stack_of(stack),
                    (None, Some(old)) => Residual::NextState { state, old },
                    (None, None) => {
                        let value = forward.outputs[output];
                        add_stack(&mut forward, value)
                    }
                },
            },
        });
    }
    let mut stacking = op.with_body(forward);
    stacking.gradient = Some(Arc::new(derivative.into_gradient(backward, residuals)));
    Ok(stacking)
}

/// The values of a step that the forward pass keeps. Elementwise functions of other values that the backward pass has are computed
/// again there.
fn kept_values(op: &LoopOp, joint: &JointGraph) -> Vec<ValueId> {
    let (graph, signature) = (&joint.graph, op.signature());
    let saved = joint.saved_values();
    let mut is_known: Vec<bool> =
        graph.values.iter().map(|value| matches!(value.origin, Origin::Constant(_))).collect();
    for id in &saved {
        let Origin::Input(input) = graph.values[id.index()].origin else { continue };
        is_known[id.index()] = true;
        if let BodyInput::State(k) = signature.body_inputs.kind(input) {
            // Where the states before the steps are known, so are those after them.
            is_known[graph.outputs[signature.body_outputs.states.at(k)].index()] = true;
        }
    }
    let is_recomputed = |id: &ValueId| match graph.values[id.index()].origin {
        Origin::Node { node, .. } => {
            let node = &graph.nodes[node];
            let is_elementwise = matches!(node.op.kernel(), Kernel::Elementwise);
            is_elementwise && !is_known[id.index()] && node.inputs.iter().all(|id| is_known[id.index()])
        }
        _ => false,
    };
    saved.into_iter().filter(|id| !is_recomputed(id)).collect()
}

/// What a call of a loop saves.
pub(crate) fn saves(op: &LoopOp) -> Saves {
    let Some(gradient) = &op.gradient else {
        return Saves { inputs: Set::ALL, ..Saves::NOTHING };
    };
    let signature = op.signature();
    let (mut inputs, mut outputs) = (Set::NONE, Set::NONE);
    for residual in &gradient.residuals {
        match *residual {
            Residual::Input(kind) => {
                inputs = signature.inputs.source(kind).into_iter().fold(inputs, Set::with);
            }
            Residual::Stack(k) => outputs = outputs.with(signature.outputs.stack(k)),
            Residual::NextState { state, .. } => {
                outputs = outputs.with(signature.outputs.states.at(state));
            }
        }
    }
    inputs = signature.inputs.count.first().into_iter().fold(inputs, Set::with);
    outputs = signature.outputs.count.first().into_iter().fold(outputs, Set::with);
    if gradient.uses_checkpoints {
        outputs = signature.outputs.checkpoint_buffer.first().into_iter().fold(outputs, Set::with);
    }
    // If the backward pass is recorded as well, the forward pass is computed again from the inputs.
    if !record::has_single_use_recorder() {
        inputs = Set::ALL;
    }
    Saves { inputs, outputs, ..Saves::NOTHING }
}

#[cold]
pub(super) fn unbounded() -> Error {
    let message =
        "the gradient of a gradient needs a limit to the steps of the loop, to know how much it saves";
    // A function in which this happens runs op by op.
    Error::new(ErrorKind::DynamicShape, message).help("set maximum_iterations")
}
