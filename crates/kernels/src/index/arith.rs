//! The arithmetic that scattering and segment reductions need, for every number type.

use crate::Element;
use crate::dtype::{bf16, f16};

/// Numbers that can be combined in place. Integers wrap; a NaN operand of `max` or `min` is the result.
pub(crate) trait Arith: Element {
    const ZERO: Self;
    const ONE: Self;
    /// The lowest finite value.
    const LOWEST: Self;
    /// The highest finite value.
    const HIGHEST: Self;
    /// What sums of this type are kept in until the last rounding.
    type Wide: Arith;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    /// Divided by a count that is not zero; integers truncate toward zero.
    fn share(self, count: u64) -> Self;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Arith for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            type Wide = $t;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(wide: $t) -> $t { wide }
            #[inline(always)]
            fn add(self, other: $t) -> $t { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: $t) -> $t { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: $t) -> $t { self.wrapping_mul(other) }
            #[inline(always)]
            fn max(self, other: $t) -> $t { Ord::max(self, other) }
            #[inline(always)]
            fn min(self, other: $t) -> $t { Ord::min(self, other) }
            #[inline(always)]
            fn share(self, count: u64) -> $t { (self as i128 / count as i128) as $t }
        }
    )*};
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Arith for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            type Wide = $t;
            #[inline(always)]
            fn widen(self) -> $t { self }
            #[inline(always)]
            fn narrow(wide: $t) -> $t { wide }
            #[inline(always)]
            fn add(self, other: $t) -> $t { self + other }
            #[inline(always)]
            fn sub(self, other: $t) -> $t { self - other }
            #[inline(always)]
            fn mul(self, other: $t) -> $t { self * other }
            #[inline(always)]
            fn max(self, other: $t) -> $t { if self > other || self.is_nan() { self } else { other } }
            #[inline(always)]
            fn min(self, other: $t) -> $t { if self < other || self.is_nan() { self } else { other } }
            #[inline(always)]
            fn share(self, count: u64) -> $t { self / count as $t }
        }
    )*};
}
floats!(f32, f64);

macro_rules! halves {
    ($($t:ty),*) => {$(
        impl Arith for $t {
            const ZERO: Self = <$t>::ZERO;
            const ONE: Self = <$t>::ONE;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            type Wide = f32;
            #[inline(always)]
            fn widen(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn narrow(wide: f32) -> $t { <$t>::from_f32(wide) }
            #[inline(always)]
            fn add(self, other: $t) -> $t { Self::narrow(self.to_f32() + other.to_f32()) }
            #[inline(always)]
            fn sub(self, other: $t) -> $t { Self::narrow(self.to_f32() - other.to_f32()) }
            #[inline(always)]
            fn mul(self, other: $t) -> $t { Self::narrow(self.to_f32() * other.to_f32()) }
            #[inline(always)]
            fn max(self, other: $t) -> $t { if self > other || self.is_nan() { self } else { other } }
            #[inline(always)]
            fn min(self, other: $t) -> $t { if self < other || self.is_nan() { self } else { other } }
            #[inline(always)]
            fn share(self, count: u64) -> $t { Self::narrow(self.to_f32() / count as f32) }
        }
    )*};
}
halves!(f16, bf16);
