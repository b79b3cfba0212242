//! How ops treat the rows of a batch: the basis of the proof that a step may compute its batch in parts (micro-batches).
//!
//! Every value of a graph has a [`RowClass`]. From the classes of an op's inputs, [`split_rows`] derives those of its outputs
//! when the op runs on a part of the batch, or `None` if its result on parts does not determine its result on the batch: the op
//! *mixes rows*. Elementwise ops and views have a rule by their form; other ops have one of their own ([`RowRule`]). There is
//! no default for other ops.

mod elementwise;
mod view;

pub(crate) use view::split as view_rows;

use crate::op::{Form, Kernel, Op, Spec};
use smallvec::SmallVec;
use std::sync::Arc;

/// How a value depends on the rows of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowClass {
    /// It is the same for every part of the batch.
    Same,
    /// It has rows: the value for a part is a range of an axis.
    Rows(RowAxis),
    /// The value for the whole batch is the sum of the values for its parts.
    PartialSum,
    /// The packed bits of a value with rows, of which so many elements come before the row axis: the value for a part is made of
    /// the elements of that part. Bits of a row need not begin at a byte, so it is neither a range nor a sum.
    PackedRows {
        /// The product of the dimensions before the row axis.
        outer: usize,
        /// The number of elements of one row behind each of them.
        per_row: usize,
    },
}

/// An axis that holds the rows of a batch in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAxis {
    /// The axis.
    pub axis: usize,
    /// The number of consecutive entries on the axis that belong to one row.
    pub per_row: usize,
}

impl RowAxis {
    /// This spec for so many rows.
    pub fn resize(self, spec: &Spec, rows: usize) -> Spec {
        Spec { dtype: spec.dtype, shape: spec.shape.clone().with(self.axis, rows * self.per_row) }
    }

    /// The elements before the row axis, and the elements of one row behind them, in a tensor of this spec.
    pub fn extents(self, spec: &Spec) -> (usize, usize) {
        let (before, after) = (&spec.shape[..self.axis], &spec.shape[self.axis + 1..]);
        (before.iter().product(), self.per_row * after.iter().product::<usize>())
    }
}

impl RowClass {
    /// The row axis of a value that has rows.
    pub fn axis(self) -> Option<RowAxis> {
        if let RowClass::Rows(axis) = self { Some(axis) } else { None }
    }
}

/// A call whose batch is computed in parts.
#[derive(Clone, Copy, Debug)]
pub struct RowCall<'a> {
    /// The number of rows of the batch; at least two.
    pub rows: usize,
    /// The inputs for the whole batch.
    pub inputs: &'a [&'a Spec],
    /// Their classes.
    pub classes: &'a [RowClass],
    /// Per input, whether all of its elements are known to be zero.
    pub zeros: &'a [bool],
    /// The outputs for the whole batch.
    pub outputs: &'a [&'a Spec],
    /// The rows that are wanted of the first output though every input is the same for all parts.
    pub wanted: Option<RowAxis>,
}

/// How an op computes a part of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSplit {
    /// The classes that the inputs must have: an input that is the same for all parts may have to be cut into rows.
    pub inputs: SmallVec<[RowClass; 3]>,
    /// The classes of the outputs.
    pub outputs: SmallVec<[RowClass; 1]>,
    /// Whether the outputs are means over rows: they are weighted by the fraction of the rows that is in the part.
    pub is_mean: bool,
    /// Whether the output is the first input, which is zero, plus a sum over rows: a sum over parts can be that input.
    pub adds_to_first: bool,
    /// For ops whose elements depend on their position (random numbers): the number of elements of one row. The op for a part
    /// has one more input, the position of its first element.
    pub positions: Option<usize>,
}

/// A part of a batch that an op computes.
#[derive(Clone, Copy, Debug)]
pub struct RowPart<'a> {
    /// The number of rows of the part.
    pub rows: usize,
    /// The number of rows of the batch.
    pub whole_rows: usize,
    /// How the op computes a part.
    pub split: &'a RowSplit,
    /// The inputs for the part.
    pub inputs: &'a [&'a Spec],
    /// The outputs for the part.
    pub outputs: &'a [Spec],
}

/// An op that knows what it does with rows: [`Op::rows`].
pub trait RowRule {
    /// How the op computes a part of a batch; `None` if it mixes rows.
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit>;

    /// The op for a part; `None` if it is the op itself.
    ///
    /// If the split has [`positions`](RowSplit::positions), this is the op that takes one more input: the position of its first
    /// element, an `int64`.
    fn resized(&self, _part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        None
    }
}

impl RowCall<'_> {
    /// The row axis of the first input that has rows.
    pub fn first_rows(&self) -> Option<(usize, RowAxis)> {
        self.classes.iter().enumerate().find_map(|(i, class)| Some((i, class.axis()?)))
    }

    /// Whether an input is a sum over parts; zero is.
    pub fn is_partial_sum(&self, input: usize) -> bool {
        self.classes[input] == RowClass::PartialSum || self.zeros[input]
    }

    /// Whether an input is the same for all parts.
    pub fn is_same(&self, input: usize) -> bool {
        self.classes[input] == RowClass::Same
    }

    /// A split with the inputs as they are.
    pub fn with_outputs(&self, outputs: impl IntoIterator<Item = RowClass>) -> Option<RowSplit> {
        Some(RowSplit {
            inputs: self.classes.iter().copied().collect(),
            outputs: outputs.into_iter().collect(),
            is_mean: false,
            adds_to_first: false,
            positions: None,
        })
    }

    /// A linear op on sums over parts: all outputs are such sums.
    pub fn linear(&self) -> Option<RowSplit> {
        self.with_outputs(self.outputs.iter().map(|_| RowClass::PartialSum))
    }

    /// The class of an input with rows on this axis: its own class, or rows cut out of a value that is the same for all parts.
    pub fn rows_of(&self, input: usize, axis: RowAxis) -> Option<RowClass> {
        let rows = RowClass::Rows(axis);
        let fits = match self.classes[input] {
            RowClass::Same => self.inputs[input].shape.get(axis.axis) == Some(&(self.rows * axis.per_row)),
            class => class == rows,
        };
        fits.then_some(rows)
    }

    /// An op that treats rows independently. Per input and output, the position of the axis that holds the rows: an input without
    /// one is the same for all parts, and an output without one is a sum over rows.
    pub fn independent(&self, inputs: &[Option<usize>], outputs: &[Option<usize>]) -> Option<RowSplit> {
        let (_, RowAxis { per_row, .. }) = self.first_rows()?;
        let rows = |axis: usize| RowAxis { axis, per_row };
        let input = |(i, axis): (usize, &Option<usize>)| match *axis {
            Some(axis) => self.rows_of(i, rows(axis)),
            None => self.is_same(i).then_some(RowClass::Same),
        };
        let output =
            |axis: &Option<usize>| axis.map_or(RowClass::PartialSum, |axis| RowClass::Rows(rows(axis)));
        Some(RowSplit {
            inputs: inputs.iter().enumerate().map(input).collect::<Option<_>>()?,
            outputs: outputs.iter().map(output).collect(),
            is_mean: false,
            adds_to_first: false,
            positions: None,
        })
    }

    /// An op of one input that treats every index of the axes that `keeps` accepts independently, and has them at the same
    /// position in all outputs.
    pub fn independent_axis(&self, keeps: impl FnOnce(usize) -> bool) -> Option<RowSplit> {
        let axis = self.classes[0].axis()?.axis;
        let mut inputs: SmallVec<[Option<usize>; 3]> = SmallVec::from_elem(None, self.inputs.len());
        inputs[0] = Some(axis);
        let outputs: SmallVec<[Option<usize>; 3]> = SmallVec::from_elem(Some(axis), self.outputs.len());
        if keeps(axis) { self.independent(&inputs, &outputs) } else { None }
    }

    /// An op whose elements depend on their position, and whose output has rows on this axis: the elements of a part must be
    /// consecutive.
    pub fn positional(&self, axis: RowAxis) -> Option<RowSplit> {
        let (outer, per_row) = axis.extents(self.outputs[0]);
        let split = self.with_outputs([RowClass::Rows(axis)])?;
        (outer == 1).then_some(RowSplit { positions: Some(per_row), ..split })
    }
}

/// How a call computes a part of a batch; `None` if it mixes rows.
pub fn split_rows(op: &dyn Op, call: &RowCall<'_>) -> Option<RowSplit> {
    if let Some(rule) = op.rows() {
        return rule.split(call);
    }
    match op.form(call.inputs) {
        Form::Elementwise(code) => elementwise::split(code, call),
        Form::Uniform(_) => call.with_outputs([RowClass::Rows(call.wanted?)]),
        _ => match op.kernel() {
            Kernel::View(view) => view_rows(view, call),
            _ => None,
        },
    }
}

/// The op that computes a part of a batch: the op itself, or the one that it names for another size. `None` if neither takes the
/// inputs of the part to its outputs.
pub fn op_for_rows(op: &Arc<dyn Op>, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
    let fits = |op: &dyn Op| op.infer(part.inputs).is_ok_and(|specs| specs[..] == *part.outputs);
    if part.split.positions.is_none() && fits(&**op) {
        return Some(op.clone());
    }
    op.rows().and_then(|rule| rule.resized(part)).filter(|op| fits(&**op))
}
