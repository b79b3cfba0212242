//! Functions of a few operations.

use super::exp::expm1;
use super::lane::Lane;

/// -1, 0 or 1; NaN stays.
#[inline(always)]
pub fn sign<T: Lane>(x: T) -> T {
    let below = T::select(x.equals(T::ZERO), T::ZERO, x);
    let below = T::select(x.less(T::ZERO), -T::ONE, below);
    T::select(x.greater(T::ZERO), T::ONE, below)
}

/// `x * x`.
#[inline(always)]
pub fn square<T: Lane>(x: T) -> T {
    x * x
}

/// `1 / x`.
#[inline(always)]
pub fn reciprocal<T: Lane>(x: T) -> T {
    T::ONE / x
}

/// `1 / sqrt(x)`, within 2 ulp.
#[inline(always)]
pub fn rsqrt<T: Lane>(x: T) -> T {
    T::ONE / x.sqrt()
}

/// `max(x, 0)`; NaN stays.
#[inline(always)]
pub fn relu<T: Lane>(x: T) -> T {
    T::select(x.less_equal(T::ZERO), T::ZERO, x)
}

/// `min(max(x, 0), 6)`; NaN stays.
#[inline(always)]
pub fn relu6<T: Lane>(x: T) -> T {
    relu(x).at_most(6.0)
}

/// `x`, times `slope` below zero.
#[inline(always)]
pub fn leaky_relu<T: Lane>(x: T, slope: T) -> T {
    T::select(x.less(T::ZERO), slope * x, x)
}

/// `x`, or `alpha * (e^x - 1)` below zero.
#[inline(always)]
pub fn elu<T: Lane>(x: T, alpha: T) -> T {
    T::select(x.greater(T::ZERO), x, alpha * expm1(x))
}

/// The self-normalising elu.
#[inline(always)]
pub fn selu<T: Lane>(x: T) -> T {
    const ALPHA: f64 = 1.6732632423543772;
    const SCALE: f64 = 1.0507009873554805;
    T::select(x.greater(T::ZERO), T::number(SCALE) * x, T::number(SCALE * ALPHA) * expm1(x))
}

/// Whether it is NaN.
#[inline(always)]
pub fn is_nan<T: Lane>(x: T) -> T::Mask {
    x.unordered(x)
}

/// Whether it is an infinity.
#[inline(always)]
pub fn is_inf<T: Lane>(x: T) -> T::Mask {
    x.abs().equals(T::INFINITY)
}

/// Whether it is neither NaN nor an infinity.
#[inline(always)]
pub fn is_finite<T: Lane>(x: T) -> T::Mask {
    x.abs().less(T::INFINITY)
}

/// Whether it is zero.
#[inline(always)]
pub fn is_zero<T: Lane>(x: T) -> T::Mask {
    x.equals(T::ZERO)
}

/// The larger; NaN if either is.
#[inline(always)]
pub fn maximum<T: Lane>(a: T, b: T) -> T {
    T::select(is_nan(a), a, a.larger(b))
}

/// The smaller; NaN if either is.
#[inline(always)]
pub fn minimum<T: Lane>(a: T, b: T) -> T {
    T::select(is_nan(a), a, a.smaller(b))
}

/// `(a - b)^2`.
#[inline(always)]
pub fn squared_difference<T: Lane>(a: T, b: T) -> T {
    square(a - b)
}

/// `a / b`, or zero where `b` is zero.
#[inline(always)]
pub fn div_no_nan<T: Lane>(a: T, b: T) -> T {
    T::select(b.equals(T::ZERO), T::ZERO, a / b)
}

/// `a * b`, or zero where `b` is zero.
#[inline(always)]
pub fn mul_no_nan<T: Lane>(a: T, b: T) -> T {
    T::select(b.equals(T::ZERO), T::ZERO, a * b)
}

/// Whether both are nonzero.
#[inline(always)]
pub fn logical_and<T: Lane>(a: T, b: T) -> T::Mask {
    a.differs(T::ZERO) & b.differs(T::ZERO)
}

/// Whether one is nonzero.
#[inline(always)]
pub fn logical_or<T: Lane>(a: T, b: T) -> T::Mask {
    a.differs(T::ZERO) | b.differs(T::ZERO)
}

/// Whether exactly one is nonzero.
#[inline(always)]
pub fn logical_xor<T: Lane>(a: T, b: T) -> T::Mask {
    a.differs(T::ZERO) ^ b.differs(T::ZERO)
}
