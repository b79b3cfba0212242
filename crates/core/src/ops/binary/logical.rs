//! Truth tables. An element of any type is true unless it is zero.

use crate::error::Result;
use crate::ops::elementwise::binary;
use crate::ops::sample::{bad_binary, dtypes};
use crate::ops::{Elementwise, OpEntry, Param, Reference, Samples, Types, one};
use crate::{Operand, Tensor};
use taut_kernels::elementwise::Binary;

static LOGICAL_AND: Elementwise = Elementwise::binary("logical_and", Binary::LogicalAnd, Types::Same);
static LOGICAL_OR: Elementwise = Elementwise::binary("logical_or", Binary::LogicalOr, Types::Same);
static LOGICAL_XOR: Elementwise = Elementwise::binary("logical_xor", Binary::LogicalXor, Types::Same);

/// True where both x and y are true.
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

/// True where x or y is true.
#[inline]
#[track_caller]
pub fn logical_or(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&LOGICAL_OR, x.into(), y.into())
}

/// True where one of x and y is true and the other is not.
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
    .refuses(|| bad_binary(&[])),
    OpEntry::new(
        "logical_or",
        Param::XY,
        |a| one(logical_or(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.logical_or(x, y)"),
        Samples::Binary(dtypes::ALL, (-2.0, 2.0), (-2.0, 2.0)),
    )
    .refuses(|| bad_binary(&[])),
    OpEntry::new(
        "logical_xor",
        Param::XY,
        |a| one(logical_xor(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.logical_xor(x, y)"),
        Samples::Binary(dtypes::ALL, (-2.0, 2.0), (-2.0, 2.0)),
    )
    .refuses(|| bad_binary(&[])),
];
