//! The functions that single precision has its own form of; all others are in [`crate::math`] for both precisions, or
//! round what [`double`] computes.

use super::{double, poly};

/// Up to this magnitude the `*_bounded` functions hold.
pub const TRIG_BOUND: f32 = double::TRIG_BOUND as f32;

/// `(sin(r) - r) / r^3` in `r^2`.
const SIN: [f32; 4] = [-1.6666667e-01, 8.333329e-03, -1.9839297e-04, 2.7179688e-06];

/// `(cos(r) - 1 + r^2 / 2) / r^4` in `r^2`.
const COS: [f32; 3] = [4.1666646e-02, -1.3887304e-03, 2.4431694e-05];

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
    let sin = (r * z).mul_add(poly(z, &SIN), r);
    let cos = (z * z).mul_add(poly(z, &COS), z.mul_add(-0.5, 1.0));
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
