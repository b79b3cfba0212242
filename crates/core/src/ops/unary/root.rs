//! Roots, squares and reciprocals.

use crate::error::Result;
use crate::ops::binary::{div, mul, mul_no_nan};
use crate::ops::elementwise::unary;
use crate::ops::sample::{dtypes, invalid_unary};
use crate::ops::unary::neg;
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Saves, Tensor};
use taut_kernels::elementwise::Unary;

/// A gradient times a derivative. As in TensorFlow, a gradient of zero stays zero where the derivative of a real number is infinite or NaN:
/// so `where(x > 0, sqrt(x), 0)` has the gradient 0 for x <= 0.
#[track_caller]
fn scaled(derivative: impl Into<Tensor>, gradient: impl Into<Tensor>) -> Result<Tensor> {
    let (derivative, gradient) = (derivative.into(), gradient.into());
    if gradient.dtype().is_complex() { mul(gradient, derivative) } else { mul_no_nan(derivative, gradient) }
}

static SQRT: Elementwise = Elementwise::unary("sqrt", Unary::Sqrt, ComputeDType::Float)
    .grad(|_| Saves::OUTPUT, |call, g, _| scaled(div(0.5, call.output(0)?)?, g));
static RSQRT: Elementwise = Elementwise::unary("rsqrt", Unary::Rsqrt, ComputeDType::Float).grad(
    |_| Saves::OUTPUT,
    |call, g, _| {
        // One factor at a time: the cube of the output may overflow where the gradient does not.
        let y = call.output(0)?;
        scaled(y, scaled(y, scaled(y, mul(g, -0.5)?)?)?)
    },
);
static SQUARE: Elementwise = Elementwise::unary("square", Unary::Square, ComputeDType::Same)
    .grad(|_| Saves::INPUT, |call, g, _| mul(mul(g, 2.0)?, call.input(0)?));
static RECIPROCAL: Elementwise = Elementwise::unary("reciprocal", Unary::Reciprocal, ComputeDType::Float)
    .grad(
        |_| Saves::OUTPUT,
        |call, g, _| {
            let y = call.output(0)?;
            neg(scaled(y, scaled(y, g)?)?)
        },
    );

/// The square root of each element; NaN below zero.
///
/// ```
/// use taut_core::{Tensor, ops::unary::sqrt};
/// let x = Tensor::from_slice(&[4.0f32, 9.0], [2])?;
/// assert_eq!(sqrt(&x)?.to_vec::<f32>()?, [2.0, 3.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn sqrt(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SQRT, x.into())
}

/// The reciprocal square root of each element, `1 / sqrt(x)`.
#[inline]
#[track_caller]
pub fn rsqrt(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&RSQRT, x.into())
}

/// The square of each element, `x * x`; integers wrap.
#[inline]
#[track_caller]
pub fn square(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SQUARE, x.into())
}

/// The reciprocal of each element, `1 / x`; integers give `float32`.
#[inline]
#[track_caller]
pub fn reciprocal(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&RECIPROCAL, x.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "sqrt",
        Param::X,
        |a| one(sqrt(a.tensor(0)?)),
        Reference::Numpy("np.sqrt(x)"),
        Samples::Unary(dtypes::EVERY, -0.5, 9.0),
    ),
    OpEntry::new(
        "rsqrt",
        Param::X,
        |a| one(rsqrt(a.tensor(0)?)),
        Reference::Numpy("1 / np.sqrt(x)"),
        Samples::Unary(dtypes::EVERY, -0.5, 9.0),
    ),
    OpEntry::new(
        "square",
        Param::X,
        |a| one(square(a.tensor(0)?)),
        Reference::Numpy("np.square(x)"),
        Samples::Unary(dtypes::ARITHMETIC, -20.0, 20.0),
    )
    .refuses(|| invalid_unary(&[DType::Bool])),
    OpEntry::new(
        "reciprocal",
        Param::X,
        |a| one(reciprocal(a.tensor(0)?)),
        Reference::Numpy("1 / x"),
        Samples::Unary(dtypes::EVERY, -4.0, 4.0),
    ),
];
