//! Sines and their inverses.

use crate::math::poly;

/// Up to this magnitude the `*_bounded` functions hold.
pub const TRIG_BOUND: f64 = 1099511627776.0;

// pi/2 in three parts.
const PI_2: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
const ROUND: f64 = 6755399441055744.0;

/// `(sin(r) - r) / r^3` in `r^2`.
const SIN: [f64; 6] = [
    -0.1666666666666663,
    0.008333333333321907,
    -0.0001984126982941203,
    2.7557313556975427e-06,
    -2.505073725855893e-08,
    1.589559856489059e-10,
];

/// `(cos(r) - 1 + r^2 / 2) / r^4` in `r^2`.
const COS: [f64; 6] = [
    0.04166666666666659,
    -0.001388888888887275,
    2.480158728865331e-05,
    -2.7557314120181887e-07,
    2.0875692577781487e-09,
    -1.1358097504281738e-11,
];

/// `(atan(t) - t) / t^3` in `t^2`, for `t` up to `tan(pi / 8)`.
const ATAN: [f64; 12] = [
    -0.33333333333333326,
    0.19999999999997647,
    -0.14285714285385184,
    0.11111111088000586,
    -0.09090908138104246,
    0.07692282612775227,
    -0.06666224593982432,
    0.058770005224878956,
    -0.052182668285384426,
    0.04502987527736983,
    -0.03346131410413448,
    0.015181741426614437,
];

/// `(asin(s) - s) / s^3` in `s^2`, for `s` up to a half.
const ASIN: [f64; 13] = [
    0.16666666666666763,
    0.07499999999970099,
    0.04464285717528239,
    0.030381942675555745,
    0.02237221589665623,
    0.017351595678570732,
    0.013981016351779816,
    0.011397310731845058,
    0.010789225076008506,
    0.0036725315820199875,
    0.0217898515483349,
    -0.021115667013137933,
    0.03270155221301364,
];

/// The bits of 2/pi after the binary point, behind 64 zeros.
const TWO_OVER_PI: [u64; 21] = [
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
];

/// `x = n pi/2 + r` with `|r| <= pi/4`; returns `r` and `n` modulo 4.
#[inline(always)]
fn reduce(x: f64) -> (f64, u64) {
    let sum = x.mul_add(std::f64::consts::FRAC_2_PI, ROUND);
    let n = sum - ROUND;
    // The first step is exact; what the later ones round away is small beside any remainder a double can have.
    let r = n.mul_add(-PI_2[2], n.mul_add(-PI_2[1], n.mul_add(-PI_2[0], x)));
    (r, sum.to_bits() & 3)
}

/// [`reduce`] for finite `|x| >= 2^40`, by multiplying with just the bits of 2/pi that matter modulo 4.
#[cold]
fn reduce_huge(x: f64) -> (f64, u64) {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as usize + 64 - 1075;
    let mantissa = ((bits & ((1 << 52) - 1)) | (1 << 52)) as u128;
    // |x| = mantissa * 2^(exponent - 64): a bit of 2/pi with weight 2^-i contributes multiples of 4 if
    // i <= exponent - 66.
    let start = exponent - 2;
    let word = |i: usize| {
        let (at, shift) = ((start + 64 * i) / 64, (start + 64 * i) % 64);
        let pair = (TWO_OVER_PI[at] as u128) << 64 | TWO_OVER_PI[at + 1] as u128;
        (pair << shift >> 64) as u64 as u128
    };
    let low = mantissa * word(2);
    let middle = mantissa * word(1) + (low >> 64);
    let high = ((mantissa * word(0)) as u64).wrapping_add((middle >> 64) as u64);
    // A fixed-point number of quarter turns: two bits of integer, then the fraction.
    let quarter = (high as u128) << 64 | (middle as u64) as u128;
    let fraction = (quarter << 2 | (low as u64 >> 62) as u128) as i128;
    let n = (quarter >> 126) as u64 + (fraction < 0) as u64;
    let r = fraction as f64 * (PI_2[0] * 2f64.powi(-128));
    if x < 0.0 { (-r, n.wrapping_neg() & 3) } else { (r, n & 3) }
}

#[inline(always)]
fn sin_cos_reduced(r: f64) -> (f64, f64) {
    let z = r * r;
    let sin = (r * z).mul_add(poly(z, &SIN), r);
    let half = 0.5 * z;
    let top = 1.0 - half;
    // The low part recovers what 1 - z/2 rounds away.
    let cos = top + (z * z).mul_add(poly(z, &COS), (1.0 - top) - half);
    (sin, cos)
}

#[inline(always)]
fn sin_of((r, n): (f64, u64)) -> f64 {
    let (sin, cos) = sin_cos_reduced(r);
    let value = if n & 1 == 0 { sin } else { cos };
    f64::from_bits(value.to_bits() ^ ((n & 2) << 62))
}

#[inline(always)]
fn tan_of((r, n): (f64, u64)) -> f64 {
    let (sin, cos) = sin_cos_reduced(r);
    let odd = n & 1 != 0;
    (if odd { -cos } else { sin }) / if odd { sin } else { cos }
}

/// The sine of `|x| <= TRIG_BOUND`, branch-free, within 2 ulp.
#[inline(always)]
pub fn sin_bounded(x: f64) -> f64 {
    let result = sin_of(reduce(x));
    if x == 0.0 { x } else { result }
}

/// The cosine of `|x| <= TRIG_BOUND`, branch-free, within 2 ulp.
#[inline(always)]
pub fn cos_bounded(x: f64) -> f64 {
    let (r, n) = reduce(x);
    sin_of((r, n + 1))
}

/// The tangent of `|x| <= TRIG_BOUND`, branch-free, within 4 ulp.
#[inline(always)]
pub fn tan_bounded(x: f64) -> f64 {
    let result = tan_of(reduce(x));
    if x == 0.0 { x } else { result }
}

/// The sine, within 2 ulp for every argument.
#[inline(always)]
pub fn sin(x: f64) -> f64 {
    if x.abs() <= TRIG_BOUND { sin_bounded(x) } else { sin_huge(x) }
}

/// The cosine, within 2 ulp for every argument.
#[inline(always)]
pub fn cos(x: f64) -> f64 {
    if x.abs() <= TRIG_BOUND { cos_bounded(x) } else { cos_huge(x) }
}

/// The tangent, within 4 ulp for every argument.
#[inline(always)]
pub fn tan(x: f64) -> f64 {
    if x.abs() <= TRIG_BOUND { tan_bounded(x) } else { tan_huge(x) }
}

#[cold]
fn sin_huge(x: f64) -> f64 {
    if x.is_finite() { sin_of(reduce_huge(x)) } else { f64::NAN }
}

#[cold]
fn cos_huge(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (r, n) = reduce_huge(x);
    sin_of((r, n + 1))
}

#[cold]
fn tan_huge(x: f64) -> f64 {
    if x.is_finite() { tan_of(reduce_huge(x)) } else { f64::NAN }
}

/// The inverse tangent of `top / bottom`, both positive; at least one is nonzero and finite.
#[inline(always)]
fn atan_ratio(top: f64, bottom: f64) -> f64 {
    const TAN_3PI_8: f64 = 2.414213562373095;
    const TAN_PI_8: f64 = 0.41421356237309503;
    // Either the ratio itself, or pi/4 + atan((x - 1) / (x + 1)), or pi/2 - atan(1 / x).
    let ratio = top / bottom;
    let steep = ratio > TAN_3PI_8;
    let flat = ratio <= TAN_PI_8;
    let t = (ratio - 1.0) / (ratio + 1.0);
    let t = if flat { ratio } else { t };
    let t = if steep { -bottom / top } else { t };
    let (base, low) = if steep { (PI_2[0], PI_2[1]) } else { (0.5 * PI_2[0], 0.5 * PI_2[1]) };
    let (base, low) = if flat { (0.0, 0.0) } else { (base, low) };
    let z = t * t;
    base + (t + (t * z).mul_add(poly(z, &ATAN), low))
}

/// The inverse tangent, within 2 ulp.
#[inline(always)]
pub fn atan(x: f64) -> f64 {
    let result = atan_ratio(x.abs(), 1.0);
    let result = if x.abs() == f64::INFINITY { PI_2[0] } else { result };
    if x.is_nan() { x } else { result.copysign(x) }
}

/// The angle of the point `(x, y)`, within 3 ulp, with C's conventions for zeros and infinities.
#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    let both_infinite = a == f64::INFINITY && b == f64::INFINITY;
    let (a, b) = if both_infinite { (1.0, 1.0) } else { (a, b) };
    // 0/0 counts as zero on the side x's sign says.
    let b = if a == 0.0 && b == 0.0 { 1.0 } else { b };
    let angle = atan_ratio(a, b);
    let angle = if a == f64::INFINITY || (b == 0.0 && a > 0.0) { PI_2[0] } else { angle };
    let angle = if x.is_sign_negative() { 2.0 * PI_2[0] - (angle - 2.0 * PI_2[1]) } else { angle };
    if x.is_nan() || y.is_nan() { f64::NAN } else { angle.copysign(y) }
}

/// `(asin(s), scaled)`: for `|x| <= 1/2` the value itself with `s = |x|`; beyond, `asin(sqrt((1 - |x|) / 2))`.
#[inline(always)]
fn asin_core(a: f64) -> f64 {
    let outer = a > 0.5;
    let z = if outer { 0.5 * (1.0 - a) } else { a * a };
    let s = if outer { z.sqrt() } else { a };
    (s * z).mul_add(poly(z, &ASIN), s)
}

/// The inverse sine, within 2 ulp.
#[inline(always)]
pub fn asin(x: f64) -> f64 {
    let a = x.abs();
    let core = asin_core(a);
    let result = if a > 0.5 { PI_2[0] - 2.0f64.mul_add(core, -PI_2[1]) } else { core };
    if a > 1.0 { f64::NAN } else { result.copysign(x) }
}

/// The inverse cosine, within 2 ulp.
#[inline(always)]
pub fn acos(x: f64) -> f64 {
    let a = x.abs();
    let core = asin_core(a);
    let inner = PI_2[0] - (core.copysign(x) - PI_2[1]);
    let outer = if x < 0.0 { 2.0 * PI_2[0] - 2.0 * (core - PI_2[1]) } else { 2.0 * core };
    let result = if a > 0.5 { outer } else { inner };
    if a > 1.0 { f64::NAN } else { result }
}
