//! Where the values of a loop are: among the inputs and outputs of the op, and of its body.
//!
//! | | inputs | outputs |
//! |---|---|---|
//! | op | step count (if [`StepCount::Input`]), states, slices, captures | states, step count (if [`StepCount::While`]), stacks, checkpoint buffer (if any), residual stacks |
//! | body | index, states, slices, captures | states, stacks |
//! | condition | as the body | one boolean |

use crate::span::{Span, SpanLayout};

/// How many steps a loop makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepCount {
    /// This many.
    Fixed(usize),
    /// As long as the condition holds, at most this many; `usize::MAX` if there is no limit.
    While(usize),
    /// The value of the first input, at most this many.
    Input(usize),
}

impl StepCount {
    /// The upper limit, which is the number of rows of slices and stacks.
    pub(crate) fn limit(self) -> usize {
        match self {
            StepCount::Fixed(steps) | StepCount::While(steps) | StepCount::Input(steps) => steps,
        }
    }

    pub(crate) fn is_fixed(self) -> bool {
        matches!(self, StepCount::Fixed(_))
    }
}

/// How many values of each kind a loop has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoopArity {
    /// Carried from step to step.
    pub(crate) states: usize,
    /// Read by rows, one per step.
    pub(crate) slices: usize,
    /// The same in every step.
    pub(crate) captures: usize,
    /// Written by rows, one per step.
    pub(crate) stacks: usize,
}

/// The inputs of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyInputs {
    pub(crate) index: Span,
    pub(crate) states: Span,
    pub(crate) slices: Span,
    pub(crate) captures: Span,
}

/// What an input of a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyInput {
    Index,
    State(usize),
    Slice(usize),
    Capture(usize),
}

impl BodyInputs {
    fn new(arity: LoopArity) -> BodyInputs {
        let mut layout = SpanLayout::default();
        BodyInputs {
            index: layout.next(1),
            states: layout.next(arity.states),
            slices: layout.next(arity.slices),
            captures: layout.next(arity.captures),
        }
    }

    pub(crate) fn len(self) -> usize {
        self.captures.positions().end
    }

    pub(crate) fn kind(self, position: usize) -> BodyInput {
        let state = self.states.index_of(position).map(BodyInput::State);
        let slice = || self.slices.index_of(position).map(BodyInput::Slice);
        let capture = || self.captures.index_of(position).map(BodyInput::Capture);
        state.or_else(slice).or_else(capture).unwrap_or(BodyInput::Index)
    }
}

/// The outputs of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyOutputs {
    pub(crate) states: Span,
    pub(crate) stacks: Span,
}

/// The inputs of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopInputs {
    /// The number of steps, if that is an input.
    pub(crate) count: Span,
    pub(crate) states: Span,
    pub(crate) slices: Span,
    pub(crate) captures: Span,
}

impl LoopInputs {
    pub(crate) fn len(self) -> usize {
        self.captures.positions().end
    }

    /// The input that a body's input is made of; `None` for the index.
    pub(crate) fn source(self, input: BodyInput) -> Option<usize> {
        match input {
            BodyInput::Index => None,
            BodyInput::State(k) => Some(self.states.at(k)),
            BodyInput::Slice(i) => Some(self.slices.at(i)),
            BodyInput::Capture(i) => Some(self.captures.at(i)),
        }
    }
}

/// The outputs of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopOutputs {
    pub(crate) states: Span,
    /// The number of steps that were made, if only the run determines it.
    pub(crate) count: Span,
    /// The stacks before the checkpoint buffer; all of them if there is none.
    stacks: Span,
    pub(crate) checkpoint_buffer: Span,
    /// The stacks after the checkpoint buffer.
    residual_stacks: Span,
}

impl LoopOutputs {
    /// The position of a stack.
    pub(crate) fn stack(self, k: usize) -> usize {
        match k.checked_sub(self.stacks.len()) {
            None => self.stacks.at(k),
            Some(residual) => self.residual_stacks.at(residual),
        }
    }

    /// Which stack is at a position.
    pub(crate) fn stack_at(self, position: usize) -> Option<usize> {
        let residual = || self.residual_stacks.index_of(position).map(|k| self.stacks.len() + k);
        self.stacks.index_of(position).or_else(residual)
    }
}

/// The inputs and outputs of a loop and of its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopSignature {
    pub(crate) inputs: LoopInputs,
    pub(crate) outputs: LoopOutputs,
    pub(crate) body_inputs: BodyInputs,
    pub(crate) body_outputs: BodyOutputs,
}

impl LoopSignature {
    /// `stacks_before_buffer` is the number of stacks before the checkpoint buffer, if there is one.
    pub(crate) fn new(
        arity: LoopArity,
        steps: StepCount,
        stacks_before_buffer: Option<usize>,
    ) -> LoopSignature {
        let mut inputs = SpanLayout::default();
        let inputs = LoopInputs {
            count: inputs.next(usize::from(matches!(steps, StepCount::Input(_)))),
            states: inputs.next(arity.states),
            slices: inputs.next(arity.slices),
            captures: inputs.next(arity.captures),
        };
        let stacks = stacks_before_buffer.unwrap_or(arity.stacks);
        let mut outputs = SpanLayout::default();
        let outputs = LoopOutputs {
            states: outputs.next(arity.states),
            count: outputs.next(usize::from(matches!(steps, StepCount::While(_)))),
            stacks: outputs.next(stacks),
            checkpoint_buffer: outputs.next(usize::from(stacks_before_buffer.is_some())),
            residual_stacks: outputs.next(arity.stacks - stacks),
        };
        let mut body = SpanLayout::default();
        let body_outputs = BodyOutputs { states: body.next(arity.states), stacks: body.next(arity.stacks) };
        LoopSignature { inputs, outputs, body_inputs: BodyInputs::new(arity), body_outputs }
    }
}

#[cfg(test)]
mod tests {
    use super::BodyInput::{Capture, Index, Slice, State};
    use super::{BodyInput, LoopArity, LoopSignature, StepCount};

    const ARITY: LoopArity = LoopArity { states: 2, slices: 1, captures: 3, stacks: 4 };

    #[test]
    fn body_inputs_are_index_states_slices_captures() {
        let body = LoopSignature::new(ARITY, StepCount::Fixed(5), None).body_inputs;
        let kinds: Vec<BodyInput> = (0..body.len()).map(|i| body.kind(i)).collect();

        assert_eq!(kinds, [Index, State(0), State(1), Slice(0), Capture(0), Capture(1), Capture(2)]);
    }

    #[test]
    fn a_step_count_comes_first_among_the_inputs_and_after_the_states_among_the_outputs() {
        let counted = LoopSignature::new(ARITY, StepCount::Input(9), None);
        assert_eq!((counted.inputs.count.first(), counted.inputs.states.at(0)), (Some(0), 1));
        assert_eq!(counted.inputs.source(Capture(2)), Some(6));
        assert_eq!(counted.outputs.count.first(), None);
        let tested = LoopSignature::new(ARITY, StepCount::While(9), None);
        assert_eq!((tested.inputs.count.first(), tested.inputs.states.at(0)), (None, 0));
        assert_eq!((tested.outputs.count.first(), tested.outputs.stack(0)), (Some(2), 3));
    }

    #[test]
    fn a_checkpoint_buffer_lies_between_the_stacks_and_the_residual_stacks() {
        let outputs = LoopSignature::new(ARITY, StepCount::Fixed(9), Some(1)).outputs;
        assert_eq!(outputs.checkpoint_buffer.first(), Some(3));
        assert_eq!([0, 1, 2, 3].map(|k| outputs.stack(k)), [2, 4, 5, 6]);
        assert_eq!(
            [2, 3, 4, 6].map(|position| outputs.stack_at(position)),
            [Some(0), None, Some(1), Some(3)]
        );
    }
}
