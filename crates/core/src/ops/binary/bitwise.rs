//! Bitwise operations on integers; on bools, the logical operations.

use crate::error::Result;
use crate::ops::elementwise::binary;
use crate::ops::sample::{binary as pairs, dtypes, invalid_binary, ramp};
use crate::ops::{ArgValue, ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Operand, Tensor};
use taut_kernels::elementwise::Binary;

static BITWISE_AND: Elementwise = Elementwise::binary("bitwise_and", Binary::BitwiseAnd, ComputeDType::Same);
static BITWISE_OR: Elementwise = Elementwise::binary("bitwise_or", Binary::BitwiseOr, ComputeDType::Same);
static BITWISE_XOR: Elementwise = Elementwise::binary("bitwise_xor", Binary::BitwiseXor, ComputeDType::Same);

/// Bitwise AND. Also `x & y` on tensors and scalars.
///
/// ```
/// use taut_core::{Tensor, ops::binary::bitwise_and};
/// let x = Tensor::from_slice(&[0b1100, 0b1010], [2])?;
/// assert_eq!(bitwise_and(&x, 0b0110)?.to_vec::<i32>()?, [0b0100, 0b0010]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn bitwise_and(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&BITWISE_AND, x.into(), y.into())
}

/// Bitwise OR. Also `x | y` on tensors and scalars.
#[inline]
#[track_caller]
pub fn bitwise_or(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&BITWISE_OR, x.into(), y.into())
}

/// Bitwise XOR. Also `x ^ y` on tensors and scalars.
#[inline]
#[track_caller]
pub fn bitwise_xor(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&BITWISE_XOR, x.into(), y.into())
}

/// Unsigned and signed dtypes separately: `uint64` and a signed integer have no common type.
fn samples() -> Vec<Vec<ArgValue>> {
    let (unsigned, signed) = dtypes::BITS.split_at(5);
    let mut list = pairs(unsigned, (0.0, 120.0), (0.0, 120.0));
    list.extend(pairs(signed, (-120.0, 120.0), (-120.0, 120.0)));
    list.push(vec![ramp(DType::U8, &[4], 0.0, 100.0), ramp(DType::I8, &[4], 0.0, 7.0)]);
    list.push(vec![ramp(DType::I32, &[4], -100.0, 100.0), ArgValue::Int(3)]);
    list.push(vec![ArgValue::Int(100), ramp(DType::U8, &[4], 0.0, 7.0)]);
    list
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "bitwise_and",
        Param::XY,
        |a| one(bitwise_and(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.bitwise_and(x, y)"),
        Samples::List(samples),
    )
    .refuses(|| invalid_binary(&[DType::F32])),
    OpEntry::new(
        "bitwise_or",
        Param::XY,
        |a| one(bitwise_or(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.bitwise_or(x, y)"),
        Samples::List(samples),
    )
    .refuses(|| invalid_binary(&[DType::F32])),
    OpEntry::new(
        "bitwise_xor",
        Param::XY,
        |a| one(bitwise_xor(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.bitwise_xor(x, y)"),
        Samples::List(samples),
    )
    .refuses(|| invalid_binary(&[DType::F32])),
];
