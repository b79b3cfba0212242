//! The kernels of the `gemm` crates behind one narrow function: packed, cache-blocked, one thread.
//!
//! `gemm-f32` and `gemm-f64` are used directly: `gemm`, which selects between them, also compiles the complex kernels.

use super::mat::{Mat, MatMut};
use super::transposing::{PANEL_DEPTH, PANEL_ROWS, Panel, TransposeBlock};
use crate::Element;
#[cfg(target_arch = "x86_64")]
use crate::simd;
use gemm_common::Parallelism;

/// A kernel of the `gemm` crates: `dst = alpha * dst + beta * lhs @ rhs`, where a matrix is its first element, the stride
/// between columns and the stride between rows. It expects a `dst` whose columns are further apart than its rows, and no
/// negative strides in `dst` or between the columns of `lhs`.
type GemmKernel<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// An element type that the `gemm` crates multiply.
pub(crate) trait Packed: Element {
    const ZERO: Self;
    const ONE: Self;
    /// The kernel for this processor.
    fn kernel() -> GemmKernel<Self>;
    /// Transposes blocks in registers, where this processor can.
    fn transpose_block() -> Option<TransposeBlock<Self>> {
        None
    }
}

impl Packed for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    #[inline]
    fn kernel() -> GemmKernel<f32> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn transpose_block() -> Option<TransposeBlock<f32>> {
        (simd::level() > simd::Level::Baseline).then_some(super::transposing::transpose_f32)
    }
}

impl Packed for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    #[inline]
    fn kernel() -> GemmKernel<f64> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
}

/// `c = a @ b`, or `c += a @ b`. The shapes agree.
#[inline]
pub(crate) fn gemm<T: Packed>(a: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool) {
    assert!(a.rows == c.rows && b.cols == c.cols && a.cols == b.rows, "shapes of a matrix product");
    // The kernels are made for a column-major result: a row-major `c` is computed as `cᵀ = bᵀ @ aᵀ`.
    let (mut a, mut b, mut c) = if c.col_stride.abs() < c.row_stride.abs() {
        (b.transposed(), a.transposed(), c.transposed())
    } else {
        (a, b, c)
    };
    // An axis with a negative stride is walked from its other end, in both matrices that have it.
    if c.row_stride < 0 {
        (a, c) = (a.reversed_rows(), c.reversed_rows());
    }
    if c.col_stride < 0 {
        (b, c) = (b.transposed().reversed_rows().transposed(), c.transposed().reversed_rows().transposed());
    }
    if a.col_stride < 0 {
        (a, b) = (a.transposed().reversed_rows().transposed(), b.reversed_rows());
    }
    match panel_depth(&a, &c).zip(T::transpose_block()) {
        Some((depth, transpose_block)) => multiply_panels(a, b, c, accumulate, depth, transpose_block),
        None => multiply(a, b, c, accumulate),
    }
}

/// The depth of the parts in which the left operand is copied with contiguous columns, if that repays: it is contiguous along the
/// depth, and there are few columns to share the time of packing, or the distance of its rows makes packing slow.
///
/// The depth is that at which the `gemm` crates add to the result, so that the result is the same.
#[inline]
fn panel_depth<T: Packed>(a: &Mat<'_, T>, c: &MatMut<'_, T>) -> Option<usize> {
    let is_deep = a.col_stride == 1 && a.row_stride != 1 && c.row_stride == 1;
    // The crates have kernels of their own for small results and small depths.
    if !is_deep || a.cols < 16 || c.rows.min(c.cols) < 8 || c.rows * c.cols <= 256 {
        return None;
    }
    let shares_cache_sets = (a.row_stride * size_of::<T>() as isize) % 1024 == 0;
    if c.cols > 256 && !shares_cache_sets {
        return None;
    }
    let parts = a.cols.div_ceil(PANEL_DEPTH);
    let depth = if c.rows <= 64 && c.cols <= 64 { PANEL_DEPTH } else { a.cols.div_ceil(parts) };
    (!matches!(a.cols % depth, 1 | 2)).then_some(depth)
}

/// The product of oriented matrices, the left one of which is copied panel by panel.
#[inline(never)]
fn multiply_panels<T: Packed>(
    a: Mat<'_, T>,
    b: Mat<'_, T>,
    mut c: MatMut<'_, T>,
    accumulate: bool,
    depth: usize,
    transpose_block: TransposeBlock<T>,
) {
    let mut panel = Panel::new();
    for first in (0..a.cols).step_by(depth) {
        let depth = first..a.cols.min(first + depth);
        let b = b.block(depth.clone(), 0..b.cols);
        for row in (0..a.rows).step_by(PANEL_ROWS) {
            let rows = row..a.rows.min(row + PANEL_ROWS);
            // SAFETY: `Packed::transpose_block` returns only what this processor has.
            let a = unsafe { panel.copy(a.block(rows.clone(), depth.clone()), transpose_block) };
            multiply(a, b, c.reborrow().block(rows, 0..b.cols), accumulate || first > 0);
        }
    }
}

/// The product of oriented matrices.
#[inline]
fn multiply<T: Packed>(a: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool) {
    assert!(a.rows == c.rows && b.cols == c.cols && a.cols == b.rows, "shapes of a matrix product");
    // SAFETY: the matrices were checked against their slices when they were made, and their shapes agree. The kernel
    // reads the matrices' elements only, and those of `c` only to accumulate.
    unsafe {
        T::kernel()(
            c.rows,
            c.cols,
            a.cols,
            c.start,
            c.col_stride,
            c.row_stride,
            accumulate,
            a.start,
            a.col_stride,
            a.row_stride,
            b.start,
            b.col_stride,
            b.row_stride,
            if accumulate { T::ONE } else { T::ZERO },
            T::ONE,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
