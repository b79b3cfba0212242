//! What ops that take indices have in common.

use crate::error::{Error, Result};
use crate::op::Spec;
use crate::shape::Shape;
use crate::tensor::Tensor;
use taut_kernels::dispatch;
use taut_kernels::index::{BadIndex, SegmentError};

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
