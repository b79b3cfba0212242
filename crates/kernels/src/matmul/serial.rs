//! The choice between the packed and the unpacked products of `f32` and `f64`.

use super::mat::{Mat, MatMut};
use super::packed::{self, Packed};
use super::unpacked::{self, Lanes, Scalar};
use crate::simd::{self, Level};

/// `c = a @ b`, or `c += a @ b`.
#[inline]
pub(super) fn gemm<T: Packed + Scalar, const W: usize>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    c: MatMut<'_, T>,
    accumulate: bool,
) {
    let (a, b) = (a.simplified(), b.simplified());
    // Without a fused multiply-add in hardware, the unpacked products would call a function for each.
    if simd::level() == Level::Baseline && cfg!(target_arch = "x86_64") {
        return packed::gemm(a, b, c, accumulate);
    }
    match (c.rows, c.cols) {
        (_, 1) => row_times::<T, W>(b.transposed(), a.transposed(), c.transposed(), accumulate),
        (1, _) => row_times::<T, W>(a, b, c, accumulate),
        _ => matrix::<T, W>(a, b, c, accumulate),
    }
}

/// One row times a matrix.
fn row_times<T: Packed + Scalar, const W: usize>(
    x: Mat<'_, T>,
    b: Mat<'_, T>,
    mut c: MatMut<'_, T>,
    accumulate: bool,
) {
    let dots = x.col_stride == 1 && b.row_stride == 1;
    if dots && c.cols == 1 {
        let (x, y) = (x.row(0), b.transposed());
        let sum = unpacked::dot(Lanes::<W>, x.unwrap_or_default(), y.row(0).unwrap_or_default());
        c.set(0, 0, if accumulate { c.get(0, 0).plus(sum) } else { sum });
    } else if dots {
        unpacked::by_depth(Lanes::<W>, b.transposed(), x.transposed(), c.transposed(), accumulate);
    } else if b.col_stride == 1 {
        unpacked::row_times(x, b, c, accumulate);
    } else {
        packed::gemm(x, b, c, accumulate);
    }
}

fn matrix<T: Packed + Scalar, const W: usize>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    c: MatMut<'_, T>,
    accumulate: bool,
) {
    if a.rows * a.cols * b.cols > LIMIT.load(std::sync::atomic::Ordering::Relaxed) {
        return packed::gemm(a, b, c, accumulate);
    }
    // Lanes in use per vector.
    let filled = |len: usize| len as f32 / len.next_multiple_of(W) as f32;
    let columns = if b.col_stride == 1 { filled(b.cols) } else { 0.0 };
    let rows = if a.row_stride == 1 { filled(a.rows) } else { 0.0 };
    if columns > 0.0 && columns >= rows {
        unpacked::by_columns(Lanes::<W>, a, b, c, accumulate);
    } else if rows > 0.0 {
        unpacked::by_columns(Lanes::<W>, b.transposed(), a.transposed(), c.transposed(), accumulate);
    } else if a.col_stride == 1 && b.row_stride == 1 {
        unpacked::by_depth(Lanes::<W>, a, b, c, accumulate);
    } else {
        packed::gemm(a, b, c, accumulate);
    }
}

pub static LIMIT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(usize::MAX);
