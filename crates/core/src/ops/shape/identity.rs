//! Copies.

use crate::error::Result;
use crate::ops::sample::dtypes;
use crate::ops::{OpEntry, Param, PassThrough, Reference, Samples, one};
use crate::{Tensor, apply};

static IDENTITY: PassThrough = PassThrough::copy("identity");

/// Copies a tensor into a new row-major buffer; a copy of a view does not keep the viewed tensor alive.
///
/// ```
/// use taut_core::{Tensor, ops::shape::{identity, transpose}};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// let copy = identity(transpose(&x, None)?)?;
/// assert!(copy.is_contiguous() && !copy.shares_memory(&x));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn identity(input: impl Into<Tensor>) -> Result<Tensor> {
    apply(&IDENTITY, [input.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "identity",
    &[Param::tensor("input")],
    |a| one(identity(a.tensor(0)?)),
    Reference::Numpy("np.copy(input)"),
    Samples::Unary(dtypes::EVERY, -4.0, 4.0),
)];
