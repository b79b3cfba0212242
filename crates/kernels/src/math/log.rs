//! Logarithms: `x = 2^e m` with `m` around one.

use super::lane::Lane;
use super::tables::{LN2_LO, LN2_LO_DOUBLE, LOG, LOG_DOUBLE};
use super::{poly, two_sum};
use std::f64::consts::LN_2;

/// [`Lane::split_exponent`] of a positive number, denormals included.
#[inline(always)]
pub(super) fn split_log<T: Lane>(x: T) -> (T, T) {
    // Denormals are scaled first, by 2^25 or 2^54.
    let denormal = x.less(T::pick(f32::MIN_POSITIVE, f64::MIN_POSITIVE));
    let scale = T::select_constant(denormal, T::pick(33554432.0, 18014398509481984.0), T::ONE);
    let (e, m) = (x * scale).split_exponent();
    (e - T::select_constant(denormal, T::pick(25.0, 54.0), T::ZERO), m)
}

/// `e ln 2 + ln(1 + f) + low`, for `1 + f` around one.
#[inline(always)]
pub(super) fn join_log<T: Lane>(e: T, f: T, low: T) -> T {
    let low = e.mul_add(T::pick(LN2_LO, LN2_LO_DOUBLE), low);
    let (half, tail) = if T::DOUBLE {
        let s = f / (T::number(2.0) + f);
        let z = s * s;
        let half = T::HALF * f * f;
        (half, s.mul_add(z.mul_add(poly(z, &LOG_DOUBLE), half), low))
    } else {
        let z = f * f;
        (T::HALF * z, (f * z).mul_add(poly(f, &LOG), low))
    };
    e.mul_add(T::pick(std::f32::consts::LN_2, LN_2), f - (half - tail))
}

/// What a logarithm gives at the edges of its domain, else `result`.
#[inline(always)]
pub(super) fn log_edges<T: Lane>(x: T, result: T) -> T {
    let edge = T::select(x.less(T::ZERO), T::NAN, x);
    let result = T::select(x.is_positive_finite(), result, edge);
    // Last: a denormal number has the bits of a positive one, and is equal to zero where denormal numbers are zeros.
    T::select(x.equals(T::ZERO), -T::INFINITY, result)
}

/// The natural logarithm, within 1 ulp.
#[inline(always)]
pub fn log<T: Lane>(x: T) -> T {
    let (e, m) = split_log(x);
    log_edges(x, join_log(e, m - T::ONE, T::ZERO))
}

/// `ln(1 + x)`, within 2 ulp.
#[inline(always)]
pub fn log1p<T: Lane>(x: T) -> T {
    let (u, lost) = two_sum(T::ONE, x);
    let (e, m) = u.split_exponent();
    let unit = e.equals(T::ZERO);
    let f = T::select(unit, x, m - T::ONE);
    let low = T::select(unit, T::ZERO, lost / u);
    let result = log_edges(u, join_log(e, f, low));
    // Keeps the sign of zero.
    T::select(x.equals(T::ZERO), x, result)
}
