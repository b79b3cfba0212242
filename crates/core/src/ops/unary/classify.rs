//! Tests for NaN and infinity.

use crate::Tensor;
use crate::error::Result;
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use taut_kernels::elementwise::Unary;

static IS_NAN: Elementwise = Elementwise::unary("is_nan", Unary::IsNan, ComputeDType::Same);
static IS_INF: Elementwise = Elementwise::unary("is_inf", Unary::IsInf, ComputeDType::Same);
static IS_FINITE: Elementwise = Elementwise::unary("is_finite", Unary::IsFinite, ComputeDType::Same);

/// True where an element is not a number.
///
/// ```
/// use taut_core::{Tensor, ops::unary::is_nan};
/// let x = Tensor::from_slice(&[1.0f32, f32::NAN], [2])?;
/// assert_eq!(is_nan(&x)?.to_vec::<bool>()?, [false, true]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn is_nan(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&IS_NAN, x.into())
}

/// True where an element is infinite, of either sign.
#[inline]
#[track_caller]
pub fn is_inf(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&IS_INF, x.into())
}

/// True where an element is neither infinite nor NaN.
#[inline]
#[track_caller]
pub fn is_finite(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&IS_FINITE, x.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "is_nan",
        Param::X,
        |a| one(is_nan(a.tensor(0)?)),
        Reference::Numpy("np.isnan(x)"),
        Samples::Unary(dtypes::EVERY, -3.0, 3.0),
    ),
    OpEntry::new(
        "is_inf",
        Param::X,
        |a| one(is_inf(a.tensor(0)?)),
        Reference::Numpy("np.isinf(x)"),
        Samples::Unary(dtypes::EVERY, -3.0, 3.0),
    ),
    OpEntry::new(
        "is_finite",
        Param::X,
        |a| one(is_finite(a.tensor(0)?)),
        Reference::Numpy("np.isfinite(x)"),
        Samples::Unary(dtypes::EVERY, -3.0, 3.0),
    ),
];
