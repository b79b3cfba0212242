//! The matrix inverse.

use crate::error::{ErrorKind, Result};
use crate::ops::matrices::{
    MatrixFunction, MatrixGradient, MatrixOp, SQUARE, adjoint_times, invalid_square, regular, times_adjoint,
};
use crate::ops::sample::{dtypes, of};
use crate::ops::unary::neg;
use crate::ops::{InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Saves, Tensor};

static INV: MatrixOp = MatrixOp {
    name: "inv",
    function: MatrixFunction::Inverse,
    gradient: MatrixGradient {
        saves: Saves::OUTPUT,
        vjp: |call| {
            call.first(|call, g| {
                let y = call.output(0)?;
                neg(times_adjoint(adjoint_times(y, g)?, y)?)
            })
        },
    },
};

/// The inverse of each matrix; a singular matrix is an error.
///
/// ```
/// use taut_core::{Tensor, ops::linalg::inv};
/// let a = Tensor::from_slice(&[2.0f64, 0.0, 0.0, 4.0], [2, 2])?;
/// assert_eq!(inv(&a)?.to_vec::<f64>()?, [0.5, 0.0, 0.0, 0.25]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn inv(a: impl Into<Tensor>) -> Result<Tensor> {
    INV.output(a.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "inv",
    &[Param::tensor("a")],
    |a| one(inv(a.tensor(0)?)),
    Reference::Numpy(
        "np.linalg.inv(a.astype(np.complex128 if a.dtype.kind == 'c' else np.float64)).astype(a.dtype if a.dtype.kind in 'fc' else np.float64)",
    ),
    Samples::List(|| {
        let with = |dtype| SQUARE.iter().map(move |shape| vec![regular(dtype, shape)]);
        let mut samples: Vec<_> = dtypes::WIDE_COMPLEX.iter().flat_map(|&dtype| with(dtype)).collect();
        samples.push(vec![regular(DType::I32, &[3, 3])]);
        samples
    }),
)
.refuses(|| {
    let mut bad = invalid_square();
    let values = [1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 4.0];
    bad.push(InvalidArgs::new(
        vec![of(DType::F64, &[2, 2, 2], &values)],
        ErrorKind::Numeric,
        "matrix 1 of the batch is singular",
    ));
    bad
})];
