//! Gradient rules: the [`Differentiable`] interface, what a rule receives and what it returns.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// A set of an op's inputs or outputs, by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set(u64);

impl Set {
    /// No position.
    pub const NONE: Set = Set(0);
    /// Every position.
    pub const ALL: Set = Set(u64::MAX);

    /// These positions.
    pub const fn of<const N: usize>(positions: [usize; N]) -> Set {
        let (mut set, mut i) = (Set::NONE, 0);
        while i < N {
            set = set.with(positions[i]);
            i += 1;
        }
        set
    }

    /// The set and one more position.
    #[must_use]
    pub const fn with(self, position: usize) -> Set {
        Set(self.0 | Set::bit(position))
    }

    /// Whether a position is in the set. Positions from 63 on are in it together or not at all.
    #[inline]
    pub const fn has(self, position: usize) -> bool {
        self.0 & Set::bit(position) != 0
    }

    /// Whether no position is in the set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The positions in either set.
    #[must_use]
    pub const fn union(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    const fn bit(position: usize) -> u64 {
        1 << if position < 63 { position } else { 63 }
    }
}

/// An op with a gradient rule: [`Op::gradient`].
pub trait Differentiable: fmt::Debug + Send + Sync {
    /// What of a call has to be saved for the gradients of the `wanted` inputs; `None` if no gradient flows to them.
    ///
    /// Inputs that are not floats are never wanted, and outputs that are not floats have no gradient.
    fn saves(&self, wanted: Set) -> Option<Saves>;

    /// The one further value that the gradient needs, in place of something larger: the bits of a mask, say.
    /// Called after the call, if [`Saves::residual`] is set, with every output and the inputs in [`Saves::reads`].
    fn residual(&self, _call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The vector-Jacobian product: the gradients of the inputs, from those of the outputs and from what
    /// [`saves`](Differentiable::saves) declared. Written with public ops, so that it can be differentiated again.
    ///
    /// At least one output has a gradient. A gradient that is not wanted is not computed.
    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients>;

    /// The op to call in place of this one when the `wanted` inputs are recorded; `None` if this one will do. It has the same
    /// inputs, this op's outputs, and after them residuals: outputs that only its own [`saves`](Differentiable::saves) names.
    fn forward_with_residuals(&self, _wanted: Set, _inputs: &[&Spec]) -> Result<Option<Arc<dyn Op>>> {
        Ok(None)
    }

    /// Where in its one input, of this shape, the output lies, if the input's gradient is the output's there and zero elsewhere.
    /// Tapes join the gradients of several such parts by one concatenation, where [`vjp`](Differentiable::vjp) would pad each
    /// to the size of the input.
    fn placement(&self, _input: &Shape) -> Option<Placement> {
        None
    }

    /// Whether [`vjp`](Differentiable::vjp) can add to gradients that are there already: [`VjpCall::take_sum`].
    fn adds_to_sums(&self) -> bool {
        false
    }
}

/// A part of a tensor: a range of one axis, and all of the others. See [`Differentiable::placement`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The axis.
    pub axis: usize,
    /// The first index on the axis.
    pub start: usize,
    /// The shape of the part, with as many axes as the tensor.
    pub shape: Shape,
}

/// What of a call is saved for its gradient. Types and shapes are always saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saves {
    /// Inputs that are saved.
    pub inputs: Set,
    /// Outputs that are saved.
    pub outputs: Set,
    /// Whether [`Differentiable::residual`] computes a further value to save, in place of something larger.
    pub residual: bool,
    /// Inputs that it reads for that. They outlive the call, but are not saved.
    pub reads: Set,
}

impl Saves {
    /// Types and shapes only.
    pub const NOTHING: Saves =
        Saves { inputs: Set::NONE, outputs: Set::NONE, residual: false, reads: Set::NONE };
    /// The first output.
    pub const OUTPUT: Saves = Saves { outputs: Set::of([0]), ..Saves::NOTHING };
    /// The first input.
    pub const INPUT: Saves = Saves { inputs: Set::of([0]), ..Saves::NOTHING };

    /// These inputs.
    pub const fn inputs<const N: usize>(positions: [usize; N]) -> Saves {
        Saves { inputs: Set::of(positions), ..Saves::NOTHING }
    }

    /// These outputs.
    pub const fn outputs<const N: usize>(positions: [usize; N]) -> Saves {
        Saves { outputs: Set::of(positions), ..Saves::NOTHING }
    }

    /// A residual that [`Differentiable::residual`] computes from the outputs and these inputs.
    pub const fn residual_of<const N: usize>(reads: [usize; N]) -> Saves {
        Saves { residual: true, reads: Set::of(reads), ..Saves::NOTHING }
    }

    /// Of two inputs, the other one for each whose gradient is wanted, as a product needs.
    pub const fn others(wanted: Set) -> Saves {
        let mut inputs = Set::NONE;
        if wanted.has(0) {
            inputs = inputs.with(1);
        }
        if wanted.has(1) {
            inputs = inputs.with(0);
        }
        Saves { inputs, ..Saves::NOTHING }
    }

    /// What either of the two saves.
    #[must_use]
    pub const fn and(self, other: Saves) -> Saves {
        Saves {
            inputs: self.inputs.union(other.inputs),
            outputs: self.outputs.union(other.outputs),
            residual: self.residual || other.residual,
            reads: self.reads.union(other.reads),
        }
    }
}

/// An input or output of a call, as its gradient rule receives it.
#[derive(Clone, Debug)]
pub struct SavedValue {
    /// Type and shape.
    pub spec: Spec,
    /// The value, if it was saved.
    pub value: Option<Tensor>,
}

/// A call, as its gradient rule receives it: what was saved of it, and the gradients of its outputs.
pub struct VjpCall<'a> {
    /// The inputs.
    pub inputs: &'a [SavedValue],
    /// The outputs.
    pub outputs: &'a mut [SavedValue],
    /// The result of [`Differentiable::residual`].
    pub residual: Option<&'a Tensor>,
    /// The inputs whose gradients are wanted.
    pub wanted: Set,
    /// The gradients of the outputs; `None` where there is none.
    pub gradients: SmallVec<[Option<Tensor>; 1]>,
    /// See [`VjpCall::take_sum`]; may have fewer elements than there are inputs.
    pub sums: SmallVec<[Option<Tensor>; 1]>,
}

impl VjpCall<'_> {
    /// Whether the gradient of an input is wanted.
    pub fn wants(&self, input: usize) -> bool {
        self.wanted.has(input)
    }

    /// An input that [`Differentiable::saves`] declared; any other is an error.
    pub fn input(&self, position: usize) -> Result<&Tensor> {
        self.inputs[position].value.as_ref().ok_or_else(|| undeclared("input", position))
    }

    /// An output that [`Differentiable::saves`] declared; any other is an error.
    pub fn output(&self, position: usize) -> Result<&Tensor> {
        self.outputs[position].value.as_ref().ok_or_else(|| undeclared("output", position))
    }

    /// As [`VjpCall::output`], by value: if the tape does not need it any more, its memory can be reused.
    pub fn take_output(&mut self, position: usize) -> Result<Tensor> {
        self.outputs[position].value.take().ok_or_else(|| undeclared("output", position))
    }

    /// The result of [`Differentiable::residual`].
    pub fn residual(&self) -> Result<&Tensor> {
        self.residual.ok_or_else(|| undeclared("residual", 0))
    }

    /// The shape of an input.
    pub fn input_shape(&self, position: usize) -> &Shape {
        &self.inputs[position].spec.shape
    }

    /// The shape of an output.
    pub fn output_shape(&self, position: usize) -> &Shape {
        &self.outputs[position].spec.shape
    }

    /// The gradients of an op of which only the first input has one, from that of the first output.
    pub fn first(&mut self, rule: impl FnOnce(&Self, Tensor) -> Result<Tensor>) -> Result<Gradients> {
        let mut gradients = Gradients::new();
        if let Some(gradient) = self.take_gradient(0)
            && self.wants(0)
        {
            gradients.push(Some(rule(self, gradient)?.into()));
        }
        Ok(gradients)
    }

    /// Takes the gradient of an output, if there is one. An op that receives it by value can reuse its memory.
    pub fn take_gradient(&mut self, output: usize) -> Option<Tensor> {
        self.gradients.get_mut(output)?.take()
    }

    /// Takes the gradient that other calls gave an input so far. A rule that takes it returns its sum with the gradient of this
    /// call. So a rule that reads a part of its input adds to that part, in place, and makes no tensor of the input's size. It is
    /// `None` if there is no such gradient, and for a rule that does not say that it
    /// [adds to sums](Differentiable::adds_to_sums).
    pub fn take_sum(&mut self, input: usize) -> Option<Tensor> {
        self.sums.get_mut(input)?.take()
    }
}

#[cold]
fn undeclared(what: &str, position: usize) -> Error {
    let message = format!(
        "a gradient rule must read declared values only, got {what} {position}, which `saves` does not name"
    );
    Error::new(ErrorKind::Graph, message)
}

/// The gradients of a call's inputs, by position; missing ones at the end are `None`.
pub type Gradients = SmallVec<[Option<Gradient>; 2]>;

/// A gradient.
#[derive(Clone, Debug)]
pub enum Gradient {
    /// A tensor of its source's type and shape.
    Dense(Tensor),
    /// Rows of such a tensor; the others are zero.
    Sparse(IndexedSlices),
}

impl From<Tensor> for Gradient {
    fn from(tensor: Tensor) -> Gradient {
        Gradient::Dense(tensor)
    }
}

impl From<IndexedSlices> for Gradient {
    fn from(slices: IndexedSlices) -> Gradient {
        Gradient::Sparse(slices)
    }
}

/// A tensor that is zero except for some rows (slices along the first axis), of which only those are stored. The values of an
/// index that occurs several times are summed.
#[derive(Clone, Debug)]
pub struct IndexedSlices {
    /// The rows: one per index.
    pub values: Tensor,
    /// The positions of the rows: integers, one-dimensional.
    pub indices: Tensor,
    /// The shape of the whole tensor.
    pub dense_shape: Shape,
}
