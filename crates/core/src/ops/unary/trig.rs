//! Trigonometric functions and their inverses.

use crate::error::Result;
use crate::ops::binary::{add, div, mul, sub};
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::unary::{neg, rsqrt, square};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{Saves, Tensor};
use taut_kernels::elementwise::Unary;

static SIN: Elementwise = Elementwise::unary("sin", Unary::Sin, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, cos(call.input(0)?)?));
static COS: Elementwise = Elementwise::unary("cos", Unary::Cos, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| neg(mul(g, sin(call.input(0)?)?)?));
static TAN: Elementwise = Elementwise::unary("tan", Unary::Tan, ComputeDType::Float)
    .grad(|_| Saves::OUTPUT, |call, g, _| mul(g, add(square(call.output(0)?)?, 1.0)?));
static ASIN: Elementwise = Elementwise::unary("asin", Unary::Asin, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, asin_derivative(call.input(0)?)?));
static ACOS: Elementwise = Elementwise::unary("acos", Unary::Acos, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| neg(mul(g, asin_derivative(call.input(0)?)?)?));
static ATAN: Elementwise = Elementwise::unary("atan", Unary::Atan, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| div(g, add(square(call.input(0)?)?, 1.0)?));

/// The derivative of the arcsine, `1 / sqrt((1 - x) (1 + x))`: the factors keep precision near -1 and 1.
fn asin_derivative(x: &Tensor) -> Result<Tensor> {
    rsqrt(mul(sub(1.0, x)?, add(x, 1.0)?)?)
}

/// The sine of each element, in radians.
///
/// ```
/// use taut_core::{Tensor, ops::unary::sin};
/// assert_eq!(sin(Tensor::scalar(0.0f32)?)?.item::<f32>()?, 0.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn sin(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SIN, x.into())
}

/// The cosine of each element, in radians.
#[inline]
#[track_caller]
pub fn cos(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&COS, x.into())
}

/// The tangent of each element, in radians.
#[inline]
#[track_caller]
pub fn tan(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&TAN, x.into())
}

/// The arcsine of each element, in [-pi/2, pi/2]; NaN outside [-1, 1].
#[inline]
#[track_caller]
pub fn asin(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ASIN, x.into())
}

/// The arccosine of each element, in [0, pi]; NaN outside [-1, 1].
#[inline]
#[track_caller]
pub fn acos(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ACOS, x.into())
}

/// The arctangent of each element, in [-pi/2, pi/2].
#[inline]
#[track_caller]
pub fn atan(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ATAN, x.into())
}

/// Large angles, and complex ones near zero: sines grow exponentially with the imaginary part.
fn angles() -> Vec<Vec<crate::ops::ArgValue>> {
    let mut list = crate::ops::sample::unary(dtypes::ALL, -50.0, 50.0);
    list.extend(crate::ops::sample::unary(dtypes::COMPLEX, -3.0, 3.0));
    list
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "sin",
        Param::X,
        |a| one(sin(a.tensor(0)?)),
        Reference::Numpy("np.sin(x)"),
        Samples::List(angles),
    ),
    OpEntry::new(
        "cos",
        Param::X,
        |a| one(cos(a.tensor(0)?)),
        Reference::Numpy("np.cos(x)"),
        Samples::List(angles),
    ),
    OpEntry::new(
        "tan",
        Param::X,
        |a| one(tan(a.tensor(0)?)),
        Reference::Numpy("np.tan(x)"),
        Samples::Unary(dtypes::EVERY, -5.0, 5.0),
    ),
    OpEntry::new(
        "asin",
        Param::X,
        |a| one(asin(a.tensor(0)?)),
        Reference::Numpy("np.arcsin(x)"),
        Samples::Unary(dtypes::EVERY, -1.1, 1.1),
    ),
    OpEntry::new(
        "acos",
        Param::X,
        |a| one(acos(a.tensor(0)?)),
        Reference::Numpy("np.arccos(x)"),
        Samples::Unary(dtypes::EVERY, -1.1, 1.1),
    ),
    OpEntry::new(
        "atan",
        Param::X,
        |a| one(atan(a.tensor(0)?)),
        Reference::Numpy("np.arctan(x)"),
        Samples::Unary(dtypes::EVERY, -5.0, 5.0),
    ),
];
