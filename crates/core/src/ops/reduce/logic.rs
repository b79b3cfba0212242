//! Whether any or all are true, and how many.

use crate::Tensor;
use crate::error::Result;
use crate::ops::reduction::{Folding, Over, reduce};
use crate::ops::sample::{bad_axes, dtypes, reductions};
use crate::ops::{OpEntry, Param, Reference, Samples, one};
use taut_kernels::reduce::Reduce;

/// Whether any element is true (not zero), over some axes; over all of them if `axes` is `None`.
#[track_caller]
pub fn any(x: impl Into<Tensor>, axes: impl Into<Over>, keepdims: bool) -> Result<Tensor> {
    reduce("any", Folding::Fold(Reduce::Any), x.into(), axes.into(), keepdims, None)
}

/// Whether all elements are true (not zero), over some axes; over all of them if `axes` is `None`.
#[track_caller]
pub fn all(x: impl Into<Tensor>, axes: impl Into<Over>, keepdims: bool) -> Result<Tensor> {
    reduce("all", Folding::Fold(Reduce::All), x.into(), axes.into(), keepdims, None)
}

/// How many elements are not zero, over some axes; over all of them if `axes` is `None`.
///
/// ```
/// use taut_core::{Tensor, ops::reduce::count_nonzero};
/// let x = Tensor::from_slice(&[0, 1, 2, 0], [2, 2])?;
/// assert_eq!(count_nonzero(&x, None, false)?.item::<i64>()?, 2);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn count_nonzero(x: impl Into<Tensor>, axes: impl Into<Over>, keepdims: bool) -> Result<Tensor> {
    reduce("count_nonzero", Folding::Fold(Reduce::CountNonzero), x.into(), axes.into(), keepdims, None)
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "any",
        Param::REDUCTION,
        |a| one(any(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.any(x, axis=axes, keepdims=keepdims)"),
        Samples::List(|| reductions(dtypes::ALL, -0.9, 1.2)),
    )
    .refuses(bad_axes),
    OpEntry::new(
        "all",
        Param::REDUCTION,
        |a| one(all(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.all(x, axis=axes, keepdims=keepdims)"),
        Samples::List(|| reductions(dtypes::ALL, 0.5, 6.0)),
    )
    .refuses(bad_axes),
    OpEntry::new(
        "count_nonzero",
        Param::REDUCTION,
        |a| one(count_nonzero(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.asarray(np.count_nonzero(x, axis=axes, keepdims=keepdims), np.int64)"),
        Samples::List(|| reductions(dtypes::ALL, -2.0, 2.0)),
    )
    .refuses(bad_axes),
];
