//! The backward loop of a loop that saved the residuals of every step.

use super::activity::StepDerivative;
use super::backward_body::{BackwardStep, trace_backward_body};
use super::forward::{unbounded, with_residual_stacks};
use crate::hoist::hoist_invariants;
use crate::loops::definition::LoopOp;
use crate::loops::signature::{BodyInput, LoopSignature, StepCount};
use crate::loops::step_gradient::{Residual, StepGradient};
use crate::specs::index_spec;
use crate::vjp::or_zeros;
use taut_core::{
    Error, ErrorKind, Gradient, Gradients, Outputs, Result, Set, Spec, Tensor, VjpCall, apply_many,
};

/// What a backward pass starts from.
#[derive(Default)]
pub(super) struct OutputGradients {
    /// How many steps were made, if that is not fixed.
    pub(super) count: Option<Tensor>,
    /// The gradients of the last states.
    pub(super) states: Vec<Option<Tensor>>,
    /// The gradients of the stacks.
    pub(super) stacks: Vec<Option<Tensor>>,
    /// Per capture, the gradient from later steps and calls; those that are missing are zero.
    pub(super) capture_sums: Vec<Option<Tensor>>,
}

impl OutputGradients {
    /// The gradients of a call's outputs.
    pub(super) fn take(call: &mut VjpCall<'_>, op: &LoopOp, count: Option<Tensor>) -> OutputGradients {
        let LoopSignature { inputs, outputs, .. } = op.signature();
        let states = outputs.states.positions().map(|output| call.take_gradient(output)).collect();
        let stacks = (0..op.arity.stacks).map(|k| call.take_gradient(outputs.stack(k))).collect();
        let capture_sums = inputs.captures.positions().map(|input| call.take_sum(input)).collect();
        OutputGradients { count, states, stacks, capture_sums }
    }

    /// The sum for a capture that the backward pass starts from.
    pub(super) fn take_sum(&mut self, op: &LoopOp, capture: usize) -> Result<Tensor> {
        or_zeros(self.capture_sums.get_mut(capture).and_then(Option::take), op.capture_spec(capture))
    }
}

/// The values of a forward pass that a backward pass reads.
pub(super) struct ForwardValues<'a> {
    /// An input of the loop.
    pub(super) input: &'a dyn Fn(usize) -> Result<Tensor>,
    /// A stack of the loop.
    pub(super) stack: &'a dyn Fn(usize) -> Result<Tensor>,
}

/// The arguments of a backward loop, after the step count.
struct Arguments {
    values: Vec<Tensor>,
    /// The specs of the body's inputs, the index first.
    specs: Vec<Spec>,
}

impl Arguments {
    /// Adds an argument; returns its position among the body's inputs.
    fn push(&mut self, value: Tensor, body_spec: &Spec) -> usize {
        self.values.push(value);
        self.specs.push(body_spec.clone());
        self.specs.len() - 1
    }
}

/// Applies the backward loop. Returns the gradients of the active states, the sums for the active captures, and the
/// gradients of the active slices.
pub(super) fn apply_backward_loop(
    op: &LoopOp,
    gradient: &StepGradient,
    forward: &ForwardValues<'_>,
    mut given: OutputGradients,
) -> Result<Outputs> {
    let active = &gradient.active;
    let mut arguments = Arguments { values: Vec::new(), specs: vec![index_spec()] };
    let mut states = Vec::new();
    for &k in &active.states {
        let value = or_zeros(given.states[k].take(), op.state_spec(k))?;
        states.push(arguments.push(value, op.state_spec(k)));
    }
    let mut sums = Vec::new();
    for &i in &active.captures {
        let value = given.take_sum(op, i)?;
        sums.push(arguments.push(value, op.capture_spec(i)));
    }
    let carried = arguments.values.len();
    let mut residuals = push_residual_rows(op, gradient, forward, &mut arguments)?;
    // A stack without a gradient needs no rows of zeros.
    let mut stacks: Vec<Option<usize>> = Vec::new();
    for &k in &active.stacks {
        let gradient = given.stacks[k].take();
        stacks.push(gradient.map(|gradient| arguments.push(gradient, op.stack_spec(k))));
    }
    let rows = arguments.values.len() - carried;
    push_residual_captures(op, gradient, forward, &mut arguments, &mut residuals)?;
    let graph = trace_backward_body(op, gradient, &arguments.specs, |body| {
        let pick = |position: &usize| body[*position].clone();
        let mut inputs: Vec<Tensor> = residuals.iter().chain(&states).map(pick).collect();
        for (&k, position) in active.stacks.iter().zip(&stacks) {
            inputs.push(or_zeros(position.as_ref().map(pick), op.stack_spec(k))?);
        }
        Ok(BackwardStep { inputs, capture_sums: sums.iter().map(pick).collect() })
    })?;
    let captures = arguments.values.split_off(carried + rows);
    let (graph, captures) = hoist_invariants(graph, captures)?;
    let steps = match op.steps {
        StepCount::Fixed(steps) => StepCount::Fixed(steps),
        StepCount::While(limit) | StepCount::Input(limit) => StepCount::Input(limit),
    };
    let backward = LoopOp::new("loop_gradient", (graph, None), (carried, rows), steps, op.options);
    let backward = LoopOp { reverse: !op.reverse, first_index: op.first_index, ..backward };
    apply_many(&backward, given.count.into_iter().chain(arguments.values).chain(captures).collect())
}

/// Adds the slices and stacks among the residuals. Returns the position of each residual among the body's inputs; that of the
/// index is 0, and those of captures follow.
fn push_residual_rows(
    op: &LoopOp,
    gradient: &StepGradient,
    forward: &ForwardValues<'_>,
    arguments: &mut Arguments,
) -> Result<Vec<usize>> {
    let inputs = op.signature().inputs;
    let mut positions = vec![0; gradient.residuals.len()];
    for (position, residual) in positions.iter_mut().zip(&gradient.residuals) {
        *position = match *residual {
            Residual::Input(BodyInput::Slice(i)) => {
                arguments.push((forward.input)(inputs.slices.at(i))?, op.slice_spec(i))
            }
            Residual::Stack(k) => arguments.push((forward.stack)(k)?, op.stack_spec(k)),
            Residual::Input(_) => continue,
        };
    }
    Ok(positions)
}

fn push_residual_captures(
    op: &LoopOp,
    gradient: &StepGradient,
    forward: &ForwardValues<'_>,
    arguments: &mut Arguments,
    positions: &mut [usize],
) -> Result<()> {
    let inputs = op.signature().inputs;
    for (position, residual) in positions.iter_mut().zip(&gradient.residuals) {
        if let Residual::Input(BodyInput::Capture(i)) = *residual {
            *position = arguments.push((forward.input)(inputs.captures.at(i))?, op.capture_spec(i));
        }
    }
    Ok(())
}

/// The gradients of a loop's inputs, from those of its active states, captures and slices in this order.
pub(super) fn input_gradients(
    op: &LoopOp,
    gradient: &StepGradient,
    found: impl IntoIterator<Item = Tensor>,
) -> Gradients {
    let inputs = op.signature().inputs;
    let mut gradients: Gradients = (0..inputs.len()).map(|_| None).collect();
    for (position, found) in gradient.active.inputs(inputs).zip(found) {
        gradients[position] = Some(Gradient::Dense(found));
    }
    gradients
}

/// The gradients of a loop's inputs by two loops that are recorded: one that computes the forward pass again and saves the residuals
/// of every step, and the backward loop.
pub(super) fn recomputed_vjp(
    op: &LoopOp,
    wanted: Set,
    inputs: &[Tensor],
    mut given: OutputGradients,
) -> Result<Gradients> {
    let op = op.without_gradient();
    let signature = op.signature();
    let derivative = StepDerivative::new(&op, wanted)?;
    given.count = signature.inputs.count.first().map(|count| inputs[count].clone());
    let input = |i: usize| Ok(inputs[i].clone());
    if op.arity.states == 0 {
        let gradient = derivative.into_recomputing_gradient(&op)?;
        let stack =
            |_: usize| Err(Error::new(ErrorKind::Graph, "a loop without states has no residual stacks"));
        let forward = ForwardValues { input: &input, stack: &stack };
        return Ok(input_gradients(&op, &gradient, apply_backward_loop(&op, &gradient, &forward, given)?));
    }
    let mut stacking = with_residual_stacks(&op, derivative)?;
    let Some(gradient) = stacking.gradient.take() else { return Ok(Gradients::new()) };
    let outputs: Outputs = apply_many(&stacking, inputs.to_vec())?;
    let positions = stacking.signature().outputs;
    given.count = given.count.or_else(|| positions.count.first().map(|count| outputs[count].clone()));
    let stack = |k: usize| Ok(outputs[positions.stack(k)].clone());
    let forward = ForwardValues { input: &input, stack: &stack };
    let found = apply_backward_loop(&stacking, &gradient, &forward, given)?;
    Ok(input_gradients(&stacking, &gradient, found))
}

/// A loop with a limit to its steps; the number that it made, if it has none.
pub(super) fn with_limit(op: &LoopOp, count: Option<&Tensor>) -> Result<LoopOp> {
    let mut op = op.clone();
    if op.steps.limit() == usize::MAX {
        let count = count.filter(|count| !count.is_traced()).ok_or_else(unbounded)?;
        op.steps = StepCount::While(count.item::<i64>()?.max(0) as usize);
    }
    Ok(op)
}
