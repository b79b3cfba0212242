//! What needs one triangular or LU factorisation: Cholesky, solving, inverse and determinants.

use super::LinalgError;
use super::work::*;
use crate::dispatch;
use crate::dtype::Complex;
use crate::view::{View, ViewMut};
use crate::{DType, Element};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::cholesky::llt;
use faer::linalg::lu::partial_pivoting as lu;
use faer::linalg::{temp_mat_scratch, temp_mat_zeroed, triangular_solve as tri};
use faer::mat::AsMatMut;
use faer::perm::PermRef;
use faer::{MatMut, MatRef, Par, Spec};

/// Bytes of scratch for [`cholesky`] of `n` by `n` matrices.
pub fn cholesky_scratch(dtype: DType, n: usize) -> usize {
    dispatch!(dtype, T in linalg => bytes(temp_mat_scratch::<T>(n, n).and(
        llt::factor::cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default()),
    )))
}

/// The lower triangular `L` with `a = L Lᴴ`; only the lower triangle of `a` is read, and the upper one of `out` is
/// zero.
pub fn cholesky(a: View<'_>, out: ViewMut<'_>, scratch: &mut [u8]) -> Result<(), LinalgError> {
    dispatch!(a.dtype(), T in linalg => cholesky_of::<T>(a, out, scratch))
}

fn cholesky_of<T: Scalar>(a: View<'_>, mut out: ViewMut<'_>, scratch: &mut [u8]) -> Result<(), LinalgError> {
    let (batches, n) = square_dims(a.shape());
    assert_eq!(a.shape(), out.shape(), "the factor has the matrix's shape");
    let input = Matrices::<T>::new(a);
    let out = out.slice::<T>();
    let (mut work, stack) = temp_mat_zeroed::<T, _, _>(n, n, stack(scratch));
    let mut work = work.as_mat_mut();
    for batch in 0..batches {
        crate::pool::check_interrupt();
        input.load(batch, work.as_mut());
        take_real_diagonal(work.as_mut());
        llt::factor::cholesky_in_place(
            work.as_mut(),
            llt::factor::LltRegularization::default(),
            Par::Seq,
            stack,
            Spec::default(),
        )
        .map_err(|_| LinalgError::NotPositiveDefinite { batch })?;
        let mut to = entry(out, batch, n, n);
        for i in 0..n {
            for j in 0..n {
                to[(i, j)] = if j <= i { work[(i, j)] } else { T::from_f64(0.0) };
            }
            // A pivot of infinity passes for positive, and so does NaN behind one.
            if !work[(i, i)].is_finite() {
                return Err(LinalgError::NotPositiveDefinite { batch });
            }
        }
    }
    Ok(())
}

const ZERO: Complex<f64> = Complex { re: 0.0, im: 0.0 };

/// 1, or -1 if the number of swaps is odd.
fn sign_of_swaps(odd: bool) -> Complex<f64> {
    Complex { re: if odd { -1.0 } else { 1.0 }, im: 0.0 }
}

/// An LU factorisation in the workspace.
struct Lu<'s, T> {
    factors: MatMut<'s, T>,
    perm: &'s mut [usize],
    perm_inv: &'s mut [usize],
}

fn lu_scratch<T: Scalar>(n: usize) -> StackReq {
    StackReq::all_of(&[
        temp_mat_scratch::<T>(n, n),
        StackReq::new::<usize>(n),
        StackReq::new::<usize>(n),
        lu::factor::lu_in_place_scratch::<usize, T>(n, n, Par::Seq, Spec::default()),
    ])
}

impl<T: Scalar> Lu<'_, T> {
    /// Factorises entry `batch` and returns whether rows were swapped an odd number of times.
    fn factor(&mut self, input: &Matrices<'_, T>, batch: usize, stack: &mut MemStack) -> bool {
        input.load(batch, self.factors.as_mut());
        let (info, _) = lu::factor::lu_in_place(
            self.factors.as_mut(),
            self.perm,
            self.perm_inv,
            Par::Seq,
            stack,
            Spec::default(),
        );
        info.transposition_count % 2 == 1
    }

    /// The pivots up to the first that cannot be divided by, which is reported as zero: `faer` multiplies by
    /// reciprocals, so what follows a vanishing pivot is not a number.
    fn pivots(&self) -> impl Iterator<Item = Complex<f64>> {
        let mut singular = false;
        (0..self.factors.nrows()).map_while(move |i| {
            if singular {
                return None;
            }
            let pivot = self.factors[(i, i)];
            singular = T::Real::from_f64(1.0 / pivot.modulus()).to_f64().is_infinite();
            Some(if singular { ZERO } else { pivot.parts() })
        })
    }

    fn check(&self, batch: usize) -> Result<PermRef<'_, usize>, LinalgError> {
        if self.pivots().any(|pivot| pivot == ZERO) {
            return Err(LinalgError::Singular { batch });
        }
        Ok(PermRef::new_checked(self.perm, self.perm_inv, self.perm.len()))
    }

    fn as_ref(&self) -> MatRef<'_, T> {
        self.factors.as_ref()
    }
}

/// Runs `$body` with `$lu` over fresh workspace and `$stack` the rest of the scratch.
macro_rules! with_lu {
    ($T:ty, $n:expr, $scratch:expr, |$lu:ident, $stack:ident| $body:expr) => {{
        let (mut factors, rest) = temp_mat_zeroed::<$T, _, _>($n, $n, stack($scratch));
        let (mut perm, rest) = rest.make_with($n, |_| 0usize);
        let (mut perm_inv, $stack) = rest.make_with($n, |_| 0usize);
        let mut $lu = Lu { factors: factors.as_mat_mut(), perm: &mut perm, perm_inv: &mut perm_inv };
        $body
    }};
}

/// Bytes of scratch for [`solve`] with `n` by `n` matrices and `k` right-hand sides.
pub fn solve_scratch(dtype: DType, n: usize, k: usize) -> usize {
    dispatch!(dtype, T in linalg => bytes(StackReq::all_of(&[
        lu_scratch::<T>(n),
        lu::solve::solve_in_place_scratch::<usize, T>(n, k, Par::Seq),
    ])))
}

/// The `x` with `a x = b`, for `a` of `[..., n, n]`, `b` and `out` of `[..., n, k]`.
pub fn solve(a: View<'_>, b: View<'_>, out: ViewMut<'_>, scratch: &mut [u8]) -> Result<(), LinalgError> {
    dispatch!(a.dtype(), T in linalg => solve_of::<T>(a, b, out, scratch))
}

fn solve_of<T: Scalar>(
    a: View<'_>,
    b: View<'_>,
    mut out: ViewMut<'_>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    let (batches, n) = square_dims(a.shape());
    let k = right_hand_sides(&a, &b, n);
    assert_eq!(b.shape(), out.shape(), "the solution has the right-hand side's shape");
    let (input, rhs) = (Matrices::<T>::new(a), Matrices::<T>::new(b));
    let out = out.slice::<T>();
    with_lu!(T, n, scratch, |lu, stack| {
        for batch in 0..batches {
            crate::pool::check_interrupt();
            lu.factor(&input, batch, stack);
            let perm = lu.check(batch)?;
            let mut x = entry(out, batch, n, k);
            rhs.load(batch, x.as_mut());
            lu::solve::solve_in_place(lu.as_ref(), lu.as_ref(), perm, x, Par::Seq, stack);
        }
        Ok(())
    })
}

fn right_hand_sides(a: &View<'_>, b: &View<'_>, rows: usize) -> usize {
    let (_, m, k) = dims(b.shape());
    let batch = a.shape().len() - 2;
    assert_eq!(m, rows, "the right-hand side has a row per equation");
    assert_eq!(a.shape()[..batch], b.shape()[..b.shape().len() - 2], "one batch");
    k
}

/// Bytes of scratch for [`inv`] of `n` by `n` matrices.
pub fn inv_scratch(dtype: DType, n: usize) -> usize {
    dispatch!(dtype, T in linalg => bytes(StackReq::all_of(&[
        lu_scratch::<T>(n),
        lu::inverse::inverse_scratch::<usize, T>(n, Par::Seq),
    ])))
}

/// The inverse.
pub fn inv(a: View<'_>, out: ViewMut<'_>, scratch: &mut [u8]) -> Result<(), LinalgError> {
    dispatch!(a.dtype(), T in linalg => inv_of::<T>(a, out, scratch))
}

fn inv_of<T: Scalar>(a: View<'_>, mut out: ViewMut<'_>, scratch: &mut [u8]) -> Result<(), LinalgError> {
    let (batches, n) = square_dims(a.shape());
    assert_eq!(a.shape(), out.shape(), "the inverse has the matrix's shape");
    let input = Matrices::<T>::new(a);
    let out = out.slice::<T>();
    with_lu!(T, n, scratch, |lu, stack| {
        for batch in 0..batches {
            crate::pool::check_interrupt();
            lu.factor(&input, batch, stack);
            let perm = lu.check(batch)?;
            let to = entry(out, batch, n, n);
            lu::inverse::inverse(to, lu.as_ref(), lu.as_ref(), perm, Par::Seq, stack);
        }
        Ok(())
    })
}

/// Bytes of scratch for [`det`] of `n` by `n` matrices.
pub fn det_scratch(dtype: DType, n: usize) -> usize {
    dispatch!(dtype, T in linalg => bytes(lu_scratch::<T>(n)))
}

/// The determinant, zero if the matrix is singular; `out` has the shape of the batch.
pub fn det(a: View<'_>, out: ViewMut<'_>, scratch: &mut [u8]) {
    dispatch!(a.dtype(), T in linalg => det_of::<T>(a, out, scratch));
}

fn det_of<T: Scalar>(a: View<'_>, mut out: ViewMut<'_>, scratch: &mut [u8]) {
    let (batches, n) = square_dims(a.shape());
    let input = Matrices::<T>::new(a);
    let out = &mut out.slice::<T>()[..batches];
    with_lu!(T, n, scratch, |lu, stack| for (batch, to) in out.iter_mut().enumerate() {
        crate::pool::check_interrupt();
        let odd = lu.factor(&input, batch, stack);
        // The exponent is kept apart, so that no partial product overflows or vanishes.
        let (mut mantissa, mut exponent) = (sign_of_swaps(odd), 0i64);
        for pivot in lu.pivots() {
            let (pivot, own) = split_complex(pivot);
            let (m, e) = split_complex(mantissa * pivot);
            mantissa = m;
            exponent += e + own;
        }
        let Complex { re, im } = mantissa;
        *to = T::from_parts(Complex { re: scale(re, exponent), im: scale(im, exponent) });
    });
}

/// `z` as `m * 2^e`, with the larger part of `m` as [`split`] has it.
fn split_complex(z: Complex<f64>) -> (Complex<f64>, i64) {
    let exponent = split(z.re.abs().max(z.im.abs())).1;
    (Complex { re: scale(z.re, -exponent), im: scale(z.im, -exponent) }, exponent)
}

/// `x` as `m * 2^e` with `1 <= |m| < 2`; zero, infinity, NaN as they are.
fn split(x: f64) -> (f64, i64) {
    const MANTISSA: u64 = 0x800f_ffff_ffff_ffff;
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let (x, bias) = if x.is_subnormal() { (x * (1u64 << 54) as f64, 54) } else { (x, 0) };
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as i64 - 1023;
    (f64::from_bits(x.to_bits() & MANTISSA | 1023 << 52), exponent - bias)
}

/// `m * 2^e`, rounded once.
fn scale(m: f64, e: i64) -> f64 {
    let power = |e: i64| f64::from_bits(((e + 1023) as u64) << 52);
    match e {
        -1022..=1023 => m * power(e),
        1024.. => m * power(1023) * power((e - 1023).min(1023)),
        _ => m * power((e + 1022).max(-1022)) * power(-1022),
    }
}

/// Bytes of scratch for [`slogdet`] of `n` by `n` matrices.
pub fn slogdet_scratch(dtype: DType, n: usize) -> usize {
    det_scratch(dtype, n)
}

/// The sign of the determinant (of a complex matrix, its phase; 0 if singular) and the logarithm of its absolute value (then
/// -inf), of the real type; both outputs have the shape of the batch.
pub fn slogdet(a: View<'_>, sign: ViewMut<'_>, log_abs: ViewMut<'_>, scratch: &mut [u8]) {
    assert_dtype(a.dtype(), &[sign.dtype()]);
    dispatch!(a.dtype(), T in linalg => slogdet_of::<T>(a, sign, log_abs, scratch));
}

fn slogdet_of<T: Scalar>(a: View<'_>, mut sign: ViewMut<'_>, mut log_abs: ViewMut<'_>, scratch: &mut [u8]) {
    let (batches, n) = square_dims(a.shape());
    let input = Matrices::<T>::new(a);
    let (sign, log_abs) = (&mut sign.slice::<T>()[..batches], &mut log_abs.slice::<T::Real>()[..batches]);
    with_lu!(T, n, scratch, |lu, stack| for batch in 0..batches {
        crate::pool::check_interrupt();
        let odd = lu.factor(&input, batch, stack);
        let (mut phase, mut total) = (sign_of_swaps(odd), 0.0);
        for pivot in lu.pivots() {
            phase *= if pivot == ZERO { ZERO } else { direction(pivot) };
            total += pivot.modulus().ln();
        }
        sign[batch] = T::from_parts(phase);
        log_abs[batch] = T::Real::from_f64(total);
    });
}

/// The number of absolute value 1 with the phase of `z`.
fn direction(z: Complex<f64>) -> Complex<f64> {
    if z.im == 0.0 { Complex { re: z.re.signum(), im: 0.0 } } else { z / z.modulus() }
}

/// Bytes of scratch for [`triangular_solve`] with `n` by `n` matrices.
pub fn triangular_solve_scratch(dtype: DType, n: usize) -> usize {
    dispatch!(dtype, T in linalg => bytes(temp_mat_scratch::<T>(n, n)))
}

/// The `x` with `a x = b` (or `aᴴ x = b`), for a triangular `a` of `[..., n, n]`, `b` and `out` of `[..., n, k]`.
///
/// `lower` says which triangle of `a` is read (before the adjoint is taken); with `unit` its diagonal counts as ones.
pub fn triangular_solve(
    a: View<'_>,
    b: View<'_>,
    lower: bool,
    unit: bool,
    adjoint: bool,
    out: ViewMut<'_>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    dispatch!(a.dtype(), T in linalg => triangular_of::<T>(a, b, lower, unit, adjoint, out, scratch))
}

fn triangular_of<T: Scalar>(
    a: View<'_>,
    b: View<'_>,
    lower: bool,
    unit: bool,
    adjoint: bool,
    mut out: ViewMut<'_>,
    scratch: &mut [u8],
) -> Result<(), LinalgError> {
    let (batches, n) = square_dims(a.shape());
    let k = right_hand_sides(&a, &b, n);
    assert_eq!(b.shape(), out.shape(), "the solution has the right-hand side's shape");
    let (input, rhs) = (Matrices::<T>::new(a), Matrices::<T>::new(b));
    let out = out.slice::<T>();
    let (mut work, _) = temp_mat_zeroed::<T, _, _>(n, n, stack(scratch));
    let mut work = work.as_mat_mut();
    for batch in 0..batches {
        crate::pool::check_interrupt();
        input.load(batch, work.as_mut());
        if !unit && (0..n).any(|i| work[(i, i)].parts() == ZERO) {
            return Err(LinalgError::Singular { batch });
        }
        let mut x = entry(out, batch, n, k);
        rhs.load(batch, x.as_mut());
        if adjoint {
            conjugate(work.as_mut());
        }
        let matrix = if adjoint { work.as_ref().transpose() } else { work.as_ref() };
        match (lower != adjoint, unit) {
            (true, false) => tri::solve_lower_triangular_in_place(matrix, x, Par::Seq),
            (true, true) => tri::solve_unit_lower_triangular_in_place(matrix, x, Par::Seq),
            (false, false) => tri::solve_upper_triangular_in_place(matrix, x, Par::Seq),
            (false, true) => tri::solve_unit_upper_triangular_in_place(matrix, x, Par::Seq),
        }
    }
    Ok(())
}
