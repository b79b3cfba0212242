//! The functions that are computed in double precision alone.

mod special;
mod trig;

pub use special::*;
pub use trig::*;

use super::exp::{expm1_near, scale, split_exp};
use super::log1p;
use std::f64::consts::LN_2;

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

/// The inverse hyperbolic sine, within 3 ulp.
#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let large = a > 1e100;
    let b = if large { 1.0 } else { a };
    let near = b + b * b / (b.mul_add(b, 1.0).sqrt() + 1.0);
    // ln(2a) for large arguments, where 2a could overflow.
    let result = log1p(if large { a } else { near }) + if large { LN_2 } else { 0.0 };
    if x.is_nan() { x } else { result.copysign(x) }
}

/// The inverse hyperbolic cosine, within 3 ulp.
#[inline(always)]
pub fn acosh(x: f64) -> f64 {
    let large = x > 1e100;
    let t = x - 1.0;
    let near = t + t.mul_add(t, 2.0 * t).sqrt();
    let result = log1p(if large { x } else { near }) + if large { LN_2 } else { 0.0 };
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
