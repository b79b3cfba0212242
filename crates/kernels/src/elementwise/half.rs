//! Half-precision tiles, widened to `f32` and narrowed again.

use crate::dtype::{DType, f16};
use crate::multiversion;
use ::half::slice::HalfFloatSliceExt;
use bytemuck::{cast_slice, cast_slice_mut};

/// Elements that are widened at a time.
pub(super) const STEP: usize = 256;

/// One of the two half types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    F16,
    BF16,
}

multiversion! {
    fn widen_bf16(x: &[u16], out: &mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out = f32::from_bits((*x as u32) << 16);
        }
    }
}

multiversion! {
    fn narrow_bf16(x: &[f32], out: &mut [u16]) {
        for (x, out) in x.iter().zip(out) {
            let bits = x.to_bits();
            let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
            // A NaN whose payload lies in the lost bits must not become an infinity.
            *out = (if x.is_nan() { bits | 0x40_0000 } else { rounded } >> 16) as u16;
        }
    }
}

multiversion! {
    /// To `f32`, but what is inexact is cut off with its last bit set: so the rounding that follows sees which side of
    /// a tie it was on.
    fn to_odd(x: &[f64], out: &mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            let near = *x as f32;
            let back = near as f64;
            let cut = near.to_bits() - (back.abs() > x.abs()) as u32;
            *out = f32::from_bits(cut | (back != *x) as u32);
        }
    }
}

impl Half {
    /// The half type among the element types, if `dtype` is one.
    #[inline]
    pub(super) fn of(dtype: DType) -> Option<Half> {
        match dtype {
            DType::F16 => Some(Half::F16),
            DType::BF16 => Some(Half::BF16),
            _ => None,
        }
    }

    /// `out = x` as `f32`; as many elements as `out` has.
    pub(super) fn widen(self, x: &[u8], out: &mut [f32]) {
        match self {
            Half::F16 => cast_slice::<u8, f16>(x).convert_to_f32_slice(out),
            Half::BF16 => widen_bf16(cast_slice(x), out),
        }
    }

    /// `out = x`, rounded to nearest even.
    pub(super) fn narrow(self, x: &[f32], out: &mut [u8]) {
        match self {
            Half::F16 => cast_slice_mut::<u8, f16>(out).convert_from_f32_slice(x),
            Half::BF16 => narrow_bf16(x, cast_slice_mut(out)),
        }
    }

    /// `out = x`, rounded once, through `single`, which is as long as `x`.
    pub(super) fn narrow_double(self, x: &[f64], single: &mut [f32], out: &mut [u8]) {
        to_odd(x, single);
        self.narrow(single, out);
    }
}
