//! Powers, computed in double precision.

use super::exp::{exp, exp_pair};
use super::lane::Lane;
use super::log::{log, split_log};
use super::tables::{LN2_LO_DOUBLE, LOG_TAIL_DOUBLE};
use super::{Real, poly, two_sum};
use std::f64::consts::LN_2;

/// The logarithm of a positive finite number as an unevaluated sum with some 66 bits.
#[inline(always)]
fn log_pair<T: Lane>(x: T) -> (T, T) {
    let (two_thirds, two_thirds_low) = (T::number(0.6666666666666666), T::number(3.700743415417188e-17));
    let two = T::number(2.0);
    let (e, m) = split_log(x);
    let f = m - T::ONE;
    // s = f / (2 + f), with the remainder of the division; 2 + f may itself be rounded.
    let (below, below_low) = two_sum(two, f);
    let s = f / below;
    let s_low = (s.neg_mul_add(below, f) - s * below_low) / below;
    let z = s * s;
    let z_low = s.mul_sub(s, z) + two * s * s_low;
    // c = 2/3 + z * tail, then the cube term s * z * c, each with its low part.
    let tail = z * poly(z, &LOG_TAIL_DOUBLE);
    let c = two_thirds + tail;
    let c_low = tail - (c - two_thirds) + two_thirds_low;
    let q = z * c;
    let q_low = z.mul_sub(c, q) + z.mul_add(c_low, z_low * c);
    let cube = s * q;
    let cube_low = s.mul_sub(q, cube) + s.mul_add(q_low, s_low * q);
    let (unit, unit_low) = two_sum(two * s, cube);
    let unit_low = unit_low + (cube_low + two * s_low);
    // e * ln 2 as a pair: the product of the high part is split exactly.
    let ln2 = T::number(LN_2);
    let big = e * ln2;
    let big_low = e.mul_sub(ln2, big);
    let (sum, sum_low) = two_sum(big, unit);
    let low = sum_low + (unit_low + e.mul_add(T::number(LN2_LO_DOUBLE), big_low));
    let high = sum + low;
    (high, low - (high - sum))
}

/// `x` to the power `y`, within 1 ulp, with C's conventions for the edges (`pow(x, 0) == pow(1, y) == 1`).
#[inline(always)]
pub fn pow<T: Real>(x: T, y: T) -> T {
    if T::DOUBLE { pow_double(x, y) } else { T::from_f64(pow_single(x.to_f64(), y.to_f64())) }
}

/// [`pow`] in double precision.
#[inline(always)]
pub fn pow_double<T: Lane>(x: T, y: T) -> T {
    let (log, log_low) = log_pair(ordinary(x));
    // Beyond this, |y| makes every result but 1 overflow or vanish; the products stay finite.
    let bounded = y.at_most(1e20).at_least(-1e20);
    let high = bounded * log;
    let low = bounded.mul_sub(log, high) + bounded * log_low;
    edges(x, y, exp_pair(high, low))
}

/// [`pow`] of single-precision numbers, in double precision: accurate enough to round to single precision.
#[inline(always)]
pub fn pow_single<T: Lane>(x: T, y: T) -> T {
    edges(x, y, exp(y * log(ordinary(x))))
}

/// `|x|`, or one where [`edges`] decides without the logarithm.
#[inline(always)]
fn ordinary<T: Lane>(x: T) -> T {
    let a = x.abs();
    T::select(a.is_positive_finite(), a, T::ONE)
}

/// The sign and the special cases of a power whose absolute value is `size` in the ordinary case.
#[inline(always)]
fn edges<T: Lane>(x: T, y: T, size: T) -> T {
    let a = x.abs();
    // A zero or infinite base, by the sign of the exponent.
    let vanishes = a.greater(T::ONE) ^ y.greater(T::ZERO);
    let edge = T::select(vanishes, T::ZERO, T::INFINITY);
    let size = T::select(a.equals(T::ZERO) | a.equals(T::INFINITY), edge, size);
    let size = T::select(a.equals(T::ONE), T::ONE, size);
    let whole = y.trunc();
    let half = T::HALF * y;
    let odd = whole.equals(y) & half.trunc().differs(half);
    let signed = T::select(odd, size.with_sign(x), size);
    let outside = x.less(T::ZERO) & a.less(T::INFINITY) & whole.differs(y);
    let result = T::select(outside | x.unordered(y), T::NAN, signed);
    T::select(y.equals(T::ZERO) | x.equals(T::ONE), T::ONE, result)
}
