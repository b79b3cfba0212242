//! Transposed copies of parts of a matrix, for products with an operand that is contiguous along the depth.
//!
//! The `gemm` crates pack such an operand element by element, from rows that are far apart. If their distance is a multiple of a
//! large power of two, the rows share a few sets of the first level cache, and packing takes longer than the product of up to a
//! few hundred columns. Here, blocks of 8 rows are transposed in registers.

use super::mat::Mat;
use super::packed::Packed;
use std::mem::MaybeUninit;

/// The rows of a panel: a multiple of the vectors of every instruction set.
pub(super) const PANEL_ROWS: usize = 48;

/// The greatest depth of a panel: as deep as the `gemm` crates sum before they add to the result.
pub(super) const PANEL_DEPTH: usize = 512;

/// Writes the transpose of a block of [`BLOCK`] rows and columns: the source and the distance of its rows, the destination and the
/// distance of its rows.
///
/// # Safety
/// The elements must be there to read and to write, and the processor must have the instructions.
pub(super) type TransposeBlock<T> = unsafe fn(*const T, isize, *mut T, usize);

/// The rows and columns of a block.
pub(super) const BLOCK: usize = 8;

/// Memory for the copy of a part of a matrix: 96 KiB of `f32`.
#[repr(align(64))]
pub(super) struct Panel<T>([MaybeUninit<T>; PANEL_ROWS * PANEL_DEPTH]);

impl<T: Packed> Panel<T> {
    pub(super) fn new() -> Panel<T> {
        Panel([MaybeUninit::uninit(); PANEL_ROWS * PANEL_DEPTH])
    }

    /// A copy of `a` with contiguous columns.
    ///
    /// # Safety
    /// The processor must have the instructions of `transpose_block`.
    ///
    /// # Panics
    /// If `a` has more rows or columns than a panel, or its rows are not contiguous.
    pub(super) unsafe fn copy(&mut self, a: Mat<'_, T>, transpose_block: TransposeBlock<T>) -> Mat<'_, T> {
        assert!(a.rows <= PANEL_ROWS && a.cols <= PANEL_DEPTH && a.col_stride == 1, "a panel of rows");
        let to = self.0.as_mut_ptr().cast::<T>();
        let (rows, cols) = (a.rows / BLOCK * BLOCK, a.cols / BLOCK * BLOCK);
        for row in (0..rows).step_by(BLOCK) {
            for col in (0..cols).step_by(BLOCK) {
                // SAFETY: the block is inside of both matrices, and the instructions are there by the caller's word.
                unsafe {
                    transpose_block(a.at(row, col), a.row_stride, to.add(col * PANEL_ROWS + row), PANEL_ROWS);
                };
            }
        }
        for row in 0..a.rows {
            for col in if row < rows { cols } else { 0 }..a.cols {
                self.0[col * PANEL_ROWS + row].write(a.get(row, col));
            }
        }
        // SAFETY: every element of the matrix was written just now, and it is borrowed from the panel.
        unsafe { Mat::from_start(self.0.as_ptr().cast(), a.rows, a.cols, 1, PANEL_ROWS as isize) }
    }
}

/// [`TransposeBlock`] for `f32`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn transpose_f32(from: *const f32, stride: isize, to: *mut f32, to_stride: usize) {
    use std::arch::x86_64::{
        __m256, _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
        _mm256_unpackhi_ps, _mm256_unpacklo_ps,
    };
    // SAFETY: the caller says that these elements can be read.
    let row = |i: isize| unsafe { _mm256_loadu_ps(from.offset(i * stride)) };
    let rows = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
    // Pairs, then fours of rows, within halves of vectors; then the halves.
    let low = |i: usize| _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    let high = |i: usize| _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    let fours = |a: __m256, b: __m256| [_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xee>(a, b)];
    let ([a, b], [c, d]) = (fours(low(0), low(2)), fours(high(0), high(2)));
    let ([e, f], [g, h]) = (fours(low(4), low(6)), fours(high(4), high(6)));
    let pairs = [(a, e), (b, f), (c, g), (d, h)];
    for (i, (upper, lower)) in pairs.into_iter().enumerate() {
        // SAFETY: the caller says that these elements can be written.
        unsafe {
            _mm256_storeu_ps(to.add(i * to_stride), _mm256_permute2f128_ps::<0x20>(upper, lower));
            _mm256_storeu_ps(to.add((i + 4) * to_stride), _mm256_permute2f128_ps::<0x31>(upper, lower));
        }
    }
}
