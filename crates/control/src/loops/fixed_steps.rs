//! Loops whose number of steps is known: over a range, or over the elements of tensors.

use super::build::{BodyArguments, LoopParts, LoopStates};
use super::options::Loops;
use super::shape_invariants::runs_op_by_op;
use super::signature::StepCount;
use crate::context::{inherited_budget, trace_with_budget};
use crate::specs::row_spec;
use crate::structure::{check_structure, tensor_paths, tensors};
use crate::variables::{assign, trace_with_variables};
use std::ops::Range;
use taut_autodiff::Variable;
use taut_autodiff::nest::{Nest, strip_values};
use taut_core::graph::trace_writing;
use taut_core::ops::binary::add;
use taut_core::ops::random::with_loop_index;
use taut_core::ops::shape::{slice, stack};
use taut_core::{Error, Index, Result, Spec, Tensor, apply_at};
use taut_memory::Location;

/// The steps of a loop over elements.
#[derive(Clone, Copy)]
pub(crate) struct FixedSteps {
    pub(crate) name: &'static str,
    pub(crate) count: usize,
    /// Whether elements are visited from the last to the first.
    pub(crate) reverse: bool,
}

impl Loops {
    /// Calls `body` with each number of the range and the states; returns the last states. See [`fori_loop`](crate::fori_loop).
    #[track_caller]
    pub fn fori_loop<S: Nest<Owned = S>>(
        &self,
        range: Range<i64>,
        body: impl Fn(Tensor, S) -> Result<S>,
        states: S,
    ) -> Result<S> {
        let at = Location::caller();
        let count = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        let body = |index: Tensor, state: S, (): ()| {
            let index = if range.start == 0 { index } else { add(index, range.start)? };
            Ok((body(index, state)?, ()))
        };
        let steps = FixedSteps { name: "fori_loop", count, reverse: false };
        let outcome = self.run_steps(steps, &body, states, (), at);
        outcome.map(|(states, ())| states).map_err(|error| error.in_op("fori_loop", []).at(at))
    }

    /// Visits the elements in order, carrying a state; returns the last state, and the results of `body` for each element,
    /// stacked. See [`scan`](crate::scan).
    #[track_caller]
    pub fn scan<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        body: impl Fn(S, X) -> Result<(S, Y)>,
        state: S,
        elements: X,
    ) -> Result<(S, Y)> {
        self.visit("scan", &body, state, elements, false, Location::caller())
    }

    /// As [`Loops::scan`], from the last element to the first; the results keep the elements' order.
    #[track_caller]
    pub fn scan_reversed<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        body: impl Fn(S, X) -> Result<(S, Y)>,
        state: S,
        elements: X,
    ) -> Result<(S, Y)> {
        self.visit("scan", &body, state, elements, true, Location::caller())
    }

    /// Visits the elements in order, carrying a state; returns the last one. See [`foldl`](crate::foldl).
    #[track_caller]
    pub fn foldl<S: Nest<Owned = S>, X: Nest<Owned = X>>(
        &self,
        body: impl Fn(S, X) -> Result<S>,
        elements: X,
        state: S,
    ) -> Result<S> {
        let body = |state: S, element: X| Ok((body(state, element)?, ()));
        Ok(self.visit("foldl", &body, state, elements, false, Location::caller())?.0)
    }

    /// As [`Loops::foldl`], from the last element to the first.
    #[track_caller]
    pub fn foldr<S: Nest<Owned = S>, X: Nest<Owned = X>>(
        &self,
        body: impl Fn(S, X) -> Result<S>,
        elements: X,
        state: S,
    ) -> Result<S> {
        let body = |state: S, element: X| Ok((body(state, element)?, ()));
        Ok(self.visit("foldr", &body, state, elements, true, Location::caller())?.0)
    }

    fn visit<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        name: &'static str,
        body: &dyn Fn(S, X) -> Result<(S, Y)>,
        state: S,
        elements: X,
        reverse: bool,
        at: Location,
    ) -> Result<(S, Y)> {
        let body = |_: Tensor, state: S, element: X| body(state, element);
        let run = || {
            let steps = FixedSteps { name, count: element_count(&elements)?, reverse };
            self.run_steps(steps, &body, state, elements, at)
        };
        run().map_err(|error: Error| error.in_op(name, []).at(at))
    }

    /// A loop of a known number of steps.
    pub(crate) fn run_steps<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        steps: FixedSteps,
        body: &dyn Fn(Tensor, S, X) -> Result<(S, Y)>,
        states: S,
        elements: X,
        at: Location,
    ) -> Result<(S, Y)> {
        let mut states = LoopStates::new(states);
        let slices = tensors(&elements);
        let elements = strip_values(elements);
        match self.steps_as_op(steps, body, &mut states, &slices, &elements, at) {
            // The body could not be traced, so the states have not been used.
            Err(error) if runs_op_by_op(&error) && steps.count > 0 => {
                let own = std::mem::take(&mut states.tensors);
                let states = states.rebuild(&mut own.into_iter());
                steps_op_by_op(steps, body, states, &slices, &elements)
            }
            outcome => outcome,
        }
    }

    /// A loop of a known number of steps, as one op.
    fn steps_as_op<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        steps: FixedSteps,
        body: &dyn Fn(Tensor, S, X) -> Result<(S, Y)>,
        states: &mut LoopStates<S>,
        slices: &[Tensor],
        elements: &X,
        at: Location,
    ) -> Result<(S, Y)> {
        let rows: Vec<Spec> = slices.iter().map(|slice| row_spec(slice.spec())).collect();
        let budget = self.grad_budget.or_else(inherited_budget);
        let ((mut traced, results, grad_budget), variables) = trace_with_variables(|variables| {
            let arguments = BodyArguments::new(&states.specs, variables, &rows);
            let BodyArguments { specs, variables, positions } = &arguments;
            let ((traced, results), share) = trace_with_budget(budget, |context| {
                trace_writing(specs, variables, context, |inputs| {
                    let index = &inputs[0];
                    let state = states.rebuild(&mut positions.states.of(inputs).iter().cloned());
                    let element = elements.rebuild(&mut positions.slices.of(inputs).iter().cloned());
                    let (state, results) = with_loop_index(index, || body(index.clone(), state, element))?;
                    let mut outputs = states.check_returned(&state)?;
                    outputs.extend(tensors(&results));
                    Ok((outputs, results))
                })
            })?;
            let written = traced.writes.clone();
            Ok(((traced, results, share), written))
        })?;
        // The new values of variables are the last outputs of the trace; in the body, all states come before the stacks.
        let own_states = states.specs.len();
        traced.graph.outputs[own_states..].rotate_right(variables.len());
        let parts = LoopParts {
            name: steps.name,
            body: traced,
            condition: None,
            states: own_states + variables.len(),
            slices: slices.len(),
            steps: StepCount::Fixed(steps.count),
            reverse: steps.reverse,
            grad_budget,
        };
        let (op, captures) = self.build(parts)?;
        let values = variables.iter().map(Variable::read);
        let inputs =
            std::mem::take(&mut states.tensors).into_iter().chain(values).chain(slices.iter().cloned());
        let mut inputs: Vec<Tensor> = inputs.chain(captures).collect();
        let mut outputs = apply_at(&op, &mut inputs, at)?.into_iter();
        let states = states.rebuild(&mut outputs);
        assign(&variables, &mut outputs)?;
        Ok((states, results.rebuild(&mut outputs)))
    }
}

/// A loop over the rows of tensors, step by step. `elements` is their structure. There must be at least one step.
fn steps_op_by_op<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    steps: FixedSteps,
    body: &dyn Fn(Tensor, S, X) -> Result<(S, Y)>,
    mut states: S,
    slices: &[Tensor],
    elements: &X,
) -> Result<(S, Y)> {
    let mut results: Vec<Y> = Vec::new();
    for step in 0..steps.count {
        let row = if steps.reverse { steps.count - 1 - step } else { step };
        let rows = slices.iter().map(|tensor| slice(tensor, &[Index::At(row as isize)]));
        let rows: Vec<Tensor> = rows.collect::<Result<_>>()?;
        let element = elements.rebuild(&mut rows.into_iter());
        let (after, result) = body(Tensor::scalar(row as i64)?, states, element)?;
        states = after;
        if let Some(first) = results.first() {
            check_structure("the body", &result, "its first result", first)?;
        }
        results.push(result);
    }
    if steps.reverse {
        results.reverse();
    }
    let columns: Vec<Vec<Tensor>> = results.iter().map(tensors).collect();
    let count = columns.first().map_or(0, Vec::len);
    let column = |i: usize| columns.iter().map(|row| row[i].clone()).collect::<Vec<Tensor>>();
    let stacked: Vec<Tensor> = (0..count).map(|i| stack(&column(i), 0)).collect::<Result<_>>()?;
    let Some(first) = results.into_iter().next() else {
        return Err(Error::value("a loop that runs op by op must have at least one step, got none"));
    };
    Ok((states, first.rebuild(&mut stacked.into_iter())))
}

/// How many elements there are along the first axis.
pub(crate) fn element_count(elements: &impl Nest) -> Result<usize> {
    let (list, paths) = (tensors(elements), tensor_paths(elements));
    let Some(first) = list.first() else {
        return Err(Error::value("expected at least one tensor of elements, got no elements"));
    };
    for (place, tensor) in list.iter().enumerate() {
        // A single string is two tensors without a path.
        let path = paths.get(place).filter(|path| !path.is_empty());
        let which = path.map_or_else(|| "the input".to_owned(), |path| format!("input {path}"));
        if tensor.rank() == 0 {
            let message = format!("{which} must have rank >= 1, got {}", tensor.spec());
            return Err(Error::shape(message));
        }
        if tensor.shape()[0] != first.shape()[0] {
            let (got, expected) = (tensor.spec(), first.spec());
            let message = format!("{which} must have as many elements as the first, {expected}, got {got}");
            return Err(Error::shape(message));
        }
    }
    Ok(first.shape()[0])
}
