//! Orthogonal factors: QR, singular values, eigenvalues.

use crate::error::{ErrorKind, Result};
use crate::ops::matrices::{Code, OnMatrix, SQUARE, bad_square, definite, wide};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{Bad, Entry, Kind, Param, Reference, Samples, Value, one};
use crate::{DType, Outputs, Tensor, apply, apply_many};
use taut_kernels::linalg::SvdVectors;

/// `a = q @ r` with orthonormal columns in `q` and an upper triangular `r`; with `full_matrices`, `q` is square.
#[track_caller]
pub fn qr(a: impl Into<Tensor>, full_matrices: bool) -> Result<(Tensor, Tensor)> {
    let op = OnMatrix { name: "qr", code: Code::Qr { full: full_matrices } };
    Ok(two(apply_many(&op, vec![wide(a.into())?])?))
}

/// `a = u @ diag(s) @ vh` with orthonormal columns in `u`, orthonormal rows in `vh`, and singular values that fall; with
/// `full_matrices`, `u` and `vh` are square. The result is `(u, s, vh)`.
#[track_caller]
pub fn svd(a: impl Into<Tensor>, full_matrices: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let vectors = if full_matrices { SvdVectors::Full } else { SvdVectors::Thin };
    let op = OnMatrix { name: "svd", code: Code::Svd { vectors } };
    let mut outputs = apply_many(&op, vec![wide(a.into())?])?;
    let vh = outputs.swap_remove(2);
    let (u, s) = two(outputs);
    Ok((u, s, vh))
}

/// The singular values of every matrix, largest first.
///
/// ```
/// use taut_core::{Tensor, ops::linalg::svdvals};
/// let a = Tensor::from_slice(&[3.0f64, 0.0, 0.0, 5.0], [2, 2])?;
/// let values = svdvals(&a)?.to_vec::<f64>()?;
/// assert!((values[0] - 5.0).abs() < 1e-14 && (values[1] - 3.0).abs() < 1e-14);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn svdvals(a: impl Into<Tensor>) -> Result<Tensor> {
    let op = OnMatrix { name: "svdvals", code: Code::Svd { vectors: SvdVectors::None } };
    apply(&op, [wide(a.into())?])
}

/// Eigenvalues of every symmetric matrix, smallest first, and its eigenvectors as columns. Only the lower triangle is read.
#[track_caller]
pub fn eigh(a: impl Into<Tensor>) -> Result<(Tensor, Tensor)> {
    let op = OnMatrix { name: "eigh", code: Code::Eigen { vectors: true } };
    Ok(two(apply_many(&op, vec![wide(a.into())?])?))
}

/// Eigenvalues of every symmetric matrix, smallest first. Only the lower triangle is read.
#[track_caller]
pub fn eigvalsh(a: impl Into<Tensor>) -> Result<Tensor> {
    let op = OnMatrix { name: "eigvalsh", code: Code::Eigen { vectors: false } };
    apply(&op, [wide(a.into())?])
}

fn two(mut outputs: Outputs) -> (Tensor, Tensor) {
    let first = outputs.swap_remove(0);
    (first, outputs.swap_remove(0))
}

const RECTANGLES: &[&[usize]] = &[&[1, 1], &[3, 3], &[4, 2], &[2, 4], &[2, 3, 2], &[0, 2, 3], &[3, 0]];
const FULL: &[Param] = &[Param::tensor("a"), Param::optional("full_matrices", Kind::Bool, "False")];

fn rectangles() -> Vec<Vec<Value>> {
    let with = |dtype| RECTANGLES.iter().map(move |shape| vec![ramp(dtype, shape, -2.0, 2.0)]);
    dtypes::WIDE.iter().flat_map(|&dtype| with(dtype)).collect()
}

fn full_or_not() -> Vec<Vec<Value>> {
    let both = |args: Vec<Value>| [false, true].map(|full| [args.clone(), vec![Value::Bool(full)]].concat());
    rectangles().into_iter().flat_map(both).collect()
}

fn symmetric() -> Vec<Vec<Value>> {
    let with = |dtype| SQUARE.iter().map(move |shape| vec![definite(dtype, shape)]);
    dtypes::WIDE.iter().flat_map(|&dtype| with(dtype)).collect()
}

fn bad_rectangle() -> Vec<Bad> {
    let with = |dtype, shape: &[usize]| vec![ramp(dtype, shape, 0.5, 1.0)];
    vec![
        Bad::new(with(DType::F32, &[3]), ErrorKind::Shape, "a tensor of rank 1 is not a matrix"),
        Bad::new(with(DType::BF16, &[2, 2]), ErrorKind::DType, "bfloat16 is not supported"),
    ]
}

/// As `bad`, and a matrix that no iteration converges on.
fn and_nan(mut bad: Vec<Bad>) -> Vec<Bad> {
    let nan = vec![of(DType::F64, &[2, 2], &[f64::NAN, 1.0, 1.0, 1.0])];
    bad.push(Bad::new(nan, ErrorKind::Numeric, "matrix 0 of the batch did not converge"));
    bad
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::new(
        "qr",
        FULL,
        |a| {
            let (q, r) = qr(a.tensor(0)?, a.bool_or(1)?.unwrap_or(false))?;
            Ok(vec![q, r])
        },
        Reference::Property(
            "[e := 1e-5 if a.dtype == np.float32 else 1e-12, (q := out[0]), (r := out[1]), \
             k := min(a.shape[-2:]), c := a.shape[-2] if full_matrices else k, \
             q.shape == (*a.shape[:-1], c) and r.shape == (*a.shape[:-2], c, a.shape[-1]) \
             and np.allclose(q @ r, a, e, e) and np.allclose(np.swapaxes(q, -1, -2) @ q, np.eye(c), e, e) \
             and np.array_equal(np.triu(r), r)][-1]",
        ),
        Samples::List(full_or_not),
    )
    .refuses(bad_rectangle),
    Entry::new(
        "svd",
        FULL,
        |a| {
            let (u, s, vh) = svd(a.tensor(0)?, a.bool_or(1)?.unwrap_or(false))?;
            Ok(vec![u, s, vh])
        },
        Reference::Property(
            "[e := 1e-5 if a.dtype == np.float32 else 1e-12, u := out[0], s := out[1], vh := out[2], \
             k := min(a.shape[-2:]), c := u.shape[-1], t := lambda m: np.swapaxes(m, -1, -2), \
             u.shape[-1] == (a.shape[-2] if full_matrices else k) \
             and vh.shape[-2] == (a.shape[-1] if full_matrices else k) \
             and np.allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, e, e) \
             and np.allclose(t(u) @ u, np.eye(u.shape[-1]), e, e) \
             and np.allclose(vh @ t(vh), np.eye(vh.shape[-2]), e, e) \
             and np.allclose(s, np.linalg.svd(a.astype(np.float64), compute_uv=False) if a.size else s, e, e)][-1]",
        ),
        Samples::List(full_or_not),
    )
    .refuses(|| and_nan(bad_rectangle())),
    Entry::new(
        "svdvals",
        &[Param::tensor("a")],
        |a| one(svdvals(a.tensor(0)?)),
        Reference::Property(
            "[e := 1e-5 if a.dtype == np.float32 else 1e-12, \
             out.shape == (*a.shape[:-2], min(a.shape[-2:])) and \
             np.allclose(out, np.linalg.svd(a.astype(np.float64), compute_uv=False) if a.size else out, e, e)][-1]",
        ),
        Samples::List(rectangles),
    )
    .refuses(|| and_nan(bad_rectangle())),
    Entry::new(
        "eigh",
        &[Param::tensor("a")],
        |a| {
            let (values, vectors) = eigh(a.tensor(0)?)?;
            Ok(vec![values, vectors])
        },
        Reference::Property(
            "[e := 1e-5 if a.dtype == np.float32 else 1e-12, w := out[0], v := out[1], \
             t := lambda m: np.swapaxes(m, -1, -2), \
             np.allclose(w, np.linalg.eigvalsh(a.astype(np.float64)), e, e) \
             and np.allclose((v * w[..., None, :]) @ t(v), a, e, e) \
             and np.allclose(t(v) @ v, np.eye(a.shape[-1]), e, e)][-1]",
        ),
        Samples::List(symmetric),
    )
    .refuses(|| and_nan(bad_square())),
    Entry::new(
        "eigvalsh",
        &[Param::tensor("a")],
        |a| one(eigvalsh(a.tensor(0)?)),
        Reference::Property(
            "[e := 1e-5 if a.dtype == np.float32 else 1e-12, \
             np.allclose(out, np.linalg.eigvalsh(a.astype(np.float64)), e, e)][-1]",
        ),
        Samples::List(symmetric),
    )
    .refuses(|| and_nan(bad_square())),
];
