//! The logarithm of a sum of two exponentials.

use crate::error::Result;
use crate::ops::binary::{add, greater_equal, maximum, sub, where_};
use crate::ops::sample::dtypes;
use crate::ops::unary::{is_finite, neg, softplus};
use crate::ops::{OpEntry, Param, Reference, Samples, one};
use crate::{Operand, Tensor};

/// `log(exp(x) + exp(y))`, computed without overflow.
///
/// ```
/// use taut_core::{Tensor, ops::binary::logaddexp};
/// let sum = logaddexp(Tensor::scalar(1000.0f64)?, 1000.0)?;
/// assert_eq!(sum.item::<f64>()?, 1000.0 + 2.0f64.ln());
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn logaddexp(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    let (x, y) = (x.into(), y.into());
    // On ties `maximum` gives its gradient to x, so the lower operand must be y: then each gets half of the gradient.
    let above = greater_equal(x.clone(), y.clone())?;
    let (high, low) = (maximum(x.clone(), y.clone())?, where_(above, y, x)?);
    // inf - inf is NaN; the difference of equal infinities is taken as 0.
    let distance = where_(is_finite(&high)?, sub(&high, low)?, 0.0)?;
    add(high, softplus(neg(distance)?)?)
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "logaddexp",
    Param::XY,
    |a| one(logaddexp(a.operand(0)?, a.operand(1)?)),
    Reference::Numpy("np.logaddexp(x, y)"),
    Samples::Binary(dtypes::FLOATS, (-3.0, 3.0), (-2.0, 2.0)),
)];
