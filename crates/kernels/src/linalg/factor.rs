//! Orthogonal factorisations: QR, singular values, symmetric eigenvalues.

use super::LinalgError;
use super::work::*;
use crate::dispatch;
use crate::dtype::Complex;
use crate::view::{View, ViewMut};
use crate::{DType, Element};
use faer::dyn_stack::StackReq;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor as qr_factor;
use faer::linalg::svd::{self as faer_svd, ComputeSvdVectors};
use faer::linalg::{temp_mat_scratch, temp_mat_zeroed};
use faer::mat::AsMatMut;
use faer::{Conj, MatMut, MatRef, Par, Spec};

/// Bytes of scratch for [`qr`] of `m` by `n` matrices.
pub fn qr_scratch(dtype: DType, m: usize, n: usize, full: bool) -> usize {
    dispatch!(dtype, T in linalg => bytes({
        let (rank, block) = (m.min(n), qr_factor::recommended_block_size::<T>(m, n));
        let columns = if full { m } else { rank };
        StackReq::all_of(&[
            temp_mat_scratch::<T>(m, n),
            temp_mat_scratch::<T>(block, rank),
            temp_mat_scratch::<T>(m, columns),
            StackReq::any_of(&[
                qr_factor::qr_in_place_scratch::<T>(m, n, block, Par::Seq, Spec::default()),
                householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(m, block, columns),
            ]),
        ])
    }))
}

/// `a = q r` with orthonormal columns in `q` and an upper triangular `r`.
///
/// For `a` of `[..., m, n]` and `k = min(m, n)`: reduced, `q` is `[..., m, k]` and `r` is `[..., k, n]`; `full`, they
/// are `[..., m, m]` and `[..., m, n]`. The diagonal of `r` is real; its signs are not normalised. A matrix with NaN or
/// infinity gives NaN.
pub fn qr(a: View<'_>, full: bool, q: ViewMut<'_>, r: ViewMut<'_>, scratch: &mut [u8]) {
    assert_dtype(a.dtype(), &[q.dtype(), r.dtype()]);
    dispatch!(a.dtype(), T in linalg => qr_of::<T>(a, full, q, r, scratch));
}

fn qr_of<T: Scalar>(a: View<'_>, full: bool, mut q: ViewMut<'_>, mut r: ViewMut<'_>, scratch: &mut [u8]) {
    let (batches, m, n) = dims(a.shape());
    let (rank, block) = (m.min(n), qr_factor::recommended_block_size::<T>(m, n));
    let columns = if full { m } else { rank };
    assert_eq!(dims(q.shape()), (batches, m, columns), "the shape of q");
    assert_eq!(dims(r.shape()), (batches, columns, n), "the shape of r");
    let input = Matrices::<T>::new(a);
    let (q, r) = (q.slice::<T>(), r.slice::<T>());
    let (mut work, stack) = temp_mat_zeroed::<T, _, _>(m, n, stack(scratch));
    let (mut coefficients, stack) = temp_mat_zeroed::<T, _, _>(block, rank, stack);
    let (mut basis, stack) = temp_mat_zeroed::<T, _, _>(m, columns, stack);
    let (mut work, mut coefficients, mut basis) =
        (work.as_mat_mut(), coefficients.as_mat_mut(), basis.as_mat_mut());
    for batch in 0..batches {
        crate::pool::check_interrupt();
        let (mut to_q, mut to_r) = (entry(q, batch, m, columns), entry(r, batch, columns, n));
        if !input.load(batch, work.as_mut()) {
            fill(to_q.as_mut(), T::from_f64(f64::NAN));
            fill(to_r.as_mut(), T::from_f64(f64::NAN));
            continue;
        }
        let power = scale_to_unit(work.as_mut());
        qr_factor::qr_in_place(work.as_mut(), coefficients.as_mut(), Par::Seq, stack, Spec::default());
        for i in 0..columns {
            for j in 0..n {
                to_r[(i, j)] = if i <= j { work[(i, j)] } else { T::from_f64(0.0) };
            }
            if let Some(phase) = phase(work.as_ref(), i) {
                (i..n).for_each(|j| to_r[(i, j)] = T::from_parts(to_r[(i, j)].parts() * phase.conj()));
                to_r[(i, i)] = T::from_f64(work[(i, i)].modulus());
            }
        }
        unscale(&mut r[batch * columns * n..][..columns * n], power);
        fill_identity(basis.as_mut());
        householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
            work.as_ref().subcols(0, rank),
            coefficients.as_ref(),
            Conj::No,
            basis.as_mut(),
            Par::Seq,
            stack,
        );
        copy(basis.as_ref(), to_q.as_mut());
        for j in 0..rank {
            if let Some(phase) = phase(work.as_ref(), j) {
                (0..m).for_each(|i| to_q[(i, j)] = T::from_parts(to_q[(i, j)].parts() * phase));
            }
        }
    }
}

/// The phase of a diagonal element, if it is not real.
fn phase<T: Scalar>(r: MatRef<'_, T>, i: usize) -> Option<Complex<f64>> {
    if i >= r.nrows().min(r.ncols()) {
        return None;
    }
    let pivot = r[(i, i)].parts();
    (pivot.im != 0.0).then(|| pivot / r[(i, i)].modulus())
}

/// Which singular vectors [`svd`] computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvdVectors {
    /// None, only the values.
    None,
    /// As many as there are singular values.
    Thin,
    /// Complete orthonormal bases.
    Full,
}

impl SvdVectors {
    fn compute(self) -> ComputeSvdVectors {
        match self {
            SvdVectors::None => ComputeSvdVectors::No,
            SvdVectors::Thin => ComputeSvdVectors::Thin,
            SvdVectors::Full => ComputeSvdVectors::Full,
        }
    }
}

/// Bytes of scratch for [`svd`] of `m` by `n` matrices.
pub fn svd_scratch(dtype: DType, m: usize, n: usize, vectors: SvdVectors) -> usize {
    dispatch!(dtype, T in linalg => bytes(svd_need::<T>(m, n, vectors)))
}

fn svd_need<T: Scalar>(m: usize, n: usize, vectors: SvdVectors) -> StackReq {
    let left = match vectors {
        SvdVectors::None => 0,
        SvdVectors::Thin => m.min(n),
        SvdVectors::Full => m,
    };
    let what = vectors.compute();
    StackReq::all_of(&[
        temp_mat_scratch::<T>(m, n),
        temp_mat_scratch::<T>(m, left),
        temp_mat_scratch::<T>(m.min(n), 1),
        faer_svd::svd_scratch::<T>(m, n, what, what, Par::Seq, Spec::default()),
    ])
}

/// Singular values `s` in descending order and, if requested, `u` and `vh` with `a = u diag(s) vh`.
///
/// For `a` of `[..., m, n]` and `k = min(m, n)`: `s` is `[..., k]`; thin, `u` is `[..., m, k]` and `vh` is `[..., k, n]`;
/// full, they are `[..., m, m]` and `[..., n, n]`. The values have the real type. The shapes of the outputs select which. A matrix with NaN or infinity is an error.
pub fn svd(
    a: View<'_>,
    s: ViewMut<'_>,
    vectors: Option<(ViewMut<'_>, ViewMut<'_>)>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    dispatch!(a.dtype(), T in linalg => svd_of::<T>(a, s, vectors, scratch))
}

fn svd_of<T: Scalar>(
    a: View<'_>,
    mut s: ViewMut<'_>,
    mut vectors: Option<(ViewMut<'_>, ViewMut<'_>)>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    let (batches, m, n) = dims(a.shape());
    let k = m.min(n);
    let (mut left, mut right) = (0, 0);
    if let Some((u, vh)) = &vectors {
        assert_dtype(a.dtype(), &[u.dtype(), vh.dtype()]);
        (left, right) = (dims(u.shape()).2, dims(vh.shape()).1);
        assert!((left, right) == (k, k) || (left, right) == (m, n), "thin or full singular vectors");
        assert_eq!(dims(u.shape()), (batches, m, left), "the shape of u");
        assert_eq!(dims(vh.shape()), (batches, right, n), "the shape of vh");
    }
    let input = Matrices::<T>::new(a);
    let s = &mut s.slice::<T::Real>()[..batches * k];
    let mut vectors = vectors.as_mut().map(|(u, vh)| (u.slice::<T>(), vh.slice::<T>()));
    let (mut work, stack) = temp_mat_zeroed::<T, _, _>(m, n, stack(scratch));
    let (mut basis, stack) = temp_mat_zeroed::<T, _, _>(m, left, stack);
    let (mut values, stack) = temp_mat_zeroed::<T, _, _>(k, 1, stack);
    let (mut work, mut basis, mut values) = (work.as_mat_mut(), basis.as_mat_mut(), values.as_mat_mut());
    for batch in 0..batches {
        crate::pool::check_interrupt();
        if !input.load(batch, work.as_mut()) {
            return Err(LinalgError::NoConvergence { batch });
        }
        let power = scale_to_unit(work.as_mut());
        // A column-major v is a row-major vᵀ: the right vectors go where they belong. `faer` expects zeros in both
        // bases.
        fill(basis.as_mut(), T::from_f64(0.0));
        let (u, v) = match &mut vectors {
            None => (None, None),
            Some((_, vh)) => {
                let vh = &mut vh[batch * n * right..][..n * right];
                vh.fill(T::from_f64(0.0));
                (Some(basis.as_mut()), Some(MatMut::from_column_major_slice_mut(vh, n, right)))
            }
        };
        let to = values.as_mut().col_mut(0).as_diagonal_mut();
        faer_svd::svd(work.as_ref(), to, u, v, Par::Seq, stack, Spec::default())
            .map_err(|_| LinalgError::NoConvergence { batch })?;
        real_parts(values.as_ref(), power, &mut s[batch * k..][..k]);
        if let Some((u, vh)) = &mut vectors {
            copy(basis.as_ref(), entry(u, batch, m, left));
            conjugate(entry(vh, batch, right, n));
        }
    }
    Ok(())
}

/// Writes the values of a column, which are real, times `power`.
fn real_parts<T: Scalar>(column: MatRef<'_, T>, power: f64, to: &mut [T::Real]) {
    for (i, to) in to.iter_mut().enumerate() {
        *to = T::Real::from_f64(column[(i, 0)].parts().re * power);
    }
}

/// Bytes of scratch for [`eigh`] of `n` by `n` matrices.
pub fn eigh_scratch(dtype: DType, n: usize, vectors: bool) -> usize {
    if n == 0 {
        return 0;
    }
    let what = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    dispatch!(dtype, T in linalg => bytes(StackReq::all_of(&[
        temp_mat_scratch::<T>(n, n),
        temp_mat_scratch::<T>(n, if vectors { n } else { 0 }),
        temp_mat_scratch::<T>(n, 1),
        evd::self_adjoint_evd_scratch::<T>(n, what, Par::Seq, Spec::default()),
    ])))
}

/// Eigenvalues of symmetric (Hermitian) matrices in ascending order, of the real type, and, if requested, the eigenvectors as
/// the columns of `vectors`; only the lower triangle is read. A matrix with NaN or infinity is an error.
pub fn eigh(
    a: View<'_>,
    values: ViewMut<'_>,
    vectors: Option<ViewMut<'_>>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    dispatch!(a.dtype(), T in linalg => eigh_of::<T>(a, values, vectors, scratch))
}

fn eigh_of<T: Scalar>(
    a: View<'_>,
    mut values: ViewMut<'_>,
    mut vectors: Option<ViewMut<'_>>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    let (batches, n) = square_dims(a.shape());
    if let Some(vectors) = &vectors {
        assert_eq!(a.shape(), vectors.shape(), "the eigenvectors have the matrix's shape");
    }
    if n == 0 {
        return Ok(());
    }
    let input = Matrices::<T>::new(a);
    let values = &mut values.slice::<T::Real>()[..batches * n];
    let mut vectors = vectors.as_mut().map(ViewMut::slice::<T>);
    let (mut work, stack) = temp_mat_zeroed::<T, _, _>(n, n, stack(scratch));
    let (mut basis, stack) = temp_mat_zeroed::<T, _, _>(n, if vectors.is_some() { n } else { 0 }, stack);
    let (mut found, stack) = temp_mat_zeroed::<T, _, _>(n, 1, stack);
    let (mut work, mut basis, mut found) = (work.as_mat_mut(), basis.as_mat_mut(), found.as_mat_mut());
    for batch in 0..batches {
        crate::pool::check_interrupt();
        input.load(batch, work.as_mut());
        take_real_diagonal(work.as_mut());
        let mut finite = true;
        for j in 0..n {
            for i in 0..n {
                if i < j {
                    work[(i, j)] = T::from_f64(0.0);
                }
                finite &= work[(i, j)].is_finite();
            }
        }
        if !finite {
            return Err(LinalgError::NoConvergence { batch });
        }
        let power = scale_to_unit(work.as_mut());
        let to = found.as_mut().col_mut(0).as_diagonal_mut();
        let u = vectors.is_some().then(|| basis.as_mut());
        evd::self_adjoint_evd(work.as_ref(), to, u, Par::Seq, stack, Spec::default())
            .map_err(|_| LinalgError::NoConvergence { batch })?;
        real_parts(found.as_ref(), power, &mut values[batch * n..][..n]);
        if let Some(vectors) = &mut vectors {
            copy(basis.as_ref(), entry(vectors, batch, n, n));
        }
    }
    Ok(())
}
