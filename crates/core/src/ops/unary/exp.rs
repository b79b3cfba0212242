//! Exponentials and logarithms.

use crate::Tensor;
use crate::error::Result;
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::{Elementwise, Entry, Param, Reference, Samples, Types, one};
use taut_kernels::elementwise::Unary;

static EXP: Elementwise = Elementwise::unary("exp", Unary::Exp, Types::Float);
static LOG: Elementwise = Elementwise::unary("log", Unary::Log, Types::Float);

/// e to the power of each element.
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

/// The natural logarithm of each element.
#[inline]
#[track_caller]
pub fn log(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&LOG, x.into())
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::new(
        "exp",
        Param::X,
        |a| one(exp(a.tensor(0)?)),
        Reference::Numpy("np.exp(x)"),
        Samples::Unary(dtypes::ALL, -5.0, 5.0),
    ),
    Entry::new(
        "log",
        Param::X,
        |a| one(log(a.tensor(0)?)),
        Reference::Numpy("np.log(x)"),
        Samples::Unary(dtypes::ALL, 0.1, 5.0),
    ),
];
