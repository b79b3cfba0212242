//! Complex numbers: their parts, angles and conjugates.

use crate::error::{Error, Result};
use crate::ops::binary::{complex, div, less, mul, mul_no_nan, where_};
use crate::ops::creation::zeros_like;
use crate::ops::elementwise::unary;
use crate::ops::sample::{dtypes, invalid_unary};
use crate::ops::unary::{abs, neg, square};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Saves, Tensor};
use taut_kernels::elementwise::Unary;
use taut_memory::Location;

static REAL: Elementwise = Elementwise::unary("real", Unary::Real, ComputeDType::Same).grad(
    |_| Saves::NOTHING,
    |_, g, _| {
        let zeros = zeros_like(&g, None)?;
        complex(g, zeros)
    },
);
static IMAG: Elementwise = Elementwise::unary("imag", Unary::Imag, ComputeDType::Same).grad(
    |_| Saves::NOTHING,
    |_, g, _| {
        let zeros = zeros_like(&g, None)?;
        complex(zeros, g)
    },
);
static CONJ: Elementwise =
    Elementwise::unary("conj", Unary::Conj, ComputeDType::Same).grad(|_| Saves::NOTHING, |_, g, _| conj(g));
/// The gradient of the angle of `x + iy` is `(-y + ix) / (x^2 + y^2)`.
static ANGLE: Elementwise = Elementwise::unary("angle", Unary::Angle, ComputeDType::Same).grad(
    |_| Saves::INPUT,
    |call, g, _| {
        let z = call.input(0)?;
        let across = complex(neg(imag(z)?)?, real(z)?)?;
        mul(div(g, square(abs(z)?)?)?, across)
    },
);

/// The real part of each element; of real numbers, the tensor itself.
///
/// ```
/// use taut_core::{Complex, Tensor, ops::unary::{imag, real}};
/// let z = Tensor::new([Complex { re: 1.0f32, im: -2.0 }])?;
/// assert_eq!((real(&z)?.to_vec::<f32>()?, imag(&z)?.to_vec::<f32>()?), (vec![1.0], vec![-2.0]));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn real(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    if x.dtype().is_complex() { unary(&REAL, x) } else { Ok(x) }
}

/// The imaginary part of each element; zeros of real numbers.
#[track_caller]
pub fn imag(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    if x.dtype().is_complex() { unary(&IMAG, x) } else { zeros_like(x, None) }
}

/// The complex conjugate of each element; of real numbers, the tensor itself.
#[track_caller]
pub fn conj(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    if x.dtype().is_complex() { unary(&CONJ, x) } else { Ok(x) }
}

/// The angle of each element in the complex plane, in radians; of real numbers, 0 or pi.
#[track_caller]
pub fn angle(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    match x.dtype() {
        dtype if dtype.is_complex() => unary(&ANGLE, x),
        // Zeros that depend on `x`, also where it is infinite or NaN.
        dtype if dtype.is_float() => where_(less(&x, 0)?, std::f64::consts::PI, mul_no_nan(x, 0)?),
        dtype => Err(Error::dtype(format!("{dtype} is not supported"))
            .in_op("angle", [x.spec()])
            .at(Location::caller())),
    }
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "real",
        Param::X,
        |a| one(real(a.tensor(0)?)),
        Reference::Numpy("np.real(x)"),
        Samples::Unary(dtypes::EVERY, -3.0, 3.0),
    ),
    OpEntry::new(
        "imag",
        Param::X,
        |a| one(imag(a.tensor(0)?)),
        Reference::Numpy("np.imag(x)"),
        Samples::Unary(dtypes::EVERY, -3.0, 3.0),
    ),
    OpEntry::new(
        "conj",
        Param::X,
        |a| one(conj(a.tensor(0)?)),
        Reference::Numpy("x if x.dtype == bool else np.conj(x)"),
        Samples::Unary(dtypes::EVERY, -3.0, 3.0),
    ),
    OpEntry::new(
        "angle",
        Param::X,
        |a| one(angle(a.tensor(0)?)),
        Reference::Numpy(
            "(np.angle(x) if np.iscomplexobj(x) else np.where(x < 0, np.pi, 0)).astype(np.real(x).dtype)",
        ),
        Samples::Unary(dtypes::INEXACT, -3.0, 3.0),
    )
    .refuses(|| invalid_unary(&[DType::Bool, DType::I32])),
];
