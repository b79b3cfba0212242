//! What ops that take indices have in common.

use crate::error::{Error, Result};
use crate::op::Spec;
use crate::ops::binary::{add, mul};
use crate::ops::creation::range;
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
            0 => error.help("the axis is empty: nothing can be taken from it"),
            limit => error.help(format!("indices go from 0 to {}", limit - 1)),
        }
    }
}

impl From<SegmentError> for Error {
    #[cold]
    fn from(error: SegmentError) -> Error {
        match error {
            SegmentError::BadIndex(BadIndex { value, limit, position, .. }) => {
                let message =
                    format!("segment id {value} (number {position}) is outside the {limit} segments");
                Error::index(message).help("segment ids count from 0")
            }
            SegmentError::NotSorted { position } => {
                let message = format!("segment id number {position} is smaller than the one before");
                Error::index(message).help("sort them, or use the unsorted form")
            }
        }
    }
}

/// Refuses indices that are not integers.
pub(super) fn check_integers(what: &str, spec: &Spec) -> Result<()> {
    if spec.dtype.is_integer() {
        return Ok(());
    }
    Err(Error::dtype(format!("{what} must be integers, not {}", spec.dtype)).help("cast them to int64"))
}

/// Refuses indices `[.., k]` with more coordinates than `x` has dimensions from `first` on; gives `k`.
pub(super) fn check_coordinates(x: &Shape, indices: &Shape, first: usize) -> Result<usize> {
    let Some(&k) = indices.last() else {
        return Err(Error::shape(
            "indices must have a last axis that holds the coordinates, and a scalar has none",
        ));
    };
    let rank = x.rank().saturating_sub(first);
    if k > rank {
        return Err(Error::shape(format!(
            "indices have {k} coordinates, and there are {rank} axes to index"
        )));
    }
    Ok(k)
}

/// The number of leading dimensions that go together, refused unless `x` and `indices` have and share them.
pub(super) fn check_batch(x: &Shape, indices: &Shape, batch_dims: isize) -> Result<usize> {
    let shifted = if batch_dims < 0 { batch_dims.wrapping_add(indices.rank() as isize) } else { batch_dims };
    let batch = usize::try_from(shifted).unwrap_or(usize::MAX);
    if batch > indices.rank() || batch > x.rank() {
        let (a, b) = (x.rank(), indices.rank());
        return Err(Error::value(format!("{batch_dims} batch dimensions do not exist in ranks {a} and {b}")));
    }
    if x[..batch] != indices[..batch] {
        let message = format!("the first {batch} dimensions of {x} and {indices} differ");
        return Err(Error::shape(message).help("batch dimensions must be equal"));
    }
    Ok(batch)
}

/// The only element of an integer tensor.
#[track_caller]
pub(super) fn integer_item(x: &Tensor) -> Result<i128> {
    dispatch!(x.dtype(), T in integers => Ok(i128::from(x.item::<T>()?)))
}

/// Coordinates with one more before them: where along the first axis of `indices` they are.
#[track_caller]
pub(super) fn numbered(indices: Tensor) -> Result<Tensor> {
    let (count, rank) = (indices.shape()[0], indices.rank());
    let column: Shape = (0..rank).map(|axis| if axis == 0 { count } else { 1 }).collect();
    let numbers = reshape_to(range(0, count as i64, 1, DType::I64)?, &column)?;
    let numbers = broadcast_to(numbers, indices.shape().clone().with(rank - 1, 1))?;
    concat(&[numbers, cast(indices, DType::I64)?], -1)
}

/// 0, `step`, 2 * `step`, ..: `count` numbers.
#[track_caller]
pub(super) fn steps(count: usize, step: usize) -> Result<Tensor> {
    mul(range(0, count as i64, 1, DType::I64)?, step as i64)
}

/// The gradient of slices taken along an axis: each is added to the slice that its index names. `places` are the number
/// of batch dimensions, the axis, and its size in the tensor, of this shape, that slices were taken from.
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
    // Every slice of the tensor gets a number, counted through all axes up to the one that is indexed.
    let ids = reshape_to(cast(indices, DType::I64)?, &[outer, 1, count].into())?;
    let ids = match outer * middle {
        1 => ids,
        lead => add(ids, reshape_to(steps(lead, dim)?, &[outer, middle, 1].into())?)?,
    };
    let g = reshape_to(g, &[outer, middle, count, inner].into())?;
    let ids = reshape_to(ids, &[outer, middle, count].into())?;
    reshape_to(unsorted_segment_sum(g, ids, outer * middle * dim)?, shape)
}

/// The gradient of elements taken along an axis of a tensor of this shape, one per index: each is added to the element
/// that its index names.
#[track_caller]
pub(super) fn sum_along_axis(g: Tensor, indices: &Tensor, axis: usize, shape: &Shape) -> Result<Tensor> {
    let size = |dims: &[usize]| dims.iter().product::<usize>();
    let (outer, dim, inner) = (size(&shape[..axis]), shape[axis], size(&shape[axis + 1..]));
    let taken = Shape::from([outer, indices.shape()[axis], inner]);
    let mut ids = reshape_to(cast(indices, DType::I64)?, &taken)?;
    if inner > 1 {
        ids = add(mul(ids, inner as i64)?, steps(inner, 1)?)?;
    }
    if outer > 1 {
        ids = add(ids, reshape_to(steps(outer, dim * inner)?, &[outer, 1, 1].into())?)?;
    }
    reshape_to(unsorted_segment_sum(reshape_to(g, &taken)?, ids, shape.len())?, shape)
}
