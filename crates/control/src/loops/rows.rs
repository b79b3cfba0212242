//! The bytes of a loop's slices, stacks and captures, step by step.

use crate::scratch::input_bytes;
use smallvec::SmallVec;
use taut_core::Spec;
use taut_kernels::Arg;

/// A slice, row by row.
struct Rows<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
}

impl<'a> Rows<'a> {
    fn row(&self, row: usize) -> &'a [u8] {
        &self.bytes[row * self.row_bytes..(row + 1) * self.row_bytes]
    }
}

/// What the body of a loop reads beside index and states: a row of each slice, and the captures.
pub(crate) struct StepInputs<'a> {
    slices: SmallVec<[Rows<'a>; 8]>,
    captures: SmallVec<[&'a [u8]; 16]>,
}

impl<'a> StepInputs<'a> {
    /// `specs` are those of the rows.
    pub(crate) fn new<'s>(
        slices: impl Iterator<Item = &'s Arg<'a>>,
        specs: impl Iterator<Item = &'s Spec>,
        captures: impl Iterator<Item = &'s Arg<'a>>,
    ) -> StepInputs<'a>
    where
        'a: 's,
    {
        let rows =
            |(slice, spec): (&Arg<'a>, &Spec)| Rows { bytes: input_bytes(slice), row_bytes: spec.bytes() };
        StepInputs {
            slices: slices.zip(specs).map(rows).collect(),
            captures: captures.map(input_bytes).collect(),
        }
    }

    /// The inputs of the step that reads this row.
    pub(crate) fn at(&self, row: usize) -> impl Iterator<Item = &'a [u8]> {
        self.first(self.slices.len(), row)
    }

    /// As [`StepInputs::at`], with the first slices only.
    pub(crate) fn first(&self, slices: usize, row: usize) -> impl Iterator<Item = &'a [u8]> {
        self.slices[..slices].iter().map(move |slice| slice.row(row)).chain(self.captures.iter().copied())
    }
}

/// A stack, row by row.
pub(crate) struct StackRows<'a> {
    bytes: &'a mut [u8],
    row_bytes: usize,
}

impl<'a> StackRows<'a> {
    /// `row` is the spec of a row.
    pub(crate) fn new(bytes: &'a mut [u8], row: &Spec) -> StackRows<'a> {
        StackRows { bytes, row_bytes: row.bytes() }
    }

    pub(crate) fn row(&mut self, row: usize) -> &mut [u8] {
        &mut self.bytes[row * self.row_bytes..(row + 1) * self.row_bytes]
    }

    /// Fills the rows of steps that were not made with zeros.
    pub(crate) fn zero_from(&mut self, row: usize) {
        self.bytes[row * self.row_bytes..].fill(0);
    }
}

/// The number of steps in an input.
pub(crate) fn step_count(input: &Arg<'_>) -> usize {
    let bytes = input_bytes(input);
    bytes.try_into().map_or(0, |bytes| i64::from_ne_bytes(bytes).max(0) as usize)
}
