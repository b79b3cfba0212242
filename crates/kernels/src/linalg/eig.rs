//! Eigenvalues of general matrices, which are complex. One precision: others are converted.

use super::LinalgError;
use super::work::{Matrices, bytes, copy, entry, square_dims, stack};
use crate::dtype::Complex;
use crate::view::{View, ViewMut};
use faer::diag::DiagMut;
use faer::dyn_stack::StackReq;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::{temp_mat_scratch, temp_mat_zeroed};
use faer::mat::AsMatMut;
use faer::{MatMut, Par, Spec};

type C = Complex<f64>;

fn wanted(vectors: bool) -> ComputeEigenvectors {
    if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No }
}

/// Bytes of scratch for [`eig`] of `n` by `n` matrices.
pub fn eig_scratch(n: usize, vectors: bool) -> usize {
    if n == 0 {
        return 0;
    }
    bytes(StackReq::all_of(&[
        temp_mat_scratch::<C>(n, n),
        temp_mat_scratch::<C>(n, if vectors { n } else { 0 }),
        evd::evd_scratch::<C>(n, ComputeEigenvectors::No, wanted(vectors), Par::Seq, Spec::default()),
    ]))
}

/// Eigenvalues of `complex128` matrices, in no particular order, and, if requested, eigenvectors of length 1 as the columns of
/// `vectors`. A matrix with NaN or infinity is an error.
pub fn eig(
    a: View<'_>,
    mut values: ViewMut<'_>,
    mut vectors: Option<ViewMut<'_>>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    let (batches, n) = square_dims(a.shape());
    if n == 0 {
        return Ok(());
    }
    let input = Matrices::<C>::new(a);
    let values = &mut values.slice::<C>()[..batches * n];
    let mut vectors = vectors.as_mut().map(ViewMut::slice::<C>);
    let (mut work, stack) = temp_mat_zeroed::<C, _, _>(n, n, stack(scratch));
    let (mut basis, stack) = temp_mat_zeroed::<C, _, _>(n, if vectors.is_some() { n } else { 0 }, stack);
    let (mut work, mut basis) = (work.as_mat_mut(), basis.as_mat_mut());
    for batch in 0..batches {
        crate::pool::check_interrupt();
        input.load(batch, work.as_mut());
        let is_finite = |z: C| z.re.is_finite() && z.im.is_finite();
        if !(0..n).all(|i| (0..n).all(|j| is_finite(work[(i, j)]))) {
            return Err(LinalgError::NoConvergence { batch });
        }
        let to = DiagMut::from_slice_mut(&mut values[batch * n..][..n]);
        let right = vectors.is_some().then(|| basis.as_mut());
        evd::evd_cplx::<f64>(work.as_ref(), to, None, right, Par::Seq, stack, Spec::default())
            .map_err(|_| LinalgError::NoConvergence { batch })?;
        if let Some(vectors) = &mut vectors {
            normalize_columns(basis.as_mut());
            copy(basis.as_ref(), entry(vectors, batch, n, n));
        }
    }
    Ok(())
}

/// Divides each column by its length.
fn normalize_columns(mut matrix: MatMut<'_, C>) {
    for j in 0..matrix.ncols() {
        let length = (0..matrix.nrows()).map(|i| matrix[(i, j)].norm_sqr()).sum::<f64>().sqrt();
        if length > 0.0 {
            (0..matrix.nrows()).for_each(|i| matrix[(i, j)] /= length);
        }
    }
}
