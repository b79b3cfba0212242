//! Loops that run as long as a condition holds.

use super::build::{BodyArguments, LoopParts, LoopStates};
use super::definition::LoopOp;
use super::gradient::run_in_segments;
use super::options::Loops;
use super::shape_invariants::{check_condition, runs_op_by_op};
use super::signature::StepCount;
use crate::context::{inherited_budget, trace_with_budget};
use crate::variables::{assign, trace_with_variables};
use taut_autodiff::Variable;
use taut_autodiff::nest::Nest;
use taut_core::graph::{TraceContext, Traced, trace_writing};
use taut_core::ops::random::with_loop_index;
use taut_core::{Error, ErrorKind, Result, Set, Tensor, apply_at, is_tracing, record};
use taut_memory::Location;

/// A condition and a body.
struct WhileParts<'a, S> {
    condition: &'a dyn Fn(&S) -> Result<Tensor>,
    body: &'a dyn Fn(S) -> Result<S>,
}

impl Loops {
    /// Calls `body` on the states again and again, as long as `condition` holds; returns the last states. See
    /// [`while_loop`](crate::while_loop).
    #[track_caller]
    pub fn while_loop<S: Nest<Owned = S>>(
        &self,
        condition: impl Fn(&S) -> Result<Tensor>,
        body: impl Fn(S) -> Result<S>,
        states: S,
    ) -> Result<S> {
        let at = Location::caller();
        let has_open_dimension = |shapes: &Vec<Vec<Option<usize>>>| shapes.iter().any(|s| s.contains(&None));
        let outcome = match &self.shape_invariants {
            Some(shapes) if has_open_dimension(shapes) => self.run_op_by_op(&condition, &body, states),
            _ => {
                let mut states = LoopStates::new(states);
                let outcome =
                    self.run_while(&WhileParts { condition: &condition, body: &body }, &mut states, at);
                if outcome.as_ref().is_err_and(runs_op_by_op) {
                    // The body could not be traced, so the states have not been used.
                    let tensors = std::mem::take(&mut states.tensors);
                    self.run_op_by_op(&condition, &body, states.rebuild(&mut tensors.into_iter()))
                } else {
                    outcome
                }
            }
        };
        outcome.map_err(|error| error.in_op("while_loop", []).at(at))
    }

    fn run_while<S: Nest<Owned = S>>(
        &self,
        parts: &WhileParts<'_, S>,
        states: &mut LoopStates<S>,
        at: Location,
    ) -> Result<S> {
        self.check_shape_invariants(&states.paths, &states.tensors)?;
        let budget = self.grad_budget.or_else(inherited_budget);
        let ((condition, body, grad_budget), variables) = trace_with_variables(|variables| {
            let arguments = BodyArguments::new(&states.specs, variables, &[]);
            let ((condition, body), share) = trace_with_budget(budget, |context| {
                let condition = parts.trace_condition(states, &arguments, context.clone())?;
                Ok((condition, parts.trace_body(states, &arguments, context)?))
            })?;
            let written = body.writes.clone();
            Ok(((condition, body, share), written))
        })?;
        let (op, captures) = self.build(LoopParts {
            name: "while_loop",
            body,
            condition: Some(condition),
            states: states.specs.len() + variables.len(),
            slices: 0,
            steps: StepCount::While(self.maximum_iterations.unwrap_or(usize::MAX)),
            reverse: false,
            grad_budget,
        })?;
        let values = variables.iter().map(Variable::read);
        let own = std::mem::take(&mut states.tensors).into_iter();
        let mut inputs: Vec<Tensor> = own.chain(values).chain(captures).collect();
        let wanted = eagerly_tracked(&op, &inputs);
        let outputs = if wanted.is_empty() {
            apply_at(&op, &mut inputs, at)?.into_vec()
        } else {
            run_in_segments(&op, inputs, wanted, at)?
        };
        let mut outputs = outputs.into_iter();
        let states = states.rebuild(&mut outputs);
        assign(&variables, &mut outputs)?;
        Ok(states)
    }
}

impl<S: Nest<Owned = S>> WhileParts<'_, S> {
    fn trace_condition(
        &self,
        states: &LoopStates<S>,
        arguments: &BodyArguments,
        context: Option<TraceContext>,
    ) -> Result<Traced> {
        let BodyArguments { specs, variables, positions } = arguments;
        let (mut traced, ()) = trace_writing(specs, variables, context, |inputs| {
            let state = states.rebuild(&mut positions.states.of(inputs).iter().cloned());
            let result = with_loop_index(&inputs[0], || (self.condition)(&state))?;
            check_condition(result.spec())?;
            Ok((vec![result], ()))
        })?;
        // The outputs after the condition are the variables' values, which must be those of the inputs.
        let unwritten = variables.iter().map(|(position, _)| &traced.graph.inputs[*position]);
        if !traced.graph.outputs[1..].iter().eq(unwritten) {
            let error = Error::new(ErrorKind::Graph, "the condition of a loop must not assign to variables");
            return Err(error.help("assign in the body"));
        }
        traced.graph.outputs.truncate(1);
        Ok(traced)
    }

    fn trace_body(
        &self,
        states: &LoopStates<S>,
        arguments: &BodyArguments,
        context: Option<TraceContext>,
    ) -> Result<Traced> {
        let BodyArguments { specs, variables, positions } = arguments;
        let (traced, ()) = trace_writing(specs, variables, context, |inputs| {
            let state = states.rebuild(&mut positions.states.of(inputs).iter().cloned());
            let after = with_loop_index(&inputs[0], || (self.body)(state))?;
            Ok((states.check_returned(&after)?, ()))
        })?;
        Ok(traced)
    }
}

/// The tracked inputs of a `while` that runs now, without a budget: it can save the residuals of as many steps as it makes.
fn eagerly_tracked(op: &LoopOp, inputs: &[Tensor]) -> Set {
    let saves_all = op.grad_budget.is_none() && op.steps.limit() > 0 && op.arity.states > 0;
    if !saves_all || !record::is_recording() || is_tracing() {
        return Set::NONE;
    }
    let is_tracked = |i: &usize| inputs[*i].dtype().is_inexact() && record::is_tracked(&inputs[*i]);
    (0..inputs.len()).filter(is_tracked).fold(Set::NONE, Set::with)
}
