//! Operations on the bits of integers. On bools they are the logical ones.

use crate::error::Result;
use crate::ops::elementwise::binary;
use crate::ops::sample::{bad_binary, binary as pairs, dtypes, ramp};
use crate::ops::{ArgValue, Elementwise, OpEntry, Param, Reference, Samples, Types, one};
use crate::{DType, Operand, Tensor};
use taut_kernels::elementwise::Binary;

static BITWISE_AND: Elementwise = Elementwise::binary("bitwise_and", Binary::BitwiseAnd, Types::Same);
static BITWISE_OR: Elementwise = Elementwise::binary("bitwise_or", Binary::BitwiseOr, Types::Same);
static BITWISE_XOR: Elementwise = Elementwise::binary("bitwise_xor", Binary::BitwiseXor, Types::Same);

/// The bits that are set in both x and y. Also `x & y` on tensors and numbers.
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

/// The bits that are set in x or y. Also `x | y` on tensors and numbers.
#[inline]
#[track_caller]
pub fn bitwise_or(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&BITWISE_OR, x.into(), y.into())
}

/// The bits that are set in one of x and y and not in the other. Also `x ^ y` on tensors and numbers.
#[inline]
#[track_caller]
pub fn bitwise_xor(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&BITWISE_XOR, x.into(), y.into())
}

/// Unsigned and signed types by themselves: `uint64` meets signed integers in `float64`, which has no bits to work on.
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
    .refuses(|| bad_binary(&[DType::F32])),
    OpEntry::new(
        "bitwise_or",
        Param::XY,
        |a| one(bitwise_or(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.bitwise_or(x, y)"),
        Samples::List(samples),
    )
    .refuses(|| bad_binary(&[DType::F32])),
    OpEntry::new(
        "bitwise_xor",
        Param::XY,
        |a| one(bitwise_xor(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.bitwise_xor(x, y)"),
        Samples::List(samples),
    )
    .refuses(|| bad_binary(&[DType::F32])),
];
