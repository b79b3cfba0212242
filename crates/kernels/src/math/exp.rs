//! Exponentials and the activations made of them.
//!
//! `x = n ln 2 + r` with `|r| <= ln(2) / 2`, and `e^r` is scaled by `2^n` in two steps, so that results in the denormal
//! range round once.

use super::lane::{Lane, LaneBits};
use super::log::log1p;
use super::tables::{EXP, EXP_DOUBLE, LN2_LO, LN2_LO_DOUBLE};
use super::{poly_of, two_sum};
use std::f64::consts::{LN_2, LOG2_E};

/// Added to the exponent `n`, so that it is positive.
#[inline(always)]
fn exponent_bias<T: Lane>() -> f64 {
    if T::DOUBLE { 2048.0 } else { 256.0 }
}

/// Adding `1.5 * 2^FRACTION` rounds to an integer, whose bits are then the sum's low bits.
#[inline(always)]
fn rounder<T: Lane>() -> f64 {
    if T::DOUBLE { 6755399441055744.0 } else { 12582912.0 }
}

/// `x / ln(2)` rounded to an integer `n`: as the low bits of the first result, biased, and as the second one.
#[inline(always)]
fn whole_powers<T: Lane>(x: T) -> (T, T) {
    let rounder = T::number(rounder::<T>() + exponent_bias::<T>());
    let sum = x.mul_add(T::pick(std::f32::consts::LOG2_E, LOG2_E), rounder);
    (sum, sum - rounder)
}

/// The integer that [`whole_powers`] left in the low bits.
#[inline(always)]
fn exponent<T: Lane>(sum: T) -> T::Bits {
    sum.bits().minus(T::number(rounder::<T>()).bits())
}

/// `e^r - 1` for `|r| <= ln(2) / 2`.
#[inline(always)]
fn exp_near_zero<T: Lane>(r: T) -> T {
    (r * r).mul_add(poly_of(r, &EXP, &EXP_DOUBLE), r)
}

/// [`split_exp`] of `x` from -170 to 90 in single precision, from -800 to 720 in double precision.
#[inline(always)]
pub(super) fn split_exp_near<T: Lane>(x: T) -> (T, T::Bits) {
    let (sum, n) = whole_powers(x);
    let r = n.neg_mul_add(T::pick(std::f32::consts::LN_2, LN_2), x);
    let r = n.neg_mul_add(T::pick(LN2_LO, LN2_LO_DOUBLE), r);
    (exp_near_zero(r), exponent(sum))
}

/// `x` kept within the range where `e^x` is neither infinite nor zero; NaN passes.
#[inline(always)]
fn within_range<T: Lane>(x: T) -> T {
    if T::DOUBLE { x.at_most(720.0).at_least(-800.0) } else { x.at_most(90.0).at_least(-170.0) }
}

/// `e^x = (1 + small) * 2^(k - bias)`; returns `small` and `k`.
#[inline(always)]
pub(super) fn split_exp<T: Lane>(x: T) -> (T, T::Bits) {
    split_exp_near(within_range(x))
}

/// The float `2^(k - bias)`, where `bias` includes that of the exponent field.
#[inline(always)]
fn power_of_two<T: Lane>(k: T::Bits, bias: u64) -> T {
    T::from_bits(k.minus(T::integer(bias)).shift_left(T::FRACTION))
}

/// Two factors of `2^(k - bias)`, which may be outside the range of floats.
#[inline(always)]
fn halves<T: Lane>(k: T::Bits) -> [T; 2] {
    let half = k.shift_right(1);
    [power_of_two(half, 1), power_of_two(k.minus(half), 1)]
}

/// `p * 2^(k - bias)`, rounded once.
#[inline(always)]
pub(super) fn scale<T: Lane>(p: T, k: T::Bits) -> T {
    let [first, second] = halves::<T>(k);
    p * first * second
}

/// `e^x`, within 1 ulp.
#[inline(always)]
pub fn exp<T: Lane>(x: T) -> T {
    let (small, k) = split_exp(x);
    scale(T::ONE + small, k)
}

/// `1 + small + (1 + small) low`: the factor before the power of two of an exponent with a low part.
#[inline(always)]
pub(super) fn corrected<T: Lane>(small: T, low: T) -> T {
    T::ONE + (T::ONE + small).mul_add(low, small)
}

/// `e^(high + low)` with `|low|` tiny beside `high`, in double precision.
#[inline(always)]
pub(super) fn exp_pair<T: Lane>(high: T, low: T) -> T {
    let bounded = within_range(high);
    let low = T::select(bounded.equals(high), low, T::ZERO);
    let (sum, n) = whole_powers(bounded);
    let r = n.neg_mul_add(T::number(LN_2), bounded);
    let low = n.neg_mul_add(T::number(LN2_LO_DOUBLE), low);
    scale(corrected(exp_near_zero(r), low), exponent(sum))
}

/// `e^x - 1` where one power of two is enough: for `x` from -18 to 40 in single precision, for `|x| <= 40` in double.
#[inline(always)]
pub(super) fn expm1_near<T: Lane>(x: T) -> T {
    let (small, k) = split_exp_near(x);
    let power = power_of_two::<T>(k, if T::DOUBLE { 1025 } else { 129 });
    power.mul_add(small, power - T::ONE)
}

/// `e^x - 1`, within 2 ulp.
#[inline(always)]
pub fn expm1<T: Lane>(x: T) -> T {
    let large = exp(x);
    let near = expm1_near(x.at_most(40.0).at_least(if T::DOUBLE { -40.0 } else { -18.0 }));
    let result = T::select(x.greater(T::number(40.0)), large, near);
    // Keeps the sign of zero.
    T::select(x.equals(T::ZERO), x, result)
}

/// The hyperbolic tangent, within 3 ulp.
#[inline(always)]
pub fn tanh<T: Lane>(x: T) -> T {
    let two = T::number(2.0);
    let t = expm1_near(two * x.abs().at_most(if T::DOUBLE { 20.0 } else { 10.0 }));
    (t / (t + two)).with_sign(x)
}

/// `1 / (1 + e^-x)`, within 3 ulp.
#[inline(always)]
pub fn sigmoid<T: Lane>(x: T) -> T {
    let e = exp(x.neg_abs());
    T::select(x.less(T::ZERO), e, T::ONE) / (T::ONE + e)
}

/// `ln(1 + e^x)`, within 3 ulp.
#[inline(always)]
pub fn softplus<T: Lane>(x: T) -> T {
    let low = log1p(exp(x.neg_abs()));
    T::select(x.greater(T::ZERO), x + low, low)
}

/// `x * sigmoid(high + low)`, without losing bits where the sigmoid is denormal; `low` is tiny beside `high`.
#[inline(always)]
fn gated<T: Lane>(x: T, high: T, low: Option<T>) -> T {
    let negative = high.less(T::ZERO);
    let (small, k) = split_exp(high.neg_abs());
    let p = match low {
        Some(low) => corrected(small, T::select(negative, low, -low)),
        None => T::ONE + small,
    };
    let [first, second] = halves::<T>(k);
    let gate = T::ONE / (T::ONE + p * first * second);
    // The exponential of a large negative input is zero; the bound keeps the product with it finite.
    let bounded = x.at_least(if T::DOUBLE { -1000.0 } else { -200.0 });
    T::select(negative, bounded * p * gate * first * second, x * gate)
}

/// `x * sigmoid(x)`, within 4 ulp. Minus infinity gives the limit, zero.
#[inline(always)]
pub fn silu<T: Lane>(x: T) -> T {
    gated(x, x, None)
}

/// The tanh form of gelu, `x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, within 4 ulp also in its tail.
#[inline(always)]
pub fn gelu_tanh<T: Lane>(x: T) -> T {
    // It equals x * sigmoid(x (a + b x^2)); every factor is a sum of a high and a low part.
    let (a, a_low) = (T::pick(1.5957692, 1.5957691216057308), T::pick(-4.534068e-08, -9.96930880911092e-17));
    let (b, b_low) =
        (T::pick(7.1354814e-02, 0.07135481627260025), T::pick(2.3988325e-09, -6.175149918155315e-19));
    let bound = if T::DOUBLE { 50.0 } else { 20.0 };
    let c = x.at_most(bound).at_least(-bound);
    let square = c * c;
    let square_low = c.mul_sub(c, square);
    let t = b * square;
    let t_low = b.mul_sub(square, t) + b.mul_add(square_low, b_low * square);
    let (w, lost) = two_sum(a, t);
    let w_low = lost + (t_low + a_low);
    let v = w * c;
    let v_low = w.mul_sub(c, v) + w_low * c;
    gated(x, v, Some(v_low))
}
