//! The operations of integers, so that each elementwise operation is written once for all integer types.

use crate::dtype::Element;

/// An integer type. Arithmetic wraps.
pub(super) trait Int: Element + Ord {
    /// The unsigned type of the same size, for operations that do not depend on the sign.
    type Unsigned: Int;
    const ZERO: Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
    fn not(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_left(self, by: Self) -> Self;
    fn shift_right(self, by: Self) -> Self;
    fn floor_div(self, by: Self) -> Self;
    fn floor_mod(self, by: Self) -> Self;
    fn truncate_mod(self, by: Self) -> Self;
    fn pow(self, exponent: Self) -> Self;
}

macro_rules! int {
    ($($t:ident, $u:ident, $abs:expr, $sign:expr, $adjust:expr, $inverse:expr;)*) => {$(
        impl Int for $t {
            type Unsigned = $u;
            const ZERO: $t = 0;
            #[inline(always)]
            fn add(self, other: $t) -> $t { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: $t) -> $t { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: $t) -> $t { self.wrapping_mul(other) }
            #[inline(always)]
            fn abs(self) -> $t { let abs: fn($t) -> $t = $abs; abs(self) }
            #[inline(always)]
            fn sign(self) -> $t { let sign: fn($t) -> $t = $sign; sign(self) }
            #[inline(always)]
            fn not(self) -> $t { !self }
            #[inline(always)]
            fn and(self, other: $t) -> $t { self & other }
            #[inline(always)]
            fn or(self, other: $t) -> $t { self | other }
            #[inline(always)]
            fn xor(self, other: $t) -> $t { self ^ other }
            #[inline(always)]
            fn shift_left(self, by: $t) -> $t {
                // A negative distance is a huge one.
                if (by as $u) < $t::BITS as $u { self.wrapping_shl(by as u32) } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, by: $t) -> $t {
                let most = ($t::BITS - 1) as $u;
                // Beyond the width an unsigned value is zero; of a signed one the sign remains.
                let result = self.wrapping_shr(if (by as $u) > most { most } else { by as $u } as u32);
                if $t::MIN == 0 && (by as $u) > most { 0 } else { result }
            }
            #[inline(always)]
            fn floor_div(self, by: $t) -> $t {
                if by == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(by);
                if ($adjust)(self.wrapping_rem(by), by) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)]
            fn floor_mod(self, by: $t) -> $t {
                if by == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(by);
                if ($adjust)(rest, by) { rest.wrapping_add(by) } else { rest }
            }
            #[inline(always)]
            fn truncate_mod(self, by: $t) -> $t {
                if by == 0 { 0 } else { self.wrapping_rem(by) }
            }
            #[inline(always)]
            fn pow(self, exponent: $t) -> $t {
                let inverse: fn($t, $t) -> Option<$t> = $inverse;
                if let Some(result) = inverse(self, exponent) {
                    return result;
                }
                let (mut base, mut left, mut result) = (self, exponent, 1);
                while left != 0 {
                    if left & 1 != 0 {
                        result = base.wrapping_mul(result);
                    }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                result
            }
        }
    )*};
    (signed: $($t:ident $u:ident)*) => { int! {$(
        $t, $u, |x| x.wrapping_abs(), |x| x.signum(), |rest: $t, by: $t| rest != 0 && (rest < 0) != (by < 0),
        |base, exponent| (exponent < 0).then(|| match base {
            1 => 1,
            -1 if exponent & 1 != 0 => -1,
            -1 => 1,
            _ => 0,
        });
    )*} };
    (unsigned: $($t:ident)*) => { int! {$(
        $t, $t, |x| x, |x| (x != 0) as $t, |_: $t, _: $t| false, |_, _| None;
    )*} };
}
int!(signed: i8 u8 i16 u16 i32 u32 i64 u64);
int!(unsigned: u8 u16 u32 u64);
