//! Determinants.

use super::{inv, svd};
use crate::error::Result;
use crate::gradient::{Gradients, VjpCall};
use crate::ops::binary::{complex, div, equal, mul, where_};
use crate::ops::contract::matmul;
use crate::ops::creation::{diag, eye, range, zeros_like};
use crate::ops::matrices::{
    MatrixFunction, MatrixGradient, MatrixOp, SQUARE, adjoint, invalid_square, per_matrix, regular,
};
use crate::ops::reduce::prod;
use crate::ops::sample::{dtypes, of};
use crate::ops::shape::expand_dims;
use crate::ops::unary::{cast, conj, imag, real, sign};
use crate::ops::{ArgValue, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Saves, Set, Tensor};

/// The matrix and the first output, which is zero if it is singular.
const INPUT_AND_FIRST_OUTPUT: Saves = Saves { outputs: Set::of([0]), ..Saves::INPUT };

static DET: MatrixOp = MatrixOp {
    name: "det",
    function: MatrixFunction::Determinant,
    gradient: MatrixGradient {
        saves: INPUT_AND_FIRST_OUTPUT,
        vjp: |call| call.first(|call, g| mul(per_matrix(g)?, cofactors(call.input(0)?, call.output(0)?)?)),
    },
};

static SLOGDET: MatrixOp = MatrixOp {
    name: "slogdet",
    function: MatrixFunction::SignLog,
    gradient: MatrixGradient { saves: INPUT_AND_FIRST_OUTPUT, vjp: log_gradient },
};

/// The conjugate of the matrix of cofactors: `conj(det(a)) inv(a)ᴴ` if `a` is invertible.
fn cofactors(a: &Tensor, det: &Tensor) -> Result<Tensor> {
    let n = a.shape()[a.rank() - 1];
    let singular = equal(per_matrix(det)?, 0.0)?;
    let by_inverse = mul(per_matrix(conj(det)?)?, adjoint(inv(where_(&singular, identity(a)?, a)?)?)?)?;
    // For singular matrices, from the SVD, with each singular value replaced by the product of the others. Regular
    // matrices are replaced by one with distinct singular values, which the derivative of the SVD requires.
    let distinct = cast(diag(range(1.0, n as f64 + 1.0, 1.0, a.dtype().part())?, 0)?, a.dtype())?;
    let (u, s, vh) = svd(where_(&singular, a, distinct)?, false)?;
    let own = eye(n, None, (), DType::Bool, 0)?;
    let others = prod(where_(own, 1.0, expand_dims(s, -2)?)?, -1, false)?;
    let sign = conj(sign(mul(super::det(&u)?, super::det(&vh)?)?)?)?;
    let scaled = mul(u, expand_dims(mul(others, expand_dims(sign, -1)?)?, -2)?)?;
    where_(singular, matmul(scaled, vh)?, by_inverse)
}

/// The identity matrix in the dtype and size of `a`'s matrices.
fn identity(a: &Tensor) -> Result<Tensor> {
    eye(a.shape()[a.rank() - 1], None, (), a.dtype(), 0)
}

fn log_gradient(call: &mut VjpCall<'_>) -> Result<Gradients> {
    let (by_sign, by_log) = (call.take_gradient(0), call.take_gradient(1));
    let (a, sign) = (call.input(0)?, call.output(0)?);
    // The phase of a complex determinant turns with the imaginary part of the variation; a real sign is constant.
    let turn = by_sign.filter(|g| g.dtype().is_complex());
    let turn = turn.map(|g| imag(mul(conj(sign)?, g)?)).transpose()?;
    let g = match (by_log, turn) {
        (None, None) => return Ok(Gradients::new()),
        (Some(g), None) => g,
        (g, Some(turn)) => complex(g.map_or_else(|| zeros_like(&turn, None), Ok)?, turn)?,
    };
    // The gradient of a singular matrix is infinite, not an error as for `inv`: dividing by the squared sign, zero, makes
    // it so.
    let regular = where_(equal(per_matrix(sign)?, 0.0)?, identity(a)?, a)?;
    let g = div(g, real(mul(sign, conj(sign)?)?)?)?;
    Ok(Gradients::from_iter([Some(mul(per_matrix(g)?, adjoint(inv(regular)?)?)?.into())]))
}

/// The determinant of each matrix.
///
/// ```
/// use taut_core::{Tensor, ops::linalg::det};
/// let a = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0], [2, 2])?;
/// assert!((det(&a)?.item::<f64>()? + 2.0).abs() < 1e-15);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn det(a: impl Into<Tensor>) -> Result<Tensor> {
    DET.output(a.into())
}

/// The sign of each matrix's determinant (of a complex one, its phase) and the logarithm of its absolute value, which is real: 0 and
/// -inf for a singular matrix.
#[track_caller]
pub fn slogdet(a: impl Into<Tensor>) -> Result<(Tensor, Tensor)> {
    let outputs = SLOGDET.outputs(a.into())?;
    Ok((outputs[0].clone(), outputs[1].clone()))
}

fn samples() -> Vec<Vec<ArgValue>> {
    let with = |dtype| SQUARE.iter().map(move |shape| vec![regular(dtype, shape)]);
    let mut samples: Vec<_> = dtypes::WIDE_COMPLEX.iter().flat_map(|&dtype| with(dtype)).collect();
    samples.push(vec![regular(DType::I64, &[3, 3])]);
    samples.push(vec![of(DType::F64, &[2, 2], &[0.0, 1.0, 1.0, 0.0])]);
    samples.push(vec![of(DType::F64, &[2, 2], &[1.0, 2.0, 2.0, 4.0])]);
    samples
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "det",
        &[Param::tensor("a")],
        |a| one(det(a.tensor(0)?)),
        Reference::Numpy(
            "np.asarray(np.linalg.det(a.astype(np.promote_types(a.dtype, np.float64))), a.dtype if a.dtype.kind in 'fc' else np.float64)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid_square),
    OpEntry::new(
        "slogdet",
        &[Param::tensor("a")],
        |a| {
            let (sign, log) = slogdet(a.tensor(0)?)?;
            Ok(vec![sign, log])
        },
        Reference::Numpy(
            "[t := a.dtype if a.dtype.kind in 'fc' else np.dtype(np.float64), \
             parts := np.linalg.slogdet(a.astype(np.promote_types(a.dtype, np.float64))), \
             [np.asarray(parts[0], t), np.asarray(parts[1], np.zeros(0, t).real.dtype)]][-1]",
        ),
        Samples::List(samples),
    )
    .refuses(invalid_square),
];
