//! The logarithm of a sum of two exponentials.

use crate::error::Result;
use crate::ops::binary::{add, equal, maximum, minimum, mul, sub, where_};
use crate::ops::sample::dtypes;
use crate::ops::unary::{exp, log1p};
use crate::ops::{Entry, Param, Reference, Samples, one};
use crate::{Operand, Tensor};

/// log(exp(x) + exp(y)), without overflow.
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
    let (high, low) = (maximum(x.clone(), y.clone())?, minimum(x.clone(), y.clone())?);
    // Equal infinities have no difference, and need none.
    let distance = where_(equal(x, y)?, 0.0, sub(&high, low)?)?;
    add(high, log1p(exp(mul(distance, -1.0)?)?)?)
}

pub(crate) const ENTRIES: &[Entry] = &[Entry::new(
    "logaddexp",
    Param::XY,
    |a| one(logaddexp(a.operand(0)?, a.operand(1)?)),
    Reference::Numpy("np.logaddexp(x, y)"),
    Samples::Binary(dtypes::FLOATS, (-3.0, 3.0), (-2.0, 2.0)),
)];
