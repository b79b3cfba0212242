//! The operations that the elementwise functions are made of.
//!
//! A function over [`Lane`] is written once and has three interpretations: as `f32` and as `f64` it is branch-free scalar
//! code that LLVM vectorises, and as a register of code under construction (in `taut-fused`) it emits instructions. Each
//! operation here rounds once and is defined bit by bit, so all three give the same result.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Sub};

/// A floating-point number of one of two precisions.
#[expect(
    clippy::return_self_not_must_use,
    reason = "each method is arithmetic; an unused result has no effect"
)]
pub trait Lane:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The result of a comparison.
    type Mask: Copy + BitAnd<Output = Self::Mask> + BitOr<Output = Self::Mask> + BitXor<Output = Self::Mask>;
    /// The unsigned integer of the same width.
    type Bits: LaneBits;

    /// Double precision; otherwise single.
    const DOUBLE: bool;
    /// The width of the fraction in bits.
    const FRACTION: u32 = if Self::DOUBLE { 52 } else { 23 };
    /// `0`.
    const ZERO: Self;
    /// `1`.
    const ONE: Self;
    /// `1 / 2`.
    const HALF: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// A quiet NaN.
    const NAN: Self;

    /// A constant, rounded to the precision.
    fn number(x: f64) -> Self;
    /// An integer constant.
    fn integer(x: u64) -> Self::Bits;

    /// A constant that depends on the precision.
    #[inline(always)]
    fn pick(single: f32, double: f64) -> Self {
        Self::number(if Self::DOUBLE { double } else { single as f64 })
    }

    /// `self * factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `self * factor - term`, rounded once.
    fn mul_sub(self, factor: Self, term: Self) -> Self;
    /// `term - self * factor`, rounded once.
    fn neg_mul_add(self, factor: Self, term: Self) -> Self;
    /// The square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// The nearest integer below.
    fn floor(self) -> Self;
    /// The nearest integer above.
    fn ceil(self) -> Self;
    /// The nearest integer, the even one if there are two.
    fn round(self) -> Self;
    /// The nearest integer toward zero.
    fn trunc(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// Minus the absolute value.
    fn neg_abs(self) -> Self;
    /// A number whose sign is positive, with the sign of another one.
    fn with_sign(self, sign: Self) -> Self;
    /// `self < other ? self : other`, so `other` if one is NaN.
    fn smaller(self, other: Self) -> Self;
    /// `self > other ? self : other`, so `other` if one is NaN.
    fn larger(self, other: Self) -> Self;

    /// `self == other`.
    fn equals(self, other: Self) -> Self::Mask;
    /// `self != other`, which holds if one is NaN.
    fn differs(self, other: Self) -> Self::Mask;
    /// `self < other`.
    fn less(self, other: Self) -> Self::Mask;
    /// `self <= other`.
    fn less_equal(self, other: Self) -> Self::Mask;
    /// `self > other`.
    fn greater(self, other: Self) -> Self::Mask;
    /// `self >= other`.
    fn greater_equal(self, other: Self) -> Self::Mask;
    /// Whether one of the two is NaN.
    fn unordered(self, other: Self) -> Self::Mask;
    /// Whether it is greater than zero and less than infinity.
    fn is_positive_finite(self) -> Self::Mask;

    /// `mask ? yes : no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// [`Lane::select`] between two constants. LLVM would evaluate what follows a select of floats for both of them.
    fn select_constant(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// The bits.
    fn bits(self) -> Self::Bits;
    /// The number with these bits.
    fn from_bits(bits: Self::Bits) -> Self;
    /// `(e, m)` with `self == 2^e * m` and `m` in `[sqrt(1/2), sqrt(2))`, of a positive normal number.
    fn split_exponent(self) -> (Self, Self);

    /// `self > most ? most : self`; NaN stays.
    #[inline(always)]
    fn at_most(self, most: f64) -> Self {
        Self::number(most).smaller(self)
    }

    /// `self < least ? least : self`; NaN stays.
    #[inline(always)]
    fn at_least(self, least: f64) -> Self {
        Self::number(least).larger(self)
    }
}

/// An unsigned integer as wide as a [`Lane`]. Arithmetic wraps.
pub trait LaneBits: Copy {
    /// The difference.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// Shifted left by a number of bits below the width.
    #[must_use]
    fn shift_left(self, by: u32) -> Self;
    /// Shifted right by a number of bits below the width.
    #[must_use]
    fn shift_right(self, by: u32) -> Self;
}

macro_rules! lane {
    ($t:ident, $bits:ident, $double:literal, $split_exponent:ident) => {
        impl LaneBits for $bits {
            #[inline(always)]
            fn minus(self, other: $bits) -> $bits {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn shift_left(self, by: u32) -> $bits {
                self << by
            }
            #[inline(always)]
            fn shift_right(self, by: u32) -> $bits {
                self >> by
            }
        }

        impl Lane for $t {
            type Mask = bool;
            type Bits = $bits;
            const DOUBLE: bool = $double;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const HALF: $t = 0.5;
            const INFINITY: $t = $t::INFINITY;
            const NAN: $t = $t::NAN;
            #[inline(always)]
            fn number(x: f64) -> $t {
                x as $t
            }
            #[inline(always)]
            fn integer(x: u64) -> $bits {
                x as $bits
            }
            #[inline(always)]
            fn mul_add(self, factor: $t, term: $t) -> $t {
                self.mul_add(factor, term)
            }
            #[inline(always)]
            fn mul_sub(self, factor: $t, term: $t) -> $t {
                self.mul_add(factor, -term)
            }
            #[inline(always)]
            fn neg_mul_add(self, factor: $t, term: $t) -> $t {
                self.mul_add(-factor, term)
            }
            #[inline(always)]
            fn sqrt(self) -> $t {
                self.sqrt()
            }
            #[inline(always)]
            fn floor(self) -> $t {
                self.floor()
            }
            #[inline(always)]
            fn ceil(self) -> $t {
                self.ceil()
            }
            #[inline(always)]
            fn round(self) -> $t {
                self.round_ties_even()
            }
            #[inline(always)]
            fn trunc(self) -> $t {
                self.trunc()
            }
            #[inline(always)]
            fn abs(self) -> $t {
                self.abs()
            }
            #[inline(always)]
            fn neg_abs(self) -> $t {
                -self.abs()
            }
            #[inline(always)]
            fn with_sign(self, sign: $t) -> $t {
                self.copysign(sign)
            }
            #[inline(always)]
            fn smaller(self, other: $t) -> $t {
                if self < other { self } else { other }
            }
            #[inline(always)]
            fn larger(self, other: $t) -> $t {
                if self > other { self } else { other }
            }
            #[inline(always)]
            fn equals(self, other: $t) -> bool {
                self == other
            }
            #[inline(always)]
            fn differs(self, other: $t) -> bool {
                self != other
            }
            #[inline(always)]
            fn less(self, other: $t) -> bool {
                self < other
            }
            #[inline(always)]
            fn less_equal(self, other: $t) -> bool {
                self <= other
            }
            #[inline(always)]
            fn greater(self, other: $t) -> bool {
                self > other
            }
            #[inline(always)]
            fn greater_equal(self, other: $t) -> bool {
                self >= other
            }
            #[inline(always)]
            fn unordered(self, other: $t) -> bool {
                self.is_nan() | other.is_nan()
            }
            #[inline(always)]
            fn is_positive_finite(self) -> bool {
                // One integer comparison; LLVM makes ten instructions of two float comparisons.
                self.to_bits().wrapping_sub(1) < $t::INFINITY.to_bits() - 1
            }
            #[inline(always)]
            fn select(mask: bool, yes: $t, no: $t) -> $t {
                if mask { yes } else { no }
            }
            #[inline(always)]
            fn select_constant(mask: bool, yes: $t, no: $t) -> $t {
                let (yes, no) = (yes.to_bits(), no.to_bits());
                $t::from_bits(no.wrapping_add(mask as $bits * yes.wrapping_sub(no)))
            }
            #[inline(always)]
            fn bits(self) -> $bits {
                self.to_bits()
            }
            #[inline(always)]
            fn from_bits(bits: $bits) -> $t {
                $t::from_bits(bits)
            }
            #[inline(always)]
            fn split_exponent(self) -> ($t, $t) {
                $split_exponent(self)
            }
        }
    };
}

lane!(f32, u32, false, split_single);
lane!(f64, u64, true, split_double);

#[inline(always)]
fn split_single(x: f32) -> (f32, f32) {
    const LOW: i32 = std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32;
    let bits = x.to_bits() as i32;
    let e = bits.wrapping_sub(LOW) >> 23;
    (e as f32, f32::from_bits(bits.wrapping_sub(e << 23) as u32))
}

#[inline(always)]
fn split_double(x: f64) -> (f64, f64) {
    const LOW: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    // Bias the exponent by 2048 so that an unsigned shift serves.
    let k = x.to_bits().wrapping_sub(LOW).wrapping_add(2048 << 52) >> 52;
    let e = f64::from_bits(0x4330_0000_0000_0000 | k) - (4503599627370496.0 + 2048.0);
    let m = f64::from_bits(x.to_bits().wrapping_sub(k.wrapping_sub(2048) << 52));
    (e, m)
}
