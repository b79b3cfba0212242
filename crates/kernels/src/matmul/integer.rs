//! Integer products, wrapping: blocks of the right operand are copied so that their rows are contiguous, and a
//! block product stays in registers.

use super::mat::{Mat, MatMut};
use super::unpacked::{self, Lanes, Scalar};
use crate::Element;

/// Columns of a copied block: whole tiles of the widest kind.
const COLS: usize = 64;
/// Rows of a copied block. At most 32 KiB with its columns.
const DEPTH: usize = 64;

/// [`gemm`] of signed integers, by the code for the unsigned ones: wrapping arithmetic does not depend on the sign.
pub(super) fn signed_gemm<S: Element, T: Scalar, const W: usize>(
    a: Mat<'_, S>,
    b: Mat<'_, S>,
    c: MatMut<'_, S>,
    accumulate: bool,
) {
    gemm::<T, W>(a.cast(), b.cast(), c.cast(), accumulate);
}

/// `c = a @ b`, or `c += a @ b`.
pub(super) fn gemm<T: Scalar, const W: usize>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    mut c: MatMut<'_, T>,
    accumulate: bool,
) {
    if b.col_stride == 1 && a.cols <= 2 * DEPTH {
        return unpacked::by_columns(Lanes::<W>, a, b, c, accumulate);
    }
    let mut panel = [T::ZERO; DEPTH * COLS];
    for col in (0..c.cols).step_by(COLS) {
        let cols = COLS.min(c.cols - col);
        for start in (0..a.cols).step_by(DEPTH) {
            let end = (start + DEPTH).min(a.cols);
            for (p, row) in panel.chunks_exact_mut(COLS).take(end - start).enumerate() {
                for (j, x) in row[..cols].iter_mut().enumerate() {
                    *x = b.get(start + p, col + j);
                }
            }
            unpacked::by_columns(
                Lanes::<W>,
                a.block(0..a.rows, start..end),
                Mat::new(&panel, 0, end - start, cols, COLS as isize, 1),
                c.reborrow().block(0..a.rows, col..col + cols),
                accumulate || start > 0,
            );
        }
    }
}
