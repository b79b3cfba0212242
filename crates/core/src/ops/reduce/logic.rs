//! Logical reductions and counts.

use crate::error::Result;
use crate::ops::reduction::{ReduceAxes, ReductionCode, reduce};
use crate::ops::sample::{dtypes, invalid_axes, reductions};
use crate::ops::unary::cast;
use crate::ops::{OpEntry, Param, Reference, Samples, one};
use crate::{DType, Tensor};
use taut_kernels::reduce::Reduce;

/// Whether any element is true (nonzero) over axes; over all axes if `axes` is `None`.
#[track_caller]
pub fn any(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce("any", ReductionCode::Reduce(Reduce::Any), nonzero(x.into())?, axes.into(), keepdims, None)
}

/// Whether all elements are true (nonzero) over axes; over all axes if `axes` is `None`.
#[track_caller]
pub fn all(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce("all", ReductionCode::Reduce(Reduce::All), nonzero(x.into())?, axes.into(), keepdims, None)
}

/// The number of nonzero elements over axes (`int64`); over all axes if `axes` is `None`.
///
/// ```
/// use taut_core::{Tensor, ops::reduce::count_nonzero};
/// let x = Tensor::from_slice(&[0, 1, 2, 0], [2, 2])?;
/// assert_eq!(count_nonzero(&x, None, false)?.item::<i64>()?, 2);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn count_nonzero(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce(
        "count_nonzero",
        ReductionCode::Reduce(Reduce::CountNonzero),
        nonzero(x.into())?,
        axes.into(),
        keepdims,
        None,
    )
}

/// Whether complex numbers are not zero; other numbers are counted as they are.
#[track_caller]
fn nonzero(x: Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() { cast(x, DType::Bool) } else { Ok(x) }
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "any",
        Param::REDUCTION,
        |a| one(any(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.any(x, axis=axes, keepdims=keepdims)"),
        Samples::List(|| reductions(dtypes::EVERY, -0.9, 1.2)),
    )
    .refuses(invalid_axes),
    OpEntry::new(
        "all",
        Param::REDUCTION,
        |a| one(all(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.all(x, axis=axes, keepdims=keepdims)"),
        Samples::List(|| reductions(dtypes::EVERY, 0.5, 6.0)),
    )
    .refuses(invalid_axes),
    OpEntry::new(
        "count_nonzero",
        Param::REDUCTION,
        |a| one(count_nonzero(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.asarray(np.count_nonzero(x, axis=axes, keepdims=keepdims), np.int64)"),
        Samples::List(|| reductions(dtypes::EVERY, -2.0, 2.0)),
    )
    .refuses(invalid_axes),
];
