//! Floor division, remainders, and quotients and products that are 0 for a zero operand.

use crate::error::Result;
use crate::ops::binary::{div, mul};
use crate::ops::elementwise::{binary, promoted_dtype};
use crate::ops::sample::{dtypes, invalid_binary};
use crate::ops::unary::{floor, neg, trunc};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Operand, Saves, Set, Tensor};
use taut_kernels::elementwise::Binary;

static FLOOR_DIV: Elementwise = Elementwise::binary("floor_div", Binary::FloorDiv, ComputeDType::Same);
static MOD: Elementwise =
    Elementwise::binary("mod", Binary::Mod, ComputeDType::Same).grad(remainder_saves, |call, g, i| {
        if i == 0 { Ok(g) } else { neg(mul(g, floor_div(call.input(0)?, call.input(1)?)?)?) }
    });
static TRUNCATE_MOD: Elementwise =
    Elementwise::binary("truncate_mod", Binary::TruncateMod, ComputeDType::Same).grad(
        remainder_saves,
        |call, g, i| {
            if i == 0 { Ok(g) } else { neg(mul(g, trunc(div(call.input(0)?, call.input(1)?)?)?)?) }
        },
    );
static DIV_NO_NAN: Elementwise = Elementwise::binary("div_no_nan", Binary::DivNoNan, ComputeDType::Float)
    .grad(
        |wanted| if wanted.has(1) { Saves::inputs([1]).and(Saves::OUTPUT) } else { Saves::inputs([1]) },
        |call, g, i| {
            let quotient = div_no_nan(g, call.input(1)?)?;
            if i == 0 { Ok(quotient) } else { neg(mul(quotient, call.output(0)?)?) }
        },
    );

/// The gradient is linear in that of the output, also where an operand is zero: so the product can be part of a gradient rule.
static MUL_NO_NAN: Elementwise = Elementwise::binary("mul_no_nan", Binary::MulNoNan, ComputeDType::Float)
    .grad(
        Saves::others,
        |call, g, i| {
            if i == 0 { mul_no_nan(g, call.input(1)?) } else { mul_no_nan(call.input(0)?, g) }
        },
    );

/// Only the gradient of the divisor needs the operands.
fn remainder_saves(wanted: Set) -> Saves {
    if wanted.has(1) { Saves::inputs([0, 1]) } else { Saves::NOTHING }
}

/// Floor division, `floor(x / y)`, in the operands' dtype; an integer divided by 0 is 0.
///
/// Of floats, the quotient is rounded before the floor is taken, as by TensorFlow and the array API standard: `6.0 // 0.1` is 60,
/// and an infinity divided by a number is an infinity.
///
/// ```
/// use taut_core::{Tensor, ops::binary::floor_div};
/// let x = Tensor::from_slice(&[7, -7], [2])?;
/// assert_eq!(floor_div(&x, 2)?.to_vec::<i32>()?, [3, -4]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn floor_div(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    let (x, y) = (x.into(), y.into());
    if promoted_dtype(&FLOOR_DIV, &[&x, &y])?.is_float() {
        return floor(div(x, y)?);
    }
    binary(&FLOOR_DIV, x, y)
}

/// The remainder of the exact quotient rounded down, with the sign of y as in Python, but that a zero of floats has the sign
/// of x, as in TensorFlow; an integer modulo 0 is 0. Also `x % y` on tensors and scalars.
#[inline]
#[track_caller]
pub fn mod_(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&MOD, x.into(), y.into())
}

/// The remainder of division rounded toward zero, with the sign of x as in C; an integer modulo 0 is 0.
#[inline]
#[track_caller]
pub fn truncate_mod(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&TRUNCATE_MOD, x.into(), y.into())
}

/// True division, `x / y`, with the result 0 where y is 0.
#[inline]
#[track_caller]
pub fn div_no_nan(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&DIV_NO_NAN, x.into(), y.into())
}

/// `x * y`, and 0 where `y` is 0, even if `x` is infinite or NaN.
#[inline]
#[track_caller]
pub fn mul_no_nan(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&MUL_NO_NAN, x.into(), y.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "floor_div",
        Param::XY,
        |a| one(floor_div(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy(
            "np.floor(x / y) if np.asarray(x).dtype.kind not in 'iu' else np.floor_divide(x, y)",
        ),
        Samples::Binary(dtypes::NUMBERS, (-9.0, 9.0), (-3.0, 3.0)),
    )
    .refuses(|| invalid_binary(&[DType::Bool])),
    OpEntry::new(
        "mod",
        Param::XY,
        |a| one(mod_(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.where(np.mod(x, y) == 0, np.fmod(x, y), np.mod(x, y))"),
        Samples::Binary(dtypes::NUMBERS, (-9.0, 9.0), (-3.0, 3.0)),
    )
    .refuses(|| invalid_binary(&[DType::Bool])),
    OpEntry::new(
        "truncate_mod",
        Param::XY,
        |a| one(truncate_mod(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.fmod(x, y)"),
        Samples::Binary(dtypes::NUMBERS, (-9.0, 9.0), (-3.0, 3.0)),
    )
    .refuses(|| invalid_binary(&[DType::Bool])),
    OpEntry::new(
        "div_no_nan",
        Param::XY,
        |a| one(div_no_nan(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.where(np.equal(y, 0), 0, np.divide(x, y))"),
        Samples::Binary(dtypes::EVERY, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
    OpEntry::new(
        "mul_no_nan",
        Param::XY,
        |a| one(mul_no_nan(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.where(np.equal(y, 0), 0, np.multiply(x, y))"),
        Samples::Binary(dtypes::FLOATS, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
];
