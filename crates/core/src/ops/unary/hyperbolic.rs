//! Hyperbolic functions and their inverses.

use crate::error::Result;
use crate::ops::binary::{add, div, mul, sub};
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::unary::square;
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{Saves, Tensor};
use taut_kernels::elementwise::Unary;

static SINH: Elementwise = Elementwise::unary("sinh", Unary::Sinh, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, cosh(call.input(0)?)?));
static COSH: Elementwise = Elementwise::unary("cosh", Unary::Cosh, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, sinh(call.input(0)?)?));
static TANH: Elementwise = Elementwise::unary("tanh", Unary::Tanh, ComputeDType::Float)
    .grad(|_| Saves::OUTPUT, |call, g, _| mul(g, sub(1.0, square(call.output(0)?)?)?));
// From the outputs: the square of the input may overflow.
static ASINH: Elementwise = Elementwise::unary("asinh", Unary::Asinh, ComputeDType::Float)
    .grad(|_| Saves::OUTPUT, |call, g, _| div(g, cosh(call.output(0)?)?));
static ACOSH: Elementwise = Elementwise::unary("acosh", Unary::Acosh, ComputeDType::Float)
    .grad(|_| Saves::OUTPUT, |call, g, _| div(g, sinh(call.output(0)?)?));
static ATANH: Elementwise = Elementwise::unary("atanh", Unary::Atanh, ComputeDType::Float).grad(
    |_| Saves::INPUT,
    |call, g, _| {
        // (1 - x)(1 + x) keeps precision near -1 and 1.
        let x = call.input(0)?;
        div(g, mul(sub(1.0, x)?, add(x, 1.0)?)?)
    },
);

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

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "sinh",
        Param::X,
        |a| one(sinh(a.tensor(0)?)),
        Reference::Numpy("np.sinh(x)"),
        Samples::Unary(dtypes::EVERY, -5.0, 5.0),
    ),
    OpEntry::new(
        "cosh",
        Param::X,
        |a| one(cosh(a.tensor(0)?)),
        Reference::Numpy("np.cosh(x)"),
        Samples::Unary(dtypes::EVERY, -5.0, 5.0),
    ),
    OpEntry::new(
        "tanh",
        Param::X,
        |a| one(tanh(a.tensor(0)?)),
        Reference::Numpy("np.tanh(x)"),
        Samples::Unary(dtypes::EVERY, -3.0, 3.0),
    ),
    OpEntry::new(
        "asinh",
        Param::X,
        |a| one(asinh(a.tensor(0)?)),
        Reference::Numpy("np.arcsinh(x)"),
        Samples::Unary(dtypes::EVERY, -50.0, 50.0),
    ),
    OpEntry::new(
        "acosh",
        Param::X,
        |a| one(acosh(a.tensor(0)?)),
        Reference::Numpy("np.arccosh(x)"),
        Samples::Unary(dtypes::EVERY, 0.8, 50.0),
    ),
    OpEntry::new(
        "atanh",
        Param::X,
        |a| one(atanh(a.tensor(0)?)),
        Reference::Numpy("np.arctanh(x)"),
        Samples::Unary(dtypes::EVERY, -1.1, 1.1),
    ),
];
