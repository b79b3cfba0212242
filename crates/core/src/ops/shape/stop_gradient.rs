//! Blocking of gradients.

use crate::error::Result;
use crate::ops::sample::dtypes;
use crate::ops::{OpEntry, Param, PassGradient, PassThrough, Reference, Samples, one};
use crate::{Tensor, apply};

static STOP_GRADIENT: PassThrough = PassThrough::view("stop_gradient", PassGradient::Stop);

/// Blocks gradients: returns the same value, which tapes and forward accumulators treat as a constant. A view.
///
/// ```
/// use taut_core::{Tensor, ops::shape::stop_gradient};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// assert!(stop_gradient(&x)?.shares_memory(&x));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stop_gradient(input: impl Into<Tensor>) -> Result<Tensor> {
    apply(&STOP_GRADIENT, [input.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "stop_gradient",
    &[Param::tensor("input")],
    |a| one(stop_gradient(a.tensor(0)?)),
    Reference::Numpy("input"),
    Samples::Unary(dtypes::EVERY, -4.0, 4.0),
)];
