//! The `gemm` crate behind one narrow function: packed, cache-blocked, one thread.

use super::mat::{Mat, MatMut};
use crate::Element;

/// A type the crate multiplies.
pub(super) trait Packed: Element {
    const ZERO: Self;
    const ONE: Self;
}

impl Packed for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
}

impl Packed for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}

/// `c = a @ b`, or `c += a @ b`. The shapes agree.
#[inline]
pub(super) fn gemm<T: Packed>(a: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool) {
    assert!(a.rows == c.rows && b.cols == c.cols && a.cols == b.rows, "shapes of a matrix product");
    // SAFETY: the matrices were checked against their slices when they were made, their shapes agree, and `T` is
    // one of the crate's types. It reads the matrices' elements only, and `c`'s only to accumulate.
    unsafe {
        gemm::gemm(
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
            gemm::Parallelism::None,
        );
    }
}
