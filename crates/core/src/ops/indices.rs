//! Checks and gradients shared by the indexing ops.

use crate::error::{Error, Result};
use crate::op::{Cost, Spec};
use crate::ops::along_axis::add_along_axis;
use crate::ops::binary::{add, mul};
use crate::ops::creation::{range, zeros};
use crate::ops::index::{tensor_scatter_add, unsorted_segment_sum};
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
    let (ids, inner) = slice_ids(indices, (batch, axis), shape)?;
    let lead = shape[..axis].iter().product::<usize>();
    let slices: Shape = ids.shape().iter().copied().chain([inner]).collect();
    reshape_to(unsorted_segment_sum(reshape_to(g, &slices)?, ids, lead * dim)?, shape)
}

/// As [`sum_slices`], added to `sum`: in place, if it is donated.
#[track_caller]
pub(super) fn add_slices(
    sum: Tensor,
    g: Tensor,
    indices: &Tensor,
    (batch, axis): (usize, usize),
) -> Result<Tensor> {
    let shape = sum.shape().clone();
    let (ids, inner) = slice_ids(indices, (batch, axis), &shape)?;
    let lead = shape[..=axis].iter().product::<usize>();
    let count = ids.len();
    let (ids, g) = (reshape_to(ids, &[count, 1].into())?, reshape_to(g, &[count, inner].into())?);
    reshape_to(tensor_scatter_add(reshape_to(sum, &[lead, inner].into())?, ids, g)?, &shape)
}

/// For the slices that `gather` takes from a tensor of this shape: a flat id per slice, over all axes up to the gathered one, and the
/// number of elements of a slice.
#[track_caller]
fn slice_ids(indices: &Tensor, (batch, axis): (usize, usize), shape: &Shape) -> Result<(Tensor, usize)> {
    let size = |dims: &[usize]| dims.iter().product::<usize>();
    let (outer, middle) = (size(&shape[..batch]), size(&shape[batch..axis]));
    let count = size(&indices.shape()[batch..]);
    let ids = reshape_to(cast(indices, DType::I64)?, &[outer, 1, count].into())?;
    let ids = match outer * middle {
        1 => ids,
        lead => add(ids, reshape_to(steps(lead, shape[axis])?, &[outer, middle, 1].into())?)?,
    };
    Ok((reshape_to(ids, &[outer, middle, count].into())?, size(&shape[axis + 1..])))
}

/// A gradient that is there already, or zeros.
#[track_caller]
pub(super) fn sum_or_zeros(sum: Option<Tensor>, shape: &Shape, dtype: DType) -> Result<Tensor> {
    sum.map_or_else(|| zeros(shape.clone(), dtype), Ok)
}

/// The work of reading elements by index: what is not read does not count.
pub(super) fn read_cost(indices: &Spec, output: &Spec) -> Cost {
    Cost { flops: 0, bytes: Cost::traffic(&[indices, output], std::slice::from_ref(output)) }
}

/// The work of combining updates with a tensor in place: what they do not touch does not count.
pub(super) fn update_cost(indices: &Spec, updates: &Spec) -> Cost {
    let bytes = Cost::traffic(&[indices, updates, updates], std::slice::from_ref(updates));
    Cost { flops: updates.shape.len() as u64, bytes }
}

/// The gradient of `take_along_axis`: adds each element of `g` to the element at its index in zeros of `shape`.
#[track_caller]
pub(super) fn sum_along_axis(g: Tensor, indices: &Tensor, axis: usize, shape: &Shape) -> Result<Tensor> {
    let zeros = zeros(shape.clone(), g.dtype())?;
    add_along_axis(zeros, indices.clone(), g, axis)
}
