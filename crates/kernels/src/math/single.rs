//! Single precision.
//!
//! The functions that models spend their time in are computed in `f32`; the others round the value that [`double`]
//! computes, and are then within 0.51 ulp (near the zeros of `lgamma` and `digamma`, where [`double`] states an
//! absolute bound, that one holds).

use super::{double, poly};
use crate::math::tables::{ERF, ERF_TAIL, EXP, LN2_HI, LN2_LO, LOG, NORMAL, NORMAL_TAIL};

/// Up to this magnitude the `*_bounded` functions hold.
pub const TRIG_BOUND: f32 = double::TRIG_BOUND as f32;

/// Adding and subtracting `1.5 * 2^23` rounds to an integer, whose bits are then the sum's low bits.
const ROUND: f32 = 12582912.0;
const EXPONENT_BIAS: f32 = 256.0;

/// `(sin(r) - r) / r^3` in `r^2`.
const SIN: [f32; 4] = [-1.6666667e-01, 8.333329e-03, -1.9839297e-04, 2.7179688e-06];

/// `(cos(r) - 1 + r^2 / 2) / r^4` in `r^2`.
const COS: [f32; 3] = [4.1666646e-02, -1.3887304e-03, 2.4431694e-05];

/// `e^x = (1 + small) * 2^(k - 256)`; returns `small` and `k`.
#[inline(always)]
fn split_exp(x: f32) -> (f32, u32) {
    // Beyond these the result has long been infinite or zero; NaN passes.
    let x = if x > 90.0 { 90.0 } else { x };
    let x = if x < -170.0 { -170.0 } else { x };
    let sum = x.mul_add(std::f32::consts::LOG2_E, ROUND + EXPONENT_BIAS);
    let n = sum - (ROUND + EXPONENT_BIAS);
    let r = n.mul_add(-LN2_LO, n.mul_add(-LN2_HI, x));
    let small = (r * r).mul_add(poly(r, EXP), r);
    (small, sum.to_bits().wrapping_sub(ROUND.to_bits()))
}

/// `p * 2^(k - 256)`, rounded once.
#[inline(always)]
fn scale(p: f32, k: u32) -> f32 {
    let half = k >> 1;
    let power = |k: u32| f32::from_bits(k.wrapping_sub(1) << 23);
    p * power(half) * power(k.wrapping_sub(half))
}

/// `e^x`, within 1 ulp.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (small, k) = split_exp(x);
    scale(1.0 + small, k)
}

/// `e^x - 1` for `-18 <= x <= 40`.
#[inline(always)]
fn expm1_near(x: f32) -> f32 {
    let (small, k) = split_exp(x);
    let power = f32::from_bits(k.wrapping_sub(129) << 23);
    power.mul_add(small, power - 1.0)
}

/// `e^x - 1`, within 2 ulp.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let large = exp(x);
    let near = if x > 40.0 { 40.0 } else { x };
    let near = if near < -18.0 { -18.0 } else { near };
    let result = if x > 40.0 { large } else { expm1_near(near) };
    // Keeps the sign of zero.
    if x == 0.0 { x } else { result }
}

/// `x = 2^e m` with `m` in `[sqrt(1/2), sqrt(2))`, for positive normal `x`.
#[inline(always)]
fn split_log(x: f32) -> (f32, f32) {
    const LOW: i32 = 0x3f35_04f3;
    let bits = x.to_bits() as i32;
    let e = bits.wrapping_sub(LOW) >> 23;
    (e as f32, f32::from_bits(bits.wrapping_sub(e << 23) as u32))
}

/// `e ln 2 + ln(1 + f) + low`, for `1 + f` around one.
#[inline(always)]
fn join_log(e: f32, f: f32, low: f32) -> f32 {
    let z = f * f;
    let half = 0.5 * z;
    let tail = (f * z).mul_add(poly(f, LOG), e.mul_add(LN2_LO, low));
    e.mul_add(LN2_HI, f - (half - tail))
}

/// What a logarithm gives at the edges of its domain, else `result`.
#[inline(always)]
fn log_edges(x: f32, result: f32) -> f32 {
    let edge = if x < 0.0 { f32::NAN } else { x };
    let edge = if x == 0.0 { f32::NEG_INFINITY } else { edge };
    // One integer comparison says "positive and finite"; LLVM makes ten instructions of the float comparisons.
    if x.to_bits().wrapping_sub(1) < f32::INFINITY.to_bits() - 1 { result } else { edge }
}

/// The natural logarithm, within 1 ulp.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    // Denormals are scaled by 2^25 first, by arithmetic so that LLVM does not compute both cases.
    let denormal = (x < f32::MIN_POSITIVE) as u32 * 25;
    let (e, m) = split_log(x * f32::from_bits((127 + denormal) << 23));
    log_edges(x, join_log(e - denormal as f32, m - 1.0, 0.0))
}

/// `ln(1 + x)`, within 2 ulp.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
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
pub fn sqrt(x: f32) -> f32 {
    x.sqrt()
}

/// `1 / sqrt(x)`, within 2 ulp.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// `x = n pi/2 + r`, reduced in `f64`: exact enough up to the bound.
#[inline(always)]
fn reduce(x: f32) -> (f32, u32) {
    const ROUND: f64 = 6755399441055744.0;
    let x = x as f64;
    let sum = x.mul_add(std::f64::consts::FRAC_2_PI, ROUND);
    let n = sum - ROUND;
    let r = n.mul_add(-6.123233995736766e-17, n.mul_add(-std::f64::consts::FRAC_PI_2, x));
    (r as f32, sum.to_bits() as u32)
}

#[inline(always)]
fn sin_of((r, n): (f32, u32)) -> f32 {
    let z = r * r;
    let sin = (r * z).mul_add(poly(z, SIN), r);
    let cos = (z * z).mul_add(poly(z, COS), z.mul_add(-0.5, 1.0));
    let value = if n & 1 == 0 { sin } else { cos };
    f32::from_bits(value.to_bits() ^ ((n & 2) << 30))
}

/// The sine of `|x| <= TRIG_BOUND`, branch-free, within 2 ulp.
#[inline(always)]
pub fn sin_bounded(x: f32) -> f32 {
    let result = sin_of(reduce(x));
    if x == 0.0 { x } else { result }
}

/// The cosine of `|x| <= TRIG_BOUND`, branch-free, within 2 ulp.
#[inline(always)]
pub fn cos_bounded(x: f32) -> f32 {
    let (r, n) = reduce(x);
    sin_of((r, n.wrapping_add(1)))
}

/// The tangent of `|x| <= TRIG_BOUND`, branch-free, within 1 ulp.
#[inline(always)]
pub fn tan_bounded(x: f32) -> f32 {
    double::tan_bounded(x as f64) as f32
}

/// The sine, within 2 ulp for every argument.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    if x.abs() <= TRIG_BOUND { sin_bounded(x) } else { double::sin(x as f64) as f32 }
}

/// The cosine, within 2 ulp for every argument.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    if x.abs() <= TRIG_BOUND { cos_bounded(x) } else { double::cos(x as f64) as f32 }
}

/// The hyperbolic tangent, within 3 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let t = expm1_near(2.0 * if a > 10.0 { 10.0 } else { a });
    let result = t / (t + 2.0);
    if x.is_nan() { x } else { result.copysign(x) }
}

/// `1 / (1 + e^-x)`, within 3 ulp.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// `ln(1 + e^x)`, within 3 ulp.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    let low = log1p(exp(-x.abs()));
    if x > 0.0 { x + low } else { low }
}

/// `x * sigmoid(hi + lo)`, without losing bits where the sigmoid is denormal; `lo` is tiny beside `hi`.
#[inline(always)]
fn gated(x: f32, hi: f32, lo: f32) -> f32 {
    let negative = hi < 0.0;
    let (small, k) = split_exp(-hi.abs());
    let lo = if negative { lo } else { -lo };
    let p = 1.0 + (1.0 + small).mul_add(lo, small);
    let e = scale(p, k);
    let gate = 1.0 / (1.0 + e);
    // Large negative inputs have an exponential of zero; keep the product away from infinity.
    let x = if negative && x < -200.0 { -200.0 } else { x };
    if negative { scale(x * p * gate, k) } else { x * gate }
}

/// `x * sigmoid(x)`, within 3 ulp. Minus infinity gives the limit, zero.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    gated(x, x, 0.0)
}

/// The tanh form of gelu, `x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, within 4 ulp also in its tail.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    // It equals x * sigmoid(x (A + B x^2)).
    const A: f32 = 1.5957692;
    const A_LO: f32 = -4.534068e-08;
    const B: f32 = 7.1354814e-02;
    const B_LO: f32 = 2.3988325e-09;
    let c = if x > 20.0 { 20.0 } else { x };
    let c = if c < -20.0 { -20.0 } else { c };
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

/// The error function, within 3 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let near = x * poly(x * x, ERF);
    let far = 1.0 - exp(-poly(if a > 4.0 { 4.0 } else { a }, ERF_TAIL));
    if a > 1.0 { far.copysign(x) } else { near }
}

/// `x` times the normal distribution function at `x`, within 4 ulp also in its tail.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let a = x.abs();
    let near = x * x.mul_add(poly(x * x, NORMAL), 0.5);
    // 14.4 is where the tail times x has vanished.
    let b = if a > 14.4 { 14.4 } else { a };
    let square = b * b;
    let square_lo = b.mul_add(b, -square);
    let (small, k) = split_exp(-0.5 * square);
    let p = 1.0 + (1.0 + small).mul_add(-0.5 * square_lo, small);
    let ratio = b * poly((b - 4.0) / (b + 4.0), NORMAL_TAIL) / 1.5f32.mul_add(b, 1.0);
    let tail = scale(p * ratio, k);
    let far = if x < 0.0 { -tail } else { x - tail };
    if a < 0.75 { near } else { far }
}

macro_rules! through_double {
    ($($(#[$doc:meta])* $f:ident)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $f(x: f32) -> f32 {
            double::$f(x as f64) as f32
        }
    )*};
}
through_double! {
    /// The logarithm to base two.
    log2
    /// The tangent.
    tan
    /// The inverse sine.
    asin
    /// The inverse cosine.
    acos
    /// The inverse tangent.
    atan
    /// The hyperbolic sine.
    sinh
    /// The hyperbolic cosine.
    cosh
    /// The inverse hyperbolic sine.
    asinh
    /// The inverse hyperbolic cosine.
    acosh
    /// The inverse hyperbolic tangent.
    atanh
    /// The complementary error function.
    erfc
    /// The inverse error function.
    erfinv
    /// The logarithm of the absolute value of the gamma function.
    lgamma
    /// The derivative of [`lgamma`].
    digamma
}

/// The angle of the point `(x, y)`.
#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    double::atan2(y as f64, x as f64) as f32
}

/// `x` to the power `y`, with C's conventions for the edges.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    double::pow_short(x as f64, y as f64) as f32
}
