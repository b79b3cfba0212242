//! The kernels of the `gemm` crates behind one narrow function: packed, cache-blocked, one thread.
//!
//! `gemm-f32` and `gemm-f64` are used directly: `gemm`, which selects between them, also compiles the complex kernels.

use super::mat::{Mat, MatMut};
use crate::Element;
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
}

impl Packed for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    #[inline]
    fn kernel() -> GemmKernel<f32> {
        gemm_f32::gemm::f32::get_gemm_fn()
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
