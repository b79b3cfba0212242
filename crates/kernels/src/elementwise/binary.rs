//! Operations of two operands.

use super::complex;
use super::half::{Half, STEP};
use super::scalar::Int;
use super::unary::LaneValue;
use crate::dtype::{Bool, DType, Element};
use crate::math::{self, Lane, Real, double};
use crate::multiversion;
use crate::simd::Level;
use bytemuck::{cast_slice, cast_slice_mut};

/// The types of the operands and of the result.
enum Class {
    /// Every type to the same type.
    Any,
    /// All numbers to the same type.
    Numbers,
    /// Floats to the same type.
    Floats,
    /// Integers and bool to the same type.
    Bits,
    /// Integers to the same type.
    Integers,
    /// Every type to bool.
    Test,
    /// The parts of complex numbers to complex numbers.
    Parts,
}

/// Makes the enum [`Binary`], its list, its classes and its functions of floats from one table. A row is
/// `Name: Class, form(function);` with one of these forms:
///
/// - `lanes`: a function over [`Lane`], which vectorises and has machine code;
/// - `mask`: the same, whose result is a mask;
/// - `real`: a function over [`Real`], which vectorises;
/// - `scalar`: a function over [`Real`], which does not vectorise and needs no versions;
/// - `integers`: none of floats.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident: $class:ident, $form:ident($($f:expr)?);)*) => {
        /// An operation of two operands of one type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Binary {
            $($(#[$doc])* $name,)*
        }

        impl Binary {
            /// Every operation.
            pub const ALL: [Binary; [$(stringify!($name)),*].len()] = [$(Binary::$name),*];

            #[inline]
            fn class(self) -> Class {
                match self {
                    $(Binary::$name => Class::$class,)*
                }
            }

            /// The operation on floats, or `None` if it has no branch-free form for both precisions.
            pub fn lanes<T: Lane>(self, a: T, b: T) -> Option<LaneValue<T>> {
                match self {
                    $(Binary::$name => operations!(@lanes $form($($f)?), a, b),)*
                }
            }
        }

        $(operations!(@map $name, $form($($f)?));)*

        fn float<T: Real>(code: Binary) -> Function {
            match code {
                $(Binary::$name => operations!(@tile $name, $form, code),)*
            }
        }
    };

    (@lanes lanes($f:expr), $a:ident, $b:ident) => { Some(LaneValue::Number($f($a, $b))) };
    (@lanes mask($f:expr), $a:ident, $b:ident) => { Some(LaneValue::Mask($f($a, $b))) };
    (@lanes $form:ident($($f:expr)?), $a:ident, $b:ident) => { None };

    (@map $name:ident, integers()) => {};
    (@map $name:ident, mask($f:expr)) => { operations!(@impl Avx2, $name, Bool, |a, b| Bool::from($f(a, b))); };
    (@map $name:ident, real($f:expr)) => { operations!(@impl Avx512, $name, T, |a, b| $f(a, b)); };
    (@map $name:ident, $form:ident($f:expr)) => { operations!(@impl Avx2, $name, T, |a, b| $f(a, b)); };
    (@impl $level:ident, $name:ident, $out:ty, |$a:ident, $b:ident| $e:expr) => {
        #[derive(Default)]
        struct $name;
        impl<T: Real> Map<T> for $name {
            type Out = $out;
            const LEVEL: Level = Level::$level;
            #[inline(always)]
            fn map($a: T, $b: T) -> $out { $e }
        }
    };

    (@tile $name:ident, integers, $code:ident) => { unsupported($code) };
    (@tile $name:ident, scalar, $code:ident) => { scalar::<T, $name> };
    (@tile $name:ident, $form:ident, $code:ident) => { erased::<T, $name> };
}

operations! {
    /// `a + b`; on bool, or.
    Add: Any, lanes(T::add);
    /// `a - b`.
    Sub: Numbers, lanes(T::sub);
    /// `a * b`; on bool, and.
    Mul: Any, lanes(T::mul);
    /// `a / b`, of floats.
    Div: Floats, lanes(T::div);
    /// The quotient of integers, rounded down; zero if `b` is zero.
    FloorDiv: Integers, integers();
    /// The remainder of the quotient rounded down, which has the sign of `b`; of integers, zero if `b` is zero.
    Mod: Numbers, scalar(floor_mod);
    /// The remainder of the quotient rounded toward zero, which has the sign of `a`.
    TruncateMod: Numbers, scalar(T::remainder);
    /// `a` to the power `b`. A negative power of an integer is truncated toward zero.
    Pow: Numbers, real(math::pow);
    /// The larger; NaN if either is. On bool, or.
    Maximum: Any, lanes(math::maximum);
    /// The smaller; NaN if either is. On bool, and.
    Minimum: Any, lanes(math::minimum);
    /// The angle of the point with ordinate `a` and abscissa `b`.
    Atan2: Floats, real(atan2);
    /// `(a - b)^2`.
    SquaredDifference: Numbers, lanes(math::squared_difference);
    /// `a / b`, or zero where `b` is zero.
    DivNoNan: Floats, lanes(math::div_no_nan);
    /// `a * b`, or zero where `b` is zero.
    MulNoNan: Floats, lanes(math::mul_no_nan);
    /// `a == b`.
    Eq: Test, mask(T::equals);
    /// `a != b`.
    Ne: Test, mask(T::differs);
    /// `a < b`.
    Lt: Test, mask(T::less);
    /// `a <= b`.
    Le: Test, mask(T::less_equal);
    /// `a > b`.
    Gt: Test, mask(T::greater);
    /// `a >= b`.
    Ge: Test, mask(T::greater_equal);
    /// Whether both are nonzero.
    LogicalAnd: Test, mask(math::logical_and);
    /// Whether one is nonzero.
    LogicalOr: Test, mask(math::logical_or);
    /// Whether exactly one is nonzero.
    LogicalXor: Test, mask(math::logical_xor);
    /// The bits set in both.
    BitwiseAnd: Bits, integers();
    /// The bits set in one.
    BitwiseOr: Bits, integers();
    /// The bits set in exactly one.
    BitwiseXor: Bits, integers();
    /// `a` shifted left by `b` bits; zero from the width on.
    ShiftLeft: Integers, integers();
    /// `a` shifted right by `b` bits; from the width on zero, or -1 of a negative `a`.
    ShiftRight: Integers, integers();
    /// The complex number with the real part `a` and the imaginary part `b`.
    Complex: Parts, integers();
}

impl Binary {
    /// About how many arithmetic operations one element takes.
    pub(super) fn flops(self) -> u64 {
        match self {
            Binary::Div | Binary::DivNoNan => 4,
            Binary::FloorDiv | Binary::Mod | Binary::TruncateMod => 16,
            Binary::Pow | Binary::Atan2 => 40,
            _ => 1,
        }
    }

    /// The type of the result for operands of type `dtype`, or `None` if there is no such operation.
    #[inline]
    pub fn result(self, dtype: DType) -> Option<DType> {
        if dtype.is_complex() {
            return complex::binary_result(self, dtype);
        }
        let defined = match self.class() {
            Class::Parts => return matches!(dtype, DType::F32 | DType::F64).then(|| dtype.complex()),
            Class::Test => return Some(DType::Bool),
            Class::Any => true,
            Class::Numbers => dtype != DType::Bool,
            Class::Floats => dtype.is_float(),
            Class::Bits => !dtype.is_float(),
            Class::Integers => dtype.is_integer(),
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
    /// Instead of the function, if the elements are complex and their parts are not treated alike.
    complex: Option<(Binary, DType)>,
}

impl BinaryTile {
    /// Computes as many elements as `out` has; all slices are aligned for their type.
    ///
    /// # Panics
    /// If `a` or `b` has another number of elements.
    #[inline]
    pub fn call(&self, a: &[u8], b: &[u8], out: &mut [u8]) {
        match (self.half, self.complex) {
            (None, None) => (self.function)(a, b, out),
            (Some(half), _) => self.call_half(half, a, b, out),
            (None, Some((code, DType::C64))) => complex::binary::<f32>(code, a, b, out),
            (None, Some((code, _))) => complex::binary::<f64>(code, a, b, out),
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
/// If [`Binary::result`] is `None`.
// Not inline: every crate that inlines it would compile all the loops again.
pub fn binary_tile(code: Binary, dtype: DType) -> BinaryTile {
    // Sums and differences treat both parts of a complex number alike; the function of other codes is not called.
    let complex = (dtype.is_complex() && !matches!(code, Binary::Add | Binary::Sub)).then_some((code, dtype));
    let on_parts = if complex.is_some() { Binary::Add } else { code };
    let function = match dtype {
        DType::F32 if code == Binary::Complex => complex::join::<f32>,
        DType::F64 if code == Binary::Complex => complex::join::<f64>,
        DType::F32 | DType::F16 | DType::BF16 => float::<f32>(code),
        DType::F64 => float::<f64>(code),
        DType::C64 => float::<f32>(on_parts),
        DType::C128 => float::<f64>(on_parts),
        DType::Bool => boolean(code),
        _ => crate::dispatch!(dtype, T in integers => integer::<T>(code)),
    };
    BinaryTile { function, half: Half::of(dtype), to_bool: matches!(code.class(), Class::Test), complex }
}

/// An operation on one element of each operand.
trait Map<T> {
    type Out: Element;
    /// The highest level at which its loop gets faster: memory limits what is but a few instructions.
    const LEVEL: Level = Level::Avx2;
    fn map(a: T, b: T) -> Self::Out;
}

multiversion! {
    up_to(F::LEVEL)
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
    assert!(a.len() == out.len() && b.len() == out.len(), "operands and output must have the same length");
    map_all(F::default(), a, b, out);
}

/// [`erased`] for an operation that does not vectorise and needs no versions.
fn scalar<T: Element, F: Map<T> + Default>(a: &[u8], b: &[u8], out: &mut [u8]) {
    let (a, b, out) = (cast_slice::<u8, T>(a), cast_slice::<u8, T>(b), cast_slice_mut(out));
    assert!(a.len() == out.len() && b.len() == out.len(), "operands and output must have the same length");
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = F::map(*a, *b));
}

/// The remainder of the quotient rounded down. A zero has the sign of `a`, as in TensorFlow.
#[inline(always)]
fn floor_mod<T: Real>(a: T, b: T) -> T {
    if b == T::ZERO {
        return T::NAN;
    }
    let rest = T::remainder(a, b);
    if rest == T::ZERO || (b < T::ZERO) == (rest < T::ZERO) { rest } else { rest + b }
}

#[inline(always)]
fn atan2<T: Real>(y: T, x: T) -> T {
    T::from_f64(double::atan2(y.to_f64(), x.to_f64()))
}

/// Defines operations on integers and bool as unit structs: `Name: what it computes from a and b;`.
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

/// Elements with an order.
trait Ordered: Element + PartialOrd {}
impl<T: Element + PartialOrd> Ordered for T {}

maps! { Ordered, Bool, |a, b|
    EqInt: Bool::from(a == b);
    NeInt: Bool::from(a != b);
    LtInt: Bool::from(a < b);
    LeInt: Bool::from(a <= b);
    GtInt: Bool::from(a > b);
    GeInt: Bool::from(a >= b);
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
    ShiftLeftInt: a.shift_left(b);
    ShiftRightInt: a.shift_right(b);
}

maps! { Int, Bool, |a, b|
    AndInt: Bool::from(a != T::ZERO && b != T::ZERO);
    OrInt: Bool::from(a != T::ZERO || b != T::ZERO);
    XorInt: Bool::from((a != T::ZERO) ^ (b != T::ZERO));
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
        Binary::Eq => erased::<T::Unsigned, EqInt>,
        Binary::Ne => erased::<T::Unsigned, NeInt>,
        Binary::Lt => erased::<T, LtInt>,
        Binary::Le => erased::<T, LeInt>,
        Binary::Gt => erased::<T, GtInt>,
        Binary::Ge => erased::<T, GeInt>,
        Binary::LogicalAnd => erased::<T::Unsigned, AndInt>,
        Binary::LogicalOr => erased::<T::Unsigned, OrInt>,
        Binary::LogicalXor => erased::<T::Unsigned, XorInt>,
        Binary::BitwiseAnd => erased::<T::Unsigned, AndBits>,
        Binary::BitwiseOr => erased::<T::Unsigned, OrBits>,
        Binary::BitwiseXor => erased::<T::Unsigned, XorBits>,
        Binary::ShiftLeft => erased::<T::Unsigned, ShiftLeftInt>,
        Binary::ShiftRight => erased::<T, ShiftRightInt>,
        _ => unsupported(code),
    }
}

/// A boolean is the byte of a `u8` that is zero or not; [`Bool`] compares as such.
fn boolean(code: Binary) -> Function {
    match code {
        Binary::Add | Binary::Maximum | Binary::LogicalOr | Binary::BitwiseOr => erased::<u8, OrInt>,
        Binary::Mul | Binary::Minimum | Binary::LogicalAnd | Binary::BitwiseAnd => erased::<u8, AndInt>,
        Binary::LogicalXor | Binary::BitwiseXor => erased::<u8, XorInt>,
        Binary::Eq => erased::<Bool, EqInt>,
        Binary::Ne => erased::<Bool, NeInt>,
        Binary::Lt => erased::<Bool, LtInt>,
        Binary::Le => erased::<Bool, LeInt>,
        Binary::Gt => erased::<Bool, GtInt>,
        Binary::Ge => erased::<Bool, GeInt>,
        _ => unsupported(code),
    }
}

#[cold]
fn unsupported(code: Binary) -> ! {
    panic!("{code:?} is not defined for this type")
}
