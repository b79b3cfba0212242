//! Operations of two operands.

use super::half::{Half, STEP};
use super::scalar::{Float, Int};
use crate::dtype::{Bool, DType, Element};
use crate::multiversion;
use bytemuck::{cast_slice, cast_slice_mut};

/// An operation of two operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `a + b`; on bool, or.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`; on bool, and.
    Mul,
    /// `a / b`, of floats.
    Div,
    /// The quotient rounded down; of integers, zero if `b` is zero.
    FloorDiv,
    /// The remainder of [`Binary::FloorDiv`], which has the sign of `b`; of integers, zero if `b` is zero.
    Mod,
    /// The remainder of the quotient rounded toward zero, which has the sign of `a`.
    TruncateMod,
    /// `a` to the power `b`. A negative power of an integer is truncated toward zero.
    Pow,
    /// The larger; NaN if either is. On bool, or.
    Maximum,
    /// The smaller; NaN if either is. On bool, and.
    Minimum,
    /// The angle of the point with ordinate `a` and abscissa `b`.
    Atan2,
    /// `(a - b)^2`.
    SquaredDifference,
    /// `a / b`, or zero where `b` is zero.
    DivNoNan,
    /// `a == b`.
    Eq,
    /// `a != b`.
    Ne,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
    /// Whether both are nonzero.
    LogicalAnd,
    /// Whether one is nonzero.
    LogicalOr,
    /// Whether exactly one is nonzero.
    LogicalXor,
    /// The bits set in both.
    BitwiseAnd,
    /// The bits set in one.
    BitwiseOr,
    /// The bits set in exactly one.
    BitwiseXor,
    /// `a` shifted left by `b` bits; zero from the width on.
    ShiftLeft,
    /// `a` shifted right by `b` bits; from the width on zero, or -1 of a negative `a`.
    ShiftRight,
}

impl Binary {
    /// Every operation.
    pub const ALL: [Binary; 27] = {
        use Binary::*;
        [
            Add,
            Sub,
            Mul,
            Div,
            FloorDiv,
            Mod,
            TruncateMod,
            Pow,
            Maximum,
            Minimum,
            Atan2,
            SquaredDifference,
            DivNoNan,
            Eq,
            Ne,
            Lt,
            Le,
            Gt,
            Ge,
            LogicalAnd,
            LogicalOr,
            LogicalXor,
            BitwiseAnd,
            BitwiseOr,
            BitwiseXor,
            ShiftLeft,
            ShiftRight,
        ]
    };

    #[inline]
    fn to_bool(self) -> bool {
        use Binary::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | LogicalAnd | LogicalOr | LogicalXor)
    }

    /// The type of the result for operands of type `dtype`, or `None` if there is no such operation.
    #[inline]
    pub fn result(self, dtype: DType) -> Option<DType> {
        use Binary::*;
        let defined = match self {
            _ if self.to_bool() => return Some(DType::Bool),
            Add | Mul | Maximum | Minimum => true,
            Sub | FloorDiv | Mod | TruncateMod | Pow | SquaredDifference => dtype != DType::Bool,
            Div | Atan2 | DivNoNan => dtype.is_float(),
            BitwiseAnd | BitwiseOr | BitwiseXor => !dtype.is_float(),
            _ => dtype.is_integer(),
        };
        defined.then_some(dtype)
    }
}

type Function = fn(&[u8], &[u8], &mut [u8]);

/// A loop over contiguous elements for one operation and type.
#[derive(Clone, Copy, Debug)]
pub struct BinaryTile {
    function: Function,
    half: Option<Half>,
    to_bool: bool,
}

impl BinaryTile {
    /// Computes as many elements as `out` has room for; all slices are aligned for their type.
    ///
    /// # Panics
    /// If `a` or `b` has another number of elements.
    #[inline]
    pub fn call(&self, a: &[u8], b: &[u8], out: &mut [u8]) {
        match self.half {
            None => (self.function)(a, b, out),
            Some(half) => self.call_half(half, a, b, out),
        }
    }

    fn call_half(&self, half: Half, a: &[u8], b: &[u8], out: &mut [u8]) {
        let out_size = if self.to_bool { 1 } else { 2 };
        let (mut wide_a, mut wide_b, mut result) = ([0f32; STEP], [0f32; STEP], [0f32; STEP]);
        let operands = a.chunks(2 * STEP).zip(b.chunks(2 * STEP));
        for ((a, b), out) in operands.zip(out.chunks_mut(out_size * STEP)) {
            let n = a.len() / 2;
            half.widen(a, &mut wide_a[..n]);
            half.widen(b, &mut wide_b[..n]);
            let (a, b) = (cast_slice(&wide_a[..n]), cast_slice(&wide_b[..n]));
            if self.to_bool {
                (self.function)(a, b, out);
            } else {
                (self.function)(a, b, cast_slice_mut(&mut result[..n]));
                half.narrow(&result[..n], out);
            }
        }
    }
}

/// The tile loop for an operation and its operands' type.
///
/// # Panics
/// If [`Binary::result`] says that there is none.
#[inline]
pub fn binary_tile(code: Binary, dtype: DType) -> BinaryTile {
    let function = match dtype {
        DType::F32 | DType::F16 | DType::BF16 => float::<f32>(code),
        DType::F64 => float::<f64>(code),
        DType::Bool => boolean(code),
        _ => crate::dispatch!(dtype, T in integers => integer::<T>(code)),
    };
    BinaryTile { function, half: Half::of(dtype), to_bool: code.to_bool() }
}

/// One element's worth of an operation.
trait Map<T> {
    type Out: Element;
    fn map(a: T, b: T) -> Self::Out;
}

multiversion! {
    fn map_all[T: Element, F: Map<T>](_f: F, a: &[T], b: &[T], out: &mut [F::Out]) {
        let n = out.len();
        let (a, b) = (&a[..n], &b[..n]);
        for i in 0..n {
            out[i] = F::map(a[i], b[i]);
        }
    }
}

fn erased<T: Element, F: Map<T> + Default>(a: &[u8], b: &[u8], out: &mut [u8]) {
    let (a, b, out) = (cast_slice::<u8, T>(a), cast_slice::<u8, T>(b), cast_slice_mut(out));
    assert!(a.len() == out.len() && b.len() == out.len(), "as many elements");
    map_all(F::default(), a, b, out);
}

/// [`erased`] for what does not vectorise and needs no versions.
fn scalar<T: Element, F: Map<T> + Default>(a: &[u8], b: &[u8], out: &mut [u8]) {
    let (a, b, out) = (cast_slice::<u8, T>(a), cast_slice::<u8, T>(b), cast_slice_mut(out));
    assert!(a.len() == out.len() && b.len() == out.len(), "as many elements");
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = F::map(*a, *b));
}

/// Defines operations as unit structs: `Name: what it computes from a and b;`.
macro_rules! maps {
    ($bound:ident, $out:ty, |$a:ident, $b:ident| $($name:ident: $e:expr;)*) => {$(
        #[derive(Default)]
        struct $name;
        impl<T: $bound> Map<T> for $name {
            type Out = $out;
            #[inline(always)]
            fn map($a: T, $b: T) -> $out { $e }
        }
    )*};
}

/// The floored quotient and its remainder, with `NumPy`'s rounding and signs of zero; `b` is not zero.
#[inline(always)]
fn floor_div_mod<T: Float>(a: T, b: T) -> (T, T) {
    let rest = a.remainder(b);
    let quotient = (a - rest) / b;
    let (quotient, rest) = if rest == T::ZERO {
        (quotient, T::ZERO.copysign(b))
    } else if (b < T::ZERO) == (rest < T::ZERO) {
        (quotient, rest)
    } else {
        (quotient - T::ONE, rest + b)
    };
    if quotient == T::ZERO {
        return (T::ZERO.copysign(a / b), rest);
    }
    // The quotient is nearly whole; the difference above may have rounded it to either side.
    let floor = quotient.floor();
    (if quotient - floor > T::HALF { floor + T::ONE } else { floor }, rest)
}

maps! { Float, T, |a, b|
    Add: a + b;
    Sub: a - b;
    Mul: a * b;
    Div: a / b;
    FloorDiv: if b == T::ZERO { a / b } else { floor_div_mod(a, b).0 };
    Mod: if b == T::ZERO { T::NAN } else { floor_div_mod(a, b).1 };
    TruncateMod: a.remainder(b);
    Pow: T::pow(a, b);
    Maximum: if a > b || a.is_nan() { a } else { b };
    Minimum: if a < b || a.is_nan() { a } else { b };
    Atan2: T::atan2(a, b);
    SquaredDifference: (a - b) * (a - b);
    DivNoNan: if b == T::ZERO { T::ZERO } else { a / b };
}

maps! { Float, Bool, |a, b|
    AndFloat: Bool::from(a != T::ZERO && b != T::ZERO);
    OrFloat: Bool::from(a != T::ZERO || b != T::ZERO);
    XorFloat: Bool::from((a != T::ZERO) ^ (b != T::ZERO));
}

maps! { Element, Bool, |a, b|
    Eq: Bool::from(a == b);
    Ne: Bool::from(a != b);
    Lt: Bool::from(a < b);
    Le: Bool::from(a <= b);
    Gt: Bool::from(a > b);
    Ge: Bool::from(a >= b);
}

maps! { Int, T, |a, b|
    AddInt: a.add(b);
    SubInt: a.sub(b);
    MulInt: a.mul(b);
    FloorDivInt: a.floor_div(b);
    ModInt: a.floor_mod(b);
    TruncateModInt: a.truncate_mod(b);
    PowInt: a.pow(b);
    MaximumInt: a.max(b);
    MinimumInt: a.min(b);
    SquaredDifferenceInt: a.sub(b).mul(a.sub(b));
    AndBits: a.and(b);
    OrBits: a.or(b);
    XorBits: a.xor(b);
    ShiftLeft: a.shift_left(b);
    ShiftRight: a.shift_right(b);
}

maps! { Int, Bool, |a, b|
    AndInt: Bool::from(a != T::ZERO && b != T::ZERO);
    OrInt: Bool::from(a != T::ZERO || b != T::ZERO);
    XorInt: Bool::from((a != T::ZERO) ^ (b != T::ZERO));
}

fn float<T: Float>(code: Binary) -> Function {
    match code {
        Binary::Add => erased::<T, Add>,
        Binary::Sub => erased::<T, Sub>,
        Binary::Mul => erased::<T, Mul>,
        Binary::Div => erased::<T, Div>,
        Binary::FloorDiv => scalar::<T, FloorDiv>,
        Binary::Mod => scalar::<T, Mod>,
        Binary::TruncateMod => scalar::<T, TruncateMod>,
        Binary::Pow => erased::<T, Pow>,
        Binary::Maximum => erased::<T, Maximum>,
        Binary::Minimum => erased::<T, Minimum>,
        Binary::Atan2 => erased::<T, Atan2>,
        Binary::SquaredDifference => erased::<T, SquaredDifference>,
        Binary::DivNoNan => erased::<T, DivNoNan>,
        Binary::Eq => erased::<T, Eq>,
        Binary::Ne => erased::<T, Ne>,
        Binary::Lt => erased::<T, Lt>,
        Binary::Le => erased::<T, Le>,
        Binary::Gt => erased::<T, Gt>,
        Binary::Ge => erased::<T, Ge>,
        Binary::LogicalAnd => erased::<T, AndFloat>,
        Binary::LogicalOr => erased::<T, OrFloat>,
        Binary::LogicalXor => erased::<T, XorFloat>,
        _ => unsupported(code),
    }
}

/// Operations that do not depend on the sign share the code of the unsigned type.
fn integer<T: Int>(code: Binary) -> Function {
    match code {
        Binary::Add => erased::<T::Unsigned, AddInt>,
        Binary::Sub => erased::<T::Unsigned, SubInt>,
        Binary::Mul => erased::<T::Unsigned, MulInt>,
        Binary::FloorDiv => scalar::<T, FloorDivInt>,
        Binary::Mod => scalar::<T, ModInt>,
        Binary::TruncateMod => scalar::<T, TruncateModInt>,
        Binary::Pow => scalar::<T, PowInt>,
        Binary::Maximum => erased::<T, MaximumInt>,
        Binary::Minimum => erased::<T, MinimumInt>,
        Binary::SquaredDifference => erased::<T::Unsigned, SquaredDifferenceInt>,
        Binary::Eq => erased::<T::Unsigned, Eq>,
        Binary::Ne => erased::<T::Unsigned, Ne>,
        Binary::Lt => erased::<T, Lt>,
        Binary::Le => erased::<T, Le>,
        Binary::Gt => erased::<T, Gt>,
        Binary::Ge => erased::<T, Ge>,
        Binary::LogicalAnd => erased::<T::Unsigned, AndInt>,
        Binary::LogicalOr => erased::<T::Unsigned, OrInt>,
        Binary::LogicalXor => erased::<T::Unsigned, XorInt>,
        Binary::BitwiseAnd => erased::<T::Unsigned, AndBits>,
        Binary::BitwiseOr => erased::<T::Unsigned, OrBits>,
        Binary::BitwiseXor => erased::<T::Unsigned, XorBits>,
        Binary::ShiftLeft => erased::<T::Unsigned, ShiftLeft>,
        Binary::ShiftRight => erased::<T, ShiftRight>,
        _ => unsupported(code),
    }
}

/// A boolean is the byte of a `u8` that is zero or not; [`Bool`] compares as such.
fn boolean(code: Binary) -> Function {
    match code {
        Binary::Add | Binary::Maximum | Binary::LogicalOr | Binary::BitwiseOr => erased::<u8, OrInt>,
        Binary::Mul | Binary::Minimum | Binary::LogicalAnd | Binary::BitwiseAnd => erased::<u8, AndInt>,
        Binary::LogicalXor | Binary::BitwiseXor => erased::<u8, XorInt>,
        Binary::Eq => erased::<Bool, Eq>,
        Binary::Ne => erased::<Bool, Ne>,
        Binary::Lt => erased::<Bool, Lt>,
        Binary::Le => erased::<Bool, Le>,
        Binary::Gt => erased::<Bool, Gt>,
        Binary::Ge => erased::<Bool, Ge>,
        _ => unsupported(code),
    }
}

#[cold]
fn unsupported(code: Binary) -> ! {
    panic!("{code:?} is not defined for this type")
}
