//! Floating-point elements and the type their sums are kept in.

use crate::dtype::{Element, bf16, f16, single_from_f16};
use crate::lanes::LaneElement;
use crate::matmul::GemmElement;
use half::slice::HalfFloatSliceExt;

/// What sums are kept in: `f32`, or `f64` for `f64`.
pub(crate) trait Sum:
    Real<Sum = Self> + GemmElement + LaneElement + std::ops::Mul<Output = Self>
{
    const ZERO: Self;
    /// `self * factor + summand`, rounded once.
    fn fused(self, factor: Self, summand: Self) -> Self;
    fn over(self, divisor: usize) -> Self;
}

macro_rules! sum {
    ($($t:ty),*) => {$(
        impl Sum for $t {
            const ZERO: $t = 0.0;
            #[inline(always)]
            fn fused(self, factor: $t, summand: $t) -> $t { self.mul_add(factor, summand) }
            #[inline(always)]
            fn over(self, divisor: usize) -> $t { self / divisor as $t }
        }
    )*};
}
sum!(f32, f64);

/// A floating-point element.
pub(crate) trait Real: Element {
    type Sum: Sum;
    /// Whether sums have the element's own type, so that outputs can be summed in place.
    const WIDE: bool;
    fn widen(self) -> Self::Sum;
    fn narrow(value: Self::Sum) -> Self;
    /// The elements as sums, if they have that type.
    fn as_sums(slice: &[Self]) -> Option<&[Self::Sum]>;
    /// As [`Real::as_sums`], for writing.
    fn as_sums_mut(slice: &mut [Self]) -> Option<&mut [Self::Sum]>;
    fn widen_slice(from: &[Self], to: &mut [Self::Sum]);
    fn narrow_slice(from: &[Self::Sum], to: &mut [Self]);
}

macro_rules! wide {
    ($($t:ty),*) => {$(
        impl Real for $t {
            type Sum = $t;
            const WIDE: bool = true;
            #[inline(always)]
            fn as_sums(slice: &[$t]) -> Option<&[$t]> { Some(slice) }
            #[inline(always)]
            fn as_sums_mut(slice: &mut [$t]) -> Option<&mut [$t]> { Some(slice) }
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(value: $t) -> $t { value }
            #[inline(always)]
            fn widen_slice(from: &[$t], to: &mut [$t]) { to.copy_from_slice(from); }
            #[inline(always)]
            fn narrow_slice(from: &[$t], to: &mut [$t]) { to.copy_from_slice(from); }
        }
    )*};
}
wide!(f32, f64);

impl Real for f16 {
    type Sum = f32;
    const WIDE: bool = false;
    #[inline(always)]
    fn as_sums(_: &[Self]) -> Option<&[f32]> {
        None
    }
    #[inline(always)]
    fn as_sums_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
    #[inline(always)]
    fn widen(self) -> f32 {
        single_from_f16(self)
    }
    #[inline(always)]
    fn narrow(value: f32) -> f16 {
        f16::from_f32(value)
    }
    #[inline(always)]
    fn widen_slice(from: &[f16], to: &mut [f32]) {
        from.convert_to_f32_slice(to);
    }
    #[inline(always)]
    fn narrow_slice(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }
}

impl Real for bf16 {
    type Sum = f32;
    const WIDE: bool = false;
    #[inline(always)]
    fn as_sums(_: &[Self]) -> Option<&[f32]> {
        None
    }
    #[inline(always)]
    fn as_sums_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn narrow(value: f32) -> bf16 {
        bf16::from_f32(value)
    }
    #[inline(always)]
    fn widen_slice(from: &[bf16], to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.widen();
        }
    }
    #[inline(always)]
    fn narrow_slice(from: &[f32], to: &mut [bf16]) {
        to.convert_from_f32_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widening_is_exact_for_every_half() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            let (a, b) = (half.widen(), brain.widen());
            assert!(a.to_bits() == half.to_f32().to_bits() || (a.is_nan() && half.is_nan()), "f16 {bits:#x}");
            assert!(
                b.to_bits() == brain.to_f32().to_bits() || (b.is_nan() && brain.is_nan()),
                "bf16 {bits:#x}"
            );
        }
    }
}
