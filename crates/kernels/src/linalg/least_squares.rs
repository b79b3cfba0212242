//! Least squares: by QR while the rank is full, by singular values when it is not.

use super::LinalgError;
use super::work::*;
use crate::DType;
use crate::dispatch;
use crate::view::{View, ViewMut};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::householder;
use faer::linalg::matmul::matmul;
use faer::linalg::qr::col_pivoting::factor as qr_factor;
use faer::linalg::svd::{self as faer_svd, ComputeSvdVectors};
use faer::linalg::triangular_solve as tri;
use faer::linalg::{temp_mat_scratch, temp_mat_zeroed};
use faer::mat::AsMatMut;
use faer::{Accum, Conj, MatMut, MatRef, Par, Spec};

/// Bytes of scratch for [`lstsq`] with `m` by `n` matrices and `k` right-hand sides.
pub fn lstsq_scratch(dtype: DType, m: usize, n: usize, k: usize) -> usize {
    dispatch!(dtype, T in linalg => bytes(StackReq::all_of(&[
        temp_mat_scratch::<T>(m, n),
        temp_mat_scratch::<T>(m.max(n), k),
        StackReq::any_of(&[by_qr_need::<T>(m.max(n), m.min(n), k), by_svd_need::<T>(m, n, k)]),
    ])))
}

/// The `x` that minimises `‖a x - b‖`, and among those the shortest, for `a` of `[..., m, n]`, `b` of `[..., m, k]` and
/// `out` of `[..., n, k]`.
///
/// Singular values up to `rcond` times the largest count as zero; without it, up to the type's epsilon times the
/// larger dimension. The ranks found go to `rank` (`i64`, the shape of the batch). A matrix with NaN or infinity
/// gives NaN and rank 0.
pub fn lstsq(
    a: View<'_>,
    b: View<'_>,
    rcond: Option<f64>,
    out: ViewMut<'_>,
    rank: Option<ViewMut<'_>>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    assert_dtype(a.dtype(), &[b.dtype(), out.dtype()]);
    dispatch!(a.dtype(), T in linalg => lstsq_of::<T>(a, b, rcond, out, rank, scratch))
}

fn lstsq_of<T: Scalar>(
    a: View<'_>,
    b: View<'_>,
    rcond: Option<f64>,
    mut out: ViewMut<'_>,
    mut rank: Option<ViewMut<'_>>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    let (batches, m, n) = dims(a.shape());
    let k = dims(b.shape()).2;
    assert_eq!(dims(b.shape()), (batches, m, k), "a right-hand side per equation");
    assert_eq!(dims(out.shape()), (batches, n, k), "the shape of the solution");
    let rcond = rcond.unwrap_or(T::EPSILON * m.max(n) as f64);
    let (input, rhs) = (Matrices::<T>::new(a), Matrices::<T>::new(b));
    let out = out.slice::<T>();
    let mut ranks = rank.as_mut().map(ViewMut::slice::<i64>);
    let (mut matrix, stack) = temp_mat_zeroed::<T, _, _>(m, n, stack(scratch));
    let (mut x, stack) = temp_mat_zeroed::<T, _, _>(m.max(n), k, stack);
    let (mut matrix, mut x) = (matrix.as_mat_mut(), x.as_mat_mut());
    for batch in 0..batches {
        crate::pool::check_interrupt();
        let mut to = entry(out, batch, n, k);
        let finite = input.load(batch, matrix.as_mut());
        let mut found = 0;
        if finite {
            fill(x.as_mut(), T::from_f64(0.0));
            rhs.load(batch, x.as_mut().subrows_mut(0, m));
            let power = scale_to_unit(matrix.as_mut());
            found = if by_qr(matrix.as_ref(), x.as_mut(), rcond, stack) {
                m.min(n)
            } else {
                by_svd(matrix.as_ref(), x.as_mut(), rcond, stack)
                    .ok_or(LinalgError::NoConvergence { batch })?
            };
            copy(x.as_ref().subrows(0, n), to.as_mut());
            unscale(&mut out[batch * n * k..][..n * k], 1.0 / power);
        } else {
            fill(to, T::from_f64(f64::NAN));
        }
        if let Some(ranks) = &mut ranks {
            ranks[batch] = found as i64;
        }
    }
    Ok(())
}

fn by_qr_need<T: Scalar>(long: usize, short: usize, k: usize) -> StackReq {
    let block = qr_factor::recommended_block_size::<T>(long, short);
    StackReq::all_of(&[
        temp_mat_scratch::<T>(long, short),
        temp_mat_scratch::<T>(block, short),
        temp_mat_scratch::<T>(short, k),
        StackReq::new::<usize>(short),
        StackReq::new::<usize>(short),
        StackReq::any_of(&[
            qr_factor::qr_in_place_scratch::<usize, T>(long, short, block, Par::Seq, Spec::default()),
            householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(long, block, k),
            householder::apply_block_householder_sequence_transpose_on_the_left_in_place_scratch::<T>(
                long, block, k,
            ),
        ]),
    ])
}

/// Solves in place if the rank is full beyond doubt; otherwise leaves `x` alone and returns false.
///
/// A wide matrix is factorised by its adjoint, so that the solution is the shortest one.
fn by_qr<T: Scalar>(matrix: MatRef<'_, T>, mut x: MatMut<'_, T>, rcond: f64, stack: &mut MemStack) -> bool {
    let (m, n) = matrix.shape();
    let wide = n > m;
    let tall = if wide { matrix.transpose() } else { matrix };
    let (long, short) = tall.shape();
    let k = x.ncols();
    if short == 0 {
        fill(x, T::from_f64(0.0));
        return true;
    }
    let block = qr_factor::recommended_block_size::<T>(long, short);
    let (mut factors, stack) = temp_mat_zeroed::<T, _, _>(long, short, stack);
    let (mut coefficients, stack) = temp_mat_zeroed::<T, _, _>(block, short, stack);
    let (mut permuted, stack) = temp_mat_zeroed::<T, _, _>(short, k, stack);
    let (mut perm, stack) = stack.make_with(short, |_| 0usize);
    let (mut perm_inv, stack) = stack.make_with(short, |_| 0usize);
    let (mut factors, mut coefficients, mut permuted) =
        (factors.as_mat_mut(), coefficients.as_mat_mut(), permuted.as_mat_mut());
    copy(tall, factors.as_mut());
    if wide {
        conjugate(factors.as_mut());
    }
    qr_factor::qr_in_place(
        factors.as_mut(),
        coefficients.as_mut(),
        &mut perm,
        &mut perm_inv,
        Par::Seq,
        stack,
        Spec::default(),
    );
    // The diagonal of a pivoted R follows the singular values within a modest factor: near the limit, singular
    // values decide.
    let (first, last) = (factors[(0, 0)].modulus(), factors[(short - 1, short - 1)].modulus());
    let certain = 16.0 * short as f64 * rcond.max(T::EPSILON);
    if last.is_nan() || last <= certain * first {
        return false;
    }
    let r = factors.as_ref().subrows(0, short);
    if wide {
        for (i, &p) in perm.iter().enumerate() {
            for j in 0..k {
                permuted[(i, j)] = x[(p, j)];
            }
        }
        tri::solve_lower_triangular_in_place(r.adjoint(), permuted.as_mut(), Par::Seq);
        fill(x.as_mut(), T::from_f64(0.0));
        copy(permuted.as_ref(), x.as_mut().subrows_mut(0, short));
        householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
            factors.as_ref(),
            coefficients.as_ref(),
            Conj::No,
            x,
            Par::Seq,
            stack,
        );
    } else {
        householder::apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj(
            factors.as_ref(),
            coefficients.as_ref(),
            Conj::Yes,
            x.as_mut(),
            Par::Seq,
            stack,
        );
        copy(x.as_ref().subrows(0, short), permuted.as_mut());
        tri::solve_upper_triangular_in_place(r, permuted.as_mut(), Par::Seq);
        for (i, &p) in perm.iter().enumerate() {
            for j in 0..k {
                x[(p, j)] = permuted[(i, j)];
            }
        }
    }
    true
}

fn by_svd_need<T: Scalar>(m: usize, n: usize, k: usize) -> StackReq {
    let (short, thin) = (m.min(n), ComputeSvdVectors::Thin);
    StackReq::all_of(&[
        temp_mat_scratch::<T>(m, short),
        temp_mat_scratch::<T>(n, short),
        temp_mat_scratch::<T>(short, k),
        StackReq::new::<T>(short),
        faer_svd::svd_scratch::<T>(m, n, thin, thin, Par::Seq, Spec::default()),
    ])
}

/// The shortest solution, in place; returns the rank, or nothing if the singular values did not converge.
fn by_svd<T: Scalar>(
    matrix: MatRef<'_, T>,
    mut x: MatMut<'_, T>,
    rcond: f64,
    stack: &mut MemStack,
) -> Option<usize> {
    let (m, n) = matrix.shape();
    let (short, k, one) = (m.min(n), x.ncols(), T::from_f64(1.0));
    let (mut u, stack) = temp_mat_zeroed::<T, _, _>(m, short, stack);
    let (mut v, stack) = temp_mat_zeroed::<T, _, _>(n, short, stack);
    let (mut projected, stack) = temp_mat_zeroed::<T, _, _>(short, k, stack);
    let (mut s, stack) = stack.make_with(short, |_| T::from_f64(0.0));
    let (mut u, mut v, mut projected) = (u.as_mat_mut(), v.as_mat_mut(), projected.as_mat_mut());
    let values = DiagMut::from_slice_mut(&mut s);
    let (left, right) = (Some(u.as_mut()), Some(v.as_mut()));
    faer_svd::svd(matrix, values, left, right, Par::Seq, stack, Spec::default()).ok()?;
    let cutoff = rcond * s[0].parts().re;
    let rank = s.iter().take_while(|value| value.parts().re > cutoff).count();
    let (u, v) = (u.as_ref().subcols(0, rank), v.as_ref().subcols(0, rank));
    let mut projected = projected.as_mut().subrows_mut(0, rank);
    matmul(projected.as_mut(), Accum::Replace, u.adjoint(), x.as_ref().subrows(0, m), one, Par::Seq);
    for i in 0..rank {
        for j in 0..k {
            projected[(i, j)] = T::from_parts(projected[(i, j)].parts() / s[i].parts().re);
        }
    }
    matmul(x.as_mut().subrows_mut(0, n), Accum::Replace, v, projected.as_ref(), one, Par::Seq);
    Some(rank)
}
