//! Updates of the rows that a sparse gradient names.

use super::wide;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{cast, square};
use taut_core::record::detached;
use taut_core::{IndexedSlices, Result, Tensor};

/// A sparse gradient as updates use it.
#[derive(Clone, Debug)]
pub(super) struct Rows(Tensor);

impl Rows {
    pub(super) fn new(slices: &IndexedSlices) -> Result<Rows> {
        Ok(Rows(detached(&slices.to_dense()?)))
    }

    /// The sum of its squares.
    pub(super) fn squares(&self) -> Result<Tensor> {
        sum(square(cast(&self.0, wide(self.0.dtype()))?)?, None, false)
    }

    /// The states after `step`.
    pub(super) fn update(
        self,
        states: Vec<Tensor>,
        step: impl Fn(Vec<Tensor>, Tensor) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        step(states, self.0)
    }
}
