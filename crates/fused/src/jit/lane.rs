//! The kernels' elementwise functions, interpreted as machine code: each operation on an [`Emitted`] number emits an
//! instruction.

use super::block::Arg;
use super::encode as x86;
use super::vector::{Relation, Rounding, Vector};
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Sub};
use taut_kernels::elementwise::{Binary, LaneValue, Unary};
use taut_kernels::math::{self, Lane, LaneBits};

/// The precision of the lanes: `f32` or `f64`.
pub(super) trait Precision: Lane<Mask = bool> {
    fn to_word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

impl Precision for f32 {
    fn to_word(self) -> u64 {
        self.to_bits() as u64
    }

    fn from_word(word: u64) -> f32 {
        f32::from_bits(word as u32)
    }
}

impl Precision for f64 {
    fn to_word(self) -> u64 {
        self.to_bits()
    }

    fn from_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

/// A number, mask or integer per lane. Operations on constants alone are folded.
#[derive(Clone, Copy)]
pub(super) enum Emitted<'a, F> {
    /// These bits in every lane.
    Constant(F),
    /// The result of emitted code.
    Value(Vector<'a>, Arg),
}

use Emitted::{Constant, Value};

/// A mask as a constant.
fn mask<F: Precision>(holds: bool) -> F {
    F::from_word(if holds { u64::MAX } else { 0 })
}

impl<'a, F: Precision> Emitted<'a, F> {
    fn arg(self, vector: Vector<'a>) -> Arg {
        match self {
            Constant(constant) => vector.bits(constant.to_word()),
            Value(_, arg) => arg,
        }
    }

    fn vector(self) -> Option<Vector<'a>> {
        match self {
            Constant(_) => None,
            Value(vector, _) => Some(vector),
        }
    }

    fn one(self, fold: fn(F) -> F, emit: impl FnOnce(Vector<'a>, Arg) -> Arg) -> Self {
        match self {
            Constant(x) => Constant(fold(x)),
            Value(vector, x) => Value(vector, emit(vector, x)),
        }
    }

    fn two(self, other: Self, fold: fn(F, F) -> F, emit: fn(Vector<'a>, Arg, Arg) -> Arg) -> Self {
        if let (Constant(a), Constant(b)) = (self, other) {
            return Constant(fold(a, b));
        }
        let vector = self.vector().or(other.vector()).expect("one operand is a value");
        Value(vector, emit(vector, self.arg(vector), other.arg(vector)))
    }

    fn three(
        operands: [Self; 3],
        fold: fn(F, F, F) -> F,
        emit: fn(Vector<'a>, Arg, Arg, Arg) -> Arg,
    ) -> Self {
        let [a, b, c] = operands;
        if let (Constant(a), Constant(b), Constant(c)) = (a, b, c) {
            return Constant(fold(a, b, c));
        }
        let vector = operands.iter().find_map(|operand| operand.vector()).expect("one operand is a value");
        Value(vector, emit(vector, a.arg(vector), b.arg(vector), c.arg(vector)))
    }
}

/// Operations with two operands: `method: what it is of constants, the emitting method;`.
macro_rules! binary {
    ($($trait:ident $method:ident: $fold:expr, $emit:ident;)*) => {$(
        impl<'a, F: Precision> $trait for Emitted<'a, F> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.two(other, $fold, Vector::$emit)
            }
        }
    )*};
}
binary! {
    Add add: |a, b| a + b, add;
    Sub sub: |a, b| a - b, sub;
    Mul mul: |a, b| a * b, mul;
    Div div: |a, b| a / b, div;
    BitAnd bitand: |a, b| F::from_word(a.to_word() & b.to_word()), and;
    BitOr bitor: |a, b| F::from_word(a.to_word() | b.to_word()), or;
    BitXor bitxor: |a, b| F::from_word(a.to_word() ^ b.to_word()), xor;
}

impl<F: Precision> Neg for Emitted<'_, F> {
    type Output = Self;
    fn neg(self) -> Self {
        self.one(|x| -x, Vector::neg)
    }
}

impl<F: Precision> LaneBits for Emitted<'_, F> {
    fn minus(self, other: Self) -> Self {
        self.two(other, |a, b| F::from_bits(a.bits().minus(b.bits())), Vector::int_sub)
    }

    fn shift_left(self, by: u32) -> Self {
        match self {
            Constant(x) => Constant(F::from_bits(x.bits().shift_left(by))),
            Value(vector, x) => Value(vector, vector.shift_left(x, by as u8)),
        }
    }

    fn shift_right(self, by: u32) -> Self {
        match self {
            Constant(x) => Constant(F::from_bits(x.bits().shift_right(by))),
            Value(vector, x) => Value(vector, vector.shift_right(x, by as u8)),
        }
    }
}

/// Comparisons: `method relation;`.
macro_rules! comparisons {
    ($($method:ident $relation:ident;)*) => {$(
        fn $method(self, other: Self) -> Self {
            self.two(other, |a, b| mask(a.$method(b)), |vector, a, b| vector.compare(Relation::$relation, a, b))
        }
    )*};
}

impl<F: Precision> Lane for Emitted<'_, F> {
    type Mask = Self;
    type Bits = Self;
    const DOUBLE: bool = F::DOUBLE;
    const ZERO: Self = Constant(F::ZERO);
    const ONE: Self = Constant(F::ONE);
    const HALF: Self = Constant(F::HALF);
    const INFINITY: Self = Constant(F::INFINITY);
    const NAN: Self = Constant(F::NAN);

    fn number(x: f64) -> Self {
        Constant(F::number(x))
    }

    fn integer(x: u64) -> Self {
        Constant(F::from_word(x))
    }

    fn mul_add(self, factor: Self, term: Self) -> Self {
        Self::three([self, factor, term], F::mul_add, Vector::mul_add)
    }

    fn mul_sub(self, factor: Self, term: Self) -> Self {
        Self::three([self, factor, term], F::mul_sub, Vector::mul_sub)
    }

    fn neg_mul_add(self, factor: Self, term: Self) -> Self {
        Self::three([self, factor, term], F::neg_mul_add, Vector::neg_mul_add)
    }

    fn sqrt(self) -> Self {
        self.one(F::sqrt, Vector::sqrt)
    }

    fn floor(self) -> Self {
        self.one(F::floor, |vector, x| vector.round(x, Rounding::Down))
    }

    fn ceil(self) -> Self {
        self.one(F::ceil, |vector, x| vector.round(x, Rounding::Up))
    }

    fn round(self) -> Self {
        self.one(F::round, |vector, x| vector.round(x, Rounding::Nearest))
    }

    fn trunc(self) -> Self {
        self.one(F::trunc, |vector, x| vector.round(x, Rounding::Zero))
    }

    fn abs(self) -> Self {
        self.one(F::abs, Vector::abs)
    }

    fn neg_abs(self) -> Self {
        self.one(F::neg_abs, Vector::neg_abs)
    }

    fn with_sign(self, sign: Self) -> Self {
        self.two(sign, F::with_sign, Vector::with_sign)
    }

    fn smaller(self, other: Self) -> Self {
        self.two(other, F::smaller, Vector::smaller)
    }

    fn larger(self, other: Self) -> Self {
        self.two(other, F::larger, Vector::larger)
    }

    comparisons! {
        equals Equal;
        differs Differ;
        less Less;
        less_equal LessEqual;
        greater Greater;
        greater_equal GreaterEqual;
        unordered Unordered;
    }

    fn is_positive_finite(self) -> Self {
        self.greater(Self::ZERO) & self.less(Self::INFINITY)
    }

    fn select(mask: Self, yes: Self, no: Self) -> Self {
        let (vector, mask) = match mask {
            Constant(mask) => return if mask.to_word() == 0 { no } else { yes },
            Value(vector, mask) => (vector, mask),
        };
        let is_zero = |x: Self| matches!(x, Constant(x) if x.to_word() == 0);
        let is_nan = |x: Self| matches!(x, Constant(x) if x.unordered(x));
        let (yes_arg, no_arg) = (|| yes.arg(vector), || no.arg(vector));
        Value(
            vector,
            match (yes, no) {
                (yes, _) if is_zero(yes) => vector.not_and(mask, no_arg()),
                (_, no) if is_zero(no) => vector.and(mask, yes_arg()),
                // All bits set is a NaN.
                (yes, _) if is_nan(yes) => vector.or(mask, no_arg()),
                _ => vector.select(mask, yes_arg(), no_arg()),
            },
        )
    }

    fn select_constant(mask: Self, yes: Self, no: Self) -> Self {
        Self::select(mask, yes, no)
    }

    fn bits(self) -> Self {
        self
    }

    fn from_bits(bits: Self) -> Self {
        bits
    }

    fn split_exponent(self) -> (Self, Self) {
        match self {
            Constant(x) => {
                let (e, m) = x.split_exponent();
                (Constant(e), Constant(m))
            }
            Value(vector, x) => {
                let (e, m) = vector.split_exponent(x);
                (Value(vector, e), Value(vector, m))
            }
        }
    }
}

impl<'a> Vector<'a> {
    /// [`Lane::split_exponent`], operation by operation as the kernels compute it.
    fn split_exponent(self, x: Arg) -> (Arg, Arg) {
        if !self.wide {
            let low = self.number(std::f64::consts::FRAC_1_SQRT_2);
            let e = self.one_with(x86::SHIFT_SIGNED_32, self.int_sub(x, low), 23);
            return (self.one(x86::I32_TO_F32, e), self.int_sub(x, self.shift_left(e, 23)));
        }
        // The exponent is biased by 2048 so that an unsigned shift serves; 2^52 makes the integer a float.
        let whole: f64 = 4503599627370496.0;
        let low = self.bits((2048 << 52) - std::f64::consts::FRAC_1_SQRT_2.to_bits());
        let k = self.shift_right(self.int_add(x, low), 52);
        let e = self.sub(self.or(k, self.number(whole)), self.number(whole + 2048.0));
        let scale = self.shift_left(self.int_sub(k, self.integer(2048)), 52);
        (e, self.int_sub(x, scale))
    }

    /// An operation of one float operand, or `None` if it has no code.
    pub fn float_unary(self, code: Unary, x: Arg) -> Option<Arg> {
        fn emit<F: Precision>(vector: Vector<'_>, code: Unary, x: Arg) -> Option<Arg> {
            let (LaneValue::Number(value) | LaneValue::Mask(value)) = code.lanes(Value::<F>(vector, x))?;
            Some(value.arg(vector))
        }
        if self.wide { emit::<f64>(self, code, x) } else { emit::<f32>(self, code, x) }
    }

    /// An operation of two float operands, or `None` if it has no code in their precision.
    pub fn float_binary(self, code: Binary, a: Arg, b: Arg) -> Option<Arg> {
        fn emit<F: Precision>(vector: Vector<'_>, code: Binary, a: Arg, b: Arg) -> Option<Arg> {
            let value = code.lanes(Value::<F>(vector, a), Value(vector, b))?;
            let (LaneValue::Number(value) | LaneValue::Mask(value)) = value;
            Some(value.arg(vector))
        }
        match code {
            Binary::Pow if self.wide => Some(self.power(a, b, math::pow_double)),
            _ if self.wide => emit::<f64>(self, code, a, b),
            _ => emit::<f32>(self, code, a, b),
        }
    }

    /// A power of single-precision numbers that were widened, accurate enough to round back.
    pub fn pow_single(self, a: Arg, b: Arg) -> Arg {
        self.power(a, b, math::pow_single)
    }

    fn power(self, a: Arg, b: Arg, pow: fn(Emitted<'a, f64>, Emitted<'a, f64>) -> Emitted<'a, f64>) -> Arg {
        pow(Value(self, a), Value(self, b)).arg(self)
    }
}
