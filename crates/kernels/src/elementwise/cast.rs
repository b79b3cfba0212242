//! Conversions between any two element types.

use super::complex;
use super::half::{Half, STEP};
use crate::dtype::{Bool, DType, Element};
use crate::multiversion;
use crate::simd::Level;
use bytemuck::{cast_slice, cast_slice_mut};

/// A loop over contiguous elements that converts one type to another.
#[derive(Clone, Copy, Debug)]
pub struct CastTile {
    from: DType,
    to: DType,
    /// Between the types that half types are widened to.
    function: fn(&[u8], &mut [u8]),
}

impl CastTile {
    /// Converts as many elements as `out` has room for; both slices are aligned for their type.
    ///
    /// # Panics
    /// If `x` has another number of elements.
    pub fn call(&self, x: &[u8], out: &mut [u8]) {
        if self.from.is_complex() || self.to.is_complex() {
            return complex::cast(self.from, self.to, x, out);
        }
        let (from, to) = (Half::of(self.from), Half::of(self.to));
        if from.is_none() && to.is_none() {
            return (self.function)(x, out);
        }
        assert_eq!(x.len() / self.from.size(), out.len() / self.to.size(), "as many elements");
        let (mut wide, mut single, mut double) = ([0f32; STEP], [0f32; STEP], [0f64; STEP]);
        let pairs = x.chunks(self.from.size() * STEP).zip(out.chunks_mut(self.to.size() * STEP));
        for (x, out) in pairs {
            let n = x.len() / self.from.size();
            let x = match from {
                Some(half) => {
                    half.widen(x, &mut wide[..n]);
                    cast_slice(&wide[..n])
                }
                None => x,
            };
            match to {
                None => (self.function)(x, out),
                Some(half) if through_double(self.from) => {
                    (self.function)(x, cast_slice_mut(&mut double[..n]));
                    half.narrow_double(&double[..n], &mut single[..n], out);
                }
                Some(half) => {
                    (self.function)(x, cast_slice_mut(&mut single[..n]));
                    half.narrow(&single[..n], out);
                }
            }
        }
    }
}

/// Whether a value of this type may need more bits than `f32` has, so that rounding it twice could show.
fn through_double(from: DType) -> bool {
    matches!(from, DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64)
}

/// The tile loop that converts `from` to `to`.
pub fn cast_tile(from: DType, to: DType) -> CastTile {
    if from.is_complex() || to.is_complex() {
        // The conversion between the parts; `CastTile::call` does not use it.
        return CastTile { from, to, function: function(DType::F64, DType::F64) };
    }
    let source = if Half::of(from).is_some() { DType::F32 } else { from };
    let target = match Half::of(to) {
        Some(_) if through_double(from) => DType::F64,
        Some(_) => DType::F32,
        None => to,
    };
    CastTile { from, to, function: function(source, target) }
}

fn function(from: DType, to: DType) -> fn(&[u8], &mut [u8]) {
    match (from, to) {
        (DType::Bool, DType::Bool) => erased::<u8, Bool>,
        (_, DType::Bool) => match from {
            DType::F32 => erased::<f32, Bool>,
            DType::F64 => erased::<f64, Bool>,
            _ => crate::dispatch!(from, T in words => erased::<T, Bool>),
        },
        (DType::Bool, DType::F32) => erased::<Bool, f32>,
        (DType::Bool, DType::F64) => erased::<Bool, f64>,
        (DType::Bool, _) => crate::dispatch!(to, T in words => erased::<Bool, T>),
        (DType::F32, DType::F32) => erased::<f32, f32>,
        (DType::F32, DType::F64) => erased::<f32, f64>,
        (DType::F64, DType::F32) => erased::<f64, f32>,
        (DType::F64, DType::F64) => erased::<f64, f64>,
        (DType::F32, _) => crate::dispatch!(to, T in integers => erased::<f32, T>),
        (DType::F64, _) => crate::dispatch!(to, T in integers => erased::<f64, T>),
        (_, DType::F32) => crate::dispatch!(from, T in integers => erased::<T, f32>),
        (_, DType::F64) => crate::dispatch!(from, T in integers => erased::<T, f64>),
        // Whether an integer is extended by its sign depends on its own type alone; cutting it off does not.
        _ if to.size() <= from.size() => {
            crate::dispatch!(from, T in words => crate::dispatch!(to, U in words => erased::<T, U>))
        }
        _ => crate::dispatch!(from, T in integers => crate::dispatch!(to, U in words => erased::<T, U>)),
    }
}

/// One element's conversion.
trait Convert<U>: Element {
    fn convert(self) -> U;
}

macro_rules! convert {
    ($($t:ty)*) => { convert!(@pairs [$($t)*] [u8 u16 u32 u64 i8 i16 i32 i64 f32 f64]); };
    (@pairs [$($t:ty)*] $all:tt) => {$( convert!(@from $t, $all); )*};
    (@from $t:ty, [$($u:ty)*]) => {
        $(impl Convert<$u> for $t {
            #[inline(always)]
            fn convert(self) -> $u { self as $u }
        })*
        impl Convert<Bool> for $t {
            #[inline(always)]
            fn convert(self) -> Bool { Bool::from(self != 0 as $t) }
        }
        impl Convert<$t> for Bool {
            #[inline(always)]
            fn convert(self) -> $t { self.get() as u8 as $t }
        }
    };
}
convert!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

multiversion! {
    // Conversions of 64-bit integers have instructions from AVX-512 on.
    up_to(if T::DTYPE.is_integer() && T::DTYPE.size() == 8 { Level::Avx512 } else { Level::Avx2 })
    fn convert_all[T: Convert<U>, U: Element](x: &[T], out: &mut [U]) {
        for (x, out) in x.iter().zip(out) {
            *out = x.convert();
        }
    }
}

fn erased<T: Convert<U>, U: Element>(x: &[u8], out: &mut [u8]) {
    let (x, out) = (cast_slice::<u8, T>(x), cast_slice_mut::<u8, U>(out));
    assert_eq!(x.len(), out.len(), "as many elements");
    convert_all(x, out);
}
