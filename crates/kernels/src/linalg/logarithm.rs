//! The principal logarithm of matrices: Schur form, square roots until the matrix is near the identity, and a sum of fractions.

use super::LinalgError;
use super::work::{Matrices, bytes, entry, fill, fill_identity, square_dims, stack};
use crate::dtype::Complex;
use crate::view::{View, ViewMut};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::hessenberg;
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_right_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_right_in_place_with_conj as apply_reflections,
};
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::linalg::{temp_mat_scratch, temp_mat_zeroed};
use faer::mat::AsMatMut;
use faer::{Accum, Conj, MatMut, MatRef, Par, Spec};

type C = Complex<f64>;

const ZERO: C = C { re: 0.0, im: 0.0 };
const ONE: C = C { re: 1.0, im: 0.0 };

/// Nodes and weights of Gauss's rule with eight points for the integral of `x / (1 + t x)` over `t` from 0 to 1, which is `log(1 + x)`: exact
/// to the last digit for norms of `x` up to `NEAR`. Each node stands for itself and for 1 minus itself.
const RULE: [(f64, f64); 4] = [
    (0.019_855_071_751_231_884, 0.050_614_268_145_188_13),
    (0.101_666_761_293_186_64, 0.111_190_517_226_687_24),
    (0.237_233_795_041_835_5, 0.156_853_322_938_943_64),
    (0.408_282_678_752_175_1, 0.181_341_891_689_180_99),
];
const NEAR: f64 = 0.25;

/// More square roots than any finite matrix needs: each halves the exponents of its eigenvalues.
const MOST_ROOTS: usize = 128;

/// Steps of the QR iteration for one eigenvalue; a few are usual.
const MOST_STEPS: usize = 100;

fn hessenberg_need(n: usize) -> StackReq {
    let block = recommended_block_size::<C>(n - 1, n - 1);
    temp_mat_scratch::<C>(block, n - 1).and(
        hessenberg::hessenberg_in_place_scratch::<C>(n, block, Par::Seq, Spec::default())
            .or(apply_scratch::<C>(n - 1, block, n - 1)),
    )
}

/// Bytes of scratch for [`logm`] of `n` by `n` matrices.
pub fn logm_scratch(n: usize) -> usize {
    if n == 0 {
        return 0;
    }
    let square = temp_mat_scratch::<C>(n, n);
    bytes(StackReq::all_of(&[
        square,
        square,
        hessenberg_need(n).or(StackReq::all_of(&[square, square, square])),
    ]))
}

/// The principal logarithm of `complex128` matrices. A singular matrix, or one with NaN or infinity, is an error.
pub fn logm(a: View<'_>, mut out: ViewMut<'_>, scratch: &mut [u8]) -> Result<(), LinalgError> {
    let (batches, n) = square_dims(a.shape());
    if n == 0 {
        return Ok(());
    }
    let input = Matrices::<C>::new(a);
    let out = out.slice::<C>();
    let (mut work, stack) = temp_mat_zeroed::<C, _, _>(n, n, stack(scratch));
    let (mut basis, stack) = temp_mat_zeroed::<C, _, _>(n, n, stack);
    let (mut work, mut basis) = (work.as_mat_mut(), basis.as_mat_mut());
    for batch in 0..batches {
        crate::pool::check_interrupt();
        if !input.load(batch, work.as_mut()) {
            return Err(LinalgError::NoConvergence { batch });
        }
        if !schur_form(work.as_mut(), basis.as_mut(), stack) {
            return Err(LinalgError::NoConvergence { batch });
        }
        if (0..n).any(|i| work[(i, i)] == ZERO) {
            return Err(LinalgError::Singular { batch });
        }
        let (mut log, stack) = temp_mat_zeroed::<C, _, _>(n, n, stack);
        let mut log = log.as_mat_mut();
        if !triangular_log(work.as_mut(), log.as_mut(), stack) {
            return Err(LinalgError::NoConvergence { batch });
        }
        matmul(work.as_mut(), Accum::Replace, basis.as_ref(), log.as_ref(), ONE, Par::Seq);
        let to = entry(out, batch, n, n);
        matmul(to, Accum::Replace, work.as_ref(), basis.as_ref().adjoint(), ONE, Par::Seq);
    }
    Ok(())
}

/// Replaces `work` by the upper triangular `t` with `work = basis t basisᴴ`, and returns whether the iteration converged.
fn schur_form(mut work: MatMut<'_, C>, mut basis: MatMut<'_, C>, stack: &mut MemStack) -> bool {
    let n = work.nrows();
    let block = recommended_block_size::<C>(n - 1, n - 1);
    fill_identity(basis.as_mut());
    {
        let (mut reflections, stack) = temp_mat_zeroed::<C, _, _>(block, n - 1, stack);
        let mut reflections = reflections.as_mat_mut();
        hessenberg::hessenberg_in_place(
            work.as_mut(),
            reflections.as_mut(),
            Par::Seq,
            stack,
            Spec::default(),
        );
        apply_reflections(
            work.as_ref().submatrix(1, 0, n - 1, n - 1),
            reflections.as_ref(),
            Conj::No,
            basis.as_mut().submatrix_mut(1, 1, n - 1, n - 1),
            Par::Seq,
            stack,
        );
    }
    clear_below(work.as_mut());
    iterate(work, basis)
}

/// The QR iteration with single shifts: makes a Hessenberg matrix upper triangular by rotations, which are applied to the basis.
fn iterate(mut h: MatMut<'_, C>, mut basis: MatMut<'_, C>) -> bool {
    let n = h.nrows();
    let (mut last, mut steps) = (n - 1, 0);
    while last > 0 {
        crate::pool::check_interrupt();
        let first = active_block(h.as_mut(), last);
        if first == last {
            (last, steps) = (last - 1, 0);
            continue;
        }
        steps += 1;
        if steps > MOST_STEPS {
            return false;
        }
        // Now and then another shift, for matrices on which the usual one makes no progress.
        let shift = if steps % 10 == 0 {
            h[(last, last)] + h[(last, last - 1)].norm()
        } else {
            wilkinson_shift(h.as_ref(), last)
        };
        for k in first..last {
            let (x, y) = if k == first {
                (h[(k, k)] - shift, h[(k + 1, k)])
            } else {
                (h[(k, k - 1)], h[(k + 1, k - 1)])
            };
            let length = x.norm().hypot(y.norm());
            if length == 0.0 {
                continue;
            }
            let (c, s) = (x / length, y / length);
            for j in k.saturating_sub(1).max(first)..n {
                let (a, b) = (h[(k, j)], h[(k + 1, j)]);
                (h[(k, j)], h[(k + 1, j)]) = (c.conj() * a + s.conj() * b, c * b - s * a);
            }
            if k > first {
                h[(k + 1, k - 1)] = ZERO;
            }
            rotate_columns(h.as_mut(), (k + 2).min(last) + 1, k, c, s);
            rotate_columns(basis.as_mut(), n, k, c, s);
        }
    }
    true
}

/// The first row of the block that ends at `last` and has no negligible element below its diagonal; such an element is set to zero.
fn active_block(mut h: MatMut<'_, C>, last: usize) -> usize {
    for k in (1..=last).rev() {
        let near = h[(k - 1, k - 1)].norm() + h[(k, k)].norm();
        let small = if near > 0.0 { near * f64::EPSILON } else { f64::MIN_POSITIVE };
        if h[(k, k - 1)].norm() <= small {
            h[(k, k - 1)] = ZERO;
            return k;
        }
    }
    0
}

/// The eigenvalue of the 2 by 2 block that ends at `last` which is nearest to its last element.
fn wilkinson_shift(h: MatRef<'_, C>, last: usize) -> C {
    let (a, b, c, d) = (h[(last - 1, last - 1)], h[(last - 1, last)], h[(last, last - 1)], h[(last, last)]);
    let half = (a - d) * 0.5;
    let root = (half * half + b * c).sqrt();
    let (plus, minus) = (half + root, half - root);
    d + if plus.norm() <= minus.norm() { plus } else { minus }
}

/// Applies the inverse of a rotation of rows `k` and `k + 1` to these columns, in the first `rows` rows.
fn rotate_columns(mut matrix: MatMut<'_, C>, rows: usize, k: usize, c: C, s: C) {
    for i in 0..rows {
        let (a, b) = (matrix[(i, k)], matrix[(i, k + 1)]);
        (matrix[(i, k)], matrix[(i, k + 1)]) = (a * c + b * s, b * c.conj() - a * s.conj());
    }
}

/// Sets what lies below the first subdiagonal to zero.
fn clear_below(mut matrix: MatMut<'_, C>) {
    for j in 0..matrix.ncols() {
        for i in j + 2..matrix.nrows() {
            matrix[(i, j)] = ZERO;
        }
    }
}

/// The logarithm of an upper triangular matrix, which is overwritten; false if its square roots do not approach the identity.
fn triangular_log(mut matrix: MatMut<'_, C>, mut log: MatMut<'_, C>, stack: &mut MemStack) -> bool {
    let n = matrix.nrows();
    fill(log.as_mut(), ZERO);
    // The logarithms of the diagonal are known to the last digit.
    (0..n).for_each(|i| log[(i, i)] = (matrix[(i, i)] + ZERO).ln());
    let mut roots = 0;
    while distance_to_identity(matrix.as_ref()) > NEAR {
        if roots == MOST_ROOTS {
            return false;
        }
        take_square_root(matrix.as_mut());
        roots += 1;
    }
    (0..n).for_each(|i| matrix[(i, i)] -= ONE);
    let (mut shifted, stack) = temp_mat_zeroed::<C, _, _>(n, n, stack);
    let (mut term, _) = temp_mat_zeroed::<C, _, _>(n, n, stack);
    let (mut shifted, mut term) = (shifted.as_mat_mut(), term.as_mat_mut());
    let factor = (roots as f64).exp2();
    for (node, weight) in RULE.into_iter().flat_map(|(node, weight)| [(node, weight), (1.0 - node, weight)]) {
        crate::pool::check_interrupt();
        for j in 0..n {
            for i in 0..n {
                term[(i, j)] = matrix[(i, j)];
                shifted[(i, j)] = matrix[(i, j)] * node + if i == j { ONE } else { ZERO };
            }
        }
        solve_upper_triangular_in_place(shifted.as_ref(), term.as_mut(), Par::Seq);
        for j in 0..n {
            (0..j).for_each(|i| log[(i, j)] += term[(i, j)] * (weight * factor));
        }
    }
    true
}

/// The largest column sum of what differs from the identity, in an upper triangular matrix.
fn distance_to_identity(matrix: MatRef<'_, C>) -> f64 {
    let of_column =
        |j: usize| (0..=j).map(|i| (matrix[(i, j)] - if i == j { ONE } else { ZERO }).norm()).sum::<f64>();
    (0..matrix.ncols()).map(of_column).fold(0.0, |most, sum| if sum <= most { most } else { sum })
}

/// The principal square root of an upper triangular matrix, in place, column by column.
fn take_square_root(mut matrix: MatMut<'_, C>) {
    for j in 0..matrix.ncols() {
        crate::pool::check_interrupt();
        // A negative zero would put a negative number on the other side of the cut.
        matrix[(j, j)] = (matrix[(j, j)] + ZERO).sqrt();
        for i in (0..j).rev() {
            let inner = (i + 1..j).map(|k| matrix[(i, k)] * matrix[(k, j)]).sum::<C>();
            matrix[(i, j)] = (matrix[(i, j)] - inner) / (matrix[(i, i)] + matrix[(j, j)]);
        }
    }
}
