//! The logarithm of matrices.

use crate::error::{ErrorKind, Result};
use crate::ops::creation::zeros_like;
use crate::ops::matrices::{
    MatrixFunction, MatrixGradient, MatrixOp, SQUARE, adjoint, invalid_square, narrow, regular,
};
use crate::ops::sample::{dtypes, of};
use crate::ops::shape::{concat, slice};
use crate::ops::unary::cast;
use crate::ops::{InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::promote::float_of;
use crate::{DType, Ellipsis, Saves, Tensor, apply, s};

static LOGM: MatrixOp = MatrixOp {
    name: "logm",
    function: MatrixFunction::Logarithm,
    gradient: MatrixGradient {
        saves: Saves::INPUT,
        vjp: |call| {
            call.first(|call, g| {
                // The derivative of a matrix function in the direction g is a block of the function of [[a, g], [0, a]]; the
                // gradient is that in aᴴ.
                let a = adjoint(call.input(0)?)?;
                let n = a.shape()[a.rank() - 1] as isize;
                let top = concat(&[a.clone(), g], -1)?;
                let bottom = concat(&[zeros_like(&a, None)?, a], -1)?;
                slice(logm(concat(&[top, bottom], -2)?)?, &s![Ellipsis, ..n, n..])
            })
        },
    },
};

/// The principal logarithm of each matrix, which is complex: `expm(logm(a)) = a`, and the imaginary parts of its eigenvalues lie in
/// (-π, π]. A singular matrix is an error.
///
/// ```
/// use taut_core::{Complex, Tensor, ops::linalg::logm};
/// let log = logm(Tensor::new([[1.0f64, 2.0], [0.0, 1.0]])?)?.to_vec::<Complex<f64>>()?;
/// assert!((log[1] - 2.0).norm() < 1e-14 && log[0].norm() < 1e-14);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn logm(a: impl Into<Tensor>) -> Result<Tensor> {
    let a = a.into();
    let given = float_of(a.dtype()).complex();
    narrow(apply(&LOGM, [cast(a, DType::C128)?])?, given)
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "logm",
    &[Param::tensor("a")],
    |a| one(logm(a.tensor(0)?)),
    // The exponential by its series, after 2^10 has been divided out.
    Reference::Property(
        "[e := 1e-5 if out.dtype == np.complex64 else 1e-11, x := out.astype(np.complex128) / 1024, \
         i := np.broadcast_to(np.eye(a.shape[-1]), a.shape), y := i + x @ (i + x / 2 @ (i + x / 3 @ (i + x / 4 @ (i + x / 5)))), \
         [y := y @ y for _ in range(10)], np.allclose(y, a, e, e)][-1]",
    ),
    Samples::List(|| {
        let with = |dtype| SQUARE.iter().map(move |shape| vec![regular(dtype, shape)]);
        let mut samples: Vec<_> = dtypes::WIDE_COMPLEX.iter().flat_map(|&dtype| with(dtype)).collect();
        samples.push(vec![of(DType::C128, &[2, 2], &[1.0, 1.0, 0.0, 1.0])]);
        samples
    }),
)
.refuses(|| {
    // Integers and small floats are converted, so no type is invalid.
    let mut bad = invalid_square();
    bad.truncate(2);
    let singular = vec![of(DType::F64, &[2, 2], &[1.0, 0.0, 0.0, 0.0])];
    bad.push(InvalidArgs::new(singular, ErrorKind::Numeric, "matrix 0 of the batch is singular"));
    bad
})];
