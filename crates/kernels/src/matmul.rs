//! Matrix products.
//!
//! [`matmul`] multiplies stacks of matrices with all threads; [`gemm()`] multiplies two matrices on the calling thread,
//! for kernels that contain products. Operands of any strides are read in place. [`matmul_with_epilogue`] applies a function
//! to each block of a product while it is in cache, [`matmul_accumulate`] adds it to what is there.
//!
//! Large products of `f32` and `f64` go to the `gemm-f32` and `gemm-f64` crates (packed operands, blocks that fit the caches), small and
//! thin ones to kernels that do not pack, and those whose right operand is transposed to a kernel that packs only that one. Half precisions are converted to `f32` block by block; integers have a separate
//! kernel. The sum of an element is never split between threads, so results do not depend on their number.
//!
//! Those crates allocate packing buffers per thread: a buffer of the size of the second level cache, and up to
//! about 2 MiB while a product runs. It does not grow with the operands.

mod batched;
mod half;
mod integer;
mod mat;
pub(crate) mod packed;
mod panels;
mod serial;
mod transposing;
mod unpacked;

pub use batched::{adds_after_sum, matmul, matmul_accumulate, matmul_with_epilogue};
pub use mat::{Mat, MatMut};

use crate::Element;
use crate::dtype::{bf16, f16};

/// An element type that has a matrix product: all but booleans.
pub trait GemmElement: Element + sealed::Gemm {}

impl<T: Element + sealed::Gemm> GemmElement for T {}

mod sealed {
    use super::*;

    pub trait Gemm: Sized {
        const ZERO: Self;
        fn gemm(a: Mat<'_, Self>, b: Mat<'_, Self>, c: MatMut<'_, Self>, accumulate: bool);
    }

    macro_rules! gemm_element {
        ($($t:ty, $zero:expr => $gemm:expr;)*) => {$(
            impl Gemm for $t {
                const ZERO: $t = $zero;
                #[inline]
                fn gemm(a: Mat<'_, $t>, b: Mat<'_, $t>, c: MatMut<'_, $t>, accumulate: bool) {
                    $gemm(a, b, c, accumulate);
                }
            }
        )*};
    }
    gemm_element! {
        f32, 0.0 => serial::gemm::<f32, 16, 8, 4>;
        f64, 0.0 => serial::gemm::<f64, 8, 4, 2>;
        f16, f16::ZERO => half::gemm;
        bf16, bf16::ZERO => half::gemm;
        u8, 0 => integer::gemm::<u8, 64>;
        u16, 0 => integer::gemm::<u16, 32>;
        u32, 0 => integer::gemm::<u32, 16>;
        u64, 0 => integer::gemm::<u64, 8>;
        i8, 0 => integer::signed_gemm::<i8, u8, 64>;
        i16, 0 => integer::signed_gemm::<i16, u16, 32>;
        i32, 0 => integer::signed_gemm::<i32, u32, 16>;
        i64, 0 => integer::signed_gemm::<i64, u64, 8>;
    }
}

/// `c = a @ b`, or `c += a @ b` if `accumulate`, on the calling thread, for any strides. Half precisions are
/// summed in `f32` and rounded once; integers wrap.
///
/// # Panics
/// If the shapes do not agree.
#[inline]
pub fn gemm<T: GemmElement>(a: Mat<'_, T>, b: Mat<'_, T>, mut c: MatMut<'_, T>, accumulate: bool) {
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
    if c.rows() == 0 || c.cols() == 0 {
        return;
    }
    if a.cols() > 0 {
        T::gemm(a, b, c, accumulate);
    } else if !accumulate {
        c.fill(T::ZERO);
    }
}

#[cfg(test)]
mod tests;
