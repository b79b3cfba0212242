//! Checks and gradients shared by the indexing ops.

use crate::error::{Error, Result};
use crate::op::Spec;
use crate::ops::along_axis::add_along_axis;
use crate::ops::binary::{add, mul};
use crate::ops::creation::{range, zeros};
use crate::ops::index::unsorted_segment_sum;
use crate::ops::shape::{broadcast_to, concat, reshape_to};
use crate::ops::unary::cast;
use crate::shape::Shape;
use crate::tensor::Tensor;
use taut_kernels::index::{BadIndex, SegmentError};
use taut_kernels::{DType, dispatch};

impl From<BadIndex> for Error {
    #[cold]
    fn from(bad: BadIndex) -> Error {
        let error = Error::index(bad.to_string());
        match bad.limit {
            0 => error.help("the axis has size 0"),
            limit => error.help(format!("valid indices are in [0, {limit})")),
        }
    }
}

impl From<SegmentError> for Error {
    #[cold]
    fn from(error: SegmentError) -> Error {
        match error {
            SegmentError::BadIndex(BadIndex { value, limit, position, .. }) => {
                let message =
                    format!("segment ids must be in [0, {limit}), got {value} at position {position}");
                Error::index(message)
            }
            SegmentError::NotSorted { position } => {
                let message = format!(
                    "segment ids must be sorted, but the one at position {position} is smaller than its predecessor"
                );
                Error::index(message).help("sort them, or use the unsorted_segment op")
            }
        }
    }
}

/// An error unless the dtype is an integer type.
pub(super) fn check_integers(what: &str, spec: &Spec) -> Result<()> {
    if spec.dtype.is_integer() {
        return Ok(());
    }
    Err(Error::dtype(format!("{what} must be integers, got {}", spec.dtype)).help("cast them to int64"))
}

/// The number `k` of coordinates in indices `[.., k]`, or an error if `x` has fewer than `k` dimensions from `first` on.
pub(super) fn check_coordinates(x: &Shape, indices: &Shape, first: usize) -> Result<usize> {
    let Some(&k) = indices.last() else {
        return Err(Error::shape(
            "indices must have rank >= 1 with coordinates on the last axis, got a scalar",
        ));
    };
    let rank = x.rank().saturating_sub(first);
    if k > rank {
        return Err(Error::shape(format!(
            "indices must have at most {rank} coordinates, one per axis, got {k}"
        )));
    }
    Ok(k)
}

/// The number of batch dimensions, or an error unless `x` and `indices` have them and they are equal.
pub(super) fn check_batch(x: &Shape, indices: &Shape, batch_dims: isize) -> Result<usize> {
    let shifted = if batch_dims < 0 { batch_dims.wrapping_add(indices.rank() as isize) } else { batch_dims };
    let batch = usize::try_from(shifted).unwrap_or(usize::MAX);
    if batch > indices.rank() || batch > x.rank() {
        let (a, b) = (x.rank(), indices.rank());
        return Err(Error::value(format!("batch_dims {batch_dims} is out of range for ranks {a} and {b}")));
    }
    if x[..batch] != indices[..batch] {
        let message = format!("the {batch} batch dimensions must be equal, got shapes {x} and {indices}");
        return Err(Error::shape(message));
    }
    Ok(batch)
}

/// The value of an integer tensor with one element.
#[track_caller]
pub(super) fn integer_item(x: &Tensor) -> Result<i128> {
    dispatch!(x.dtype(), T in integers => Ok(i128::from(x.item::<T>()?)))
}

/// Prepends to each coordinate vector its position along the first axis of `indices`.
#[track_caller]
pub(super) fn prepend_batch_coordinate(indices: Tensor) -> Result<Tensor> {
    let (count, rank) = (indices.shape()[0], indices.rank());
    let column: Shape = (0..rank).map(|axis| if axis == 0 { count } else { 1 }).collect();
    let numbers = reshape_to(range(0, count as i64, 1, DType::I64)?, &column)?;
    let numbers = broadcast_to(numbers, indices.shape().clone().with(rank - 1, 1))?;
    concat(&[numbers, cast(indices, DType::I64)?], -1)
}

/// The `count` integers 0, `step`, 2 `step`, ….
#[track_caller]
pub(super) fn steps(count: usize, step: usize) -> Result<Tensor> {
    mul(range(0, count as i64, 1, DType::I64)?, step as i64)
}

/// The gradient of `gather`: adds each slice of `g` to the slice at its index in zeros of `shape`. The tuple holds the
/// number of batch dimensions, the gathered axis and its size.
#[track_caller]
pub(super) fn sum_slices(
    g: Tensor,
    indices: &Tensor,
    (batch, axis, dim): (usize, usize, usize),
    shape: &Shape,
) -> Result<Tensor> {
    let size = |dims: &[usize]| dims.iter().product::<usize>();
    let (outer, middle, inner) = (size(&shape[..batch]), size(&shape[batch..axis]), size(&shape[axis + 1..]));
    let count = size(&indices.shape()[batch..]);
    // A flat id per slice, over all axes up to the gathered one.
    let ids = reshape_to(cast(indices, DType::I64)?, &[outer, 1, count].into())?;
    let ids = match outer * middle {
        1 => ids,
        lead => add(ids, reshape_to(steps(lead, dim)?, &[outer, middle, 1].into())?)?,
    };
    let g = reshape_to(g, &[outer, middle, count, inner].into())?;
    let ids = reshape_to(ids, &[outer, middle, count].into())?;
    reshape_to(unsorted_segment_sum(g, ids, outer * middle * dim)?, shape)
}

/// The gradient of `take_along_axis`: adds each element of `g` to the element at its index in zeros of `shape`.
#[track_caller]
pub(super) fn sum_along_axis(g: Tensor, indices: &Tensor, axis: usize, shape: &Shape) -> Result<Tensor> {
    let zeros = zeros(shape.clone(), g.dtype())?;
    add_along_axis(zeros, indices.clone(), g, axis)
}
