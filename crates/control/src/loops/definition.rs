//! The loop op: its graphs, its signature and its options.
//!
//! A loop carries **states** from step to step, reads a row of each of its **slices** and writes a row of each of its
//! **stacks** per step, and reads **captures**, which do not change. Its body is a graph from
//! `(index, states, slices, captures)` to `(states, stacks)`. A `while` has a second graph, the condition; a scan has slices
//! and stacks; a map has no states; and the gradient of any of them is a loop in the opposite order.

use super::checkpoints::{Checkpoints, row_bytes};
use super::report::LoopReport;
use super::signature::{LoopArity, LoopSignature, StepCount};
use super::step_gradient::StepGradient;
use crate::body::Body;
use std::fmt;
use std::sync::Arc;
use taut_compile::CompileOptions;
use taut_core::{Error, Graph, Result, Spec};

/// A loop.
#[derive(Clone)]
pub(crate) struct LoopOp {
    pub(crate) name: &'static str,
    /// From `(index, states, slices, captures)` to `(states, stacks)`.
    pub(crate) body: Arc<Body>,
    /// From the same inputs to a boolean: whether another step is made.
    pub(crate) condition: Option<Arc<Body>>,
    pub(crate) arity: LoopArity,
    pub(crate) steps: StepCount,
    /// Whether rows are visited from the last to the first.
    pub(crate) reverse: bool,
    /// The index of the first step: a loop may continue another one.
    pub(crate) first_index: usize,
    /// The checkpoints in a further output, if states are kept.
    pub(crate) checkpoints: Option<Checkpoints>,
    /// The bytes that the gradient may keep.
    pub(crate) grad_budget: Option<usize>,
    pub(crate) report: Option<Arc<LoopReport>>,
    /// How the gradient is computed, if this is the form that saves residuals.
    pub(crate) gradient: Option<Arc<StepGradient>>,
    /// How the graphs are compiled, unless the compiler has been through them.
    pub(crate) options: CompileOptions,
    /// Per state, the input that its output may overwrite.
    pub(crate) aliases: Vec<[usize; 1]>,
}

impl LoopOp {
    /// A loop over this body. The numbers of captures and stacks follow from the graph.
    pub(crate) fn new(
        name: &'static str,
        (body, condition): (Graph, Option<Graph>),
        (states, slices): (usize, usize),
        steps: StepCount,
        options: CompileOptions,
    ) -> LoopOp {
        let captures = body.inputs.len() - 1 - states - slices;
        let arity = LoopArity { states, slices, captures, stacks: body.outputs.len() - states };
        let inputs = LoopSignature::new(arity, steps, None).inputs;
        LoopOp {
            name,
            body: Arc::new(loop_body(body, arity)),
            condition: condition.map(|condition| Arc::new(Body::without_updates(condition))),
            arity,
            steps,
            reverse: false,
            first_index: 0,
            checkpoints: None,
            grad_budget: None,
            report: None,
            gradient: None,
            options,
            aliases: inputs.states.positions().map(|input| [input]).collect(),
        }
    }

    /// Where its values are among inputs and outputs.
    pub(crate) fn signature(&self) -> LoopSignature {
        let stacks_before = self.checkpoints.map(|checkpoints| checkpoints.stacks_before);
        LoopSignature::new(self.arity, self.steps, stacks_before)
    }

    /// The same loop with a body that has further stacks.
    pub(crate) fn with_body(&self, body: Graph) -> LoopOp {
        let mut op = self.clone();
        op.arity.stacks = body.outputs.len() - op.arity.states;
        op.body = Arc::new(loop_body(body, op.arity));
        op
    }

    /// The same loop without what was added for its gradient, except stacks.
    pub(crate) fn without_gradient(&self) -> LoopOp {
        let mut op = self.clone();
        (op.checkpoints, op.gradient) = (None, None);
        op
    }

    /// The spec of a state.
    pub(crate) fn state_spec(&self, k: usize) -> &Spec {
        self.body.input(self.signature().body_inputs.states.at(k))
    }

    /// The spec of a row of a slice.
    pub(crate) fn slice_spec(&self, i: usize) -> &Spec {
        self.body.input(self.signature().body_inputs.slices.at(i))
    }

    /// The spec of a capture.
    pub(crate) fn capture_spec(&self, i: usize) -> &Spec {
        self.body.input(self.signature().body_inputs.captures.at(i))
    }

    /// The spec of a row of a stack.
    pub(crate) fn stack_spec(&self, k: usize) -> &Spec {
        self.body.output(self.signature().body_outputs.stacks.at(k))
    }

    /// The sizes of the states.
    pub(crate) fn state_sizes(&self) -> impl Iterator<Item = usize> {
        (0..self.arity.states).map(|k| self.state_spec(k).bytes())
    }

    /// The bytes of one checkpoint.
    pub(crate) fn checkpoint_bytes(&self) -> usize {
        row_bytes(self.state_sizes())
    }

    /// Checks that a checkpoint fits into the gradient budget.
    pub(crate) fn check_budget(&self) -> Result<()> {
        let one = self.checkpoint_bytes();
        match self.grad_budget {
            Some(budget) if budget < one && self.steps.limit() > 0 => {
                let states: Vec<String> =
                    (0..self.arity.states).map(|k| format!("{k}: {}", self.state_spec(k))).collect();
                let message = format!(
                    "the gradient budget must be at least {one} bytes, one state of the loop ({}), got {budget} bytes",
                    states.join(", ")
                );
                Err(Error::value(message).help("allow at least that, and twenty times as much for speed"))
            }
            _ => Ok(()),
        }
    }
}

/// The body of a loop: its first outputs are the new values of its states.
fn loop_body(graph: Graph, arity: LoopArity) -> Body {
    let signature = LoopSignature::new(arity, StepCount::Fixed(0), None);
    let states = signature.body_inputs.states.positions().map(Some);
    Body::new(graph, states.chain((0..arity.stacks).map(|_| None)).collect())
}

impl fmt::Debug for LoopOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoopOp({}, {:?}, {:?})", self.name, self.steps, self.body)
    }
}
