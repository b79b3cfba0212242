//! Half-precision products: panels are widened to `f32`, summed over the whole depth there, and rounded once.

use super::mat::{Mat, MatMut};
use super::packed;
use crate::dtype::{Element, bf16, f16};
use half::slice::HalfFloatSliceExt;

/// A 16-bit float that widens to `f32` exactly.
pub(super) trait Half: Element {
    fn widen(from: &[Self], to: &mut [f32]);
    fn widen_one(self) -> f32;
    fn narrow_one(value: f32) -> Self;
}

impl Half for f16 {
    #[inline]
    fn widen(from: &[f16], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }
    #[inline]
    fn widen_one(self) -> f32 {
        self.to_f32()
    }
    #[inline]
    fn narrow_one(value: f32) -> f16 {
        f16::from_f32(value)
    }
}

impl Half for bf16 {
    #[inline]
    fn widen(from: &[bf16], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.widen_one();
        }
    }
    #[inline]
    fn widen_one(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline]
    fn narrow_one(value: f32) -> bf16 {
        bf16::from_f32(value)
    }
}

/// Rows, columns and depth of a panel product. The three panels take 224 KiB of stack: they stay in the second
/// level cache, and every thread has that much.
const ROWS: usize = 64;
const COLS: usize = 128;
const DEPTH: usize = 256;

/// `c = a @ b`, or `c += a @ b`, a block at a time.
pub(super) fn gemm<T: Half>(a: Mat<'_, T>, b: Mat<'_, T>, mut c: MatMut<'_, T>, accumulate: bool) {
    let depth = a.cols;
    let mut a_panel = [0f32; ROWS * DEPTH];
    let mut b_panel = [0f32; DEPTH * COLS];
    let mut c_panel = [0f32; ROWS * COLS];
    for col in (0..c.cols).step_by(COLS) {
        let cols = COLS.min(c.cols - col);
        for row in (0..c.rows).step_by(ROWS) {
            let rows = ROWS.min(c.rows - row);
            for i in 0..rows {
                for j in 0..cols {
                    c_panel[i * cols + j] =
                        if accumulate { c.get(row + i, col + j).widen_one() } else { 0.0 };
                }
            }
            for start in (0..depth).step_by(DEPTH) {
                let end = (start + DEPTH).min(depth);
                let a_part = widen(a.block(row..row + rows, start..end), &mut a_panel);
                let b_part = widen(b.block(start..end, col..col + cols), &mut b_panel);
                packed::gemm(a_part, b_part, MatMut::row_major(&mut c_panel, rows, cols), true);
            }
            for i in 0..rows {
                for j in 0..cols {
                    c.set(row + i, col + j, T::narrow_one(c_panel[i * cols + j]));
                }
            }
        }
    }
}

/// Copies a block to `panel`, widened, in the order that its strides prefer.
fn widen<'p, T: Half>(block: Mat<'_, T>, panel: &'p mut [f32]) -> Mat<'p, f32> {
    if block.row_stride == 1 && block.col_stride != 1 {
        return widen(block.transposed(), panel).transposed();
    }
    for (i, to) in panel.chunks_exact_mut(block.cols.max(1)).take(block.rows).enumerate() {
        if let Some(from) = block.row(i) {
            T::widen(from, to);
        } else {
            for (j, to) in to.iter_mut().enumerate() {
                *to = block.get(i, j).widen_one();
            }
        }
    }
    Mat::row_major(panel, block.rows, block.cols)
}
