//! Element types, and the one macro that turns a run-time [`DType`] into a compile-time type.

use bytemuck::{Pod, Zeroable};
pub use half::{bf16, f16};
pub use num_complex::Complex;
use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// True or false, one byte each.
    Bool,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// A complex number of two `f32`.
    C64,
    /// A complex number of two `f64`.
    C128,
}

impl DType {
    /// Every element type, in the order of the enum.
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];

    /// The element types that are not complex, in the order of the enum.
    pub const REAL: [DType; 13] = {
        let [real @ .., _, _] = DType::ALL;
        real
    };

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Whether this is one of the four floating-point types.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// Whether this is one of the two complex types.
    #[inline]
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// Whether this is a floating-point or a complex type: a type whose tensors have gradients.
    #[inline]
    pub const fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// The type of the real and imaginary parts; of a type that is not complex, the type itself.
    #[inline]
    #[must_use]
    pub const fn part(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            _ => self,
        }
    }

    /// The complex type whose parts hold the values of this type: `complex128` of `float64`, else `complex64`; of a complex type,
    /// the type itself.
    #[inline]
    #[must_use]
    pub const fn complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// Whether this is an integer type (`bool` is not).
    #[inline]
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }

    /// Whether this is `i8`, `i16`, `i32` or `i64`.
    #[inline]
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// Whether this is `u8`, `u16`, `u32` or `u64`.
    #[inline]
    pub const fn is_unsigned_integer(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// NumPy's name for the type: `"float32"`, `"int64"`, `"bool"`, …
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// The type with this NumPy name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A boolean element: one byte, false if it is zero. Any byte is valid, so buffers need no checking.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// False.
    pub const FALSE: Bool = Bool(0);
    /// True.
    pub const TRUE: Bool = Bool(1);

    /// As a Rust `bool`.
    #[inline(always)]
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    #[inline(always)]
    fn from(value: bool) -> Bool {
        Bool(value as u8)
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl PartialOrd for Bool {
    fn partial_cmp(&self, other: &Bool) -> Option<std::cmp::Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

/// A Rust type that can be a tensor's element.
pub trait Element: Pod + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// Its run-time name.
    const DTYPE: DType;
    /// The nearest `f64` (exact but for 64-bit integers beyond 2^53); the real part of a complex number.
    fn to_f64(self) -> f64;
    /// The nearest value of this type; integers truncate toward zero and saturate, NaN becomes zero.
    fn from_f64(value: f64) -> Self;
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $t }
        }
    )*};
}
element!(u8 => U8, u16 => U16, u32 => U32, u64 => U64, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
         f32 => F32, f64 => F64);

impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.get() as u8 as f64
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Bool {
        Bool::from(value != 0.0)
    }
}

impl Element for f16 {
    const DTYPE: DType = DType::F16;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }
    #[inline(always)]
    fn from_f64(value: f64) -> f16 {
        f16::from_f64(value)
    }
}

impl Element for bf16 {
    const DTYPE: DType = DType::BF16;
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }
    #[inline(always)]
    fn from_f64(value: f64) -> bf16 {
        bf16::from_f64(value)
    }
}

macro_rules! complex_element {
    ($($t:ty => $d:ident),*) => {$(
        impl Element for Complex<$t> {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f64(self) -> f64 { self.re as f64 }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { Complex { re: value as $t, im: 0.0 } }
        }
    )*};
}
complex_element!(f32 => C64, f64 => C128);

/// The value of an `f16`, exactly. Free of branches and calls, so that a loop of it vectorises at every instruction-set level, and of
/// denormal `f32`, which may count as zeros.
#[inline(always)]
pub(crate) fn single_from_f16(x: f16) -> f32 {
    const BIAS: u32 = 112 << 23;
    let bits = u32::from(x.to_bits());
    // The exponent lies where f32's is, too small by the difference of the biases.
    let magnitude = (bits & 0x7fff) << 13;
    // A denormal number: its fraction on top of the least normal number, less that number.
    let least = BIAS + (1 << 23);
    let denormal = f32::from_bits(magnitude + least) - f32::from_bits(least);
    let value = if magnitude < 1 << 23 {
        denormal.to_bits()
    } else if magnitude >= 31 << 23 {
        magnitude | 0x7f80_0000
    } else {
        magnitude + BIAS
    };
    f32::from_bits(value | (bits & 0x8000) << 16)
}

/// Runs `$body` with `$T` bound to the Rust type of a run-time [`DType`].
///
/// `dispatch!(dtype, T in every => …)`; instead of `every`: `all` (no complex numbers), `numbers` (no bool, either), `integers`,
/// `floats`, `wide` (`f32` and `f64`), or `complex`. A type outside the class is an internal error and panics: ops check types in `infer`.
#[macro_export]
macro_rules! dispatch {
    (@arms $dtype:expr, $T:ident, $body:expr, [$($d:ident => $t:ty),*]) => {
        match $dtype {
            $($crate::DType::$d => { #[allow(dead_code)] type $T = $t; $body })*
            #[allow(unreachable_patterns)]
            other => panic!("no kernel for {other}"),
        }
    };
    ($dtype:expr, $T:ident in every => $body:expr) => {
        match $dtype {
            dtype if dtype.is_complex() => $crate::dispatch!(dtype, $T in complex => $body),
            dtype => $crate::dispatch!(dtype, $T in all => $body),
        }
    };
    ($dtype:expr, $T:ident in complex => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T, $body, [C64 => $crate::dtype::Complex<f32>,
            C128 => $crate::dtype::Complex<f64>])
    };
    ($dtype:expr, $T:ident in all => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T, $body, [Bool => $crate::Bool, U8 => u8, U16 => u16, U32 => u32,
            U64 => u64, I8 => i8, I16 => i16, I32 => i32, I64 => i64, F16 => $crate::dtype::f16,
            BF16 => $crate::dtype::bf16, F32 => f32, F64 => f64])
    };
    ($dtype:expr, $T:ident in numbers => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T, $body, [U8 => u8, U16 => u16, U32 => u32, U64 => u64, I8 => i8,
            I16 => i16, I32 => i32, I64 => i64, F16 => $crate::dtype::f16, BF16 => $crate::dtype::bf16,
            F32 => f32, F64 => f64])
    };
    ($dtype:expr, $T:ident in integers => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T, $body, [U8 => u8, U16 => u16, U32 => u32, U64 => u64, I8 => i8,
            I16 => i16, I32 => i32, I64 => i64])
    };
    ($dtype:expr, $T:ident in floats => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T, $body, [F16 => $crate::dtype::f16, BF16 => $crate::dtype::bf16,
            F32 => f32, F64 => f64])
    };
    ($dtype:expr, $T:ident in wide => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T, $body, [F32 => f32, F64 => f64])
    };
    // Linear algebra: complex64 is computed in complex128.
    ($dtype:expr, $T:ident in linalg => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $T, $body, [F32 => f32, F64 => f64, C128 => $crate::dtype::Complex<f64>])
    };
    // Kernels that only move elements need one body per size, not per type. `words` are unsigned integers: no complex128.
    ($dtype:expr, $T:ident in words => $body:expr) => {
        match $dtype.size() {
            1 => { type $T = u8; $body }
            2 => { type $T = u16; $body }
            4 => { type $T = u32; $body }
            _ => { type $T = u64; $body }
        }
    };
    ($dtype:expr, $T:ident in sizes => $body:expr) => {
        match $dtype.size() {
            1 => { type $T = u8; $body }
            2 => { type $T = u16; $body }
            4 => { type $T = u32; $body }
            8 => { type $T = u64; $body }
            _ => { type $T = $crate::dtype::Complex<f64>; $body }
        }
    };
}

#[cfg(test)]
mod half_tests {
    use super::*;
    use crate::denormals::FlushDenormals;

    #[test]
    fn every_half_widens_exactly_also_where_denormal_numbers_are_zeros() {
        for flush in [false, true] {
            let _mode = flush.then(FlushDenormals::new);
            for bits in 0..=u16::MAX {
                let (half, made) = (f16::from_bits(bits), single_from_f16(f16::from_bits(bits)));
                let exact = half.to_f32().to_bits();
                assert!(made.to_bits() == exact || (made.is_nan() && half.is_nan()), "{bits:#x}, {flush}");
            }
        }
    }
}
