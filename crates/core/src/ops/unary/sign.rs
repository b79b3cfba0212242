//! Negation, absolute value and sign.

use crate::error::Result;
use crate::ops::binary::{div, mul, where_};
use crate::ops::creation::zeros_like;
use crate::ops::elementwise::unary;
use crate::ops::reduction::replace_zeros;
use crate::ops::sample::{dtypes, invalid_unary};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Saves, Tensor};
use taut_kernels::elementwise::Unary;

static NEG: Elementwise =
    Elementwise::unary("neg", Unary::Neg, ComputeDType::Same).grad(|_| Saves::NOTHING, |_, g, _| neg(g));
static ABS: Elementwise = Elementwise::unary("abs", Unary::Abs, ComputeDType::Same)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, sign(call.input(0)?)?));
/// The gradient is zero rather than missing, so that the second derivative of `abs` exists.
static SIGN: Elementwise = Elementwise::unary("sign", Unary::Sign, ComputeDType::Same)
    .grad(|_| Saves::NOTHING, |_, g, _| zeros_like(g, None));

/// The negative of each element; integers wrap. Also `-x` on tensors.
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

/// The absolute value of each element; of complex numbers, a float. The smallest value of a signed integer dtype, whose magnitude overflows, is
/// unchanged.
#[inline]
#[track_caller]
pub fn abs(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    match x.dtype() {
        DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => Ok(x),
        _ => unary(&ABS, x),
    }
}

/// The sign of each element: -1, 0 or 1; NaN stays NaN. Of a complex number, the number divided by its absolute value.
#[inline]
#[track_caller]
pub fn sign(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    if x.dtype().is_complex() {
        // The absolute value of zeros is replaced, so that its gradient there is 0 and not NaN.
        let (zero, usable) = replace_zeros(x)?;
        return where_(zero, 0, div(&usable, abs(&usable)?)?);
    }
    unary(&SIGN, x)
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "neg",
        Param::X,
        |a| one(neg(a.tensor(0)?)),
        Reference::Numpy("np.negative(x)"),
        Samples::Unary(dtypes::ARITHMETIC, -128.0, 100.0),
    )
    .refuses(|| invalid_unary(&[DType::Bool])),
    OpEntry::new(
        "abs",
        Param::X,
        |a| one(abs(a.tensor(0)?)),
        Reference::Numpy("np.abs(x)"),
        Samples::Unary(dtypes::EVERY, -128.0, 100.0),
    ),
    OpEntry::new(
        "sign",
        Param::X,
        |a| one(sign(a.tensor(0)?)),
        Reference::Numpy("np.sign(x)"),
        Samples::Unary(dtypes::ARITHMETIC, -2.0, 2.0),
    )
    .refuses(|| invalid_unary(&[DType::Bool])),
];
