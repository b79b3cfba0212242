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
use std::ops::Range;
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
    /// A state after the last step.
    pub(super) last_state: &'a dyn Fn(usize) -> Result<Tensor>,
}

/// The arguments of a backward loop, after the step count, and where the values of a step are among the inputs of its body.
struct Arguments {
    values: Vec<Tensor>,
    /// The specs of the body's inputs, the index first.
    specs: Vec<Spec>,
    /// The gradients of the active states.
    states: Vec<usize>,
    /// The sums for the active captures.
    sums: Vec<usize>,
    /// Per residual.
    residuals: Vec<usize>,
    /// The gradients of the active stacks, where there are some: a stack without a gradient needs no rows of zeros.
    stacks: Vec<Option<usize>>,
    /// The arguments that are carried, and those among them that are states after the step.
    carried: usize,
    next_states: Range<usize>,
    /// The arguments that are read by rows.
    rows: usize,
}

impl Arguments {
    fn new(
        op: &LoopOp,
        gradient: &StepGradient,
        forward: &ForwardValues<'_>,
        given: &mut OutputGradients,
    ) -> Result<Arguments> {
        let mut all = Arguments {
            values: Vec::new(),
            specs: vec![index_spec()],
            states: Vec::new(),
            sums: Vec::new(),
            residuals: vec![0; gradient.residuals.len()],
            stacks: Vec::new(),
            carried: 0,
            next_states: 0..0,
            rows: 0,
        };
        let active = &gradient.active;
        for &k in &active.states {
            let position = all.push(or_zeros(given.states[k].take(), op.state_spec(k))?, op.state_spec(k));
            all.states.push(position);
        }
        for &i in &active.captures {
            let position = all.push(given.take_sum(op, i)?, op.capture_spec(i));
            all.sums.push(position);
        }
        let before = all.values.len();
        all.push_residuals(gradient, |residual| match residual {
            Residual::NextState { state, .. } => Some(((forward.last_state)(state), op.state_spec(state))),
            _ => None,
        })?;
        all.carried = all.values.len();
        all.next_states = before..all.carried;
        // The index is input 0 of the body.
        let inputs = op.signature().inputs;
        all.push_residuals(gradient, |residual| match residual {
            Residual::Input(BodyInput::Slice(i)) => {
                Some(((forward.input)(inputs.slices.at(i)), op.slice_spec(i)))
            }
            Residual::Stack(k) => Some(((forward.stack)(k), op.stack_spec(k))),
            _ => None,
        })?;
        for &k in &active.stacks {
            let position = given.stacks[k].take().map(|gradient| all.push(gradient, op.stack_spec(k)));
            all.stacks.push(position);
        }
        all.rows = all.values.len() - all.carried;
        all.push_residuals(gradient, |residual| match residual {
            Residual::Input(BodyInput::Capture(i)) => {
                Some(((forward.input)(inputs.captures.at(i)), op.capture_spec(i)))
            }
            _ => None,
        })?;
        Ok(all)
    }

    /// Adds an argument; returns its position among the body's inputs.
    fn push(&mut self, value: Tensor, body_spec: &Spec) -> usize {
        self.values.push(value);
        self.specs.push(body_spec.clone());
        self.specs.len() - 1
    }

    /// Adds the residuals that `find` finds, each with its spec in the body.
    fn push_residuals<'s>(
        &mut self,
        gradient: &StepGradient,
        find: impl Fn(Residual) -> Option<(Result<Tensor>, &'s Spec)>,
    ) -> Result<()> {
        for (i, &residual) in gradient.residuals.iter().enumerate() {
            if let Some((value, spec)) = find(residual) {
                self.residuals[i] = self.push(value?, spec);
            }
        }
        Ok(())
    }

    /// The values of a step, from the inputs of the body.
    fn step(&self, op: &LoopOp, gradient: &StepGradient, body: &[Tensor]) -> Result<BackwardStep> {
        let pick = |position: &usize| body[*position].clone();
        let mut inputs: Vec<Tensor> = self.residuals.iter().map(pick).collect();
        let mut next_states = Vec::new();
        for (_, old) in gradient.next_states() {
            let old = gradient.residuals.iter().position(|residual| *residual == Residual::Stack(old));
            next_states.extend(old.map(|i| inputs[i].clone()));
        }
        inputs.extend(self.states.iter().map(pick));
        for (&k, position) in gradient.active.stacks.iter().zip(&self.stacks) {
            inputs.push(or_zeros(position.as_ref().map(pick), op.stack_spec(k))?);
        }
        Ok(BackwardStep { inputs, capture_sums: self.sums.iter().map(pick).collect(), next_states })
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
    let mut arguments = Arguments::new(op, gradient, forward, &mut given)?;
    let graph =
        trace_backward_body(op, gradient, &arguments.specs, |body| arguments.step(op, gradient, body))?;
    let (carried, rows) = (arguments.carried, arguments.rows);
    let captures = arguments.values.split_off(carried + rows);
    let (graph, captures) = hoist_invariants(graph, captures)?;
    let steps = match op.steps {
        StepCount::Fixed(steps) => StepCount::Fixed(steps),
        StepCount::While(limit) | StepCount::Input(limit) => StepCount::Input(limit),
    };
    let backward = LoopOp::new("loop_gradient", (graph, None), (carried, rows), steps, op.options);
    let backward = LoopOp { reverse: !op.reverse, first_index: op.first_index, ..backward };
    let inputs = given.count.into_iter().chain(arguments.values).chain(captures).collect();
    let mut found = apply_many(&backward, inputs)?;
    found.drain(arguments.next_states);
    Ok(found)
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
        let none =
            |_: usize| Err(Error::new(ErrorKind::Graph, "a loop without states has no residual stacks"));
        let forward = ForwardValues { input: &input, stack: &none, last_state: &none };
        return Ok(input_gradients(&op, &gradient, apply_backward_loop(&op, &gradient, &forward, given)?));
    }
    let mut stacking = with_residual_stacks(&op, derivative)?;
    let Some(gradient) = stacking.gradient.take() else { return Ok(Gradients::new()) };
    let outputs: Outputs = apply_many(&stacking, inputs.to_vec())?;
    let positions = stacking.signature().outputs;
    given.count = given.count.or_else(|| positions.count.first().map(|count| outputs[count].clone()));
    let stack = |k: usize| Ok(outputs[positions.stack(k)].clone());
    let last_state = |k: usize| Ok(outputs[positions.states.at(k)].clone());
    let forward = ForwardValues { input: &input, stack: &stack, last_state: &last_state };
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
