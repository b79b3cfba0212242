//! Every type's order as the order of unsigned integers.

use crate::dtype::{bf16, f16};
use crate::{Bool, Element};
use bytemuck::Pod;

/// An element with a total order: NaN is above everything, all NaNs are equal.
pub(crate) trait Sortable: Element {
    /// An unsigned integer of the element's size.
    type Bits: Pod + Ord + Send;
    /// How many bits [`key`](Sortable::key) uses.
    const WIDTH: u32;
    /// Ordered like the element; equal exactly for equal elements (so `-0.0` and `0.0` share one, and all NaNs).
    fn key(self) -> u64;
    /// Ordered like the element but one to one, up to the sign of NaN: `-0.0` comes before `0.0`.
    fn encode(self) -> Self::Bits;
    /// The element that [`encode`](Sortable::encode) made this of.
    fn decode(bits: Self::Bits) -> Self;
}

macro_rules! unsigned {
    ($($t:ty),*) => {$(
        impl Sortable for $t {
            type Bits = $t;
            const WIDTH: u32 = <$t>::BITS;
            #[inline(always)]
            fn key(self) -> u64 { self as u64 }
            #[inline(always)]
            fn encode(self) -> $t { self }
            #[inline(always)]
            fn decode(bits: $t) -> $t { bits }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

macro_rules! signed {
    ($($t:ty => $u:ty),*) => {$(
        impl Sortable for $t {
            type Bits = $u;
            const WIDTH: u32 = <$t>::BITS;
            #[inline(always)]
            fn key(self) -> u64 { self.encode() as u64 }
            #[inline(always)]
            fn encode(self) -> $u { (self as $u) ^ (1 << (<$u>::BITS - 1)) }
            #[inline(always)]
            fn decode(bits: $u) -> $t { (bits ^ (1 << (<$u>::BITS - 1))) as $t }
        }
    )*};
}
signed!(i8 => u8, i16 => u16, i32 => u32, i64 => u64);

macro_rules! float {
    ($($t:ty => $u:ty, $infinity:expr);*) => {$(
        impl Sortable for $t {
            type Bits = $u;
            const WIDTH: u32 = <$u>::BITS;
            #[inline(always)]
            fn key(self) -> u64 {
                const SIGN: $u = 1 << (<$u>::BITS - 1);
                let bits = self.to_bits();
                let bits = if bits == SIGN { 0 } else { bits };
                let bits = if bits & !SIGN > $infinity { !SIGN } else { bits };
                (if bits & SIGN == 0 { bits | SIGN } else { !bits }) as u64
            }
            #[inline(always)]
            fn encode(self) -> $u {
                const SIGN: $u = 1 << (<$u>::BITS - 1);
                let bits = self.to_bits();
                let bits = if bits & !SIGN > $infinity { bits & !SIGN } else { bits };
                if bits & SIGN == 0 { bits | SIGN } else { !bits }
            }
            #[inline(always)]
            fn decode(bits: $u) -> $t {
                const SIGN: $u = 1 << (<$u>::BITS - 1);
                <$t>::from_bits(if bits & SIGN == 0 { !bits } else { bits & !SIGN })
            }
        }
    )*};
}
float!(f16 => u16, 0x7c00; bf16 => u16, 0x7f80; f32 => u32, 0x7f80_0000; f64 => u64, 0x7ff0_0000_0000_0000);

impl Sortable for Bool {
    type Bits = u8;
    const WIDTH: u32 = 1;
    #[inline(always)]
    fn key(self) -> u64 {
        self.get() as u64
    }
    #[inline(always)]
    fn encode(self) -> u8 {
        self.get() as u8
    }
    #[inline(always)]
    fn decode(bits: u8) -> Bool {
        Bool(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_order() {
        let ordered =
            [f32::NEG_INFINITY, -1.0, -f32::MIN_POSITIVE, -1e-45, 0.0, 1e-45, 1.0, f32::INFINITY, f32::NAN];
        assert!(ordered.is_sorted_by(|a, b| a.key() < b.key() && a.encode() < b.encode()));
        assert_eq!((-0.0f32).key(), 0.0f32.key());
        assert!((-0.0f32).encode() < 0.0f32.encode());
        assert_eq!((-f32::NAN).key(), f32::NAN.key());
        assert!(f64::INFINITY.key() < (-f64::NAN).key());
        for v in ordered {
            assert_eq!(f32::decode(v.encode()).to_bits(), v.to_bits());
            assert_eq!(bf16::decode(bf16::from_f32(v).encode()).to_bits(), bf16::from_f32(v).to_bits());
        }
        assert_eq!(f64::decode((-0.0f64).encode()).to_bits(), (-0.0f64).to_bits());
        for bits in 0..=u16::MAX {
            let v = f16::from_bits(bits);
            let back = f16::decode(v.encode());
            assert!(back.to_bits() == bits || v.is_nan() && back.is_nan());
        }
    }

    #[test]
    fn integer_order() {
        for i in i8::MIN..i8::MAX {
            assert!(i.key() < (i + 1).key());
            assert_eq!(i8::decode(i.encode()), i);
        }
        assert!(i64::MIN.key() < i64::MAX.key());
        assert!(Bool(0).key() < Bool(7).key());
    }
}
