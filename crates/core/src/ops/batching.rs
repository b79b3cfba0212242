//! Many sets of inputs at once: what the rules of ops have in common.

use crate::apply::{Outputs, apply_many};
use crate::error::{Error, Result};
use crate::op::{Op, Spec, VmapCall};
use crate::ops::shape::{broadcast_to, moveaxis, reshape_to};
use crate::shape::Shape;
use crate::tensor::Tensor;

impl VmapCall<'_> {
    /// The shape that an input has in each set.
    pub fn shape(&self, input: usize) -> Shape {
        let shape = self.inputs[input].shape();
        if self.mapped[input] { shape.clone().without(0) } else { shape.clone() }
    }

    /// The type and shape that each input has in each set.
    pub fn specs(&self) -> Vec<Spec> {
        (0..self.inputs.len()).map(|i| Spec::new(self.inputs[i].dtype(), self.shape(i))).collect()
    }

    /// Where an axis of the first input is when the sets are the axis before all others.
    pub fn axis(&self, axis: isize) -> Result<isize> {
        Ok(self.shape(0).axis(axis)? as isize + 1)
    }

    /// As [`VmapCall::axis`], for several.
    pub fn axes(&self, axes: &[isize]) -> Result<Vec<isize>> {
        axes.iter().map(|&axis| self.axis(axis)).collect()
    }

    /// The shape of a tensor that holds one of this shape per set.
    pub fn many(&self, shape: &Shape) -> Shape {
        shape.clone().with_inserted(0, self.size)
    }

    /// An input with the sets as its first axis. One that is the same in all sets is repeated, not copied.
    #[track_caller]
    pub fn spread(&self, input: usize) -> Result<Tensor> {
        let tensor = &self.inputs[input];
        if self.mapped[input] { Ok(tensor.clone()) } else { broadcast_to(tensor, self.many(tensor.shape())) }
    }

    /// An input that broadcasts over the sets: if it is mapped, with axes of size one behind those of the sets, so that it
    /// has `rank` dimensions in each.
    #[track_caller]
    pub fn ranked(&self, input: usize, rank: usize) -> Result<Tensor> {
        let (tensor, own) = (&self.inputs[input], self.shape(input));
        if !self.mapped[input] || own.rank() >= rank {
            return Ok(tensor.clone());
        }
        let ones = std::iter::repeat_n(1, rank - own.rank());
        reshape_to(tensor, &self.many(&ones.chain(own.iter().copied()).collect()))
    }

    /// The outputs of an op to which one more axis before all others means nothing: that of its inputs as they are.
    #[track_caller]
    pub fn plain(&self, op: &dyn Op) -> Result<Option<Outputs>> {
        apply_many(op, self.inputs.to_vec()).map(Some)
    }

    /// As [`VmapCall::plain`], of an op whose inputs must all have that axis.
    #[track_caller]
    pub fn each(&self, op: &dyn Op) -> Result<Option<Outputs>> {
        let inputs = (0..self.inputs.len()).map(|i| self.spread(i)).collect::<Result<_>>()?;
        apply_many(op, inputs).map(Some)
    }

    /// As [`VmapCall::plain`], of an op whose inputs broadcast: they are lined up by their last axes.
    #[track_caller]
    pub fn broadcast(&self, op: &dyn Op) -> Result<Option<Outputs>> {
        let count = self.inputs.len();
        let rank = (0..count).map(|i| self.shape(i).rank()).max().unwrap_or(0);
        apply_many(op, (0..count).map(|i| self.ranked(i, rank)).collect::<Result<_>>()?).map(Some)
    }

    /// The outputs of an op that treats each element of its inputs' first axis by itself: the sets become part of that
    /// axis.
    #[track_caller]
    pub fn folded(&self, op: &dyn Op) -> Result<Option<Outputs>> {
        let inputs = (0..self.inputs.len()).map(|i| self.merged(i)).collect::<Result<_>>()?;
        self.parted(apply_many(op, inputs)?)
    }

    /// An input whose first axis has that of all sets, one set after the other.
    #[track_caller]
    pub fn merged(&self, input: usize) -> Result<Tensor> {
        merge(self.spread(input)?)
    }

    /// Outputs whose first axes hold the sets, one after the other, with the sets as an axis of their own.
    #[track_caller]
    pub fn parted(&self, outputs: Outputs) -> Result<Option<Outputs>> {
        outputs
            .into_iter()
            .map(|output| out_of_axis(output, 0, 1, self.size))
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// What a rule with one output returns.
pub(super) fn single(output: Result<Tensor>) -> Result<Option<Outputs>> {
    Ok(Some(Outputs::from_elem(output?, 1)))
}

/// As many elements as `size` sets have, if each has `count` of them.
pub(super) fn times(count: usize, size: usize) -> Result<usize> {
    let too_large = || Error::shape(format!("{size} sets have too many elements, {count} each"));
    count.checked_mul(size).ok_or_else(too_large)
}

/// The first two axes as one.
#[track_caller]
pub(super) fn merge(x: Tensor) -> Result<Tensor> {
    into_axis(x, 0, 1)
}

/// Puts the sets, the first axis of `x`, into another one, number `axis` without them. That axis falls into `groups`; each
/// of them then holds its own part of every set, one set after the other.
#[track_caller]
pub(super) fn into_axis(x: Tensor, axis: usize, groups: usize) -> Result<Tensor> {
    let own = x.shape().clone().without(0);
    let joined = own.clone().with(axis, times(own[axis], x.shape()[0])?);
    if axis == 0 && groups == 1 {
        return reshape_to(x, &joined);
    }
    let apart = x.shape().clone().with(axis + 1, own[axis] / groups).with_inserted(axis + 1, groups);
    reshape_to(moveaxis(reshape_to(x, &apart)?, &[0], &[axis as isize + 1])?, &joined)
}

/// The way back from [`into_axis`], for `size` sets.
#[track_caller]
pub(super) fn out_of_axis(x: Tensor, axis: usize, groups: usize, size: usize) -> Result<Tensor> {
    let own = x.shape().clone().with(axis, x.shape()[axis] / size.max(1));
    let parted = own.clone().with_inserted(0, size);
    if axis == 0 && groups == 1 {
        return reshape_to(x, &parted);
    }
    let part = own[axis] / groups;
    let apart = own.with(axis, part).with_inserted(axis, size).with_inserted(axis, groups);
    reshape_to(moveaxis(reshape_to(x, &apart)?, &[axis as isize + 1], &[0])?, &parted)
}
