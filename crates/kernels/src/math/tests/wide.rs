//! A slow reference with some hundred bits: unevaluated sums of two doubles, and the textbook series.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// `hi + lo`, with `lo` below half a unit of `hi`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    pub(super) hi: f64,
    pub(super) lo: f64,
}

const WIDE_PI: Wide = Wide { hi: PI, lo: 1.2246467991473532e-16 };
const WIDE_LN_2: Wide = Wide { hi: LN_2, lo: 2.3190468138462996e-17 };
const HALF_SQRT_2: Wide = Wide { hi: FRAC_1_SQRT_2, lo: -4.833646656726457e-17 };

fn two_sum(a: f64, b: f64) -> Wide {
    let hi = a + b;
    let back = hi - a;
    Wide { hi, lo: (a - (hi - back)) + (b - back) }
}

impl From<f64> for Wide {
    fn from(x: f64) -> Wide {
        Wide { hi: x, lo: 0.0 }
    }
}

impl Neg for Wide {
    type Output = Wide;
    fn neg(self) -> Wide {
        Wide { hi: -self.hi, lo: -self.lo }
    }
}

impl Add for Wide {
    type Output = Wide;
    fn add(self, other: Wide) -> Wide {
        let (high, low) = (two_sum(self.hi, other.hi), two_sum(self.lo, other.lo));
        let first = two_sum(high.hi, high.lo + low.hi);
        two_sum(first.hi, first.lo + low.lo)
    }
}

impl Sub for Wide {
    type Output = Wide;
    fn sub(self, other: Wide) -> Wide {
        self + -other
    }
}

impl Mul for Wide {
    type Output = Wide;
    fn mul(self, other: Wide) -> Wide {
        let hi = self.hi * other.hi;
        let lo = self.hi.mul_add(other.hi, -hi) + (self.hi * other.lo + self.lo * other.hi);
        two_sum(hi, lo)
    }
}

impl Div for Wide {
    type Output = Wide;
    fn div(self, other: Wide) -> Wide {
        let first = self.hi / other.hi;
        let rest = self - other * Wide::from(first);
        let second = rest.hi / other.hi;
        let rest = rest - other * Wide::from(second);
        two_sum(first, second) + Wide::from(rest.hi / other.hi)
    }
}

impl Wide {
    pub(super) fn sqrt(self) -> Wide {
        let root = self.hi.sqrt();
        if root == 0.0 || !root.is_finite() {
            return Wide::from(root);
        }
        // Scaled by an even power of two, so that squares neither overflow nor vanish.
        let scale = 2f64.powi(-(root.log2() as i32));
        let x = Wide { hi: self.hi * scale * scale, lo: self.lo * scale * scale };
        let root = Wide::from(x.hi.sqrt());
        let root = root + (x - root * root) / (root + root);
        Wide { hi: root.hi / scale, lo: root.lo / scale }
    }

    pub(super) fn exp(self) -> Wide {
        if self.hi.is_nan() || self.hi > 710.0 || self.hi < -760.0 {
            return Wide::from(self.hi.exp());
        }
        let n = (self.hi / LN_2).round();
        let r = (self - WIDE_LN_2 * Wide::from(n)) * Wide::from(1.0 / 16.0);
        let mut term = Wide::from(1.0);
        let mut sum = term;
        for k in 1..18 {
            term = term * r / Wide::from(k as f64);
            sum = sum + term;
        }
        for _ in 0..4 {
            sum = sum * sum;
        }
        let (half, rest) = ((n / 2.0).trunc() as i32, (n - (n / 2.0).trunc()) as i32);
        let (half, rest) = (2f64.powi(half), 2f64.powi(rest));
        Wide { hi: sum.hi * half * rest, lo: sum.lo * half * rest }
    }

    pub(super) fn ln(self) -> Wide {
        if self.hi <= 0.0 || !self.hi.is_finite() {
            return Wide::from(self.hi.ln());
        }
        let e = self.hi.log2().round();
        let (half, rest) = (2f64.powi(-((e / 2.0) as i32)), 2f64.powi(-((e - (e / 2.0).trunc()) as i32)));
        let m = Wide { hi: self.hi * half * rest, lo: self.lo * half * rest };
        let guess = Wide::from(m.hi.ln());
        guess + (m * (-guess).exp() - Wide::from(1.0)) + WIDE_LN_2 * Wide::from(e)
    }

    fn abs(self) -> Wide {
        if self.hi < 0.0 { -self } else { self }
    }
}

fn one() -> Wide {
    Wide::from(1.0)
}

/// An odd function: by `formula` for positive arguments, and for tiny ones `x + cubic x^3`.
fn odd(x: f64, cubic: f64, formula: impl Fn(Wide) -> Wide) -> Wide {
    if !x.is_finite() {
        return Wide::from(x);
    }
    if x.abs() < 1e-8 {
        return Wide { hi: x, lo: cubic * x * x * x };
    }
    let value = formula(Wide::from(x.abs()));
    if x < 0.0 { -value } else { value }
}

pub(super) fn asinh(x: f64) -> Wide {
    odd(x, -1.0 / 6.0, |a| if a.hi > 1e100 { a.ln() + WIDE_LN_2 } else { (a + (a * a + one()).sqrt()).ln() })
}

pub(super) fn acosh(x: f64) -> Wide {
    let a = Wide::from(x);
    if x < 1.0 || x.is_nan() {
        Wide::from(f64::NAN)
    } else if x > 1e100 {
        if x == f64::INFINITY { a } else { a.ln() + WIDE_LN_2 }
    } else {
        (a + ((a - one()) * (a + one())).sqrt()).ln()
    }
}

pub(super) fn atanh(x: f64) -> Wide {
    if x.abs() >= 1.0 || x.is_nan() {
        return Wide::from(if x.abs() == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN });
    }
    odd(x, 1.0 / 3.0, |a| ((one() + a) / (one() - a)).ln() * Wide::from(0.5))
}

pub(super) fn rsqrt(x: f64) -> Wide {
    if x > 0.0 && x < f64::INFINITY { one() / Wide::from(x).sqrt() } else { Wide::from(1.0 / x.sqrt()) }
}

pub(super) fn sigmoid(x: f64) -> Wide {
    let e = Wide::from(-x.abs()).exp();
    (if x < 0.0 { e } else { one() }) / (one() + e)
}

pub(super) fn softplus(x: f64) -> Wide {
    if x.is_nan() || x == f64::INFINITY {
        return Wide::from(x);
    }
    let e = Wide::from(-x.abs()).exp();
    // ln(1 + e) cancels where e is small; its series does not.
    let low = if e.hi < 1e-8 { e - e * e * Wide::from(0.5) } else { (one() + e).ln() };
    if x > 0.0 { Wide::from(x) + low } else { low }
}

/// `x * e^v * rest` for very negative `v`, in an order that does not underflow early.
fn scaled(x: f64, v: Wide, rest: Wide) -> Wide {
    if v.hi < -800.0 {
        return Wide::from(0f64.copysign(x * rest.hi));
    }
    let value = Wide::from(x) * (v + Wide::from(700.0)).exp() * rest;
    let tiny = Wide::from(-700.0).exp();
    value * tiny
}

fn gated(x: f64, v: Wide) -> Wide {
    if v.hi < -600.0 { scaled(x, v, one()) } else { Wide::from(x) * sigmoid_of(v) }
}

fn sigmoid_of(v: Wide) -> Wide {
    let e = (-v.abs()).exp();
    (if v.hi < 0.0 { e } else { one() }) / (one() + e)
}

pub(super) fn silu(x: f64) -> Wide {
    if x < -1e4 {
        return Wide::from(-0.0);
    }
    if x == 0.0 || x > 1e4 || x.is_nan() { Wide::from(x) } else { gated(x, Wide::from(x)) }
}

pub(super) fn gelu_tanh(x: f64) -> Wide {
    if x < -1e3 {
        return Wide::from(-0.0);
    }
    if x == 0.0 || x > 1e3 || x.is_nan() {
        return Wide::from(x);
    }
    // 0.044715 is a decimal constant, not the double next to it.
    let cubic = Wide::from(44715.0) / Wide::from(1e6);
    let factor = (Wide::from(8.0) / WIDE_PI).sqrt();
    let a = Wide::from(x);
    gated(x, factor * a * (one() + cubic * a * a))
}

/// `erf(x) e^(x^2) sqrt(pi) / 2`, by a series of positive terms.
fn erf_series(x: Wide) -> Wide {
    let (mut term, mut sum) = (x, x);
    for k in 1..120 {
        term = term * x * x * Wide::from(2.0) / Wide::from((2 * k + 1) as f64);
        sum = sum + term;
        if term.hi.abs() < sum.hi.abs() * 1e-33 {
            break;
        }
    }
    sum
}

/// `erfc(x) e^(x^2) sqrt(pi)` for `x >= 3`, by its continued fraction from the far end.
fn erfc_fraction(x: Wide) -> Wide {
    let mut tail = x;
    for k in (1..160).rev() {
        tail = x + Wide::from(k as f64 / 2.0) / tail;
    }
    one() / tail
}

fn erf_of(x: Wide) -> Wide {
    let two_over_root_pi = Wide::from(2.0) / WIDE_PI.sqrt();
    if x.abs().hi < 3.0 {
        erf_series(x) * (-(x * x)).exp() * two_over_root_pi
    } else if x.hi > 0.0 {
        one() - erfc_positive(x, one())
    } else {
        erfc_positive(-x, one()) - one()
    }
}

/// `factor * erfc(x)` for positive `x`.
fn erfc_positive(x: Wide, factor: Wide) -> Wide {
    if x.hi < 3.0 { (one() - erf_of(x)) * factor } else { scaled_tail(x, factor) }
}

fn scaled_tail(x: Wide, factor: Wide) -> Wide {
    if x.hi > 30.0 {
        return Wide::from(0.0) * factor;
    }
    let rest = erfc_fraction(x) / WIDE_PI.sqrt();
    scaled(1.0, -(x * x), rest * factor)
}

pub(super) fn erf(x: f64) -> Wide {
    if x == 0.0 || x.is_nan() {
        return Wide::from(x);
    }
    if x.abs() > 30.0 { Wide::from(1f64.copysign(x)) } else { erf_of(Wide::from(x)) }
}

pub(super) fn erfc(x: f64) -> Wide {
    if x.is_nan() {
        return Wide::from(x);
    }
    if x.abs() > 30.0 {
        return Wide::from(if x < 0.0 { 2.0 } else { 0.0 });
    }
    let tail = erfc_positive(Wide::from(x.abs()), one());
    if x < 0.0 { Wide::from(2.0) - tail } else { tail }
}

pub(super) fn gelu(x: f64) -> Wide {
    if x == 0.0 || x > 40.0 || x.is_nan() {
        return Wide::from(x);
    }
    if x < -40.0 {
        return Wide::from(-0.0);
    }
    let t = Wide::from(x.abs()) * HALF_SQRT_2;
    let tail = erfc_positive(t, Wide::from(-0.5 * x.abs()));
    if x < 0.0 { tail } else { Wide::from(x) + tail }
}

/// How far `y` is from `erfinv(x)`: the residual over the slope.
pub(super) fn erfinv_error(x: f64, y: f64) -> f64 {
    if !y.is_finite() || x == 0.0 {
        return 0.0;
    }
    let a = Wide::from(y.abs());
    let residual = if y.abs() < 1.0 {
        erf_of(a) - Wide::from(x.abs())
    } else {
        (one() - Wide::from(x.abs())) - erfc_positive(a, one())
    };
    let slope = Wide::from(2.0) / WIDE_PI.sqrt() * (-(a * a)).exp();
    (residual / slope).hi * y.signum()
}

const BERNOULLI: [(f64, f64); 14] = [
    (1.0, 6.0),
    (-1.0, 30.0),
    (1.0, 42.0),
    (-1.0, 30.0),
    (5.0, 66.0),
    (-691.0, 2730.0),
    (7.0, 6.0),
    (-3617.0, 510.0),
    (43867.0, 798.0),
    (-174611.0, 330.0),
    (854513.0, 138.0),
    (-236364091.0, 2730.0),
    (8553103.0, 6.0),
    (-23749461029.0, 870.0),
];

/// Stirling's series at `x + 40`, less the logarithm of what lies between.
pub(super) fn lgamma(x: f64) -> Wide {
    if !x.is_finite() || x == 0.0 || x > 2.556e305 {
        return Wide::from(if x.is_nan() { x } else { f64::INFINITY });
    }
    if x == 1.0 || x == 2.0 {
        return Wide::from(0.0);
    }
    if x < 1e-200 {
        return Wide::from(-x.ln());
    }
    let (mut y, mut shift) = (Wide::from(x), Wide::from(0.0));
    while y.hi < 40.0 {
        shift = shift + y.ln();
        y = y + one();
    }
    let inverse = one() / y;
    let square = inverse * inverse;
    let mut power = inverse;
    let mut series = Wide::from(0.0);
    for (k, (top, bottom)) in BERNOULLI.iter().enumerate() {
        let even = 2.0 * (k + 1) as f64;
        series = series + Wide::from(*top) / Wide::from(bottom * even * (even - 1.0)) * power;
        power = power * square;
    }
    let half = Wide::from(0.5);
    (y - half) * y.ln() - y + half * (WIDE_PI * Wide::from(2.0)).ln() + series - shift
}

pub(super) fn digamma(x: f64) -> Wide {
    if !x.is_finite() || x == 0.0 {
        return Wide::from(if x == 0.0 { f64::NAN } else { x });
    }
    if x < 1e-300 {
        return Wide::from(-1.0 / x);
    }
    let (mut y, mut shift) = (Wide::from(x), Wide::from(0.0));
    while y.hi < 40.0 {
        shift = shift + one() / y;
        y = y + one();
    }
    let inverse = one() / y;
    let square = inverse * inverse;
    let mut power = square;
    let mut series = Wide::from(0.0);
    for (k, (top, bottom)) in BERNOULLI.iter().enumerate() {
        let even = 2.0 * (k + 1) as f64;
        series = series + Wide::from(*top) / Wide::from(bottom * even) * power;
        power = power * square;
    }
    y.ln() - Wide::from(0.5) / y - series - shift
}

/// The sine of `pi d` for `|d| <= 1/2`, by its product with the gamma function: `pi d / (gamma(1 + d) gamma(1 - d))`.
fn log_sine(d: f64) -> Wide {
    (WIDE_PI * Wide::from(d.abs())).ln() - lgamma_of_one_plus(d) - lgamma_of_one_plus(-d)
}

fn lgamma_of_one_plus(d: f64) -> Wide {
    // gamma(1 + d) = gamma(2 + d) / (1 + d), and 2 + d may need the low part.
    let base = two_sum(2.0, d);
    let near = lgamma(base.hi) + digamma(base.hi) * Wide::from(base.lo);
    near - two_sum(1.0, d).ln()
}

/// `lgamma` of a negative number, by reflection.
pub(super) fn lgamma_reflected(x: f64) -> f64 {
    let d = x - x.round_ties_even();
    (WIDE_PI.ln() - Wide::from(-x).ln() - log_sine(d) - lgamma(-x)).hi
}

/// `digamma` of a negative number, by walking up to positive ones.
pub(super) fn digamma_reflected(x: f64) -> f64 {
    let (mut y, mut shift) = (Wide::from(x), Wide::from(0.0));
    while y.hi < 1.0 {
        shift = shift + one() / y;
        y = y + one();
    }
    // The slope of digamma takes the low part of y along.
    let slope = (digamma(y.hi * 1.0001) - digamma(y.hi)).hi / (y.hi * 0.0001);
    (digamma(y.hi) + Wide::from(slope * y.lo) - shift).hi
}
