//! Determinants.

use super::{inv, svd};
use crate::error::Result;
use crate::gradient::{Gradients, VjpCall};
use crate::ops::binary::{div, equal, mul, where_};
use crate::ops::contract::matmul;
use crate::ops::creation::{diag, eye, range};
use crate::ops::matrices::{Code, OnMatrix, Rule, SQUARE, adjoint, bad_square, per_matrix, regular, wide};
use crate::ops::reduce::prod;
use crate::ops::sample::{dtypes, of};
use crate::ops::shape::expand_dims;
use crate::ops::unary::sign;
use crate::ops::{ArgValue, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Saves, Set, Tensor, apply, apply_many};

/// The matrix and the first output, which says whether it is singular.
const BOTH: Saves = Saves { outputs: Set::of([0]), ..Saves::INPUT };

static DET: OnMatrix = OnMatrix {
    name: "det",
    code: Code::Determinant,
    rule: Rule {
        saves: BOTH,
        gradient: |call| {
            call.first(|call, g| mul(per_matrix(g)?, cofactors(call.input(0)?, call.output(0)?)?))
        },
    },
};

static SLOGDET: OnMatrix =
    OnMatrix { name: "slogdet", code: Code::SignLog, rule: Rule { saves: BOTH, gradient: log_gradient } };

/// The matrix of cofactors, `det(a) inv(a)ᵀ` where there is an inverse.
fn cofactors(a: &Tensor, det: &Tensor) -> Result<Tensor> {
    let n = a.shape()[a.rank() - 1];
    let singular = equal(per_matrix(det)?, 0.0)?;
    let by_inverse = mul(per_matrix(det)?, adjoint(inv(where_(&singular, identity(a)?, a)?)?)?)?;
    // Where there is none, by singular values, each replaced by the product of all others. Other matrices stay out of
    // this: their singular values need not be distinct, which matters when this is differentiated.
    let distinct = diag(range(1.0, n as f64 + 1.0, 1.0, a.dtype())?, 0)?;
    let (u, s, vh) = svd(where_(&singular, a, distinct)?, false)?;
    let own = eye(n, None, (), DType::Bool, 0)?;
    let others = prod(where_(own, 1.0, expand_dims(s, -2)?)?, -1, false)?;
    let sign = sign(mul(super::det(&u)?, super::det(&vh)?)?)?;
    let scaled = mul(u, expand_dims(mul(others, expand_dims(sign, -1)?)?, -2)?)?;
    where_(singular, matmul(scaled, vh)?, by_inverse)
}

/// The identity matrix, of the type and size of a stack's.
fn identity(a: &Tensor) -> Result<Tensor> {
    eye(a.shape()[a.rank() - 1], None, (), a.dtype(), 0)
}

fn log_gradient(call: &mut VjpCall<'_>) -> Result<Gradients> {
    let Some(g) = call.take_gradient(1) else { return Ok(Gradients::new()) };
    let (a, sign) = (call.input(0)?, call.output(0)?);
    // A singular matrix has no gradient, which is not an error as it would be for the inverse: dividing by the sign's
    // square makes it infinite.
    let regular = where_(equal(per_matrix(sign)?, 0.0)?, identity(a)?, a)?;
    let g = div(g, mul(sign, sign)?)?;
    Ok(Gradients::from_iter([Some(mul(per_matrix(g)?, adjoint(inv(regular)?)?)?.into())]))
}

/// The determinant of every matrix.
///
/// ```
/// use taut_core::{Tensor, ops::linalg::det};
/// let a = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0], [2, 2])?;
/// assert!((det(&a)?.item::<f64>()? + 2.0).abs() < 1e-15);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn det(a: impl Into<Tensor>) -> Result<Tensor> {
    apply(&DET, [wide(a.into())?])
}

/// The sign of every matrix's determinant and the logarithm of its absolute value: 0 and -inf if it is singular.
#[track_caller]
pub fn slogdet(a: impl Into<Tensor>) -> Result<(Tensor, Tensor)> {
    let outputs = apply_many(&SLOGDET, vec![wide(a.into())?])?;
    Ok((outputs[0].clone(), outputs[1].clone()))
}

fn samples() -> Vec<Vec<ArgValue>> {
    let with = |dtype| SQUARE.iter().map(move |shape| vec![regular(dtype, shape)]);
    let mut samples: Vec<_> = dtypes::WIDE.iter().flat_map(|&dtype| with(dtype)).collect();
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
            "np.asarray(np.linalg.det(a.astype(np.float64)), a.dtype if a.dtype.kind == 'f' else np.float64)",
        ),
        Samples::List(samples),
    )
    .refuses(bad_square),
    OpEntry::new(
        "slogdet",
        &[Param::tensor("a")],
        |a| {
            let (sign, log) = slogdet(a.tensor(0)?)?;
            Ok(vec![sign, log])
        },
        Reference::Numpy(
            "[np.asarray(part, a.dtype if a.dtype.kind == 'f' else np.float64) \
             for part in np.linalg.slogdet(a.astype(np.float64))]",
        ),
        Samples::List(samples),
    )
    .refuses(bad_square),
];
