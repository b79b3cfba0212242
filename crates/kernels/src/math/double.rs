//! Double precision.
//!
//! Exponentials reduce by `x = n ln 2 + r` and scale by `2^n` in two steps, so that results in the denormal range
//! round once; logarithms split `x = 2^e m` with `m` around one.

mod power;
mod special;
mod trig;

pub use power::*;
pub use special::*;
pub use trig::*;

use super::poly;
use crate::math::tables::{EXP_DOUBLE as EXP, LN2_LO_DOUBLE as LN2_LO, LOG_DOUBLE as LOG};
use std::f64::consts::{LN_2, LOG2_E};

const LN2_HI: f64 = LN_2;

/// Adding and subtracting `1.5 * 2^52` rounds to an integer, whose bits are then the sum's low bits.
const ROUND: f64 = 6755399441055744.0;
const EXPONENT_BIAS: f64 = 2048.0;

/// `e^x = (1 + small) * 2^(k - 2048)`; returns `small` and `k`.
#[inline(always)]
fn split_exp(x: f64) -> (f64, u64) {
    // Beyond these the result has long been infinite or zero; NaN passes.
    let x = if x > 720.0 { 720.0 } else { x };
    let x = if x < -800.0 { -800.0 } else { x };
    let sum = x.mul_add(LOG2_E, ROUND + EXPONENT_BIAS);
    let n = sum - (ROUND + EXPONENT_BIAS);
    let r = n.mul_add(-LN2_LO, n.mul_add(-LN2_HI, x));
    let small = (r * r).mul_add(poly(r, EXP), r);
    (small, sum.to_bits().wrapping_sub(ROUND.to_bits()))
}

/// `p * 2^(k - 2048)`, rounded once.
#[inline(always)]
fn scale(p: f64, k: u64) -> f64 {
    let half = k >> 1;
    let power = |k: u64| f64::from_bits(k.wrapping_sub(1) << 52);
    p * power(half) * power(k.wrapping_sub(half))
}

/// `e^x`, within 1 ulp.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let (small, k) = split_exp(x);
    scale(1.0 + small, k)
}

/// `e^x - 1` for `|x| <= 40`, where one power of two is enough.
#[inline(always)]
fn expm1_near(x: f64) -> f64 {
    let (small, k) = split_exp(x);
    let power = f64::from_bits(k.wrapping_sub(1025) << 52);
    power.mul_add(small, power - 1.0)
}

/// `e^x - 1`, within 2 ulp.
#[inline(always)]
pub fn expm1(x: f64) -> f64 {
    let large = exp(x);
    let near = if x > 40.0 { 40.0 } else { x };
    let near = if near < -40.0 { -40.0 } else { near };
    let result = if x > 40.0 { large } else { expm1_near(near) };
    // Keeps the sign of zero.
    if x == 0.0 { x } else { result }
}

/// `x = 2^e m` with `m` in `[sqrt(1/2), sqrt(2))`, for positive normal `x`.
#[inline(always)]
fn split_log(x: f64) -> (f64, f64) {
    const LOW: u64 = 0x3fe6_a09e_667f_3bcd;
    // Bias the exponent by 2048 so that an unsigned shift serves.
    let k = x.to_bits().wrapping_sub(LOW).wrapping_add(2048 << 52) >> 52;
    let e = f64::from_bits(0x4330_0000_0000_0000 | k) - (4503599627370496.0 + 2048.0);
    let m = f64::from_bits(x.to_bits().wrapping_sub(k.wrapping_sub(2048) << 52));
    (e, m)
}

/// `e ln 2 + ln(1 + f) + low`, for `1 + f` around one.
#[inline(always)]
fn join_log(e: f64, f: f64, low: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let half = 0.5 * f * f;
    let tail = s.mul_add(z.mul_add(poly(z, LOG), half), e.mul_add(LN2_LO, low));
    e.mul_add(LN2_HI, f - (half - tail))
}

/// What a logarithm gives at the edges of its domain, else `result`.
#[inline(always)]
fn log_edges(x: f64, result: f64) -> f64 {
    let edge = if x < 0.0 { f64::NAN } else { x };
    let edge = if x == 0.0 { f64::NEG_INFINITY } else { edge };
    // One integer comparison says "positive and finite"; LLVM makes ten instructions of the float comparisons.
    if x.to_bits().wrapping_sub(1) < f64::INFINITY.to_bits() - 1 { result } else { edge }
}

/// [`split_log`] for positive `x`, denormals included.
#[inline(always)]
fn split_log_any(x: f64) -> (f64, f64) {
    // Denormals are scaled by 2^54 first, by arithmetic so that LLVM does not compute both cases.
    let denormal = (x < f64::MIN_POSITIVE) as u64 * 54;
    let (e, m) = split_log(x * f64::from_bits((1023 + denormal) << 52));
    (e - (f64::from_bits(ROUND.to_bits() | denormal) - ROUND), m)
}

/// The natural logarithm, within 1 ulp.
#[inline(always)]
pub fn log(x: f64) -> f64 {
    let (e, m) = split_log_any(x);
    log_edges(x, join_log(e, m - 1.0, 0.0))
}

/// The logarithm to base two, within 2 ulp.
#[inline(always)]
pub fn log2(x: f64) -> f64 {
    let (e, m) = split_log_any(x);
    log_edges(x, join_log(0.0, m - 1.0, 0.0).mul_add(LOG2_E, e))
}

/// `ln(1 + x)`, within 2 ulp.
#[inline(always)]
pub fn log1p(x: f64) -> f64 {
    let u = 1.0 + x;
    let back = u - 1.0;
    let lost = (1.0 - (u - back)) + (x - back);
    let (e, m) = split_log(u);
    let unit = e == 0.0;
    let f = if unit { x } else { m - 1.0 };
    let low = if unit { 0.0 } else { lost / u };
    let result = log_edges(u, join_log(e, f, low));
    if x == 0.0 { x } else { result }
}

/// The square root, correctly rounded.
#[inline(always)]
pub fn sqrt(x: f64) -> f64 {
    x.sqrt()
}

/// `1 / sqrt(x)`, within 2 ulp.
#[inline(always)]
pub fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// The hyperbolic sine, within 3 ulp.
#[inline(always)]
pub fn sinh(x: f64) -> f64 {
    let a = x.abs();
    let t = expm1_near(if a > 30.0 { 30.0 } else { a });
    let near = 0.5 * (t + t / (t + 1.0));
    let (small, k) = split_exp(a);
    let far = scale(1.0 + small, k.wrapping_sub(1));
    let result = if a > 30.0 { far } else { near };
    if x.is_nan() { x } else { result.copysign(x) }
}

/// The hyperbolic cosine, within 2 ulp.
#[inline(always)]
pub fn cosh(x: f64) -> f64 {
    let (small, k) = split_exp(x.abs());
    let half = scale(1.0 + small, k.wrapping_sub(1));
    half + 0.25 / half
}

/// The hyperbolic tangent, within 3 ulp.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let a = x.abs();
    let t = expm1_near(2.0 * if a > 20.0 { 20.0 } else { a });
    let result = t / (t + 2.0);
    if x.is_nan() { x } else { result.copysign(x) }
}

/// The inverse hyperbolic sine, within 3 ulp.
#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let large = a > 1e100;
    let b = if large { 1.0 } else { a };
    let near = b + b * b / (b.mul_add(b, 1.0).sqrt() + 1.0);
    // ln(2a) for large arguments, where 2a could overflow.
    let result = log1p(if large { a } else { near }) + if large { LN2_HI } else { 0.0 };
    if x.is_nan() { x } else { result.copysign(x) }
}

/// The inverse hyperbolic cosine, within 3 ulp.
#[inline(always)]
pub fn acosh(x: f64) -> f64 {
    let large = x > 1e100;
    let t = x - 1.0;
    let near = t + t.mul_add(t, 2.0 * t).sqrt();
    let result = log1p(if large { x } else { near }) + if large { LN2_HI } else { 0.0 };
    if x < 1.0 { f64::NAN } else { result }
}

/// The inverse hyperbolic tangent, within 3 ulp.
#[inline(always)]
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    let result = 0.5 * log1p(2.0 * a / (1.0 - a));
    let result = if a > 1.0 { f64::NAN } else { result };
    if x.is_nan() { x } else { result.copysign(x) }
}

/// `1 / (1 + e^-x)`, within 3 ulp.
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// `ln(1 + e^x)`, within 3 ulp.
#[inline(always)]
pub fn softplus(x: f64) -> f64 {
    let low = log1p(exp(-x.abs()));
    if x > 0.0 { x + low } else { low }
}

/// `x * sigmoid(hi + lo)`, without losing bits where the sigmoid is denormal; `lo` is tiny beside `hi`.
#[inline(always)]
fn gated(x: f64, hi: f64, lo: f64) -> f64 {
    let negative = hi < 0.0;
    let (small, k) = split_exp(-hi.abs());
    let lo = if negative { lo } else { -lo };
    let p = 1.0 + (1.0 + small).mul_add(lo, small);
    let e = scale(p, k);
    let gate = 1.0 / (1.0 + e);
    // Large negative inputs have an exponential of zero; keep the product away from infinity.
    let x = if negative && x < -1000.0 { -1000.0 } else { x };
    if negative { scale(x * p * gate, k) } else { x * gate }
}

/// `x * sigmoid(x)`, within 4 ulp. Minus infinity gives the limit, zero.
#[inline(always)]
pub fn silu(x: f64) -> f64 {
    gated(x, x, 0.0)
}

/// The tanh form of gelu, `x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, within 4 ulp also in its tail.
#[inline(always)]
pub fn gelu_tanh(x: f64) -> f64 {
    // It equals x * sigmoid(x (A + B x^2)).
    const A: f64 = 1.5957691216057308;
    const A_LO: f64 = -9.96930880911092e-17;
    const B: f64 = 0.07135481627260025;
    const B_LO: f64 = -6.175149918155315e-19;
    let c = if x > 50.0 { 50.0 } else { x };
    let c = if c < -50.0 { -50.0 } else { c };
    let square = c * c;
    let square_lo = c.mul_add(c, -square);
    let t = B * square;
    let t_lo = B.mul_add(square, -t) + B.mul_add(square_lo, B_LO * square);
    let w = A + t;
    let back = w - A;
    let w_lo = (A - (w - back)) + (t - back) + (t_lo + A_LO);
    let v = w * c;
    let v_lo = w.mul_add(c, -v) + w_lo * c;
    gated(x, v, v_lo)
}
