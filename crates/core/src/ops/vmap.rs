//! Helpers for `vmap` rules. A mapped input has the batch as its first axis; shapes and axes "per example" do not count it.

use crate::apply::{Outputs, apply_many};
use crate::error::{Error, Result};
use crate::op::{Op, Spec, VmapCall};
use crate::ops::shape::{broadcast_to, moveaxis, reshape_to};
use crate::shape::Shape;
use crate::tensor::Tensor;

impl VmapCall<'_> {
    /// The shape of an input per example.
    pub fn shape(&self, input: usize) -> Shape {
        let shape = self.inputs[input].shape();
        if self.mapped[input] { shape.clone().without(0) } else { shape.clone() }
    }

    /// The spec of each input per example.
    pub fn specs(&self) -> Vec<Spec> {
        (0..self.inputs.len()).map(|i| Spec::new(self.inputs[i].dtype(), self.shape(i))).collect()
    }

    /// The position of a per-example axis of the first input in the batched tensor.
    pub fn axis(&self, axis: isize) -> Result<isize> {
        Ok(self.shape(0).axis(axis)? as isize + 1)
    }

    /// [`VmapCall::axis`] of several axes.
    pub fn axes(&self, axes: &[isize]) -> Result<Vec<isize>> {
        axes.iter().map(|&axis| self.axis(axis)).collect()
    }

    /// This per-example shape with the batch axis in front.
    pub fn batched_shape(&self, shape: &Shape) -> Shape {
        shape.clone().with_inserted(0, self.size)
    }

    /// An input with the batch as its first axis. An input that is not mapped is broadcast, without a copy.
    #[track_caller]
    pub fn batched_input(&self, input: usize) -> Result<Tensor> {
        let tensor = &self.inputs[input];
        if self.mapped[input] {
            Ok(tensor.clone())
        } else {
            broadcast_to(tensor, self.batched_shape(tensor.shape()))
        }
    }

    /// An input that broadcasts against others of `rank` dimensions per example: a mapped input of lower rank gets axes of
    /// size one behind the batch axis.
    #[track_caller]
    pub fn input_of_rank(&self, input: usize, rank: usize) -> Result<Tensor> {
        let (tensor, own) = (&self.inputs[input], self.shape(input));
        if !self.mapped[input] || own.rank() >= rank {
            return Ok(tensor.clone());
        }
        let ones = std::iter::repeat_n(1, rank - own.rank());
        reshape_to(tensor, &self.batched_shape(&ones.chain(own.iter().copied()).collect()))
    }

    /// Applies the op to the batched inputs unchanged: for ops that accept any number of leading axes.
    #[track_caller]
    pub fn apply_as_is(&self, op: &dyn Op) -> Result<Option<Outputs>> {
        apply_many(op, self.inputs.to_vec()).map(Some)
    }

    /// Applies the op with the batch axis on every input: for ops whose inputs must share their leading axes.
    #[track_caller]
    pub fn apply_batched(&self, op: &dyn Op) -> Result<Option<Outputs>> {
        let inputs = (0..self.inputs.len()).map(|i| self.batched_input(i)).collect::<Result<_>>()?;
        apply_many(op, inputs).map(Some)
    }

    /// Applies the op with inputs aligned at their last axes: for ops whose inputs broadcast.
    #[track_caller]
    pub fn apply_broadcast(&self, op: &dyn Op) -> Result<Option<Outputs>> {
        let count = self.inputs.len();
        let rank = (0..count).map(|i| self.shape(i).rank()).max().unwrap_or(0);
        apply_many(op, (0..count).map(|i| self.input_of_rank(i, rank)).collect::<Result<_>>()?).map(Some)
    }

    /// Applies the op with the batch merged into the first axis: for ops that treat the slices along it independently.
    #[track_caller]
    pub fn apply_merged(&self, op: &dyn Op) -> Result<Option<Outputs>> {
        let inputs = (0..self.inputs.len()).map(|i| self.merged_input(i)).collect::<Result<_>>()?;
        self.split_outputs(apply_many(op, inputs)?)
    }

    /// An input with the batch merged into its first axis (batch-major).
    #[track_caller]
    pub fn merged_input(&self, input: usize) -> Result<Tensor> {
        merge_leading_axes(self.batched_input(input)?)
    }

    /// An axis of the first input per example, and all inputs with the batch merged into it, and into the first axis of the others:
    /// for ops that treat the slices along it independently.
    #[track_caller]
    pub fn merged_into_axis(&self, axis: isize) -> Result<(usize, Vec<Tensor>)> {
        let axis = self.shape(0).axis(axis)?;
        let mut inputs = vec![merge_batch_into_axis(self.batched_input(0)?, axis, 1)?];
        for i in 1..self.inputs.len() {
            inputs.push(self.merged_input(i)?);
        }
        Ok((axis, inputs))
    }

    /// Splits the batch off the first axis of each output; the inverse of the merge in [`VmapCall::merged_input`].
    #[track_caller]
    pub fn split_outputs(&self, outputs: Outputs) -> Result<Option<Outputs>> {
        outputs
            .into_iter()
            .map(|output| split_batch_from_axis(output, 0, 1, self.size))
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// The result of a rule with one output.
pub(super) fn single_output(output: Result<Tensor>) -> Result<Option<Outputs>> {
    Ok(Some(Outputs::from_elem(output?, 1)))
}

/// `count * size`, or an error if it overflows.
pub(super) fn batched_size(count: usize, size: usize) -> Result<usize> {
    let too_large = || Error::shape(format!("size {count} times a batch of {size} overflows"));
    count.checked_mul(size).ok_or_else(too_large)
}

/// Merges the first two axes.
#[track_caller]
pub(super) fn merge_leading_axes(x: Tensor) -> Result<Tensor> {
    merge_batch_into_axis(x, 0, 1)
}

/// Merges the batch, the first axis of `x`, into the per-example axis `axis`. That axis consists of `groups` blocks; in
/// the result, each block holds its part of every example, batch-major.
#[track_caller]
pub(super) fn merge_batch_into_axis(x: Tensor, axis: usize, groups: usize) -> Result<Tensor> {
    let own = x.shape().clone().without(0);
    let joined = own.clone().with(axis, batched_size(own[axis], x.shape()[0])?);
    if axis == 0 && groups == 1 {
        return reshape_to(x, &joined);
    }
    let apart = x.shape().clone().with(axis + 1, own[axis] / groups).with_inserted(axis + 1, groups);
    reshape_to(moveaxis(reshape_to(x, &apart)?, &[0], &[axis as isize + 1])?, &joined)
}

/// The inverse of [`merge_batch_into_axis`] for a batch of `size`.
#[track_caller]
pub(super) fn split_batch_from_axis(x: Tensor, axis: usize, groups: usize, size: usize) -> Result<Tensor> {
    let own = x.shape().clone().with(axis, x.shape()[axis] / size.max(1));
    let parted = own.clone().with_inserted(0, size);
    if axis == 0 && groups == 1 {
        return reshape_to(x, &parted);
    }
    let part = own[axis] / groups;
    let apart = own.with(axis, part).with_inserted(axis, size).with_inserted(axis, groups);
    reshape_to(moveaxis(reshape_to(x, &apart)?, &[axis as isize + 1], &[0])?, &parted)
}
