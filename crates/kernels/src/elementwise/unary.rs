//! Operations of one operand.

use super::half::{Half, STEP};
use super::scalar::{Float, Int};
use crate::dtype::{Bool, DType, Element};
use crate::multiversion;
use bytemuck::{cast_slice, cast_slice_mut};

/// An operation of one operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    /// `-x`.
    Neg,
    /// The absolute value.
    Abs,
    /// -1, 0 or 1; NaN stays.
    Sign,
    /// `x * x`.
    Square,
    /// The nearest integer below.
    Floor,
    /// The nearest integer above.
    Ceil,
    /// The nearest integer, the even one if there are two.
    Round,
    /// The nearest integer toward zero.
    Trunc,
    /// `e^x`.
    Exp,
    /// `e^x - 1`.
    Expm1,
    /// The natural logarithm.
    Log,
    /// `ln(1 + x)`.
    Log1p,
    /// The square root.
    Sqrt,
    /// `1 / sqrt(x)`.
    Rsqrt,
    /// `1 / x`.
    Reciprocal,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// The tangent.
    Tan,
    /// The inverse sine.
    Asin,
    /// The inverse cosine.
    Acos,
    /// The inverse tangent.
    Atan,
    /// The hyperbolic sine.
    Sinh,
    /// The hyperbolic cosine.
    Cosh,
    /// The hyperbolic tangent.
    Tanh,
    /// The inverse hyperbolic sine.
    Asinh,
    /// The inverse hyperbolic cosine.
    Acosh,
    /// The inverse hyperbolic tangent.
    Atanh,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `ln(1 + e^x)`.
    Softplus,
    /// `max(x, 0)`; NaN stays.
    Relu,
    /// `min(max(x, 0), 6)`; NaN stays.
    Relu6,
    /// `x`, times the given slope below zero.
    LeakyRelu(f64),
    /// `x`, or the given factor times `e^x - 1` below zero.
    Elu(f64),
    /// The self-normalising elu.
    Selu,
    /// `x` times the normal distribution function at `x`.
    Gelu,
    /// The tanh form of gelu.
    GeluTanh,
    /// `x * sigmoid(x)`.
    Silu,
    /// The error function.
    Erf,
    /// The complementary error function.
    Erfc,
    /// The inverse error function.
    Erfinv,
    /// The logarithm of the absolute value of the gamma function.
    Lgamma,
    /// The derivative of the logarithm of the gamma function.
    Digamma,
    /// Whether it is not a number.
    IsNan,
    /// Whether it is an infinity.
    IsInf,
    /// Whether it is neither NaN nor an infinity.
    IsFinite,
    /// Whether it is zero.
    LogicalNot,
    /// All bits flipped; the logical not of a bool.
    BitwiseNot,
}

/// What goes in and what comes out.
enum Class {
    /// Floats to the same type.
    Math,
    /// All numbers to the same type.
    Arithmetic,
    /// Everything to bool.
    Test,
    /// Integers and bool to the same type.
    Bits,
}

impl Unary {
    /// Every operation, with an example parameter where it has one.
    pub const ALL: [Unary; 47] = [
        Unary::Neg,
        Unary::Abs,
        Unary::Sign,
        Unary::Square,
        Unary::Floor,
        Unary::Ceil,
        Unary::Round,
        Unary::Trunc,
        Unary::Exp,
        Unary::Expm1,
        Unary::Log,
        Unary::Log1p,
        Unary::Sqrt,
        Unary::Rsqrt,
        Unary::Reciprocal,
        Unary::Sin,
        Unary::Cos,
        Unary::Tan,
        Unary::Asin,
        Unary::Acos,
        Unary::Atan,
        Unary::Sinh,
        Unary::Cosh,
        Unary::Tanh,
        Unary::Asinh,
        Unary::Acosh,
        Unary::Atanh,
        Unary::Sigmoid,
        Unary::Softplus,
        Unary::Relu,
        Unary::Relu6,
        Unary::LeakyRelu(0.2),
        Unary::Elu(1.0),
        Unary::Selu,
        Unary::Gelu,
        Unary::GeluTanh,
        Unary::Silu,
        Unary::Erf,
        Unary::Erfc,
        Unary::Erfinv,
        Unary::Lgamma,
        Unary::Digamma,
        Unary::IsNan,
        Unary::IsInf,
        Unary::IsFinite,
        Unary::LogicalNot,
        Unary::BitwiseNot,
    ];

    fn class(self) -> Class {
        use Unary::*;
        match self {
            Neg | Abs | Sign | Square | Floor | Ceil | Round | Trunc | Relu => Class::Arithmetic,
            IsNan | IsInf | IsFinite | LogicalNot => Class::Test,
            BitwiseNot => Class::Bits,
            _ => Class::Math,
        }
    }

    /// The type of the result for operands of type `dtype`, or `None` if there is no such operation.
    #[inline]
    pub fn result(self, dtype: DType) -> Option<DType> {
        match self.class() {
            Class::Math => dtype.is_float().then_some(dtype),
            Class::Arithmetic => (dtype != DType::Bool).then_some(dtype),
            Class::Test => Some(DType::Bool),
            Class::Bits => (!dtype.is_float()).then_some(dtype),
        }
    }

    fn parameter(self) -> f64 {
        match self {
            Unary::LeakyRelu(slope) => slope,
            Unary::Elu(alpha) => alpha,
            _ => 0.0,
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
}

impl UnaryTile {
    /// Computes as many elements as `out` has room for; both slices are aligned for their type.
    ///
    /// # Panics
    /// If `x` has another number of elements.
    #[inline]
    pub fn call(&self, x: &[u8], out: &mut [u8]) {
        match self.half {
            None => (self.function)(x, out, self.parameter),
            Some(half) => self.call_half(half, x, out),
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
/// If [`Unary::result`] says that there is none.
#[inline]
pub fn unary_tile(code: Unary, dtype: DType) -> UnaryTile {
    let function = match dtype {
        DType::F32 | DType::F16 | DType::BF16 => float::<f32>(code),
        DType::F64 => float::<f64>(code),
        DType::Bool => boolean(code),
        _ => crate::dispatch!(dtype, T in integers => integer::<T>(code)),
    };
    let to_bool = matches!(code.class(), Class::Test);
    UnaryTile { function, parameter: code.parameter(), half: Half::of(dtype), to_bool }
}

/// One element's worth of an operation; `p` is its parameter.
trait Map<T> {
    type Out: Element;
    fn map(x: T, p: T) -> Self::Out;
}

multiversion! {
    fn map_all[T: Element, F: Map<T>](_f: F, x: &[T], out: &mut [F::Out], p: T) {
        for (x, out) in x.iter().zip(out) {
            *out = F::map(*x, p);
        }
    }
}

fn erased<T: Element, F: Map<T> + Default>(x: &[u8], out: &mut [u8], p: f64) {
    let (x, out) = (cast_slice::<u8, T>(x), cast_slice_mut(out));
    assert_eq!(x.len(), out.len(), "as many elements");
    map_all(F::default(), x, out, T::from_f64(p));
}

/// Defines operations as unit structs: `Name: what it computes from x and p;`.
macro_rules! maps {
    ($bound:ident, $out:ty, |$x:ident, $p:ident| $($name:ident: $e:expr;)*) => {$(
        #[derive(Default)]
        struct $name;
        impl<T: $bound> Map<T> for $name {
            type Out = $out;
            #[inline(always)]
            fn map($x: T, $p: T) -> $out { let _ = $p; $e }
        }
    )*};
}

maps! { Float, T, |x, p|
    Neg: -x;
    Abs: x.abs();
    Sign: if x > T::ZERO { T::ONE } else if x < T::ZERO { -T::ONE } else if x == T::ZERO { T::ZERO } else { x };
    Square: x * x;
    Floor: x.floor();
    Ceil: x.ceil();
    Round: x.round();
    Trunc: x.trunc();
    Reciprocal: T::ONE / x;
    // NaN passes.
    Relu: if x <= T::ZERO { T::ZERO } else { x };
    Relu6: {
        let low = if x <= T::ZERO { T::ZERO } else { x };
        let six = T::from_f64(6.0);
        if low > six { six } else { low }
    };
    LeakyRelu: if x < T::ZERO { p * x } else { x };
    Elu: { let low = p * T::expm1(x); if x > T::ZERO { x } else { low } };
    Selu: {
        const ALPHA: f64 = 1.6732632423543772;
        const SCALE: f64 = 1.0507009873554805;
        let low = T::from_f64(SCALE * ALPHA) * T::expm1(x);
        if x > T::ZERO { T::from_f64(SCALE) * x } else { low }
    };
    SinBounded: T::sin_bounded(x);
    CosBounded: T::cos_bounded(x);
    TanBounded: T::tan_bounded(x);
    Exp: T::exp(x);
    Expm1: T::expm1(x);
    Log: T::log(x);
    Log1p: T::log1p(x);
    Sqrt: T::sqrt(x);
    Rsqrt: T::rsqrt(x);
    Asin: T::asin(x);
    Acos: T::acos(x);
    Atan: T::atan(x);
    Sinh: T::sinh(x);
    Cosh: T::cosh(x);
    Tanh: T::tanh(x);
    Asinh: T::asinh(x);
    Acosh: T::acosh(x);
    Atanh: T::atanh(x);
    Sigmoid: T::sigmoid(x);
    Softplus: T::softplus(x);
    Gelu: T::gelu(x);
    GeluTanh: T::gelu_tanh(x);
    Silu: T::silu(x);
    Erf: T::erf(x);
    Erfc: T::erfc(x);
    Erfinv: T::erfinv(x);
    Lgamma: T::lgamma(x);
    Digamma: T::digamma(x);
}

maps! { Float, Bool, |x, p|
    IsNan: Bool::from(x.is_nan());
    IsInf: Bool::from(x.abs() == T::INFINITY);
    IsFinite: Bool::from(x.abs() < T::INFINITY);
    NotFloat: Bool::from(x == T::ZERO);
}

maps! { Int, T, |x, p|
    NegInt: T::ZERO.sub(x);
    AbsInt: x.abs();
    SignInt: x.sign();
    SquareInt: x.mul(x);
    ReluInt: x.max(T::ZERO);
    NotBits: x.not();
    Same: x;
}

maps! { Int, Bool, |x, p|
    NotInt: Bool::from(x == T::ZERO);
    Never: { let _ = x; Bool::FALSE };
    Always: { let _ = x; Bool::TRUE };
}

/// A trigonometric tile: branch-free unless an argument is huge.
macro_rules! trigonometric {
    ($name:ident, $bounded:ident, $f:ident) => {
        fn $name<T: Float>(x: &[u8], out: &mut [u8], p: f64) {
            if all_bounded(cast_slice::<u8, T>(x), T::TRIG_BOUND) {
                erased::<T, $bounded>(x, out, p);
            } else {
                let pairs = cast_slice::<u8, T>(x).iter().zip(cast_slice_mut::<u8, T>(out));
                pairs.for_each(|(x, out)| *out = T::$f(*x));
            }
        }
    };
}
trigonometric!(sin, SinBounded, sin);
trigonometric!(cos, CosBounded, cos);
trigonometric!(tan, TanBounded, tan);

multiversion! {
    fn all_bounded[T: Float](x: &[T], bound: T) -> bool {
        let mut all = true;
        for x in x {
            all &= x.abs() <= bound;
        }
        all
    }
}

fn float<T: Float>(code: Unary) -> Function {
    match code {
        Unary::Neg => erased::<T, Neg>,
        Unary::Abs => erased::<T, Abs>,
        Unary::Sign => erased::<T, Sign>,
        Unary::Square => erased::<T, Square>,
        Unary::Floor => erased::<T, Floor>,
        Unary::Ceil => erased::<T, Ceil>,
        Unary::Round => erased::<T, Round>,
        Unary::Trunc => erased::<T, Trunc>,
        Unary::Exp => erased::<T, Exp>,
        Unary::Expm1 => erased::<T, Expm1>,
        Unary::Log => erased::<T, Log>,
        Unary::Log1p => erased::<T, Log1p>,
        Unary::Sqrt => erased::<T, Sqrt>,
        Unary::Rsqrt => erased::<T, Rsqrt>,
        Unary::Reciprocal => erased::<T, Reciprocal>,
        Unary::Sin => sin::<T>,
        Unary::Cos => cos::<T>,
        Unary::Tan => tan::<T>,
        Unary::Asin => erased::<T, Asin>,
        Unary::Acos => erased::<T, Acos>,
        Unary::Atan => erased::<T, Atan>,
        Unary::Sinh => erased::<T, Sinh>,
        Unary::Cosh => erased::<T, Cosh>,
        Unary::Tanh => erased::<T, Tanh>,
        Unary::Asinh => erased::<T, Asinh>,
        Unary::Acosh => erased::<T, Acosh>,
        Unary::Atanh => erased::<T, Atanh>,
        Unary::Sigmoid => erased::<T, Sigmoid>,
        Unary::Softplus => erased::<T, Softplus>,
        Unary::Relu => erased::<T, Relu>,
        Unary::Relu6 => erased::<T, Relu6>,
        Unary::LeakyRelu(_) => erased::<T, LeakyRelu>,
        Unary::Elu(_) => erased::<T, Elu>,
        Unary::Selu => erased::<T, Selu>,
        Unary::Gelu => erased::<T, Gelu>,
        Unary::GeluTanh => erased::<T, GeluTanh>,
        Unary::Silu => erased::<T, Silu>,
        Unary::Erf => erased::<T, Erf>,
        Unary::Erfc => erased::<T, Erfc>,
        Unary::Erfinv => erased::<T, Erfinv>,
        Unary::Lgamma => erased::<T, Lgamma>,
        Unary::Digamma => erased::<T, Digamma>,
        Unary::IsNan => erased::<T, IsNan>,
        Unary::IsInf => erased::<T, IsInf>,
        Unary::IsFinite => erased::<T, IsFinite>,
        Unary::LogicalNot => erased::<T, NotFloat>,
        Unary::BitwiseNot => unsupported(code),
    }
}

/// Operations that do not depend on the sign share the code of the unsigned type.
fn integer<T: Int>(code: Unary) -> Function {
    match code {
        Unary::Neg => erased::<T::Unsigned, NegInt>,
        Unary::Abs => erased::<T, AbsInt>,
        Unary::Sign => erased::<T, SignInt>,
        Unary::Square => erased::<T::Unsigned, SquareInt>,
        Unary::Relu => erased::<T, ReluInt>,
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => erased::<T::Unsigned, Same>,
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
