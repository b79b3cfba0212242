//! Half-precision products: blocks are widened to `f32`, summed over the whole depth there, and rounded once.

use super::mat::{Mat, MatMut};
use super::serial;
use crate::dtype::{Element, bf16, f16, single_from_f16};
use crate::multiversion;
use half::slice::HalfFloatSliceExt;
use std::mem::MaybeUninit;

/// A 16-bit float that widens to `f32` exactly.
pub(super) trait Half: Element {
    fn widen(self) -> f32;
    fn narrow(value: f32) -> Self;
    fn narrow_slice(from: &[f32], to: &mut [Self]);
}

impl Half for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        single_from_f16(self)
    }
    #[inline]
    fn narrow(value: f32) -> f16 {
        f16::from_f32(value)
    }
    #[inline]
    fn narrow_slice(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}

impl Half for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn narrow(value: f32) -> bf16 {
        let bits = value.to_bits();
        // Half to even; a NaN must keep a bit of its payload.
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        bf16::from_bits(if value.is_nan() { bits >> 16 | 0x40 } else { rounded } as u16)
    }
    #[inline]
    fn narrow_slice(from: &[f32], to: &mut [bf16]) {
        narrow_slice(from, to);
    }
}

multiversion! {
    fn narrow_slice[T: Half](from: &[f32], to: &mut [T]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = T::narrow(from);
        }
    }
}

multiversion! {
    fn widen_slice[T: Half](from: &[T], to: &mut [MaybeUninit<f32>]) {
        for (to, from) in to.iter_mut().zip(from) {
            to.write(from.widen());
        }
    }
}

/// `c = a @ b`, or `c += a @ b`.
pub(super) fn gemm<T: Half>(a: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool) {
    if a.rows.max(a.cols).max(b.cols) <= 16 {
        let [mut x, mut y, mut z] = [[MaybeUninit::uninit(); 16 * 16]; 3];
        by_blocks(a, b, c, accumulate, [16, 16, 16], [&mut x, &mut y, &mut z]);
    } else {
        large(a, b, c, accumulate);
    }
}

/// With 320 KiB of stack for the blocks, which fit the second level cache. A function of its own, so that small
/// products do not touch that much stack.
#[inline(never)]
#[allow(clippy::large_stack_arrays, reason = "every thread has it, and kernels do not allocate")]
fn large<T: Half>(a: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool) {
    let mut x = [MaybeUninit::uninit(); 128 * 256];
    let mut y = [MaybeUninit::uninit(); 256 * 128];
    let mut z = [MaybeUninit::uninit(); 128 * 128];
    by_blocks(a, b, c, accumulate, [128, 128, 256], [&mut x, &mut y, &mut z]);
}

/// The product by blocks of at most so many rows, columns and depth, in memory for a block of `a`, `b` and `c`.
fn by_blocks<T: Half>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    mut c: MatMut<'_, T>,
    accumulate: bool,
    [max_rows, max_cols, max_depth]: [usize; 3],
    [a_block, b_block, c_block]: [&mut [MaybeUninit<f32>]; 3],
) {
    for col in (0..c.cols).step_by(max_cols) {
        let cols = max_cols.min(c.cols - col);
        for row in (0..c.rows).step_by(max_rows) {
            let rows = max_rows.min(c.rows - row);
            let sums = zeros(&mut c_block[..rows * cols]);
            for start in (0..a.cols).step_by(max_depth) {
                let end = (start + max_depth).min(a.cols);
                let a = widen(a.block(row..row + rows, start..end), a_block);
                let b = widen(b.block(start..end, col..col + cols), b_block);
                serial::gemm::<f32, 16, 8, 4>(a, b, MatMut::row_major(sums, rows, cols), start > 0);
            }
            for (i, sums) in sums.chunks_exact_mut(cols).enumerate() {
                let mut c = c.reborrow().block(row + i..row + i + 1, col..col + cols);
                if accumulate {
                    sums.iter_mut().enumerate().for_each(|(j, sum)| *sum += c.get(0, j).widen());
                }
                if let Some(to) = c.row_mut(0) {
                    T::narrow_slice(sums, to);
                } else {
                    sums.iter().enumerate().for_each(|(j, &sum)| c.set(0, j, T::narrow(sum)));
                }
            }
        }
    }
}

fn zeros(block: &mut [MaybeUninit<f32>]) -> &mut [f32] {
    block.fill(MaybeUninit::new(0.0));
    // SAFETY: just filled.
    unsafe { block.assume_init_mut() }
}

/// Copies a matrix to `block`, widened, in the order that its strides prefer.
fn widen<'p, T: Half>(from: Mat<'_, T>, block: &'p mut [MaybeUninit<f32>]) -> Mat<'p, f32> {
    if from.row_stride == 1 && from.col_stride != 1 {
        return widen(from.transposed(), block).transposed();
    }
    let block = &mut block[..from.rows * from.cols];
    for (i, to) in block.chunks_exact_mut(from.cols).enumerate() {
        if let Some(from) = from.row(i) {
            widen_slice(from, to);
        } else {
            to.iter_mut().enumerate().for_each(|(j, to)| _ = to.write(from.get(i, j).widen()));
        }
    }
    // SAFETY: all rows of it were written.
    Mat::row_major(unsafe { block.assume_init_ref() }, from.rows, from.cols)
}
