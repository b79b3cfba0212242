//! Logical operations. An element of any dtype is true unless it is zero.

use crate::error::Result;
use crate::ops::elementwise::binary;
use crate::ops::sample::{dtypes, invalid_binary};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{Operand, Tensor};
use taut_kernels::elementwise::Binary;

static LOGICAL_AND: Elementwise = Elementwise::binary("logical_and", Binary::LogicalAnd, ComputeDType::Same);
static LOGICAL_OR: Elementwise = Elementwise::binary("logical_or", Binary::LogicalOr, ComputeDType::Same);
static LOGICAL_XOR: Elementwise = Elementwise::binary("logical_xor", Binary::LogicalXor, ComputeDType::Same);

/// Logical AND: true where both x and y are true.
///
/// ```
/// use taut_core::{Tensor, ops::binary::logical_and};
/// let x = Tensor::from_slice(&[true, false], [2])?;
/// assert_eq!(logical_and(&x, true)?.to_vec::<bool>()?, [true, false]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn logical_and(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&LOGICAL_AND, x.into(), y.into())
}

/// Logical OR: true where x or y is true.
#[inline]
#[track_caller]
pub fn logical_or(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&LOGICAL_OR, x.into(), y.into())
}

/// Logical XOR: true where exactly one of x and y is true.
#[inline]
#[track_caller]
pub fn logical_xor(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&LOGICAL_XOR, x.into(), y.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "logical_and",
        Param::XY,
        |a| one(logical_and(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.logical_and(x, y)"),
        Samples::Binary(dtypes::ALL, (-2.0, 2.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
    OpEntry::new(
        "logical_or",
        Param::XY,
        |a| one(logical_or(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.logical_or(x, y)"),
        Samples::Binary(dtypes::ALL, (-2.0, 2.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
    OpEntry::new(
        "logical_xor",
        Param::XY,
        |a| one(logical_xor(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.logical_xor(x, y)"),
        Samples::Binary(dtypes::ALL, (-2.0, 2.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
];
