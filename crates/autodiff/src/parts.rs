//! Gradients of disjoint parts of one tensor, joined by one concatenation.

use taut_core::ops::binary::add;
use taut_core::ops::shape::{PadMode, broadcast_to, concat, pad, reshape};
use taut_core::{IndexedSlices, Placement, Result, Shape, Tensor};

/// Rows that are less than one in so many are added to a gradient row by row, others after they are joined.
const FEW_ROWS: usize = 4;

/// Gradients of ranges of one axis of a tensor. It is zero elsewhere.
pub(crate) struct Parts {
    axis: usize,
    /// The shape of the whole tensor.
    shape: Shape,
    /// The first index and the gradient of each range, in rising order, without overlap.
    list: Vec<(usize, Tensor)>,
}

impl Parts {
    /// One part of a tensor of this shape.
    pub(crate) fn new(placement: &Placement, shape: &Shape, gradient: Tensor) -> Result<Parts> {
        let dims: Vec<isize> = placement.shape.iter().map(|&dim| dim as isize).collect();
        let gradient =
            if *gradient.shape() == placement.shape { gradient } else { reshape(gradient, &dims)? };
        Ok(Parts { axis: placement.axis, shape: shape.clone(), list: vec![(placement.start, gradient)] })
    }

    /// Adds the parts of another gradient of the same tensor. They are returned if one overlaps or is on another axis.
    pub(crate) fn join(&mut self, other: Parts) -> Option<Parts> {
        let axis = self.axis;
        let end = |(start, part): &(usize, Tensor)| start + part.shape()[axis];
        let place = |first: usize| self.list.partition_point(|(start, _)| *start < first);
        let fits = |part: &(usize, Tensor)| {
            let at = place(part.0);
            let after = at == 0 || end(&self.list[at - 1]) <= part.0;
            after && self.list.get(at).is_none_or(|next| end(part) <= next.0)
        };
        if other.axis != axis || !other.list.iter().all(fits) {
            return Some(other);
        }
        for part in other.list {
            let at = self.list.partition_point(|(start, _)| *start < part.0);
            self.list.insert(at, part);
        }
        None
    }

    /// The sum with another gradient of the tensor.
    pub(crate) fn add_to(self, sum: Tensor) -> Result<Tensor> {
        let rows: usize = self.list.iter().map(|(_, part)| part.shape()[self.axis]).sum();
        if self.axis > 0 || rows.saturating_mul(FEW_ROWS) > self.shape[0] {
            return add(sum, self.dense()?);
        }
        self.list.into_iter().try_fold(sum, |sum, (start, values)| {
            let indices: Vec<i64> = (start..start + values.shape()[0]).map(|row| row as i64).collect();
            let indices = Tensor::from_slice(&indices, [indices.len()])?;
            IndexedSlices { values, indices, dense_shape: self.shape.clone() }.add_to(sum)
        })
    }

    /// The gradient of the whole tensor.
    pub(crate) fn dense(self) -> Result<Tensor> {
        let Parts { axis, shape, list: parts } = self;
        if let [(start, part)] = &parts[..] {
            let mut paddings = vec![[0, 0]; shape.rank()];
            paddings[axis] = [*start, shape[axis] - *start - part.shape()[axis]];
            return pad(part.clone(), &paddings, PadMode::Constant(0.into()));
        }
        let (mut pieces, mut next) = (Vec::with_capacity(parts.len()), 0);
        let dtype = parts[0].1.dtype();
        let zeros = |count: usize| broadcast_to(Tensor::constant(0, dtype)?, shape.clone().with(axis, count));
        for (start, part) in parts {
            if start > next {
                pieces.push(zeros(start - next)?);
            }
            next = start + part.shape()[axis];
            pieces.push(part);
        }
        if next < shape[axis] {
            pieces.push(zeros(shape[axis] - next)?);
        }
        concat(&pieces, axis as isize)
    }
}
