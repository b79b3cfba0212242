//! Powers.

use super::{EXP, EXPONENT_BIAS, LN2_HI, LN2_LO, LOG2_E, ROUND, exp, log, scale, split_log_any};
use crate::math::poly;
use crate::math::tables::LOG_TAIL_DOUBLE as LOG_TAIL;

#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let back = sum - a;
    (sum, (a - (sum - back)) + (b - back))
}

/// The logarithm of a positive finite number as an unevaluated sum with some 66 bits.
#[inline(always)]
fn log_pair(x: f64) -> (f64, f64) {
    const TWO_THIRDS: (f64, f64) = (0.6666666666666666, 3.700743415417188e-17);
    let (e, m) = split_log_any(x);
    let f = m - 1.0;
    // s = f / (2 + f), with the remainder of the division; 2 + f may itself be rounded.
    let (below, below_low) = two_sum(2.0, f);
    let s = f / below;
    let s_low = (s.mul_add(-below, f) - s * below_low) / below;
    let z = s * s;
    let z_low = s.mul_add(s, -z) + 2.0 * s * s_low;
    // c = 2/3 + z * tail, then the cube term s * z * c, each with its low part.
    let tail = z * poly(z, LOG_TAIL);
    let c = TWO_THIRDS.0 + tail;
    let c_low = tail - (c - TWO_THIRDS.0) + TWO_THIRDS.1;
    let q = z * c;
    let q_low = z.mul_add(c, -q) + z.mul_add(c_low, z_low * c);
    let cube = s * q;
    let cube_low = s.mul_add(q, -cube) + s.mul_add(q_low, s_low * q);
    let (unit, unit_low) = two_sum(2.0 * s, cube);
    let unit_low = unit_low + (cube_low + 2.0 * s_low);
    // e * ln 2 as a pair: the product of the high part is split exactly.
    let big = e * LN2_HI;
    let big_low = e.mul_add(LN2_HI, -big);
    let (sum, sum_low) = two_sum(big, unit);
    let low = sum_low + (unit_low + e.mul_add(LN2_LO, big_low));
    let high = sum + low;
    (high, low - (high - sum))
}

/// `e^(hi + lo)` with `|lo|` tiny beside `hi`.
#[inline(always)]
fn exp_pair(hi: f64, lo: f64) -> f64 {
    let hi_c = if hi > 720.0 { 720.0 } else { hi };
    let hi_c = if hi_c < -800.0 { -800.0 } else { hi_c };
    let lo = if hi_c == hi { lo } else { 0.0 };
    let sum = hi_c.mul_add(LOG2_E, ROUND + EXPONENT_BIAS);
    let n = sum - (ROUND + EXPONENT_BIAS);
    let r = n.mul_add(-LN2_HI, hi_c);
    let low = n.mul_add(-LN2_LO, lo);
    let small = (r * r).mul_add(poly(r, EXP), r);
    let small = (1.0 + small).mul_add(low, small);
    scale(1.0 + small, sum.to_bits().wrapping_sub(ROUND.to_bits()))
}

/// `x` to the power `y`, within 1 ulp, with C's conventions for the edges (`pow(x, 0) == pow(1, y) == 1`).
#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    let (log, log_low) = log_pair(ordinary(x));
    // Beyond this, |y| makes every result but 1 overflow or vanish; the products stay finite.
    let bounded = if y > 1e20 { 1e20 } else { y };
    let bounded = if bounded < -1e20 { -1e20 } else { bounded };
    let high = bounded * log;
    let low = bounded.mul_add(log, -high) + bounded * log_low;
    edges(x, y, exp_pair(high, low))
}

/// [`pow`] of numbers that came from `f32`, good enough to round back to it.
#[inline(always)]
pub(crate) fn pow_short(x: f64, y: f64) -> f64 {
    edges(x, y, exp(y * log(ordinary(x))))
}

/// `|x|`, or one where [`edges`] decides without the logarithm.
#[inline(always)]
fn ordinary(x: f64) -> f64 {
    let a = x.abs();
    if a > 0.0 && a < f64::INFINITY { a } else { 1.0 }
}

/// The sign and the special cases of a power whose absolute value is `size` in the ordinary case.
#[inline(always)]
fn edges(x: f64, y: f64, size: f64) -> f64 {
    let a = x.abs();
    let whole = y.trunc() == y;
    let odd = whole && (0.5 * y).trunc() != 0.5 * y;
    // A zero or infinite base, by the sign of the exponent.
    let edge = if (a > 1.0) == (y > 0.0) { f64::INFINITY } else { 0.0 };
    let size = if a == 0.0 || a == f64::INFINITY { edge } else { size };
    let size = if a == 1.0 { 1.0 } else { size };
    let signed = if odd && x.is_sign_negative() { -size } else { size };
    let outside = x < 0.0 && !whole && a < f64::INFINITY;
    let result = if outside || x.is_nan() || y.is_nan() { f64::NAN } else { signed };
    if y == 0.0 || x == 1.0 { 1.0 } else { result }
}
