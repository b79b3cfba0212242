//! Bit shifts of integers.

use crate::error::Result;
use crate::ops::elementwise::binary;
use crate::ops::sample::{binary as pairs, dtypes, invalid_binary, ramp};
use crate::ops::{ArgValue, ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Operand, Tensor};
use taut_kernels::elementwise::Binary;

static LEFT_SHIFT: Elementwise = Elementwise::binary("left_shift", Binary::ShiftLeft, ComputeDType::Same);
static RIGHT_SHIFT: Elementwise = Elementwise::binary("right_shift", Binary::ShiftRight, ComputeDType::Same);

/// Shifts the bits of x left by y; 0 if y is at least the width of the dtype. Also `x << y` on tensors and scalars.
///
/// ```
/// use taut_core::{Tensor, ops::binary::left_shift};
/// let x = Tensor::from_slice(&[1, 3], [2])?;
/// assert_eq!(left_shift(&x, 4)?.to_vec::<i32>()?, [16, 48]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn left_shift(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&LEFT_SHIFT, x.into(), y.into())
}

/// Shifts the bits of x right by y, arithmetically for signed dtypes; 0 or -1 if y is at least the width of the dtype.
/// Also `x >> y` on tensors and scalars.
#[inline]
#[track_caller]
pub fn right_shift(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&RIGHT_SHIFT, x.into(), y.into())
}

/// Unsigned and signed dtypes separately: `uint64` and a signed integer have no common type.
fn samples() -> Vec<Vec<ArgValue>> {
    let (unsigned, signed) = dtypes::INTEGERS.split_at(4);
    let mut list = pairs(unsigned, (0.0, 120.0), (0.0, 70.0));
    list.extend(pairs(signed, (-120.0, 120.0), (0.0, 70.0)));
    list.push(vec![ramp(DType::U8, &[4], 0.0, 100.0), ramp(DType::I8, &[4], 0.0, 7.0)]);
    list.push(vec![ramp(DType::I32, &[4], -100.0, 100.0), ArgValue::Int(3)]);
    list.push(vec![ArgValue::Int(100), ramp(DType::U8, &[4], 0.0, 7.0)]);
    list
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "left_shift",
        Param::XY,
        |a| one(left_shift(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.left_shift(x, y)"),
        Samples::List(samples),
    )
    .refuses(|| invalid_binary(&[DType::F32, DType::Bool])),
    OpEntry::new(
        "right_shift",
        Param::XY,
        |a| one(right_shift(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.right_shift(x, y)"),
        Samples::List(samples),
    )
    .refuses(|| invalid_binary(&[DType::F32, DType::Bool])),
];
