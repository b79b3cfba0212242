//! The Cholesky decomposition.

use super::triangular_solve;
use crate::error::{ErrorKind, Result};
use crate::ops::binary::add;
use crate::ops::matrices::{
    MatrixFunction, MatrixGradient, MatrixOp, SQUARE, adjoint, adjoint_times, definite, half_lower,
    invalid_square, with_real_diagonal,
};
use crate::ops::sample::{dtypes, of};
use crate::ops::{InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Saves, Tensor};

static CHOLESKY: MatrixOp = MatrixOp {
    name: "cholesky",
    function: MatrixFunction::Cholesky,
    gradient: MatrixGradient {
        saves: Saves::OUTPUT,
        vjp: |call| {
            call.first(|call, g| {
                // p = L⁻ᴴ half_lower(Lᴴ g) L⁻¹; the code computes its adjoint, and the gradient is symmetric in p.
                let l = call.output(0)?;
                let inner = half_lower(&with_real_diagonal(adjoint_times(l, g)?)?)?;
                let left = triangular_solve(l, inner, true, true, false)?;
                let p = triangular_solve(l, adjoint(left)?, true, true, false)?;
                half_lower(&add(adjoint(&p)?, p)?)
            })
        },
    },
};

/// The Cholesky decomposition `a = L @ adjoint(L)` of symmetric (Hermitian) positive definite matrices, with `L` lower
/// triangular.
///
/// Only the lower triangle of `a` is read. A matrix that is not positive definite is an error.
///
/// ```
/// use taut_core::{Tensor, ops::linalg::cholesky};
/// let a = Tensor::from_slice(&[4.0f64, 2.0, 2.0, 2.0], [2, 2])?;
/// assert_eq!(cholesky(&a)?.to_vec::<f64>()?, [2.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn cholesky(a: impl Into<Tensor>) -> Result<Tensor> {
    CHOLESKY.output(a.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "cholesky",
    &[Param::tensor("a")],
    |a| one(cholesky(a.tensor(0)?)),
    Reference::Numpy("np.linalg.cholesky(a.astype(np.promote_types(a.dtype, np.float64))).astype(a.dtype)"),
    Samples::List(|| {
        let with = |dtype| SQUARE.iter().map(move |shape| vec![definite(dtype, shape)]);
        dtypes::WIDE_COMPLEX.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(|| {
    let mut bad = invalid_square();
    let values = [1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 1.0];
    bad.push(InvalidArgs::new(
        vec![of(DType::F64, &[2, 2, 2], &values)],
        ErrorKind::Numeric,
        "matrix 1 of the batch is not positive definite",
    ));
    bad
})];
