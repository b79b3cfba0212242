//! The error function, its complement and its inverse.

use crate::error::Result;
use crate::ops::binary::mul;
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::unary::{exp, neg, square};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{Saves, Tensor};
use std::f64::consts::{FRAC_2_SQRT_PI, PI};
use taut_kernels::elementwise::Unary;

static ERF: Elementwise = Elementwise::unary("erf", Unary::Erf, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, erf_derivative(call.input(0)?)?));
static ERFC: Elementwise = Elementwise::unary("erfc", Unary::Erfc, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| neg(mul(g, erf_derivative(call.input(0)?)?)?));
static ERFINV: Elementwise = Elementwise::unary("erfinv", Unary::Erfinv, ComputeDType::Float)
    .grad(|_| Saves::OUTPUT, |call, g, _| mul(mul(g, 0.5 * PI.sqrt())?, exp(square(call.output(0)?)?)?));

/// The derivative of the error function, `2 / sqrt(pi) * exp(-x^2)`.
fn erf_derivative(x: &Tensor) -> Result<Tensor> {
    mul(exp(neg(square(x)?)?)?, FRAC_2_SQRT_PI)
}

/// The error function, `2 / sqrt(pi)` times the integral of `exp(-t^2)` from 0 to x.
///
/// ```
/// use taut_core::{Tensor, ops::unary::erf};
/// let x = Tensor::from_slice(&[0.0f32, f32::INFINITY], [2])?;
/// assert_eq!(erf(&x)?.to_vec::<f32>()?, [0.0, 1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn erf(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ERF, x.into())
}

/// The complementary error function `1 - erf(x)`, accurate also where it is near zero.
#[inline]
#[track_caller]
pub fn erfc(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ERFC, x.into())
}

/// The inverse of the error function; NaN outside [-1, 1].
#[inline]
#[track_caller]
pub fn erfinv(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&ERFINV, x.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "erf",
        Param::X,
        |a| one(erf(a.tensor(0)?)),
        Reference::Numpy("sp.erf(x).astype(np.exp(x).dtype)"),
        Samples::Unary(dtypes::ALL, -3.0, 3.0),
    ),
    OpEntry::new(
        "erfc",
        Param::X,
        |a| one(erfc(a.tensor(0)?)),
        Reference::Numpy("sp.erfc(x).astype(np.exp(x).dtype)"),
        Samples::Unary(dtypes::ALL, -3.0, 5.0),
    ),
    OpEntry::new(
        "erfinv",
        Param::X,
        |a| one(erfinv(a.tensor(0)?)),
        Reference::Numpy("sp.erfinv(x).astype(np.exp(x).dtype)"),
        Samples::Unary(dtypes::ALL, -1.1, 1.1),
    ),
];
