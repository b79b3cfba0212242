//! Hyperbolic functions and their inverses.

use crate::Tensor;
use crate::error::Result;
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::{Elementwise, Entry, Param, Reference, Samples, Types, one};
use taut_kernels::elementwise::Unary;

static SINH: Elementwise = Elementwise::unary("sinh", Unary::Sinh, Types::Float);
static COSH: Elementwise = Elementwise::unary("cosh", Unary::Cosh, Types::Float);
static TANH: Elementwise = Elementwise::unary("tanh", Unary::Tanh, Types::Float);
static ASINH: Elementwise = Elementwise::unary("asinh", Unary::Asinh, Types::Float);
static ACOSH: Elementwise = Elementwise::unary("acosh", Unary::Acosh, Types::Float);
static ATANH: Elementwise = Elementwise::unary("atanh", Unary::Atanh, Types::Float);

/// The hyperbolic sine of each element.
#[inline]
#[track_caller]
pub fn sinh(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SINH, x.into())
}

/// The hyperbolic cosine of each element.
#[inline]
#[track_caller]
pub fn cosh(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&COSH, x.into())
}

/// The hyperbolic tangent of each element, between -1 and 1.
///
/// ```
/// use taut_core::{Tensor, ops::unary::tanh};
/// let x = Tensor::from_slice(&[0.0f32, f32::INFINITY], [2])?;
/// assert_eq!(tanh(&x)?.to_vec::<f32>()?, [0.0, 1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn tanh(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&TANH, x.into())
}

/// The inverse hyperbolic sine of each element.
#[inline]
#[track_caller]
pub fn asinh(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ASINH, x.into())
}

/// The inverse hyperbolic cosine of each element; NaN below 1.
#[inline]
#[track_caller]
pub fn acosh(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ACOSH, x.into())
}

/// The inverse hyperbolic tangent of each element; NaN outside -1 to 1.
#[inline]
#[track_caller]
pub fn atanh(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ATANH, x.into())
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::new(
        "sinh",
        Param::X,
        |a| one(sinh(a.tensor(0)?)),
        Reference::Numpy("np.sinh(x)"),
        Samples::Unary(dtypes::ALL, -5.0, 5.0),
    ),
    Entry::new(
        "cosh",
        Param::X,
        |a| one(cosh(a.tensor(0)?)),
        Reference::Numpy("np.cosh(x)"),
        Samples::Unary(dtypes::ALL, -5.0, 5.0),
    ),
    Entry::new(
        "tanh",
        Param::X,
        |a| one(tanh(a.tensor(0)?)),
        Reference::Numpy("np.tanh(x)"),
        Samples::Unary(dtypes::ALL, -3.0, 3.0),
    ),
    Entry::new(
        "asinh",
        Param::X,
        |a| one(asinh(a.tensor(0)?)),
        Reference::Numpy("np.arcsinh(x)"),
        Samples::Unary(dtypes::ALL, -50.0, 50.0),
    ),
    Entry::new(
        "acosh",
        Param::X,
        |a| one(acosh(a.tensor(0)?)),
        Reference::Numpy("np.arccosh(x)"),
        Samples::Unary(dtypes::ALL, 0.8, 50.0),
    ),
    Entry::new(
        "atanh",
        Param::X,
        |a| one(atanh(a.tensor(0)?)),
        Reference::Numpy("np.arctanh(x)"),
        Samples::Unary(dtypes::ALL, -1.1, 1.1),
    ),
];
