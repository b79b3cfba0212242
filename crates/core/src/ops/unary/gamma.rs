//! The log-gamma function and its derivatives.

use crate::error::Result;
use crate::ops::binary::{add, div, less, mul, sub, where_};
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::unary::{cast, reciprocal, round, sin, square};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Saves, Tensor};
use std::f64::consts::PI;
use taut_kernels::elementwise::Unary;

static LGAMMA: Elementwise = Elementwise::unary("lgamma", Unary::Lgamma, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, digamma(call.input(0)?)?));
static DIGAMMA: Elementwise = Elementwise::unary("digamma", Unary::Digamma, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, trigamma(call.input(0)?)?));

/// The Bernoulli numbers B(2), B(4), …, B(14).
const BERNOULLI: [f64; 7] =
    [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0];

/// The derivative of [`digamma`], composed of other ops, so that it is differentiable to any order.
fn trigamma(x: &Tensor) -> Result<Tensor> {
    let dtype = x.dtype();
    // 16-bit floats would lose too much precision in the sum.
    let x = cast(x, if dtype.size() < 4 { DType::F32 } else { dtype })?;
    let reflected = less(&x, 0.5)?;
    let mut z = where_(&reflected, sub(1.0, &x)?, &x)?;
    // trigamma(z) = trigamma(z + 1) + 1 / z^2; from 10 on a short asymptotic series is exact to the last digit.
    let mut total = reciprocal(square(&z)?)?;
    for _ in 0..9 {
        z = add(z, 1.0)?;
        total = add(total, reciprocal(square(&z)?)?)?;
    }
    let w = reciprocal(add(z, 1.0)?)?;
    let w2 = square(&w)?;
    // 1/z + 1/(2 z^2) + the Bernoulli numbers B(2), B(4), ... over z^3, z^5, ...
    let mut series = mul(&w2, BERNOULLI[6])?;
    for number in BERNOULLI[1..6].iter().rev() {
        series = mul(add(series, *number)?, &w2)?;
    }
    series = add(mul(add(series, BERNOULLI[0])?, &w)?, 0.5)?;
    let value = add(mul(add(mul(series, &w)?, 1.0)?, w)?, total)?;
    // Below 1/2: pi^2 / sin(pi x)^2 - trigamma(1 - x). The square of the sine has period 1.
    let angle = mul(where_(&reflected, sub(&x, round(&x)?)?, 0.5)?, PI)?;
    let mirrored = sub(div(PI * PI, square(sin(angle)?)?)?, &value)?;
    cast(where_(reflected, mirrored, value)?, dtype)
}

/// The natural logarithm of the absolute value of the gamma function; infinite at 0 and the negative integers.
///
/// ```
/// use taut_core::{Tensor, ops::unary::lgamma};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?; // 0! and 1!
/// assert_eq!(lgamma(&x)?.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn lgamma(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&LGAMMA, x.into())
}

/// The derivative of [`lgamma`], the digamma function; NaN at 0 and the negative integers, as in TensorFlow.
#[inline]
#[track_caller]
pub fn digamma(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&DIGAMMA, x.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "lgamma",
        Param::X,
        |a| one(lgamma(a.tensor(0)?)),
        Reference::Numpy("np.where(x == -np.inf, np.inf, sp.gammaln(x)).astype(np.exp(x).dtype)"),
        Samples::Unary(dtypes::ALL, -5.0, 20.0),
    ),
    OpEntry::new(
        "digamma",
        Param::X,
        |a| one(digamma(a.tensor(0)?)),
        Reference::Numpy("np.where(x == 0, np.nan, sp.psi(x)).astype(np.exp(x).dtype)"),
        Samples::Unary(dtypes::ALL, -5.0, 20.0),
    ),
];
