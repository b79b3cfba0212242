//! The choice between the packed and the unpacked products of `f32` and `f64`.
//!
//! The limits are where the two were measured to change places (AVX2). The packed product is faster from
//! about 32x32x32 on; below, and for thin matrices, packing costs more than the product.

use super::mat::{Mat, MatMut};
use super::packed::{self, Packed};
use super::panels;
use super::unpacked::{self, Lanes, Scalar};
use crate::lanes::LaneElement;
use crate::simd::{self, Level};

/// `c = a @ b`, or `c += a @ b`. Tiles are `W` elements wide (64 bytes), `H` (half) or `Q` (a quarter).
#[inline]
pub(super) fn gemm<T: Packed + Scalar + LaneElement, const W: usize, const H: usize, const Q: usize>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    c: MatMut<'_, T>,
    accumulate: bool,
) {
    let (a, b) = (a.simplified(), b.simplified());
    if panels::applies(&a, &b, &c) {
        // SAFETY: `Packed::transpose_block` returns only what this processor has.
        return unsafe { panels::gemm(a, b, c, accumulate, T::transpose_block()) };
    }
    // Without a fused multiply-add in hardware, the unpacked products would call a function for each.
    if simd::level() == Level::Baseline && cfg!(target_arch = "x86_64") {
        return packed::gemm(a, b, c, accumulate);
    }
    match (c.rows, c.cols) {
        (_, 1) => row_times::<T, W, H, Q>(b.transposed(), a.transposed(), c.transposed(), accumulate),
        (1, _) => row_times::<T, W, H, Q>(a, b, c, accumulate),
        _ => matrix::<T, W, H, Q>(a, b, c, accumulate),
    }
}

/// One row times a matrix.
fn row_times<T: Packed + Scalar, const W: usize, const H: usize, const Q: usize>(
    x: Mat<'_, T>,
    b: Mat<'_, T>,
    mut c: MatMut<'_, T>,
    accumulate: bool,
) {
    let depth = b.rows;
    if x.col_stride == 1 && b.row_stride == 1 && (c.cols == 1 || depth >= 256) {
        let columns = b.transposed();
        if let (1, Some(x), Some(y)) = (c.cols, x.row(0), columns.row(0)) {
            let sum = unpacked::dot(Lanes::<W>, x, y);
            c.set(0, 0, if accumulate { c.get(0, 0).plus(sum) } else { sum });
        } else {
            unpacked::by_depth(Lanes::<W>, columns, x.transposed(), c.transposed(), accumulate);
        }
    } else if b.col_stride == 1 && b.cols <= W && depth > 2 {
        by_columns::<T, W, H, Q>(x, b, c, accumulate);
    } else if b.col_stride == 1 && depth >= 32 && depth * b.cols <= 64 << 10 {
        unpacked::row_times(Lanes::<W>, x, b, c, accumulate);
    } else {
        packed::gemm(x, b, c, accumulate);
    }
}

/// Matrices of at least two rows and columns.
fn matrix<T: Packed + Scalar, const W: usize, const H: usize, const Q: usize>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    c: MatMut<'_, T>,
    accumulate: bool,
) {
    let (m, n, k) = (c.rows, c.cols, a.cols);
    let tiny = m.saturating_mul(n).saturating_mul(k) <= 16 << 10;
    let columns = b.col_stride == 1 && (tiny || n <= W);
    let rows = a.row_stride == 1 && (tiny || n <= H || n <= W && m <= 4 * W || m <= W && b.col_stride != 1);
    // How well a side fills its tiles: m / ceil(m) > n / ceil(n).
    let rows_fit = m * n.next_multiple_of(W) > n * m.next_multiple_of(W);
    if k <= 2 {
        packed::gemm(a, b, c, accumulate);
    } else if rows && (rows_fit || !columns) {
        by_columns::<T, W, H, Q>(b.transposed(), a.transposed(), c.transposed(), accumulate);
    } else if columns {
        by_columns::<T, W, H, Q>(a, b, c, accumulate);
    } else if a.col_stride == 1 && b.row_stride == 1 && k >= 256 && (m <= 8 || n <= 4 || m <= 32 && n <= 32) {
        unpacked::by_depth(Lanes::<W>, a, b, c, accumulate);
    } else {
        packed::gemm(a, b, c, accumulate);
    }
}

/// Tiles no wider than they need be.
fn by_columns<T: Packed + Scalar, const W: usize, const H: usize, const Q: usize>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    c: MatMut<'_, T>,
    accumulate: bool,
) {
    if b.cols <= Q {
        unpacked::by_columns(Lanes::<Q>, a, b, c, accumulate);
    } else if b.cols <= H {
        unpacked::by_columns(Lanes::<H>, a, b, c, accumulate);
    } else {
        unpacked::by_columns(Lanes::<W>, a, b, c, accumulate);
    }
}
