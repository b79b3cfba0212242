//! Addition, subtraction, multiplication and division.

use crate::error::{ErrorKind, Result};
use crate::ops::elementwise::binary;
use crate::ops::sample::{dtypes, invalid_binary, ramp};
use crate::ops::unary::neg;
use crate::ops::{ArgValue, ComputeDType, Elementwise, InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Operand, Saves, Tensor};
use taut_kernels::elementwise::Binary;

static ADD: Elementwise =
    Elementwise::binary("add", Binary::Add, ComputeDType::Same).grad(|_| Saves::NOTHING, |_, g, _| Ok(g));
static SUB: Elementwise = Elementwise::binary("sub", Binary::Sub, ComputeDType::Same)
    .grad(|_| Saves::NOTHING, |_, g, i| if i == 0 { Ok(g) } else { neg(g) });
static MUL: Elementwise = Elementwise::binary("mul", Binary::Mul, ComputeDType::Same)
    .grad(Saves::others, |call, g, i| mul(g, call.input(1 - i)?));
static DIV: Elementwise = Elementwise::binary("div", Binary::Div, ComputeDType::Float).grad(
    |wanted| if wanted.has(1) { Saves::inputs([1]).and(Saves::OUTPUT) } else { Saves::inputs([1]) },
    |call, g, i| {
        let quotient = div(g, call.input(1)?)?;
        if i == 0 { Ok(quotient) } else { neg(mul(quotient, call.output(0)?)?) }
    },
);

/// Elementwise sum, `x + y`. Also `x + y` on tensors and scalars.
///
/// ```
/// use taut_core::{Tensor, ops::binary::add};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(add(&x, 0.5)?.to_vec::<f32>()?, [1.5, 2.5]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn add(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&ADD, x.into(), y.into())
}

/// Elementwise difference, `x - y`. Also `x - y` on tensors and scalars.
#[inline]
#[track_caller]
pub fn sub(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&SUB, x.into(), y.into())
}

/// Elementwise product, `x * y`. Also `x * y` on tensors and scalars.
#[inline]
#[track_caller]
pub fn mul(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&MUL, x.into(), y.into())
}

/// Elementwise true division, `x / y`; integers give `float32`. Also `x / y` on tensors and scalars.
#[inline]
#[track_caller]
pub fn div(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&DIV, x.into(), y.into())
}

fn add_invalid_args() -> Vec<InvalidArgs> {
    let mut bad = invalid_binary(&[]);
    let with = |dtype, value| vec![ramp(dtype, &[2], 0.0, 1.0), ArgValue::Int(value)];
    bad.push(InvalidArgs::new(with(DType::U8, 256), ErrorKind::Value, "256 does not fit uint8"));
    bad.push(InvalidArgs::new(with(DType::I8, -129), ErrorKind::Value, "-129 does not fit int8"));
    bad.push(InvalidArgs::new(with(DType::U64, -1), ErrorKind::Value, "-1 does not fit uint64"));
    let no_common_type = vec![ramp(DType::I32, &[2], 0.0, 1.0), ramp(DType::U64, &[2], 0.0, 1.0)];
    bad.push(InvalidArgs::new(no_common_type, ErrorKind::DType, "holds the values of both int32 and uint64"));
    bad
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "add",
        Param::XY,
        |a| one(add(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("x + y"),
        Samples::Binary(dtypes::EVERY, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(add_invalid_args),
    OpEntry::new(
        "sub",
        Param::XY,
        |a| one(sub(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("x - y"),
        Samples::Binary(dtypes::ARITHMETIC, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[DType::Bool])),
    OpEntry::new(
        "mul",
        Param::XY,
        |a| one(mul(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("x * y"),
        Samples::Binary(dtypes::EVERY, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
    OpEntry::new(
        "div",
        Param::XY,
        |a| one(div(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("x / y"),
        Samples::Binary(dtypes::EVERY, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
];
