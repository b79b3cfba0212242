//! Scalars: constants of any type, and operands that take the type of the other operand.

use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::fmt;
use taut_kernels::dtype::{Complex, bf16, f16};
use taut_kernels::{Bool, DType, Element, dispatch};

/// A number without an element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that may be beyond `i64`.
    Uint(u64),
    /// A floating-point number.
    Float(f64),
    /// A complex number.
    Complex(Complex<f64>),
}

impl Scalar {
    /// Whether an integer is in the range of `dtype`, if that is an integer type, and a complex number of a complex type. As in NumPy,
    /// what does not fit is an error.
    pub fn fits(self, dtype: DType) -> bool {
        let value = match self {
            Scalar::Int(value) => i128::from(value),
            Scalar::Uint(value) => i128::from(value),
            Scalar::Complex(_) => return dtype.is_complex(),
            Scalar::Bool(_) | Scalar::Float(_) => return true,
        };
        let bits = 8 * dtype.size();
        match dtype {
            d if d.is_unsigned_integer() => (0..1 << bits).contains(&value),
            d if d.is_signed_integer() => (-(1 << (bits - 1))..1 << (bits - 1)).contains(&value),
            _ => true,
        }
    }

    /// Whether it is zero; `false` is.
    pub fn is_zero(self) -> bool {
        match self {
            Scalar::Bool(value) => !value,
            Scalar::Int(value) => value == 0,
            Scalar::Uint(value) => value == 0,
            Scalar::Float(value) => value == 0.0,
            Scalar::Complex(value) => value.re == 0.0 && value.im == 0.0,
        }
    }

    /// The value as element type `dtype`, in that type's bytes. Integers wrap and floats round, as NumPy does.
    pub fn to_bytes(self, dtype: DType) -> SmallVec<[u8; 16]> {
        fn bytes<T: Element>(value: T) -> SmallVec<[u8; 16]> {
            SmallVec::from_slice(bytemuck::bytes_of(&value))
        }
        match (self, dtype) {
            (_, DType::Bool) => bytes(Bool::from(!self.is_zero())),
            (Scalar::Complex(v), DType::C64) => bytes(Complex { re: v.re as f32, im: v.im as f32 }),
            (Scalar::Complex(v), DType::C128) => bytes(v),
            (Scalar::Int(v), DType::U64) => bytes(v as u64),
            (Scalar::Uint(v), DType::U64) => bytes(v),
            (Scalar::Int(v), d) if d.is_integer() => integer_bytes(v, d),
            (Scalar::Uint(v), d) if d.is_integer() => integer_bytes(v as i64, d),
            _ => dispatch!(dtype, T in every => bytes(T::from_f64(self.to_f64()))),
        }
    }

    /// The nearest `f64`; the real part of a complex number.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(v) => v as u8 as f64,
            Scalar::Int(v) => v as f64,
            Scalar::Uint(v) => v as f64,
            Scalar::Float(v) => v,
            Scalar::Complex(v) => v.re,
        }
    }

    /// The type that a tensor of it has if no other type is given: `bool`, `int32` (or a wider integer if it needs one), `float32`,
    /// `complex128`.
    pub fn default_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(v) if i32::try_from(v).is_ok() => DType::I32,
            Scalar::Int(_) => DType::I64,
            Scalar::Uint(v) if i32::try_from(v).is_ok() => DType::I32,
            Scalar::Uint(v) if i64::try_from(v).is_ok() => DType::I64,
            Scalar::Uint(_) => DType::U64,
            Scalar::Float(_) => DType::F32,
            Scalar::Complex(_) => DType::C128,
        }
    }
}

fn integer_bytes(value: i64, dtype: DType) -> SmallVec<[u8; 16]> {
    let all = value.to_le_bytes();
    if cfg!(target_endian = "little") {
        SmallVec::from_slice(&all[..dtype.size()])
    } else {
        let all = value.to_be_bytes();
        SmallVec::from_slice(&all[8 - dtype.size()..])
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::Int(v) => write!(f, "{v}"),
            Scalar::Uint(v) => write!(f, "{v}"),
            Scalar::Float(v) => write!(f, "{v}"),
            Scalar::Complex(v) => write!(f, "({}{:+}j)", v.re, v.im),
        }
    }
}

/// One side of a binary op: a tensor, or a plain number that takes the tensor's type.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Scalar(Scalar),
}

impl From<Tensor> for Operand {
    #[inline]
    fn from(tensor: Tensor) -> Operand {
        Operand::Tensor(tensor)
    }
}

impl From<&Tensor> for Operand {
    #[inline]
    fn from(tensor: &Tensor) -> Operand {
        Operand::Tensor(tensor.clone())
    }
}

macro_rules! scalar_from {
    ($($t:ty => $variant:ident),*) => {$(
        impl From<$t> for Scalar {
            #[inline]
            fn from(value: $t) -> Scalar { Scalar::$variant(value.into()) }
        }
        impl From<$t> for Operand {
            #[inline]
            fn from(value: $t) -> Operand { Operand::Scalar(value.into()) }
        }
    )*};
}
scalar_from!(bool => Bool, i8 => Int, i16 => Int, i32 => Int, i64 => Int, u8 => Uint, u16 => Uint, u32 => Uint,
             u64 => Uint, f32 => Float, f64 => Float, f16 => Float, bf16 => Float, Complex<f64> => Complex);

impl From<Scalar> for Operand {
    #[inline]
    fn from(value: Scalar) -> Operand {
        Operand::Scalar(value)
    }
}

/// A Rust type whose values can be stored in tensors and read from them: the element types, and `bool`.
pub trait Host: Copy + 'static {
    /// The element type that stores it.
    type Element: Element;
    /// The value as stored.
    fn into_element(self) -> Self::Element;
    /// The value of a stored element.
    fn from_element(element: Self::Element) -> Self;
}

impl Host for bool {
    type Element = Bool;
    #[inline]
    fn into_element(self) -> Bool {
        self.into()
    }
    #[inline]
    fn from_element(element: Bool) -> bool {
        element.get()
    }
}

macro_rules! host {
    ($($t:ty),*) => {$(
        impl Host for $t {
            type Element = $t;
            #[inline]
            fn into_element(self) -> $t { self }
            #[inline]
            fn from_element(element: $t) -> $t { element }
        }
    )*};
}
host!(u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>);
