//! From traced bodies to a loop op.

use super::definition::LoopOp;
use super::options::Loops;
use super::signature::{BodyInputs, LoopArity, LoopSignature, StepCount};
use crate::captures::{merge_captures, with_captures};
use crate::context::body_options;
use crate::hoist::hoist_invariants;
use crate::specs::index_spec;
use crate::structure::{check_same_specs, check_structure, tensor_paths, tensors};
use std::sync::Arc;
use taut_autodiff::Variable;
use taut_autodiff::nest::{Nest, strip_values};
use taut_core::graph::{ExternalState, Traced};
use taut_core::{Result, Spec, Tensor};

/// The states that a loop is called with.
pub(super) struct LoopStates<S> {
    /// Their structure, without values.
    structure: S,
    /// Moved into the call, so that the loop may overwrite tensors that are not shared.
    pub(super) tensors: Vec<Tensor>,
    pub(super) specs: Vec<Spec>,
    pub(super) paths: Vec<String>,
}

impl<S: Nest<Owned = S>> LoopStates<S> {
    pub(super) fn new(states: S) -> LoopStates<S> {
        let tensors = tensors(&states);
        let specs = tensors.iter().map(|tensor| tensor.spec().clone()).collect();
        let paths = tensor_paths(&states);
        LoopStates { structure: strip_values(states), tensors, specs, paths }
    }

    /// States of this structure, made of these tensors.
    pub(super) fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> S {
        self.structure.rebuild(tensors)
    }

    /// Checks that a body returned states of the same structure and specs; returns their tensors.
    pub(super) fn check_returned(&self, returned: &S) -> Result<Vec<Tensor>> {
        check_structure("the body", returned, "the loop variables", &self.structure)?;
        let tensors = tensors(returned);
        check_same_specs(&self.paths, &self.specs, &tensors)?;
        Ok(tensors)
    }
}

/// The inputs of a body that is traced: index, states with the assigned variables after them, rows of slices.
pub(super) struct BodyArguments {
    pub(super) specs: Vec<Spec>,
    /// The variables, each with its position among the inputs.
    pub(super) variables: Vec<(usize, Arc<dyn ExternalState>)>,
    pub(super) positions: BodyInputs,
}

impl BodyArguments {
    pub(super) fn new(states: &[Spec], variables: &[Variable], rows: &[Spec]) -> BodyArguments {
        let arity =
            LoopArity { states: states.len() + variables.len(), slices: rows.len(), ..LoopArity::default() };
        let positions = LoopSignature::new(arity, StepCount::Fixed(0), None).body_inputs;
        let mut specs = vec![index_spec()];
        specs.extend_from_slice(states);
        specs.extend(variables.iter().map(|variable| variable.spec().clone()));
        specs.extend_from_slice(rows);
        let variable_positions = positions.states.positions().skip(states.len());
        let variables = variable_positions.zip(variables.iter().map(Variable::state)).collect();
        BodyArguments { specs, variables, positions }
    }
}

/// What a loop is made of.
pub(super) struct LoopParts {
    pub(super) name: &'static str,
    pub(super) body: Traced,
    pub(super) condition: Option<Traced>,
    pub(super) states: usize,
    pub(super) slices: usize,
    pub(super) steps: StepCount,
    pub(super) reverse: bool,
    pub(super) grad_budget: Option<usize>,
}

impl Loops {
    /// The loop op, and the captures that are its last inputs.
    pub(super) fn build(&self, parts: LoopParts) -> Result<(LoopOp, Vec<Tensor>)> {
        let (mut body, mut captures) = hoist_invariants(parts.body.graph, parts.body.captures)?;
        let condition = match parts.condition {
            None => None,
            Some(traced) => {
                let (condition, own) = hoist_invariants(traced.graph, traced.captures)?;
                let all = merge_captures(&[&captures, &own]);
                body = with_captures(body, &captures, &all);
                let condition = with_captures(condition, &own, &all);
                captures = all;
                Some(condition)
            }
        };
        let counts = (parts.states, parts.slices);
        let op = LoopOp::new(parts.name, (body, condition), counts, parts.steps, body_options());
        let op = LoopOp {
            reverse: parts.reverse,
            grad_budget: parts.grad_budget,
            report: self.report.clone(),
            ..op
        };
        op.check_budget().map_err(|error| match self.grad_budget {
            Some(_) => error,
            None => error.help("this loop has a share of the budget of the loop around it: allow more there"),
        })?;
        Ok((op, captures))
    }
}
