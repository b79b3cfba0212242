//! The error function and gelu.

use super::exp::{corrected, exp, scale, split_exp_near};
use super::lane::Lane;
use super::tables::{ERF, ERF_DOUBLE, ERF_TAIL, ERFCX_DOUBLE, NORMAL, NORMAL_TAIL};
use super::{poly, poly_of};
use std::f64::consts::FRAC_1_SQRT_2;

/// `e^(x^2) erfc(x)` for `x` from 0 to 28, in double precision.
#[inline(always)]
fn scaled_erfc<T: Lane>(x: T) -> T {
    let four = T::number(4.0);
    poly((x - four) / (x + four), &ERFCX_DOUBLE) / T::number(2.0).mul_add(x, T::ONE)
}

/// `erfc(a)` for positive `a`, in double precision.
#[inline(always)]
pub(super) fn erfc_positive<T: Lane>(a: T) -> T {
    let a = a.at_most(28.0);
    let square = a * a;
    let square_low = a.mul_sub(a, square);
    let (small, k) = split_exp_near(-square);
    scale(corrected(small, -square_low) * scaled_erfc(a), k)
}

/// `erf(x)` for `|x| <= 1`.
#[inline(always)]
pub(super) fn erf_near<T: Lane>(x: T) -> T {
    x * poly_of(x * x, &ERF, &ERF_DOUBLE)
}

/// The error function, within 3 ulp.
#[inline(always)]
pub fn erf<T: Lane>(x: T) -> T {
    let a = x.abs();
    let tail = if T::DOUBLE { erfc_positive(a) } else { exp(-poly(a.at_most(4.0), &ERF_TAIL)) };
    let far = (T::ONE - tail).with_sign(x);
    T::select(a.greater(T::ONE), far, erf_near(x))
}

/// `x` times the normal distribution function at `x`, within 4 ulp also in its tail.
#[inline(always)]
pub fn gelu<T: Lane>(x: T) -> T {
    let a = x.abs();
    let near = x * if T::DOUBLE {
        T::HALF.mul_add(erf_near(x * T::number(FRAC_1_SQRT_2)), T::HALF)
    } else {
        x.mul_add(poly(x * x, &NORMAL), T::HALF)
    };
    // The bound is where the tail times x has vanished.
    let b = a.at_most(if T::DOUBLE { 39.0 } else { 14.4 });
    let square = b * b;
    let square_low = b.mul_sub(b, square);
    let (small, k) = split_exp_near(-T::HALF * square);
    let p = corrected(small, -T::HALF * square_low);
    let tail = if T::DOUBLE {
        T::HALF * b * p * scaled_erfc(b * T::number(FRAC_1_SQRT_2))
    } else {
        let four = T::number(4.0);
        let ratio = b * poly((b - four) / (b + four), &NORMAL_TAIL) / T::number(1.5).mul_add(b, T::ONE);
        p * ratio
    };
    let tail = scale(tail, k);
    let far = T::select(x.less(T::ZERO), -tail, x - tail);
    T::select(a.less(T::number(0.75)), near, far)
}
