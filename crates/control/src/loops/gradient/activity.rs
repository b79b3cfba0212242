//! Activity analysis: through which values of a loop gradients flow, and the derivative of one step.

use crate::body::Body;
use crate::dependence::depends_on_inputs;
use crate::loops::definition::LoopOp;
use crate::loops::step_gradient::{ActiveValues, Residual, StepGradient};
use taut_autodiff::joint::{JointGraph, JointRequest};
use taut_core::graph::ValueId;
use taut_core::{Graph, Result, Set};

/// The derivative of one step for the wanted inputs of a loop.
#[derive(Clone)]
pub(super) struct StepDerivative {
    pub(super) active: ActiveValues,
    /// The body and its gradient.
    pub(super) joint: JointGraph,
}

impl StepDerivative {
    pub(super) fn new(op: &LoopOp, wanted: Set) -> Result<StepDerivative> {
        let (graph, signature) = (op.body.graph(), op.signature());
        let is_float = |id: ValueId| graph.spec(id).dtype.is_inexact();
        let is_wanted = |position: usize| {
            let source = signature.inputs.source(signature.body_inputs.kind(position));
            source.is_some_and(|input| wanted.has(input)) && is_float(graph.inputs[position])
        };
        let mut inputs: Vec<bool> = (0..signature.body_inputs.len()).map(is_wanted).collect();
        // A state that depends on an active value is active in the next step.
        let depends = loop {
            let depends = depends_on_inputs(graph, &inputs);
            let before = inputs.clone();
            for k in 0..op.arity.states {
                let output = graph.outputs[signature.body_outputs.states.at(k)];
                inputs[signature.body_inputs.states.at(k)] |= is_float(output) && depends[output.index()];
            }
            if inputs == before {
                break depends;
            }
        };
        let marked = |marks: &[bool]| (0..marks.len()).filter(|&i| marks[i]).collect();
        let is_active_stack = |k: &usize| {
            let output = graph.outputs[signature.body_outputs.stacks.at(*k)];
            is_float(output) && depends[output.index()]
        };
        let active = ActiveValues {
            states: marked(signature.body_inputs.states.of(&inputs)),
            stacks: (0..op.arity.stacks).filter(is_active_stack).collect(),
            slices: marked(signature.body_inputs.slices.of(&inputs)),
            captures: marked(signature.body_inputs.captures.of(&inputs)),
        };
        let states = active.states.iter().map(|&k| signature.body_outputs.states.at(k));
        let stacks = active.stacks.iter().map(|&k| signature.body_outputs.stacks.at(k));
        let summed = active.captures.iter().map(|&i| signature.body_inputs.captures.at(i));
        let request = JointRequest {
            wanted: &inputs,
            differentiated: &states.chain(stacks).collect::<Vec<_>>(),
            summed: &summed.collect::<Vec<_>>(),
            dense: true,
        };
        let joint = JointGraph::new(graph, &request)?;
        Ok(StepDerivative { active, joint })
    }

    pub(super) fn into_gradient(self, backward: Graph, residuals: Vec<Residual>) -> StepGradient {
        let StepDerivative { active, joint } = self;
        let input_gradients = joint.input_gradients;
        StepGradient { active, backward, input_gradients, residuals, uses_checkpoints: false }
    }

    /// The gradient of a step that recomputes the step from all of its inputs.
    pub(super) fn into_recomputing_gradient(self, op: &LoopOp) -> Result<StepGradient> {
        let backward = self.recomputing_graph()?;
        let inputs = op.signature().body_inputs;
        let residuals = (0..inputs.len()).map(|i| Residual::Input(inputs.kind(i))).collect();
        Ok(self.into_gradient(backward, residuals))
    }

    /// The joint graph without the outputs of the step itself.
    fn recomputing_graph(&self) -> Result<Graph> {
        let JointGraph { graph, outputs, .. } = &self.joint;
        graph.part(&graph.inputs, &graph.outputs[*outputs..])
    }
}

/// The arena of one backward step of a loop without states, which recomputes the forward step; zero if no gradient flows.
pub(crate) fn backward_arena_bytes(op: &LoopOp) -> Result<usize> {
    let derivative = StepDerivative::new(op, Set::ALL)?;
    if derivative.active.stacks.is_empty() {
        return Ok(0);
    }
    let body = Body::without_updates(derivative.recomputing_graph()?);
    body.prepare(op.options)?;
    Ok(body.arena_bytes())
}
