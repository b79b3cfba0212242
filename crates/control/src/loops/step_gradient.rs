//! The gradient of one step of a loop.

use super::signature::{BodyInput, LoopInputs};
use taut_autodiff::joint::InputGradient;
use taut_core::{Graph, Set};

/// The values of a loop through which gradients flow.
#[derive(Clone, Debug)]
pub(crate) struct ActiveValues {
    /// The states that have a gradient.
    pub(crate) states: Vec<usize>,
    /// The stacks that have a gradient.
    pub(crate) stacks: Vec<usize>,
    /// The slices whose gradient is wanted.
    pub(crate) slices: Vec<usize>,
    /// The captures whose gradient is wanted.
    pub(crate) captures: Vec<usize>,
}

impl ActiveValues {
    /// The inputs of the loop that have a gradient, in the order in which the backward loop returns them: states, captures,
    /// slices.
    pub(crate) fn inputs(&self, inputs: LoopInputs) -> impl Iterator<Item = usize> {
        let states = self.states.iter().map(move |&k| inputs.states.at(k));
        let captures = self.captures.iter().map(move |&i| inputs.captures.at(i));
        let slices = self.slices.iter().map(move |&i| inputs.slices.at(i));
        states.chain(captures).chain(slices)
    }

    /// The same as a set.
    pub(crate) fn wanted(&self, inputs: LoopInputs) -> Set {
        self.inputs(inputs).fold(Set::NONE, Set::with)
    }
}

/// Where the backward pass finds a value of a step that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residual {
    /// It is an input of the body.
    Input(BodyInput),
    /// The forward pass wrote it to this stack.
    Stack(usize),
    /// The value of this state after the step. It is the one before the next step, which the forward pass wrote to the stack `old`, or
    /// the last state: one stack holds both.
    NextState { state: usize, old: usize },
}

/// The gradient of one step: a graph, and where its inputs come from.
#[derive(Debug)]
pub(crate) struct StepGradient {
    pub(crate) active: ActiveValues,
    /// From the residuals, then the gradients of the active states and stacks, then the sums for the active captures, which it
    /// adds to.
    pub(crate) backward: Graph,
    /// Per input of the body, which output of `backward` is its gradient.
    pub(crate) input_gradients: Vec<InputGradient>,
    pub(crate) residuals: Vec<Residual>,
    /// Whether states are recomputed from checkpoints.
    pub(crate) uses_checkpoints: bool,
}

impl StepGradient {
    /// The stacks that the backward pass reads.
    pub(crate) fn residual_stacks(&self) -> impl Iterator<Item = usize> {
        self.residuals.iter().filter_map(|residual| match *residual {
            Residual::Stack(k) => Some(k),
            Residual::Input(_) | Residual::NextState { .. } => None,
        })
    }

    /// The states whose last values the backward pass reads, each with the stack of its values before the steps.
    pub(crate) fn next_states(&self) -> impl Iterator<Item = (usize, usize)> {
        self.residuals.iter().filter_map(|residual| match *residual {
            Residual::NextState { state, old } => Some((state, old)),
            _ => None,
        })
    }
}
