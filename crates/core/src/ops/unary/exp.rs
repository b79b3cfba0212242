//! Exponentials and logarithms.

use crate::error::Result;
use crate::ops::binary::{add, div, mul};
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{Saves, Tensor};
use taut_kernels::elementwise::Unary;

static EXP: Elementwise = Elementwise::unary("exp", Unary::Exp, ComputeDType::Float)
    .grad(|_| Saves::OUTPUT, |call, g, _| mul(g, call.output(0)?));
// From the input: adding 1 back to the output would lose precision.
static EXPM1: Elementwise = Elementwise::unary("expm1", Unary::Expm1, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, exp(call.input(0)?)?));
static LOG: Elementwise = Elementwise::unary("log", Unary::Log, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| div(g, call.input(0)?));
static LOG1P: Elementwise = Elementwise::unary("log1p", Unary::Log1p, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| div(g, add(call.input(0)?, 1.0)?));

/// The exponential of each element.
///
/// ```
/// use taut_core::{Tensor, ops::unary::exp};
/// assert_eq!(exp(Tensor::scalar(0.0f32)?)?.item::<f32>()?, 1.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn exp(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&EXP, x.into())
}

/// `exp(x) - 1`, accurate also for x near zero.
#[inline]
#[track_caller]
pub fn expm1(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&EXPM1, x.into())
}

/// The natural logarithm of each element; NaN below zero.
#[inline]
#[track_caller]
pub fn log(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&LOG, x.into())
}

/// `log(1 + x)`, accurate also for x near zero.
#[inline]
#[track_caller]
pub fn log1p(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&LOG1P, x.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "exp",
        Param::X,
        |a| one(exp(a.tensor(0)?)),
        Reference::Numpy("np.exp(x)"),
        Samples::Unary(dtypes::EVERY, -5.0, 5.0),
    ),
    OpEntry::new(
        "expm1",
        Param::X,
        |a| one(expm1(a.tensor(0)?)),
        Reference::Numpy("np.expm1(x)"),
        Samples::Unary(dtypes::EVERY, -5.0, 5.0),
    ),
    OpEntry::new(
        "log",
        Param::X,
        |a| one(log(a.tensor(0)?)),
        Reference::Numpy("np.log(x)"),
        Samples::Unary(dtypes::EVERY, -0.5, 5.0),
    ),
    OpEntry::new(
        "log1p",
        Param::X,
        |a| one(log1p(a.tensor(0)?)),
        Reference::Numpy("np.log1p(x)"),
        Samples::Unary(dtypes::EVERY, -1.5, 5.0),
    ),
];
