//! A `while` that is differentiated eagerly: it runs in segments, and saves the residuals of as many steps as it makes.

use super::backward_loop::{
    ForwardValues, OutputGradients, apply_backward_loop, input_gradients, recomputed_vjp,
};
use super::forward::{forward_with_residuals, saves};
use crate::loops::definition::LoopOp;
use crate::loops::signature::StepCount;
use crate::loops::step_gradient::StepGradient;
use crate::span::{Span, SpanLayout};
use crate::vjp::{is_backward_recorded, saved_inputs};
use std::fmt;
use std::sync::Arc;
use taut_core::{
    Differentiable, Effects, Error, Gradients, Op, Result, Saves, Set, Spec, Specs, Tensor, VjpCall,
    apply_at, record,
};
use taut_memory::Location;

/// The first segment has room for this many steps, unless they take more than [`FIRST_SEGMENT_BYTES`]; each further one has
/// room for twice as many.
const FIRST_SEGMENT_STEPS: usize = 16;
const FIRST_SEGMENT_BYTES: usize = 1 << 20;
/// The most bytes of residuals that a segment has room for.
const LARGEST_SEGMENT_BYTES: usize = 32 << 20;

/// A loop that was run in segments, as a recorded call. Residuals: of each segment, the number of its steps, its residual
/// stacks, and its last states that the gradient reads.
#[derive(Clone)]
struct SegmentedLoop {
    /// The whole loop, with as many steps as it made.
    whole: LoopOp,
    /// The segments, in the form that saves residuals.
    segments: Vec<LoopOp>,
    gradient: Arc<StepGradient>,
}

/// Runs a `while` whose `wanted` inputs are tracked. Returns the last states.
pub(crate) fn run_in_segments(
    op: &LoopOp,
    mut inputs: Vec<Tensor>,
    wanted: Set,
    at: Location,
) -> Result<Vec<Tensor>> {
    let limited = LoopOp { steps: StepCount::While(FIRST_SEGMENT_STEPS), ..op.clone() };
    let Some(stacking) = forward_with_residuals(&limited, wanted)? else { return Err(stateless()) };
    let Some(gradient) = stacking.gradient.clone() else { return Err(stateless()) };
    let mut run = SegmentRun { op, stacking, gradient, segments: Vec::new(), residuals: Vec::new(), made: 0 };
    let states = record::without_recording(|| run.all(&inputs, at))?;
    let SegmentRun { gradient, segments, residuals, made, .. } = run;
    let whole = LoopOp { steps: StepCount::While(made), ..op.clone() };
    let recorded = SegmentedLoop { whole, segments, gradient };
    record::record_completed(&recorded, &mut inputs, states, residuals, at)
}

/// A loop that is being run in segments.
struct SegmentRun<'a> {
    op: &'a LoopOp,
    /// The loop in the form that saves residuals.
    stacking: LoopOp,
    gradient: Arc<StepGradient>,
    segments: Vec<LoopOp>,
    residuals: Vec<Tensor>,
    /// How many steps were made.
    made: usize,
}

impl SegmentRun<'_> {
    /// Runs segments until the condition ends the loop. Returns the last states.
    fn all(&mut self, inputs: &[Tensor], at: Location) -> Result<Vec<Tensor>> {
        let positions = self.op.signature().inputs;
        let limit = self.op.steps.limit();
        let rows = (0..self.stacking.arity.stacks).map(|k| self.stacking.stack_spec(k).bytes());
        let row_bytes = rows.sum::<usize>().max(1);
        let mut room = (FIRST_SEGMENT_BYTES / row_bytes).clamp(1, FIRST_SEGMENT_STEPS);
        let mut arguments = inputs.to_vec();
        loop {
            let steps = room.min(limit - self.made);
            room = (2 * room).min((LARGEST_SEGMENT_BYTES / row_bytes).max(room));
            let (states, made) = self.segment(&mut arguments, steps, at)?;
            if made < steps || self.made == limit {
                return Ok(states);
            }
            arguments = states.into_iter().chain(positions.captures.of(inputs).iter().cloned()).collect();
            if !self.continues(&arguments)? {
                arguments.truncate(self.op.arity.states);
                return Ok(arguments);
            }
        }
    }

    /// Runs up to `steps` steps. Returns the states after them, and how many were made.
    fn segment(
        &mut self,
        arguments: &mut [Tensor],
        steps: usize,
        at: Location,
    ) -> Result<(Vec<Tensor>, usize)> {
        let segment =
            LoopOp { steps: StepCount::While(steps), first_index: self.made, ..self.stacking.clone() };
        let outputs = apply_at(&segment, arguments, at)?;
        let positions = segment.signature().outputs;
        let count = &outputs[positions.count.at(0)];
        let made = count.item::<i64>()?.max(0) as usize;
        self.residuals.push(count.clone());
        self.residuals.extend(self.gradient.residual_stacks().map(|k| outputs[positions.stack(k)].clone()));
        let last = self.gradient.next_states().map(|(k, _)| outputs[positions.states.at(k)].clone());
        self.residuals.extend(last);
        self.segments.push(segment);
        self.made += made;
        Ok((outputs.into_iter().take(positions.states.len()).collect(), made))
    }

    /// Whether the condition holds for these states and captures.
    fn continues(&self, inputs: &[Tensor]) -> Result<bool> {
        let Some(condition) = &self.op.condition else { return Ok(false) };
        let index = Tensor::scalar(self.made as i64)?;
        let all: Vec<Tensor> = std::iter::once(index).chain(inputs.iter().cloned()).collect();
        condition.graph().run(&all)?[0].item::<bool>()
    }
}

#[cold]
fn stateless() -> Error {
    Error::value("a while loop must have at least one state, or it never ends")
}

impl SegmentedLoop {
    /// Where the residuals of each segment are among the outputs, after the states: the number of its steps, its residual
    /// stacks, and its last states.
    fn residual_positions(&self) -> Vec<[Span; 3]> {
        let stacks = self.gradient.residual_stacks().count();
        let last = self.gradient.next_states().count();
        let mut layout = SpanLayout::default();
        layout.next(self.whole.arity.states);
        self.segments.iter().map(|_| [1, stacks, last].map(|len| layout.next(len))).collect()
    }
}

impl fmt::Debug for SegmentedLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentedLoop({:?}, {} segments)", self.whole, self.segments.len())
    }
}

impl Op for SegmentedLoop {
    fn name(&self) -> &'static str {
        self.whole.name
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok((0..self.whole.arity.states).map(|k| self.whole.state_spec(k).clone()).collect())
    }

    fn effects(&self) -> Effects {
        Effects::of_subgraphs(&self.whole)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for SegmentedLoop {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let inputs = saves(&self.segments[0]).inputs;
        let residuals = self.residual_positions();
        let outputs = residuals.iter().flatten().flat_map(|span| span.positions());
        let outputs = outputs.fold(Set::NONE, Set::with);
        Some(Saves { inputs, outputs, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (whole, gradient) = (&self.whole, &self.gradient);
        let mut given = OutputGradients::take(call, whole, None);
        if is_backward_recorded(call) {
            let wanted = call.wanted;
            return recomputed_vjp(whole, wanted, &saved_inputs(call)?, given);
        }
        let stacks: Vec<usize> = gradient.residual_stacks().collect();
        let next: Vec<usize> = gradient.next_states().map(|(k, _)| k).collect();
        for (segment, [count, residuals, last]) in self.segments.iter().zip(self.residual_positions()).rev() {
            given.count = Some(call.take_output(count.at(0))?);
            given.stacks = vec![None; segment.arity.stacks];
            let mut take = |span: Span| {
                span.positions().map(|output| call.take_output(output)).collect::<Result<Vec<Tensor>>>()
            };
            let (rows, last) = (take(residuals)?, take(last)?);
            let input = |i: usize| call.input(i).cloned();
            let find = |list: &[usize], values: &[Tensor], k: usize| {
                let place = list.iter().position(|&other| other == k);
                place.map(|i| values[i].clone()).ok_or_else(stateless)
            };
            let stack = |k: usize| find(&stacks, &rows, k);
            let last_state = |k: usize| find(&next, &last, k);
            let forward = ForwardValues { input: &input, stack: &stack, last_state: &last_state };
            let mut found = apply_backward_loop(segment, gradient, &forward, given)?.into_vec();
            let sums = found.split_off(gradient.active.states.len());
            given = OutputGradients {
                capture_sums: vec![None; whole.arity.captures],
                states: vec![None; whole.arity.states],
                ..OutputGradients::default()
            };
            for (&i, sum) in gradient.active.captures.iter().zip(sums) {
                given.capture_sums[i] = Some(sum);
            }
            for (&k, gradient) in gradient.active.states.iter().zip(found) {
                given.states[k] = Some(gradient);
            }
        }
        let active = &gradient.active;
        let mut found: Vec<Tensor> = active.states.iter().filter_map(|&k| given.states[k].take()).collect();
        for &i in &active.captures {
            found.push(given.take_sum(whole, i)?);
        }
        Ok(input_gradients(whole, gradient, found))
    }

    fn adds_to_sums(&self) -> bool {
        true
    }
}
