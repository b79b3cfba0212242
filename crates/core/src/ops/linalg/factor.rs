//! Orthogonal factorizations: QR, SVD, symmetric eigendecomposition.

use super::triangular_solve;
use crate::error::{ErrorKind, Result};
use crate::gradient::{Gradients, VjpCall};
use crate::op::Spec;
use crate::ops::binary::{add, complex, div, mul, sub};
use crate::ops::contract::matmul;
use crate::ops::creation::{diag, diag_part, eye, tril, zeros, zeros_like};
use crate::ops::matrices::{
    MatrixFunction, MatrixGradient, MatrixOp, SQUARE, adjoint, adjoint_times, definite, half_lower,
    invalid_square, times_adjoint, with_real_diagonal,
};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::{concat, expand_dims, slice};
use crate::ops::unary::{imag, neg};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Ellipsis, Outputs, Saves, Tensor, s};
use taut_kernels::linalg::SvdVectors;

/// The QR decomposition `a = q @ r` with orthonormal columns in `q` and an upper triangular `r`; with `full_matrices`, `q`
/// is square.
///
/// The columns that complete a square `q` are determined only up to rotation; their gradient is correct for functions of
/// the subspace they span.
#[track_caller]
pub fn qr(a: impl Into<Tensor>, full_matrices: bool) -> Result<(Tensor, Tensor)> {
    let gradient = MatrixGradient { saves: Saves::outputs([0, 1]), vjp: qr_gradient };
    let op = MatrixOp { name: "qr", function: MatrixFunction::Qr { full: full_matrices }, gradient };
    Ok(two(op.outputs(a.into())?))
}

/// The singular value decomposition `a = u @ diag(s) @ vh`: returns `(u, s, vh)` with orthonormal columns in `u`,
/// orthonormal rows in `vh` and singular values `s` in descending order; with `full_matrices`, `u` and `vh` are square.
///
/// Singular vectors are differentiable where the singular values are distinct. The vectors that complete a square `u` or
/// `vh` are determined only up to rotation; their gradient is correct for functions of the subspace they span.
#[track_caller]
pub fn svd(a: impl Into<Tensor>, full_matrices: bool) -> Result<(Tensor, Tensor, Tensor)> {
    let vectors = if full_matrices { SvdVectors::Full } else { SvdVectors::Thin };
    let gradient = MatrixGradient { saves: Saves::outputs([0, 1, 2]), vjp: svd_gradient };
    let op = MatrixOp { name: "svd", function: MatrixFunction::Svd { vectors }, gradient };
    let mut outputs = op.outputs(a.into())?;
    let vh = outputs.swap_remove(2);
    let (u, s) = two(outputs);
    Ok((u, s, vh))
}

/// The singular values of each matrix in descending order.
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
    let gradient = MatrixGradient {
        saves: Saves::INPUT,
        vjp: |call| {
            call.first(|call, g| {
                let (u, _, vh) = svd(call.input(0)?, false)?;
                matmul(mul(u, expand_dims(g, -2)?)?, vh)
            })
        },
    };
    let op =
        MatrixOp { name: "svdvals", function: MatrixFunction::Svd { vectors: SvdVectors::None }, gradient };
    op.output(a.into())
}

/// The eigendecomposition of symmetric (Hermitian) matrices: real eigenvalues in ascending order, and eigenvectors as columns.
/// Only the lower triangle is read.
#[track_caller]
pub fn eigh(a: impl Into<Tensor>) -> Result<(Tensor, Tensor)> {
    let gradient = MatrixGradient { saves: Saves::outputs([0, 1]), vjp: eigh_gradient };
    let op = MatrixOp { name: "eigh", function: MatrixFunction::Eigen { vectors: true }, gradient };
    Ok(two(op.outputs(a.into())?))
}

/// The eigenvalues of symmetric matrices in ascending order. Only the lower triangle is read.
#[track_caller]
pub fn eigvalsh(a: impl Into<Tensor>) -> Result<Tensor> {
    let gradient = MatrixGradient {
        saves: Saves::INPUT,
        vjp: |call| {
            call.first(|call, g| {
                let (_, v) = eigh(call.input(0)?)?;
                half_lower(&times_adjoint(mul(&v, expand_dims(mul(g, 2.0)?, -2)?)?, v)?)
            })
        },
    };
    let op = MatrixOp { name: "eigvalsh", function: MatrixFunction::Eigen { vectors: false }, gradient };
    op.output(a.into())
}

/// Splits the columns into the first `k` and the others.
fn split_columns(x: &Tensor, k: usize) -> Result<(Tensor, Tensor)> {
    let k = k as isize;
    Ok((slice(x, &s![Ellipsis, ..k])?, slice(x, &s![Ellipsis, k..])?))
}

/// The gradient of the first `k` columns of an orthonormal basis, given that of all columns. The others span the
/// complement, so they rotate with the first ones; their rotation within the complement is undetermined and taken as zero.
fn gradient_of_first_columns(basis: &Tensor, g: Tensor, k: usize) -> Result<Tensor> {
    if g.shape()[g.rank() - 1] == k {
        return Ok(g);
    }
    let ((first, others), (g_first, g_others)) = (split_columns(basis, k)?, split_columns(&g, k)?);
    sub(g_first, matmul(others, adjoint_times(g_others, first)?)?)
}

fn qr_gradient(call: &mut VjpCall<'_>) -> Result<Gradients> {
    let [.., m, n] = call.input_shape(0)[..] else { return Ok(Gradients::new()) };
    let mut gradient = |i: usize| {
        let Spec { dtype, shape } = call.outputs[i].spec.clone();
        call.take_gradient(i).map_or_else(|| zeros(shape, dtype), Ok)
    };
    let (mut gq, gr) = (gradient(0)?, gradient(1)?);
    let (q, r) = (call.output(0)?, call.output(1)?);
    // The columns of a that determine q. The last column of a square q is determined by the others, but for its phase if it
    // is complex.
    let k = match (q.shape()[q.rank() - 1] == m, q.dtype().is_complex()) {
        (true, false) => n.min(m.saturating_sub(1)),
        (_, true) => n.min(m),
        (false, false) => n,
    };
    let ((r, r_last), (gr, gr_last)) = (split_columns(r, k)?, split_columns(&gr, k)?);
    // The other columns of a are q times columns of r.
    let mut last = None;
    if n > k {
        gq = add(gq, matmul(q, times_adjoint(r_last, &gr_last)?)?)?;
        last = Some(matmul(q, gr_last)?);
    }
    let rows = |x: Tensor| slice(x, &s![Ellipsis, ..k as isize, ..]);
    let first = tall_qr_gradient(
        &split_columns(q, k)?.0,
        &rows(r)?,
        gradient_of_first_columns(q, gq, k)?,
        rows(gr)?,
    )?;
    Ok(single_gradient(match last {
        None => first,
        Some(last) => concat(&[first, last], -1)?,
    }))
}

/// The gradient of a matrix with at least as many rows as columns, given those of its thin factors.
fn tall_qr_gradient(q: &Tensor, r: &Tensor, gq: Tensor, gr: Tensor) -> Result<Tensor> {
    // The diagonal of r is real.
    let m = with_real_diagonal(sub(times_adjoint(r, gr)?, adjoint_times(&gq, q)?)?)?;
    let symmetric = add(tril(&m, 0)?, adjoint(tril(&m, -1)?)?)?;
    let total = add(gq, matmul(q, symmetric)?)?;
    adjoint(triangular_solve(r, adjoint(total)?, false, false, false)?)
}

/// The gradient of the rotations among the columns of `x`: the antisymmetric part of `xᴴ g`, divided by the gaps between
/// the (squared) spectral values.
fn rotation_gradient(x: &Tensor, g: &Tensor, gaps: &Tensor) -> Result<Tensor> {
    // The phase of a complex column is arbitrary: its gradient is taken as zero.
    let m = with_real_diagonal(adjoint_times(x, g)?)?;
    // The diagonals of numerator and gaps are zero: 1 avoids 0 / 0.
    let one = eye(gaps.shape()[gaps.rank() - 1], None, (), gaps.dtype(), 0)?;
    div(sub(&m, adjoint(&m)?)?, add(gaps, one)?)
}

fn single_gradient(g: Tensor) -> Gradients {
    Gradients::from_iter([Some(g.into())])
}

fn plus(a: Option<Tensor>, b: Tensor) -> Result<Option<Tensor>> {
    Ok(Some(match a {
        None => b,
        Some(a) => add(a, b)?,
    }))
}

fn svd_gradient(call: &mut VjpCall<'_>) -> Result<Gradients> {
    let [.., m, n] = call.input_shape(0)[..] else { return Ok(Gradients::new()) };
    let k = m.min(n);
    let (gu, gs, gvh) = (call.take_gradient(0), call.take_gradient(1), call.take_gradient(2));
    let (u, v) = (call.output(0)?, adjoint(call.output(2)?)?);
    let gu = gu.map(|g| gradient_of_first_columns(u, g, k)).transpose()?;
    let gv = gvh.map(|g| gradient_of_first_columns(&v, adjoint(g)?, k)).transpose()?;
    let (u, v) = (split_columns(u, k)?.0, split_columns(&v, k)?.0);
    let (row, column) = (expand_dims(call.output(1)?, -2)?, expand_dims(call.output(1)?, -1)?);
    // The component of the gradient orthogonal to the span of a basis with fewer columns than rows.
    let orthogonal = |basis: &Tensor, g: &Tensor| {
        let g = div(g, &row)?;
        sub(&g, matmul(basis, adjoint_times(basis, &g)?)?)
    };
    let gaps = || mul(sub(&row, &column)?, add(&row, &column)?);
    // The gradient in the coordinates of the bases u and v.
    let mut inner = gs.map(|g| diag(g, 0)).transpose()?;
    let mut total = None;
    if let Some(g) = gu {
        inner = plus(inner, mul(rotation_gradient(&u, &g, &gaps()?)?, &row)?)?;
        if m > k {
            total = plus(total, times_adjoint(orthogonal(&u, &g)?, &v)?)?;
        }
    }
    if let Some(g) = gv {
        inner = plus(inner, mul(rotation_gradient(&v, &g, &gaps()?)?, &column)?)?;
        if g.dtype().is_complex() {
            // The singular values are real, which ties the phases of u to those of v.
            let phases = div(imag(diag_part(adjoint_times(&v, &g)?, 0)?)?, call.output(1)?)?;
            let phases = diag(neg(phases)?, 0)?;
            inner = plus(inner, complex(zeros_like(&phases, None)?, phases)?)?;
        }
        if n > k {
            total = plus(total, times_adjoint(&u, orthogonal(&v, &g)?)?)?;
        }
    }
    if let Some(inner) = inner {
        total = plus(total, times_adjoint(matmul(&u, inner)?, &v)?)?;
    }
    Ok(Gradients::from_iter([total.map(Into::into)]))
}

fn eigh_gradient(call: &mut VjpCall<'_>) -> Result<Gradients> {
    let (gw, gv) = (call.take_gradient(0), call.take_gradient(1));
    let (w, v) = (call.output(0)?, call.output(1)?);
    let mut inner = gw.map(|g| diag(mul(g, 2.0)?, 0)).transpose()?;
    if let Some(g) = gv {
        inner = plus(inner, rotation_gradient(v, &g, &sub(expand_dims(w, -2)?, expand_dims(w, -1)?)?)?)?;
    }
    let Some(inner) = inner else { return Ok(Gradients::new()) };
    Ok(single_gradient(half_lower(&times_adjoint(matmul(v, inner)?, v)?)?))
}

fn two(mut outputs: Outputs) -> (Tensor, Tensor) {
    let first = outputs.swap_remove(0);
    (first, outputs.swap_remove(0))
}

const RECTANGLES: &[&[usize]] = &[&[1, 1], &[3, 3], &[4, 2], &[2, 4], &[2, 3, 2], &[0, 2, 3], &[3, 0]];
const FULL: &[Param] = &[Param::tensor("a"), Param::optional("full_matrices", ParamKind::Bool, "False")];

fn rectangles() -> Vec<Vec<ArgValue>> {
    let with = |dtype| RECTANGLES.iter().map(move |shape| vec![ramp(dtype, shape, -2.0, 2.0)]);
    dtypes::WIDE_COMPLEX.iter().flat_map(|&dtype| with(dtype)).collect()
}

fn full_or_not() -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for &dtype in dtypes::WIDE_COMPLEX {
        for &shape in RECTANGLES {
            // Two or more columns that complete a basis are the kernel's choice and have no defined derivative. In float64,
            // where gradients are checked, the samples are larger than the check's limit. So is one complex column: its phase.
            let full: &[usize] = match shape {
                [.., m, n] if dtype == DType::C128 && m > n => &[18, 16],
                [4, 2] if dtype.part() == DType::F64 => &[18, 16],
                [2, 4] if dtype.part() == DType::F64 => &[15, 20],
                _ => shape,
            };
            samples.push(vec![ramp(dtype, shape, -2.0, 2.0), ArgValue::Bool(false)]);
            samples.push(vec![ramp(dtype, full, -2.0, 2.0), ArgValue::Bool(true)]);
        }
    }
    samples
}

fn symmetric() -> Vec<Vec<ArgValue>> {
    let with = |dtype| SQUARE.iter().map(move |shape| vec![definite(dtype, shape)]);
    dtypes::WIDE_COMPLEX.iter().flat_map(|&dtype| with(dtype)).collect()
}

/// The phases of complex vectors are the kernel's choice and have no defined derivative, which is checked in `complex128`.
fn without_complex128(mut samples: Vec<Vec<ArgValue>>) -> Vec<Vec<ArgValue>> {
    samples.retain(|args| !matches!(args.first(), Some(ArgValue::Tensor(a)) if a.dtype() == DType::C128));
    samples
}

fn invalid_rectangle() -> Vec<InvalidArgs> {
    let with = |dtype, shape: &[usize]| vec![ramp(dtype, shape, 0.5, 1.0)];
    vec![
        InvalidArgs::new(with(DType::F32, &[3]), ErrorKind::Shape, "expected rank >= 2, got rank 1"),
        InvalidArgs::new(with(DType::BF16, &[2, 2]), ErrorKind::DType, "bfloat16 is not supported"),
    ]
}

/// Adds a matrix for which the iteration does not converge.
fn and_nan(mut bad: Vec<InvalidArgs>) -> Vec<InvalidArgs> {
    let nan = vec![of(DType::F64, &[2, 2], &[f64::NAN, 1.0, 1.0, 1.0])];
    bad.push(InvalidArgs::new(nan, ErrorKind::Numeric, "matrix 0 of the batch did not converge"));
    bad
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "qr",
        FULL,
        |a| {
            let (q, r) = qr(a.tensor(0)?, a.bool_or(1)?.unwrap_or(false))?;
            Ok(vec![q, r])
        },
        Reference::Property(
            "[e := 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-12, (q := out[0]), (r := out[1]), \
             k := min(a.shape[-2:]), c := a.shape[-2] if full_matrices else k, \
             q.shape == (*a.shape[:-1], c) and r.shape == (*a.shape[:-2], c, a.shape[-1]) \
             and np.allclose(q @ r, a, e, e) and np.allclose(np.conj(np.swapaxes(q, -1, -2)) @ q, np.eye(c), e, e) \
             and np.array_equal(np.triu(r), r)][-1]",
        ),
        Samples::List(full_or_not),
    )
    .refuses(invalid_rectangle),
    OpEntry::new(
        "svd",
        FULL,
        |a| {
            let (u, s, vh) = svd(a.tensor(0)?, a.bool_or(1)?.unwrap_or(false))?;
            Ok(vec![u, s, vh])
        },
        Reference::Property(
            "[e := 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-12, u := out[0], s := out[1], vh := out[2], \
             k := min(a.shape[-2:]), c := u.shape[-1], t := lambda m: np.conj(np.swapaxes(m, -1, -2)), \
             u.shape[-1] == (a.shape[-2] if full_matrices else k) \
             and vh.shape[-2] == (a.shape[-1] if full_matrices else k) \
             and np.allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, e, e) \
             and np.allclose(t(u) @ u, np.eye(u.shape[-1]), e, e) \
             and np.allclose(vh @ t(vh), np.eye(vh.shape[-2]), e, e) \
             and np.allclose(s, np.linalg.svd(a.astype(np.promote_types(a.dtype, np.float64)), compute_uv=False) if a.size else s, e, e)][-1]",
        ),
        Samples::List(|| without_complex128(full_or_not())),
    )
    .refuses(|| and_nan(invalid_rectangle())),
    OpEntry::new(
        "svdvals",
        &[Param::tensor("a")],
        |a| one(svdvals(a.tensor(0)?)),
        Reference::Property(
            "[e := 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-12, \
             out.shape == (*a.shape[:-2], min(a.shape[-2:])) and \
             np.allclose(out, np.linalg.svd(a.astype(np.promote_types(a.dtype, np.float64)), compute_uv=False) if a.size else out, e, e)][-1]",
        ),
        Samples::List(rectangles),
    )
    .refuses(|| and_nan(invalid_rectangle())),
    OpEntry::new(
        "eigh",
        &[Param::tensor("a")],
        |a| {
            let (values, vectors) = eigh(a.tensor(0)?)?;
            Ok(vec![values, vectors])
        },
        Reference::Property(
            "[e := 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-12, w := out[0], v := out[1], \
             t := lambda m: np.conj(np.swapaxes(m, -1, -2)), \
             np.allclose(w, np.linalg.eigvalsh(a.astype(np.promote_types(a.dtype, np.float64))), e, e) \
             and np.allclose((v * w[..., None, :]) @ t(v), a, e, e) \
             and np.allclose(t(v) @ v, np.eye(a.shape[-1]), e, e)][-1]",
        ),
        Samples::List(|| without_complex128(symmetric())),
    )
    .refuses(|| and_nan(invalid_square())),
    OpEntry::new(
        "eigvalsh",
        &[Param::tensor("a")],
        |a| one(eigvalsh(a.tensor(0)?)),
        Reference::Property(
            "[e := 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-12, \
             np.allclose(out, np.linalg.eigvalsh(a.astype(np.promote_types(a.dtype, np.float64))), e, e)][-1]",
        ),
        Samples::List(symmetric),
    )
    .refuses(|| and_nan(invalid_square())),
];
