//! Operations of one operand.

use super::complex;
use super::half::{Half, STEP};
use super::scalar::Int;
use crate::dtype::{Bool, DType, Element};
use crate::math::{self, Lane, Real, double};
use crate::multiversion;
use crate::simd::Level;
use bytemuck::{cast_slice, cast_slice_mut};

/// The types of the operand and of the result.
#[derive(PartialEq, Eq)]
enum Class {
    /// Floats to the same type.
    Math,
    /// All numbers to the same type.
    Arithmetic,
    /// Everything to bool.
    Test,
    /// Integers and bool to the same type.
    Bits,
    /// Complex numbers only.
    Complex,
}

/// The result of an operation on a [`Lane`].
pub enum LaneValue<T: Lane> {
    /// A number.
    Number(T),
    /// The result of a test.
    Mask(T::Mask),
}

/// Makes the enum [`Unary`], its list, its classes and its functions of floats from one table. A row is
/// `Name(parameter = example): Class, form(function);` with one of these forms:
///
/// - `lanes`: a function over [`Lane`], which vectorises and has machine code;
/// - `mask`: the same, whose result is a mask;
/// - `double`: a function of `f64`, through which `f32` is computed;
/// - `angle`: a function over [`Real`] up to [`Real::TRIG_BOUND`], and the one beyond;
/// - `integers`: none of floats.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident $(($parameter:ident = $example:literal))?: $class:ident, $form:ident($($f:expr),*);)*) => {
        /// An operation of one operand.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Unary {
            $($(#[$doc])* $name $((operations!(@type $parameter)))?,)*
        }

        impl Unary {
            /// Every operation, with an example parameter where it has one.
            pub const ALL: [Unary; [$(stringify!($name)),*].len()] = [$(Unary::$name $(($example))?),*];

            fn class(self) -> Class {
                match self {
                    $(Unary::$name { .. } => Class::$class,)*
                }
            }

            fn parameter(self) -> f64 {
                match self {
                    $($(Unary::$name($parameter) => $parameter,)?)*
                    _ => 0.0,
                }
            }

            /// The operation on floats, or `None` if it has no branch-free form for both precisions.
            pub fn lanes<T: Lane>(self, x: T) -> Option<LaneValue<T>> {
                match self {
                    $(Unary::$name $(($parameter))? => operations!(@lanes $form($($f),*), x $(, $parameter)?),)*
                }
            }
        }

        $(operations!(@map $class, $name $(($parameter))?, $form($($f),*));)*

        fn float<T: Real>(code: Unary) -> Function {
            match code {
                $(Unary::$name { .. } => operations!(@tile $name, $form, code),)*
            }
        }
    };
    (@type $parameter:ident) => { f64 };

    (@lanes lanes($f:expr), $x:ident $(, $p:ident)?) => { Some(LaneValue::Number($f($x $(, T::number($p))?))) };
    (@lanes mask($f:expr), $x:ident) => { Some(LaneValue::Mask($f($x))) };
    (@lanes $form:ident($($f:expr),*), $x:ident) => { None };

    (@map $class:ident, $name:ident $(($p:ident))?, lanes($f:expr)) => {
        operations!(@impl $class, $name, T, |x, p| { let _ = p; $f(x $(, { let $p = p; $p })?) });
    };
    (@map $class:ident, $name:ident, mask($f:expr)) => {
        operations!(@impl $class, $name, Bool, |x, _p| Bool::from($f(x)));
    };
    // Called by its name: passed to a function as a value, it would not always be inlined, and so be compiled without
    // the level's fused multiplication.
    (@map $class:ident, $name:ident, double($f:expr)) => {
        operations!(@impl $class, $name, T, |x, _p| T::from_f64($f(x.to_f64())));
    };
    (@map $class:ident, $name:ident, angle($bounded:expr, $any:expr)) => {
        operations!(@impl $class, $name, T, |x, _p| $bounded(x));
        impl<T: Real> Angle<T> for $name {
            fn any(x: T) -> T { $any(x) }
        }
    };
    (@map $class:ident, $name:ident, integers()) => {};
    (@impl $class:ident, $name:ident, $out:ty, |$x:ident, $p:ident| $e:expr) => {
        #[derive(Default)]
        struct $name;
        impl<T: Real> Map<T> for $name {
            type Out = $out;
            const LEVEL: Level = if matches!(Class::$class, Class::Math) { Level::Avx512 } else { Level::Avx2 };
            #[inline(always)]
            fn map($x: T, $p: T) -> $out { $e }
        }
    };

    (@tile $name:ident, angle, $code:ident) => { angle::<T, $name> };
    (@tile $name:ident, integers, $code:ident) => { unsupported($code) };
    (@tile $name:ident, $form:ident, $code:ident) => { erased::<T, $name> };
}

operations! {
    /// `-x`.
    Neg: Arithmetic, lanes(T::neg);
    /// The absolute value.
    Abs: Arithmetic, lanes(T::abs);
    /// -1, 0 or 1; NaN stays.
    Sign: Arithmetic, lanes(math::sign);
    /// `x * x`.
    Square: Arithmetic, lanes(math::square);
    /// The nearest integer below.
    Floor: Arithmetic, lanes(T::floor);
    /// The nearest integer above.
    Ceil: Arithmetic, lanes(T::ceil);
    /// The nearest integer, the even one if there are two.
    Round: Arithmetic, lanes(T::round);
    /// The nearest integer toward zero.
    Trunc: Arithmetic, lanes(T::trunc);
    /// `e^x`.
    Exp: Math, lanes(math::exp);
    /// `e^x - 1`.
    Expm1: Math, lanes(math::expm1);
    /// The natural logarithm.
    Log: Math, lanes(math::log);
    /// `ln(1 + x)`.
    Log1p: Math, lanes(math::log1p);
    /// The square root.
    Sqrt: Math, lanes(T::sqrt);
    /// `1 / sqrt(x)`.
    Rsqrt: Math, lanes(math::rsqrt);
    /// `1 / x`.
    Reciprocal: Math, lanes(math::reciprocal);
    /// The sine.
    Sin: Math, angle(T::sin_bounded, T::sin);
    /// The cosine.
    Cos: Math, angle(T::cos_bounded, T::cos);
    /// The tangent.
    Tan: Math, angle(tan_bounded, tan);
    /// The inverse sine.
    Asin: Math, double(double::asin);
    /// The inverse cosine.
    Acos: Math, double(double::acos);
    /// The inverse tangent.
    Atan: Math, double(double::atan);
    /// The hyperbolic sine.
    Sinh: Math, double(double::sinh);
    /// The hyperbolic cosine.
    Cosh: Math, double(double::cosh);
    /// The hyperbolic tangent.
    Tanh: Math, lanes(math::tanh);
    /// The inverse hyperbolic sine.
    Asinh: Math, double(double::asinh);
    /// The inverse hyperbolic cosine.
    Acosh: Math, double(double::acosh);
    /// The inverse hyperbolic tangent.
    Atanh: Math, double(double::atanh);
    /// `1 / (1 + e^-x)`.
    Sigmoid: Math, lanes(math::sigmoid);
    /// `ln(1 + e^x)`.
    Softplus: Math, lanes(math::softplus);
    /// `max(x, 0)`; NaN stays.
    Relu: Arithmetic, lanes(math::relu);
    /// `min(max(x, 0), 6)`; NaN stays.
    Relu6: Math, lanes(math::relu6);
    /// `x`, times the given slope below zero.
    LeakyRelu(slope = 0.2): Math, lanes(math::leaky_relu);
    /// `x`, or the given factor times `e^x - 1` below zero.
    Elu(alpha = 1.0): Math, lanes(math::elu);
    /// The self-normalising elu.
    Selu: Math, lanes(math::selu);
    /// `x` times the normal distribution function at `x`.
    Gelu: Math, lanes(math::gelu);
    /// The tanh form of gelu.
    GeluTanh: Math, lanes(math::gelu_tanh);
    /// `x * sigmoid(x)`.
    Silu: Math, lanes(math::silu);
    /// The error function.
    Erf: Math, lanes(math::erf);
    /// The complementary error function.
    Erfc: Math, double(double::erfc);
    /// The inverse error function.
    Erfinv: Math, double(double::erfinv);
    /// The logarithm of the absolute value of the gamma function.
    Lgamma: Math, double(double::lgamma);
    /// The derivative of the logarithm of the gamma function.
    Digamma: Math, double(double::digamma);
    /// Whether it is not a number.
    IsNan: Test, mask(math::is_nan);
    /// Whether it is an infinity.
    IsInf: Test, mask(math::is_inf);
    /// Whether it is neither NaN nor an infinity.
    IsFinite: Test, mask(math::is_finite);
    /// Whether it is zero.
    LogicalNot: Test, mask(math::is_zero);
    /// All bits flipped; the logical not of a bool.
    BitwiseNot: Bits, integers();
    /// The real part.
    Real: Complex, integers();
    /// The imaginary part.
    Imag: Complex, integers();
    /// The complex conjugate.
    Conj: Complex, integers();
    /// The angle in the complex plane.
    Angle: Complex, integers();
}

impl Unary {
    /// About how many arithmetic operations one element takes.
    pub(super) fn flops(self) -> u64 {
        match self {
            Unary::Sqrt | Unary::Rsqrt | Unary::Reciprocal => 4,
            Unary::Relu6 | Unary::LeakyRelu(_) => 2,
            _ if self.class() == Class::Math => 16,
            _ => 1,
        }
    }

    /// The type of the result for operands of type `dtype`, or `None` if there is no such operation.
    #[inline]
    pub fn result(self, dtype: DType) -> Option<DType> {
        if dtype.is_complex() {
            return complex::unary_result(self, dtype);
        }
        match self.class() {
            Class::Math => dtype.is_float().then_some(dtype),
            Class::Arithmetic => (dtype != DType::Bool).then_some(dtype),
            Class::Test => Some(DType::Bool),
            Class::Bits => (!dtype.is_float()).then_some(dtype),
            Class::Complex => None,
        }
    }
}

type Function = fn(&[u8], &mut [u8], f64);

/// A loop over contiguous elements for one operation and type.
#[derive(Clone, Copy, Debug)]
pub struct UnaryTile {
    function: Function,
    parameter: f64,
    half: Option<Half>,
    to_bool: bool,
    /// Instead of the function, if the elements are complex and their parts are not treated alike.
    complex: Option<(Unary, DType)>,
}

impl UnaryTile {
    /// Computes as many elements as `out` has; both slices are aligned for their type.
    ///
    /// # Panics
    /// If `x` has another number of elements.
    #[inline]
    pub fn call(&self, x: &[u8], out: &mut [u8]) {
        match (self.half, self.complex) {
            (None, None) => (self.function)(x, out, self.parameter),
            (Some(half), _) => self.call_half(half, x, out),
            (None, Some((code, DType::C64))) => complex::unary::<f32>(code, x, out),
            (None, Some((code, _))) => complex::unary::<f64>(code, x, out),
        }
    }

    fn call_half(&self, half: Half, x: &[u8], out: &mut [u8]) {
        let out_size = if self.to_bool { 1 } else { 2 };
        let (mut wide, mut result) = ([0f32; STEP], [0f32; STEP]);
        for (x, out) in x.chunks(2 * STEP).zip(out.chunks_mut(out_size * STEP)) {
            let n = x.len() / 2;
            half.widen(x, &mut wide[..n]);
            let wide = cast_slice(&wide[..n]);
            if self.to_bool {
                (self.function)(wide, out, self.parameter);
            } else {
                (self.function)(wide, cast_slice_mut(&mut result[..n]), self.parameter);
                half.narrow(&result[..n], out);
            }
        }
    }
}

/// The tile loop for an operation and its operand's type.
///
/// # Panics
/// If [`Unary::result`] is `None`.
// Not inline: every crate that inlines it would compile all the loops again.
pub fn unary_tile(code: Unary, dtype: DType) -> UnaryTile {
    // Negation treats both parts of a complex number alike; the function of other codes is not called.
    let complex = (dtype.is_complex() && code != Unary::Neg).then_some((code, dtype));
    let on_parts = if complex.is_some() { Unary::Neg } else { code };
    let function = match dtype {
        DType::F32 | DType::F16 | DType::BF16 => float::<f32>(code),
        DType::F64 => float::<f64>(code),
        DType::C64 => float::<f32>(on_parts),
        DType::C128 => float::<f64>(on_parts),
        DType::Bool => boolean(code),
        _ => crate::dispatch!(dtype, T in integers => integer::<T>(code)),
    };
    let to_bool = matches!(code.class(), Class::Test);
    UnaryTile { function, parameter: code.parameter(), half: Half::of(dtype), to_bool, complex }
}

/// An operation on one element; `p` is its parameter.
trait Map<T> {
    type Out: Element;
    /// The highest level at which its loop gets faster: memory limits what is not [`Class::Math`].
    const LEVEL: Level = Level::Avx2;
    fn map(x: T, p: T) -> Self::Out;
}

#[inline(always)]
fn tan_bounded<T: Real>(x: T) -> T {
    T::from_f64(double::tan_bounded(x.to_f64()))
}

fn tan<T: Real>(x: T) -> T {
    T::from_f64(double::tan(x.to_f64()))
}

/// A trigonometric operation, whose [`Map`] holds up to [`Real::TRIG_BOUND`].
trait Angle<T>: Map<T, Out = T> {
    /// The operation on any argument; it branches.
    fn any(x: T) -> T;
}

multiversion! {
    up_to(F::LEVEL)
    fn map_all[T: Element, F: Map<T>](_f: F, x: &[T], out: &mut [F::Out], p: T) {
        for (x, out) in x.iter().zip(out) {
            *out = F::map(*x, p);
        }
    }
}

fn erased<T: Element, F: Map<T> + Default>(x: &[u8], out: &mut [u8], p: f64) {
    let (x, out) = (cast_slice::<u8, T>(x), cast_slice_mut(out));
    assert_eq!(x.len(), out.len(), "operand and output must have the same length");
    map_all(F::default(), x, out, T::from_f64(p));
}

/// A tile of a trigonometric operation: branch-free unless an argument is huge.
fn angle<T: Real, F: Angle<T> + Default>(x: &[u8], out: &mut [u8], p: f64) {
    if all_bounded(cast_slice::<u8, T>(x), T::TRIG_BOUND) {
        erased::<T, F>(x, out, p);
    } else {
        let pairs = cast_slice::<u8, T>(x).iter().zip(cast_slice_mut::<u8, T>(out));
        pairs.for_each(|(x, out)| *out = F::any(*x));
    }
}

multiversion! {
    fn all_bounded[T: Real](x: &[T], bound: T) -> bool {
        let mut all = true;
        for x in x {
            all &= x.abs() <= bound;
        }
        all
    }
}

/// Defines operations on integers as unit structs: `Name: what it computes from x;`.
macro_rules! maps {
    ($out:ty, |$x:ident| $($name:ident: $e:expr;)*) => {$(
        #[derive(Default)]
        struct $name;
        impl<T: Int> Map<T> for $name {
            type Out = $out;
            #[inline(always)]
            fn map($x: T, _p: T) -> $out { $e }
        }
    )*};
}

maps! { T, |x|
    NegInt: T::ZERO.sub(x);
    AbsInt: x.abs();
    SignInt: x.sign();
    SquareInt: x.mul(x);
    ReluInt: x.max(T::ZERO);
    NotBits: x.not();
    Identity: x;
}

maps! { Bool, |x|
    NotInt: Bool::from(x == T::ZERO);
    Never: { let _ = x; Bool::FALSE };
    Always: { let _ = x; Bool::TRUE };
}

/// Operations that do not depend on the sign share the code of the unsigned type.
fn integer<T: Int>(code: Unary) -> Function {
    match code {
        Unary::Neg => erased::<T::Unsigned, NegInt>,
        Unary::Abs => erased::<T, AbsInt>,
        Unary::Sign => erased::<T, SignInt>,
        Unary::Square => erased::<T::Unsigned, SquareInt>,
        Unary::Relu => erased::<T, ReluInt>,
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => erased::<T::Unsigned, Identity>,
        Unary::IsNan | Unary::IsInf => erased::<T::Unsigned, Never>,
        Unary::IsFinite => erased::<T::Unsigned, Always>,
        Unary::LogicalNot => erased::<T::Unsigned, NotInt>,
        Unary::BitwiseNot => erased::<T::Unsigned, NotBits>,
        _ => unsupported(code),
    }
}

/// A boolean is the byte of a `u8` that is zero or not.
fn boolean(code: Unary) -> Function {
    match code {
        Unary::IsNan | Unary::IsInf => erased::<u8, Never>,
        Unary::IsFinite => erased::<u8, Always>,
        Unary::LogicalNot | Unary::BitwiseNot => erased::<u8, NotInt>,
        _ => unsupported(code),
    }
}

#[cold]
fn unsupported(code: Unary) -> ! {
    panic!("{code:?} is not defined for this type")
}
