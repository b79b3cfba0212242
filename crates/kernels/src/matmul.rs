//! Matrix products.

mod half;
mod mat;
mod packed;

pub use mat::{Mat, MatMut};

use crate::Element;
use crate::dtype::{bf16, f16};

/// An element type with a fast matrix product: the four floats.
pub trait GemmElement: Element + sealed::Gemm {}

impl<T: Element + sealed::Gemm> GemmElement for T {}

mod sealed {
    use super::*;

    pub trait Gemm: Sized {
        fn gemm(a: Mat<'_, Self>, b: Mat<'_, Self>, c: MatMut<'_, Self>, accumulate: bool);
    }

    macro_rules! gemm_element {
        ($($t:ty => $how:ident),*) => {$(
            impl Gemm for $t {
                #[inline]
                fn gemm(a: Mat<'_, $t>, b: Mat<'_, $t>, c: MatMut<'_, $t>, accumulate: bool) {
                    $how::gemm(a, b, c, accumulate);
                }
            }
        )*};
    }
    gemm_element!(f32 => packed, f64 => packed, f16 => half, bf16 => half);
}

/// `c = a @ b`, or `c += a @ b` if `accumulate`, on the calling thread, for any strides. Half precisions are
/// summed in `f32` and rounded once.
///
/// # Panics
/// If the shapes do not agree.
#[inline]
pub fn gemm<T: GemmElement>(a: Mat<'_, T>, b: Mat<'_, T>, c: MatMut<'_, T>, accumulate: bool) {
    assert!(
        a.rows() == c.rows() && b.cols() == c.cols() && a.cols() == b.rows(),
        "a matrix product of {}x{} and {}x{} into {}x{}",
        a.rows(),
        a.cols(),
        b.rows(),
        b.cols(),
        c.rows(),
        c.cols()
    );
    T::gemm(a, b, c, accumulate);
}

#[cfg(test)]
mod tests;
