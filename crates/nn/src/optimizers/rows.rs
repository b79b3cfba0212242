//! Sparse updates: only the rows that a sparse gradient names.
//!
//! Ids are sorted, so that equal ids are neighbours. A loop then goes through the distinct ids in chunks: it sums the gradient rows of each
//! id, gathers the rows of the variable and of its slots, updates them, and scatters them back. The loop's states are the variable and the
//! slots themselves, updated in place. So the extra memory is two positions per id and one chunk of rows, for any size of the variable.

mod ops;

use super::compute_dtype;
use ops::{GroupedIds, group, put_rows, take_rows};
use taut_control::while_loop;
use taut_core::ops::binary::{add, less};
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{cast, square};
use taut_core::record::detached;
use taut_core::{DType, IndexedSlices, Result, Tensor};

/// Bytes of a variable's rows per chunk.
const CHUNK: usize = 128 << 10;

/// A sparse gradient, prepared for an update.
#[derive(Clone, Debug)]
pub(super) struct SparseRows {
    values: Tensor,
    groups: GroupedIds,
    /// Rows per chunk; zero if the gradient has no rows.
    chunk: usize,
}

impl SparseRows {
    pub(super) fn new(slices: &IndexedSlices) -> Result<SparseRows> {
        let values = detached(&slices.values);
        let row = values.shape()[1..].iter().product::<usize>() * compute_dtype(values.dtype()).size();
        let chunk = (CHUNK / row.max(1)).max(1).min(values.shape()[0]);
        let groups = group(&slices.indices, slices.dense_shape[0])?;
        Ok(SparseRows { values, groups, chunk })
    }

    /// The sum of its squares.
    pub(super) fn squares(&self) -> Result<Tensor> {
        let dtype = compute_dtype(self.values.dtype());
        let start = vec![Tensor::constant(0.0, dtype)?];
        let mut total = self.each(start, |totals, _, sums| {
            let part = sum(square(cast(sums, dtype)?)?, None, false)?;
            totals.into_iter().map(|total| add(total, &part)).collect()
        })?;
        Ok(total.swap_remove(0))
    }

    /// The states after `step` has updated the rows that the gradient names. `step` receives these rows of each state and of the gradient.
    pub(super) fn update(
        &self,
        states: Vec<Tensor>,
        step: impl Fn(Vec<Tensor>, Tensor) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        self.each(states, |states, ids, sums| {
            let rows = states.iter().map(|state| take_rows(state, ids)).collect::<Result<Vec<_>>>()?;
            let rows = step(rows, sums)?;
            states.into_iter().zip(rows).map(|(state, rows)| put_rows(state, ids, rows)).collect()
        })
    }

    /// Folds `body` over the distinct ids and the sums of their rows, in chunks.
    fn each(
        &self,
        mut states: Vec<Tensor>,
        body: impl Fn(Vec<Tensor>, &Tensor, Tensor) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        if self.chunk == 0 {
            return Ok(states);
        }
        states.push(Tensor::constant(0, DType::I64)?);
        let position = states.len() - 1;
        let mut states = while_loop(
            |states: &Vec<Tensor>| less(&states[position], &self.groups.count),
            |mut states: Vec<Tensor>| {
                let first = states.swap_remove(position);
                let (ids, sums) = self.groups.sums(&self.values, &first, self.chunk)?;
                let mut states = body(states, &ids, sums)?;
                states.push(add(first, self.chunk as i64)?);
                Ok(states)
            },
            states,
        )?;
        states.truncate(position);
        Ok(states)
    }
}
