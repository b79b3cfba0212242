//! Where the values of a checkpointed backward pass are.
//!
//! | | inputs | outputs |
//! |---|---|---|
//! | op | step count (unless it is fixed), checkpoint buffer, then the backward values | checkpoint buffer, state gradients, capture sums, slice gradients |
//! | backward body | index, then the backward values | state gradients, capture sums, slice gradients |
//!
//! The **backward values** are: states, state gradients, capture sums, slices, stack gradients, captures. The op's states are
//! the first ones, the body's those before the step.

use crate::loops::definition::LoopOp;
use crate::loops::step_gradient::ActiveValues;
use crate::span::{Span, SpanLayout};

#[derive(Clone, Copy)]
pub(super) struct BackwardValues {
    pub(super) states: Span,
    pub(super) state_gradients: Span,
    pub(super) capture_sums: Span,
    pub(super) slices: Span,
    pub(super) stack_gradients: Span,
    pub(super) captures: Span,
}

impl BackwardValues {
    fn new(layout: &mut SpanLayout, op: &LoopOp, active: &ActiveValues) -> BackwardValues {
        BackwardValues {
            states: layout.next(op.arity.states),
            state_gradients: layout.next(active.states.len()),
            capture_sums: layout.next(active.captures.len()),
            slices: layout.next(op.arity.slices),
            stack_gradients: layout.next(active.stacks.len()),
            captures: layout.next(op.arity.captures),
        }
    }

    /// The number of positions up to the last of these.
    pub(super) fn end(self) -> usize {
        self.captures.positions().end
    }

    /// The values that the body updates: state gradients and capture sums.
    pub(super) fn carried(self) -> std::ops::Range<usize> {
        self.state_gradients.positions().start..self.capture_sums.positions().end
    }

    /// The values that are read by rows: slices and stack gradients.
    pub(super) fn rows(self) -> std::ops::Range<usize> {
        self.slices.positions().start..self.stack_gradients.positions().end
    }
}

#[derive(Clone, Copy)]
pub(super) struct CheckpointedSignature {
    pub(super) count: Span,
    pub(super) buffer: Span,
    pub(super) inputs: BackwardValues,
    pub(super) body: BackwardValues,
    /// The outputs of the body that are stacked: the slice gradients.
    pub(super) body_slice_gradients: Span,
}

impl CheckpointedSignature {
    pub(super) fn new(op: &LoopOp, active: &ActiveValues) -> CheckpointedSignature {
        let mut inputs = SpanLayout::default();
        let (count, buffer) = (inputs.next(usize::from(!op.steps.is_fixed())), inputs.next(1));
        let inputs = BackwardValues::new(&mut inputs, op, active);
        let mut body = SpanLayout::default();
        body.next(1); // the index
        let body = BackwardValues::new(&mut body, op, active);
        let mut outputs = SpanLayout::default();
        outputs.next(body.carried().len());
        let body_slice_gradients = outputs.next(active.slices.len());
        CheckpointedSignature { count, buffer, inputs, body, body_slice_gradients }
    }
}
