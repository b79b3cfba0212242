//! Determinants.

use crate::error::Result;
use crate::ops::matrices::{Code, OnMatrix, SQUARE, bad_square, regular, wide};
use crate::ops::sample::{dtypes, of};
use crate::ops::{Entry, Param, Reference, Samples, Value, one};
use crate::{DType, Tensor, apply, apply_many};

static DET: OnMatrix = OnMatrix { name: "det", code: Code::Determinant };
static SLOGDET: OnMatrix = OnMatrix { name: "slogdet", code: Code::SignLog };

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

fn samples() -> Vec<Vec<Value>> {
    let with = |dtype| SQUARE.iter().map(move |shape| vec![regular(dtype, shape)]);
    let mut samples: Vec<_> = dtypes::WIDE.iter().flat_map(|&dtype| with(dtype)).collect();
    samples.push(vec![regular(DType::I64, &[3, 3])]);
    samples.push(vec![of(DType::F64, &[2, 2], &[0.0, 1.0, 1.0, 0.0])]);
    samples.push(vec![of(DType::F64, &[2, 2], &[1.0, 2.0, 2.0, 4.0])]);
    samples
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::new(
        "det",
        &[Param::tensor("a")],
        |a| one(det(a.tensor(0)?)),
        Reference::Numpy(
            "np.asarray(np.linalg.det(a.astype(np.float64)), a.dtype if a.dtype.kind == 'f' else np.float64)",
        ),
        Samples::List(samples),
    )
    .refuses(bad_square),
    Entry::new(
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
