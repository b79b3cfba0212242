//! Updates of the rows that a sparse gradient names.
//!
//! Ids are sorted, so that those that occur several times are neighbours. Then a loop goes through the distinct ones, a few at a time: it adds up
//! the rows of the gradient that belong to each, takes the rows of the variable and of its slots, updates them, and puts them back. The loop's
//! states are the variable and the slots themselves, in their own memory. So beside the gradient there are only some positions and the few rows at
//! work, whatever the size of the variable.

mod ops;

use super::wide;
use ops::{Grouped, group, put_rows, take_rows};
use taut_control::while_loop;
use taut_core::ops::binary::{add, less};
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{cast, square};
use taut_core::record::detached;
use taut_core::{DType, IndexedSlices, Result, Tensor};

/// How many bytes of a variable are worked on at a time.
const CHUNK: usize = 128 << 10;

/// A sparse gradient as updates use it.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    values: Tensor,
    groups: Grouped,
    /// How many rows are worked on at a time; none if the gradient has no rows.
    chunk: usize,
}

impl Rows {
    pub(super) fn new(slices: &IndexedSlices) -> Result<Rows> {
        let values = detached(&slices.values);
        let row = values.shape()[1..].iter().product::<usize>() * wide(values.dtype()).size();
        let chunk = (CHUNK / row.max(1)).max(1).min(values.shape()[0]);
        let groups = group(&slices.indices, slices.dense_shape[0])?;
        Ok(Rows { values, groups, chunk })
    }

    /// The sum of its squares.
    pub(super) fn squares(&self) -> Result<Tensor> {
        let dtype = wide(self.values.dtype());
        let start = vec![Tensor::constant(0.0, dtype)?];
        let mut total = self.each(start, |totals, _, sums| {
            let part = sum(square(cast(sums, dtype)?)?, None, false)?;
            totals.into_iter().map(|total| add(total, &part)).collect()
        })?;
        Ok(total.swap_remove(0))
    }

    /// The states with the rows that the gradient names updated by `step`, which gets these rows of each and those of the gradient.
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

    /// Goes through the distinct ids and the sums of their rows, some at a time.
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
