//! Functions of complex numbers, computed in double precision from the real ones. Branch cuts are those of C and NumPy: continuous
//! from the side that the sign of a zero part names.

use super::double::{asinh, atan2, cos, cosh, sin, sinh, tan};
use super::{exp as real_exp, expm1 as real_expm1, log as real_log, log1p as real_log1p};
use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

type C = Complex<f64>;

fn c(re: f64, im: f64) -> C {
    Complex { re, im }
}

/// `i z`.
fn times_i(z: C) -> C {
    c(-z.im, z.re)
}

/// `-i z`.
fn over_i(z: C) -> C {
    c(z.im, -z.re)
}

/// The absolute value, without intermediate overflow; infinite if a part is.
pub fn abs(z: C) -> f64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    if x.is_infinite() || y.is_infinite() {
        return f64::INFINITY;
    }
    let (large, small) = if x > y { (x, y) } else { (y, x) };
    // The smaller one may be NaN.
    if large == 0.0 {
        return large + small;
    }
    let ratio = small / large;
    large * ratio.mul_add(ratio, 1.0).sqrt()
}

/// The angle in `(-pi, pi]`.
pub fn angle(z: C) -> f64 {
    atan2(z.im, z.re)
}

/// `a / b` by Smith's method, which scales by the larger part of `b`.
pub fn div(a: C, b: C) -> C {
    if b.re.abs() >= b.im.abs() {
        if b.re == 0.0 && b.im == 0.0 {
            return c(a.re / b.re.abs(), a.im / b.re.abs());
        }
        let ratio = b.im / b.re;
        let scale = 1.0 / (b.re + b.im * ratio);
        c((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
    } else {
        let ratio = b.re / b.im;
        let scale = 1.0 / (b.re * ratio + b.im);
        c((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
    }
}

/// `1 / z`.
pub fn reciprocal(z: C) -> C {
    div(c(1.0, 0.0), z)
}

/// `z * z`.
pub fn square(z: C) -> C {
    z * z
}

/// The square root with a real part that is not negative.
pub fn sqrt(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if x == 0.0 && y == 0.0 {
        return c(0.0, y);
    }
    if y.is_infinite() {
        return c(f64::INFINITY, y);
    }
    if x.is_nan() {
        return c(x, f64::NAN);
    }
    if x.is_infinite() {
        // A NaN part stays, and an infinite one has an unknown sign.
        return if x > 0.0 {
            c(x, if y.is_nan() { y } else { 0f64.copysign(y) })
        } else {
            c(if y.is_nan() { y } else { 0.0 }, (-x).copysign(y))
        };
    }
    // Halved and scaled, so that neither the sum overflows nor small parts vanish.
    let large = x.abs().max(y.abs());
    let factor = if large > 1e150 {
        0.25
    } else if large < 1e-150 {
        2f64.powi(108)
    } else {
        1.0
    };
    let (a, b) = (x * factor, y * factor);
    let root = ((a.abs() + abs(c(a, b))) * 0.5).sqrt();
    let scale = 1.0 / factor.sqrt();
    if a >= 0.0 {
        c(root * scale, b / (2.0 * root) * scale)
    } else {
        c(b.abs() / (2.0 * root) * scale, (root * scale).copysign(y))
    }
}

/// `1 / sqrt(z)`.
pub fn rsqrt(z: C) -> C {
    reciprocal(sqrt(z))
}

/// `e^z`.
pub fn exp(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c(real_exp(x), y);
    }
    if x.is_infinite() && !y.is_finite() {
        return if x < 0.0 { c(0.0, 0.0) } else { c(x, f64::NAN) };
    }
    if x > 709.0 {
        // In two steps: a large factor times a small sine is finite.
        let half = real_exp(0.5 * x);
        return c(half * (half * cos(y)), half * (half * sin(y)));
    }
    let size = real_exp(x);
    c(size * cos(y), size * sin(y))
}

/// `e^z - 1`, accurate near zero.
pub fn expm1(z: C) -> C {
    if z.im == 0.0 {
        // Not a negative zero: it is the difference of ones.
        return c(real_expm1(z.re) + 0.0, z.im);
    }
    if z.re.is_infinite() && !z.im.is_finite() {
        return if z.re < 0.0 { c(-1.0, 0.0) } else { c(z.re, f64::NAN) };
    }
    let half = sin(0.5 * z.im);
    c(real_expm1(z.re) * cos(z.im) - 2.0 * half * half, real_exp(z.re) * sin(z.im))
}

/// `ln |z|`, accurate where it is near zero.
fn log_abs(x: f64, y: f64) -> f64 {
    let size = abs(c(x, y));
    if (0.5..2.0).contains(&size) {
        let (large, small) = if x.abs() > y.abs() { (x.abs(), y) } else { (y.abs(), x) };
        return 0.5 * real_log1p((large - 1.0).mul_add(large + 1.0, small * small));
    }
    if size > 1e300 && size.is_finite() {
        return real_log(abs(c(x * 0.5, y * 0.5))) + std::f64::consts::LN_2;
    }
    real_log(size)
}

/// The natural logarithm, cut along the negative real numbers.
pub fn log(z: C) -> C {
    c(log_abs(z.re, z.im), angle(z))
}

/// `ln(1 + z)`, accurate near zero.
pub fn log1p(z: C) -> C {
    let (x, y) = (z.re, z.im);
    let re = if x.abs() < 0.5 && y.abs() < 0.5 {
        0.5 * real_log1p(x.mul_add(x + 2.0, y * y))
    } else {
        log_abs(1.0 + x, y)
    };
    c(re, atan2(y, 1.0 + x))
}

/// The hyperbolic sine.
pub fn sinh_c(z: C) -> C {
    if z.im == 0.0 {
        return c(sinh(z.re), z.im);
    }
    if z.re == 0.0 {
        return c(z.re, sin(z.im));
    }
    if z.re.is_infinite() && !z.im.is_finite() {
        return c(z.re, f64::NAN);
    }
    c(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im))
}

/// The hyperbolic cosine.
pub fn cosh_c(z: C) -> C {
    if !z.im.is_finite() {
        if z.re == 0.0 {
            return c(f64::NAN, z.re);
        }
        if z.re.is_infinite() {
            return c(f64::INFINITY, f64::NAN);
        }
    }
    if z.im == 0.0 || z.re == 0.0 {
        let im = if z.im == 0.0 { z.im * 1f64.copysign(z.re) } else { z.re * sin(z.im) };
        return c(cosh(z.re) * cos(z.im), im);
    }
    c(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im))
}

/// The hyperbolic tangent, without intermediate overflow.
pub fn tanh_c(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c(super::tanh(x), y);
    }
    if x.is_finite() && !y.is_finite() {
        return c(if x == 0.0 { x } else { f64::NAN }, f64::NAN);
    }
    if x.abs() > 22.0 {
        let tail = if y.is_finite() { 4.0 * sin(y) * cos(y) * real_exp(-2.0 * x.abs()) } else { 0.0 };
        return c(1f64.copysign(x), tail);
    }
    let (t, s) = (tan(y), sinh(x));
    let beta = t.mul_add(t, 1.0);
    let rho = s.mul_add(s, 1.0).sqrt();
    let below = (beta * s).mul_add(s, 1.0);
    c(beta * rho * s / below, t / below)
}

/// The sine.
pub fn sin_c(z: C) -> C {
    over_i(sinh_c(times_i(z)))
}

/// The cosine.
pub fn cos_c(z: C) -> C {
    cosh_c(times_i(z))
}

/// The tangent.
pub fn tan_c(z: C) -> C {
    over_i(tanh_c(times_i(z)))
}

/// [`asinh_c`] of what has an infinite part or NaN.
fn asinh_not_finite(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() {
        let im = if y.is_nan() {
            y
        } else if y.is_infinite() {
            FRAC_PI_4.copysign(y)
        } else {
            0f64.copysign(y)
        };
        return c(x, im);
    }
    if y.is_infinite() {
        return c(f64::INFINITY.copysign(x), if x.is_nan() { x } else { FRAC_PI_2.copysign(y) });
    }
    c(f64::NAN, if y == 0.0 { y } else { f64::NAN })
}

/// [`acos_c`] of what has an infinite part or NaN.
fn acos_not_finite(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y.is_infinite() {
        let re = if x.is_nan() {
            x
        } else if x.is_infinite() {
            if x > 0.0 { FRAC_PI_4 } else { 3.0 * FRAC_PI_4 }
        } else {
            FRAC_PI_2
        };
        return c(re, -y);
    }
    if x.is_infinite() {
        return match (y.is_nan(), x > 0.0) {
            (true, _) => c(y, f64::INFINITY),
            (false, true) => c(0.0, (-x).copysign(-y)),
            (false, false) => c(PI, x.copysign(-y)),
        };
    }
    c(if x == 0.0 { FRAC_PI_2 } else { f64::NAN }, f64::NAN)
}

fn is_finite(z: C) -> bool {
    z.re.is_finite() && z.im.is_finite()
}

/// The inverse sine, cut along the real numbers beyond 1.
pub fn asin_c(z: C) -> C {
    if !is_finite(z) {
        return over_i(asinh_not_finite(times_i(z)));
    }
    let (minus, plus) = (sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im)));
    c(atan2(z.re, (minus * plus).re), asinh((minus.conj() * plus).im))
}

/// The inverse cosine, cut along the real numbers beyond 1.
pub fn acos_c(z: C) -> C {
    if !is_finite(z) {
        return acos_not_finite(z);
    }
    let (minus, plus) = (sqrt(c(1.0 - z.re, -z.im)), sqrt(c(1.0 + z.re, z.im)));
    c(2.0 * atan2(minus.re, plus.re), asinh((plus.conj() * minus).im))
}

/// The inverse hyperbolic sine.
pub fn asinh_c(z: C) -> C {
    if !is_finite(z) {
        return asinh_not_finite(z);
    }
    times_i(asin_c(over_i(z)))
}

/// The inverse hyperbolic cosine, cut along the real numbers below 1.
pub fn acosh_c(z: C) -> C {
    if !is_finite(z) {
        let turned = acos_not_finite(z);
        return c(turned.im.abs(), turned.re.copysign(z.im));
    }
    let (minus, plus) = (sqrt(c(z.re - 1.0, z.im)), sqrt(c(z.re + 1.0, z.im)));
    c(asinh((minus.conj() * plus).re), 2.0 * atan2(minus.im, plus.re))
}

/// The inverse hyperbolic tangent, cut along the real numbers beyond 1.
pub fn atanh_c(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y.is_nan() {
        return c(if x == 0.0 || x.is_infinite() { 0f64.copysign(x) } else { f64::NAN }, y);
    }
    if x.abs() > 1e150 || y.abs() > 1e150 {
        // 1 / z, to the precision that there is.
        let small = if x.is_infinite() || y.is_infinite() { 0.0 } else { reciprocal(z).re };
        return c(small.abs().copysign(x), FRAC_PI_2.copysign(y));
    }
    let re = 0.25 * real_log1p(4.0 * x.abs() / (1.0 - x.abs()).mul_add(1.0 - x.abs(), y * y));
    c(re.copysign(x), 0.5 * atan2(2.0 * y, (1.0 - x).mul_add(1.0 + x, -(y * y))))
}

/// The inverse tangent.
pub fn atan_c(z: C) -> C {
    over_i(atanh_c(times_i(z)))
}

/// `1 / (1 + e^-z)`.
pub fn sigmoid(z: C) -> C {
    let one = c(1.0, 0.0);
    if z.re >= 0.0 {
        reciprocal(one + exp(-z))
    } else {
        let small = exp(z);
        div(small, one + small)
    }
}

/// `a` to the power `b`: by multiplication for a small integer `b`, else `e^(b ln a)`. `0^0` is 1.
pub fn pow(a: C, b: C) -> C {
    let one = c(1.0, 0.0);
    if b.re == 0.0 && b.im == 0.0 {
        return one;
    }
    if a.re == 0.0 && a.im == 0.0 {
        return if b.re > 0.0 { c(0.0, 0.0) } else { c(f64::NAN, f64::NAN) };
    }
    if b.im == 0.0 && b.re.fract() == 0.0 && b.re.abs() < 100.0 {
        let (mut power, mut result, mut n) = (a, one, b.re.abs() as u32);
        while n > 0 {
            if n & 1 == 1 {
                result *= power;
            }
            n >>= 1;
            if n > 0 {
                power *= power;
            }
        }
        return if b.re < 0.0 { reciprocal(result) } else { result };
    }
    exp(b * log(a))
}
