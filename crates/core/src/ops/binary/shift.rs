//! Moving the bits of integers.

use crate::error::Result;
use crate::ops::elementwise::binary;
use crate::ops::sample::{bad_binary, binary as pairs, dtypes, ramp};
use crate::ops::{ArgValue, Elementwise, OpEntry, Param, Reference, Samples, Types, one};
use crate::{DType, Operand, Tensor};
use taut_kernels::elementwise::Binary;

static LEFT_SHIFT: Elementwise = Elementwise::binary("left_shift", Binary::ShiftLeft, Types::Same);
static RIGHT_SHIFT: Elementwise = Elementwise::binary("right_shift", Binary::ShiftRight, Types::Same);

/// The bits of x moved up by y places; 0 once all are out. Also `x << y` on tensors and numbers.
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

/// The bits of x moved down by y places, keeping the sign; 0 or -1 once all are out. Also `x >> y` on tensors and numbers.
#[inline]
#[track_caller]
pub fn right_shift(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&RIGHT_SHIFT, x.into(), y.into())
}

/// Unsigned and signed types by themselves: `uint64` meets signed integers in `float64`, which has no bits to work on.
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
    .refuses(|| bad_binary(&[DType::F32, DType::Bool])),
    OpEntry::new(
        "right_shift",
        Param::XY,
        |a| one(right_shift(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.right_shift(x, y)"),
        Samples::List(samples),
    )
    .refuses(|| bad_binary(&[DType::F32, DType::Bool])),
];
