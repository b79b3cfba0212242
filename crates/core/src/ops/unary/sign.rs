//! Signs and magnitudes.

use crate::error::Result;
use crate::ops::binary::mul;
use crate::ops::elementwise::unary;
use crate::ops::sample::{bad_unary, dtypes};
use crate::ops::{Elementwise, OpEntry, Param, Reference, Samples, Types, one};
use crate::{DType, Saves, Tensor};
use taut_kernels::elementwise::Unary;

static NEG: Elementwise =
    Elementwise::unary("neg", Unary::Neg, Types::Same).grad(|_| Saves::NOTHING, |_, g, _| neg(g));
static ABS: Elementwise = Elementwise::unary("abs", Unary::Abs, Types::Same)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, sign(call.input(0)?)?));
static SIGN: Elementwise = Elementwise::unary("sign", Unary::Sign, Types::Same);

/// `-x`; integers wrap. Also `-x` on tensors.
///
/// ```
/// use taut_core::{Tensor, ops::unary::neg};
/// let x = Tensor::from_slice(&[1, -2], [2])?;
/// assert_eq!(neg(&x)?.to_vec::<i32>()?, [-1, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn neg(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&NEG, x.into())
}

/// The magnitude of each element; the smallest signed integer has none in its type and stays as it is.
#[inline]
#[track_caller]
pub fn abs(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    match x.dtype() {
        DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => Ok(x),
        _ => unary(&ABS, x),
    }
}

/// -1, 0 or 1, as each element is below, at or above zero; NaN stays NaN.
#[inline]
#[track_caller]
pub fn sign(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SIGN, x.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "neg",
        Param::X,
        |a| one(neg(a.tensor(0)?)),
        Reference::Numpy("np.negative(x)"),
        Samples::Unary(dtypes::NUMBERS, -128.0, 100.0),
    )
    .refuses(|| bad_unary(&[DType::Bool])),
    OpEntry::new(
        "abs",
        Param::X,
        |a| one(abs(a.tensor(0)?)),
        Reference::Numpy("np.abs(x)"),
        Samples::Unary(dtypes::ALL, -128.0, 100.0),
    ),
    OpEntry::new(
        "sign",
        Param::X,
        |a| one(sign(a.tensor(0)?)),
        Reference::Numpy("np.sign(x)"),
        Samples::Unary(dtypes::NUMBERS, -2.0, 2.0),
    )
    .refuses(|| bad_unary(&[DType::Bool])),
];
