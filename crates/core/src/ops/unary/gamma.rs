//! The gamma function, by its logarithm.

use crate::Tensor;
use crate::error::Result;
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::{Elementwise, Entry, Param, Reference, Samples, Types, one};
use taut_kernels::elementwise::Unary;

static LGAMMA: Elementwise = Elementwise::unary("lgamma", Unary::Lgamma, Types::Float);
static DIGAMMA: Elementwise = Elementwise::unary("digamma", Unary::Digamma, Types::Float);

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

/// The derivative of [`lgamma`]; NaN at the negative integers.
#[inline]
#[track_caller]
pub fn digamma(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&DIGAMMA, x.into())
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::new(
        "lgamma",
        Param::X,
        |a| one(lgamma(a.tensor(0)?)),
        Reference::Numpy("np.where(x == -np.inf, np.inf, sp.gammaln(x)).astype(np.exp(x).dtype)"),
        Samples::Unary(dtypes::ALL, -5.0, 20.0),
    ),
    Entry::new(
        "digamma",
        Param::X,
        |a| one(digamma(a.tensor(0)?)),
        Reference::Numpy("sp.psi(x).astype(np.exp(x).dtype)"),
        Samples::Unary(dtypes::ALL, -5.0, 20.0),
    ),
];
