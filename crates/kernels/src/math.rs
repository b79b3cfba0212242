//! Vector math: branch-free scalar functions that LLVM vectorises.
//!
//! Each function is `#[inline(always)]`: called in the loop of a [`multiversion!`](crate::multiversion) function it
//! becomes vector code of that level's width. Only `mul_add` fuses, so a value is the same at every level. The
//! stated bounds (in units in the last place) hold over the whole range, denormals included.
//!
//! [`single`] computes in `f32` where speed matters and otherwise rounds the result of [`double`]; [`Real`] picks
//! between the two by type.
//!
//! Sines, cosines and tangents of huge arguments need a long multiplication that cannot be vectorised: [`Real::sin`]
//! branches to it, [`Real::sin_bounded`] is the branch-free part for `|x| <= Real::TRIG_BOUND`. `lgamma`,
//! `digamma` and `erfinv` branch too.

pub mod double;
pub mod single;
pub mod tables;
#[cfg(test)]
mod tests;

use crate::dtype::Element;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What evaluating a polynomial needs of a float.
trait Fused: Copy {
    fn fused(self, factor: Self, term: Self) -> Self;
    fn square(self) -> Self;
}

macro_rules! fused {
    ($($t:ty)*) => {$(
        impl Fused for $t {
            #[inline(always)]
            fn fused(self, factor: $t, term: $t) -> $t {
                self.mul_add(factor, term)
            }
            #[inline(always)]
            fn square(self) -> $t {
                self * self
            }
        }
    )*};
}
fused!(f32 f64);

/// `c[0] + c[1] x + c[2] x^2 + …`
///
/// Long polynomials are split by powers modulo 2 or 4: in a vector loop the latency of one chain of dependent
/// operations, not their number, limits the speed. The constant term is added last, so that what the splitting rounds
/// away stays small beside it.
#[inline(always)]
fn poly<T: Fused, const N: usize>(x: T, c: [T; N]) -> T {
    if N < 6 {
        return horner::<T, N, 1>(x, &c, 0);
    }
    let y = x.square();
    if N < 10 {
        let part = horner::<T, N, 2>;
        return part(y, &c, 2).fused(x, part(y, &c, 1)).fused(x, c[0]);
    }
    let z = y.square();
    let part = horner::<T, N, 4>;
    let low = part(z, &c, 2).fused(x, part(z, &c, 1));
    let high = part(z, &c, 4).fused(x, part(z, &c, 3));
    high.fused(y, low).fused(x, c[0])
}

/// `c[first] + c[first + STEP] x + c[first + 2 STEP] x^2 + …`
#[inline(always)]
fn horner<T: Fused, const N: usize, const STEP: usize>(x: T, c: &[T; N], first: usize) -> T {
    let mut i = first + (N - 1 - first) / STEP * STEP;
    let mut sum = c[i];
    while i > first {
        i -= STEP;
        sum = sum.fused(x, c[i]);
    }
    sum
}

/// The two types that kernels compute in, with this module's functions as associated functions:
/// `T::exp(x)` in generic code (`f32::exp(x)` would be the standard library's, write `Real::exp(x)`).
pub trait Real:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Up to this magnitude `sin_bounded`, `cos_bounded` and `tan_bounded` hold.
    const TRIG_BOUND: Self;
    /// `e^x`.
    fn exp(x: Self) -> Self;
    /// `e^x - 1`, accurate near zero.
    fn expm1(x: Self) -> Self;
    /// The natural logarithm.
    fn log(x: Self) -> Self;
    /// `ln(1 + x)`, accurate near zero.
    fn log1p(x: Self) -> Self;
    /// The logarithm to base two.
    fn log2(x: Self) -> Self;
    /// The square root.
    fn sqrt(x: Self) -> Self;
    /// `1 / sqrt(x)`.
    fn rsqrt(x: Self) -> Self;
    /// The sine.
    fn sin(x: Self) -> Self;
    /// The cosine.
    fn cos(x: Self) -> Self;
    /// The tangent.
    fn tan(x: Self) -> Self;
    /// The sine of `|x| <= TRIG_BOUND`, branch-free.
    fn sin_bounded(x: Self) -> Self;
    /// The cosine of `|x| <= TRIG_BOUND`, branch-free.
    fn cos_bounded(x: Self) -> Self;
    /// The tangent of `|x| <= TRIG_BOUND`, branch-free.
    fn tan_bounded(x: Self) -> Self;
    /// The inverse sine.
    fn asin(x: Self) -> Self;
    /// The inverse cosine.
    fn acos(x: Self) -> Self;
    /// The inverse tangent.
    fn atan(x: Self) -> Self;
    /// The hyperbolic sine.
    fn sinh(x: Self) -> Self;
    /// The hyperbolic cosine.
    fn cosh(x: Self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(x: Self) -> Self;
    /// The inverse hyperbolic sine.
    fn asinh(x: Self) -> Self;
    /// The inverse hyperbolic cosine.
    fn acosh(x: Self) -> Self;
    /// The inverse hyperbolic tangent.
    fn atanh(x: Self) -> Self;
    /// `1 / (1 + e^-x)`.
    fn sigmoid(x: Self) -> Self;
    /// `ln(1 + e^x)`.
    fn softplus(x: Self) -> Self;
    /// `x * sigmoid(x)`.
    fn silu(x: Self) -> Self;
    /// `x` times the normal distribution function at `x`.
    fn gelu(x: Self) -> Self;
    /// The tanh form of gelu.
    fn gelu_tanh(x: Self) -> Self;
    /// The error function.
    fn erf(x: Self) -> Self;
    /// The complementary error function.
    fn erfc(x: Self) -> Self;
    /// The inverse error function.
    fn erfinv(x: Self) -> Self;
    /// The logarithm of the absolute value of the gamma function.
    fn lgamma(x: Self) -> Self;
    /// The derivative of `lgamma`.
    fn digamma(x: Self) -> Self;
    /// The angle of the point whose ordinate is `y` and abscissa `x`.
    fn atan2(y: Self, x: Self) -> Self;
    /// `x` to the power `y`.
    fn pow(x: Self, y: Self) -> Self;
}

macro_rules! real {
    ($t:ty, $m:ident) => {
        impl Real for $t {
            const TRIG_BOUND: $t = $m::TRIG_BOUND;
            real! { @one $t, $m, exp expm1 log log1p log2 sqrt rsqrt sin cos tan sin_bounded cos_bounded
                tan_bounded asin acos atan sinh cosh tanh asinh acosh atanh sigmoid softplus silu gelu gelu_tanh
                erf erfc erfinv lgamma digamma }
            real! { @two $t, $m, atan2 pow }
        }
    };
    (@one $t:ty, $m:ident, $($f:ident)*) => {$(
        #[inline(always)]
        fn $f(x: $t) -> $t { $m::$f(x) }
    )*};
    (@two $t:ty, $m:ident, $($f:ident)*) => {$(
        #[inline(always)]
        fn $f(x: $t, y: $t) -> $t { $m::$f(x, y) }
    )*};
}
real!(f32, single);
real!(f64, double);
