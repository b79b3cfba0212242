//! Vector math: branch-free functions that are written once for every precision and interpreter.
//!
//! A function over [`Lane`] is scalar code in `f32` or `f64`, or emits machine code. All are `#[inline(always)]`: called
//! in the loop of a [`multiversion!`](crate::multiversion) function they become vector code of that level's width. Only
//! `mul_add` and its relatives fuse, so a value is the same at every level. The stated bounds (in units in the last place)
//! hold over the whole range, denormals included.
//!
//! [`double`] has the functions that are computed in `f64` alone; the `f32` value is the rounded one, within 0.51 ulp
//! (near the zeros of `lgamma` and `digamma`, where [`double`] states an absolute bound, that one holds). [`single`] has
//! the sine and cosine of `f32`.
//!
//! Sines, cosines and tangents of huge arguments need a long multiplication that cannot be vectorised: [`Real::sin`]
//! branches to it, [`Real::sin_bounded`] is the branch-free part for `|x| <= Real::TRIG_BOUND`. `lgamma`,
//! `digamma` and `erfinv` branch too.

mod basic;
pub mod complex;
pub mod double;
mod error;
mod exp;
mod lane;
mod log;
mod power;
pub mod single;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub use basic::*;
pub use error::*;
pub use exp::*;
pub use lane::{Lane, LaneBits};
pub use log::*;
pub use power::*;

use crate::dtype::Element;

/// The sum and what it lost by rounding.
#[inline(always)]
fn two_sum<T: Lane>(a: T, b: T) -> (T, T) {
    let sum = a + b;
    let back = sum - a;
    (sum, (a - (sum - back)) + (b - back))
}

/// `c[0] + c[1] x + c[2] x^2 + …`
///
/// Long polynomials are split by powers modulo 2 or 4: in a vector loop the latency of one chain of dependent
/// operations, not their number, limits the speed. The constant term is added last, so that what the splitting rounds
/// away stays small beside it.
#[inline(always)]
fn poly<T: Lane, C: Copy + Into<f64>, const N: usize>(x: T, c: &[C; N]) -> T {
    if N < 6 {
        return horner::<T, C, N, 1>(x, c, 0);
    }
    let constant = T::number(c[0].into());
    let y = x * x;
    if N < 10 {
        let part = horner::<T, C, N, 2>;
        return part(y, c, 2).mul_add(x, part(y, c, 1)).mul_add(x, constant);
    }
    let z = y * y;
    let part = horner::<T, C, N, 4>;
    let low = part(z, c, 2).mul_add(x, part(z, c, 1));
    let high = part(z, c, 4).mul_add(x, part(z, c, 3));
    high.mul_add(y, low).mul_add(x, constant)
}

/// [`poly`] with the coefficients of the precision.
#[inline(always)]
fn poly_of<T: Lane, const S: usize, const D: usize>(x: T, single: &[f32; S], double: &[f64; D]) -> T {
    if T::DOUBLE { poly(x, double) } else { poly(x, single) }
}

/// `c[first] + c[first + STEP] x + c[first + 2 STEP] x^2 + …`
#[inline(always)]
fn horner<T: Lane, C: Copy + Into<f64>, const N: usize, const STEP: usize>(
    x: T,
    c: &[C; N],
    first: usize,
) -> T {
    let mut i = first + (N - 1 - first) / STEP * STEP;
    let mut sum = T::number(c[i].into());
    while i > first {
        i -= STEP;
        sum = sum.mul_add(x, T::number(c[i].into()));
    }
    sum
}

/// The two types that kernels compute in, with the functions that differ between them.
pub trait Real: Element + PartialOrd + Lane<Mask = bool> {
    /// Up to this magnitude `sin_bounded`, `cos_bounded` and `tan_bounded` hold.
    const TRIG_BOUND: Self;
    /// The sine.
    fn sin(x: Self) -> Self;
    /// The cosine.
    fn cos(x: Self) -> Self;
    /// The sine of `|x| <= TRIG_BOUND`, branch-free.
    fn sin_bounded(x: Self) -> Self;
    /// The cosine of `|x| <= TRIG_BOUND`, branch-free.
    fn cos_bounded(x: Self) -> Self;
    /// The remainder of the truncated quotient, C's `fmod`.
    fn remainder(x: Self, by: Self) -> Self;
    /// `x` with the sign of another number.
    fn copysign(x: Self, sign: Self) -> Self;
}

macro_rules! real {
    ($t:ty, $m:ident) => {
        impl Real for $t {
            const TRIG_BOUND: $t = $m::TRIG_BOUND;
            #[inline(always)]
            fn sin(x: $t) -> $t {
                $m::sin(x)
            }
            #[inline(always)]
            fn cos(x: $t) -> $t {
                $m::cos(x)
            }
            #[inline(always)]
            fn sin_bounded(x: $t) -> $t {
                $m::sin_bounded(x)
            }
            #[inline(always)]
            fn cos_bounded(x: $t) -> $t {
                $m::cos_bounded(x)
            }
            #[inline(always)]
            fn remainder(x: $t, by: $t) -> $t {
                x % by
            }
            #[inline(always)]
            fn copysign(x: $t, sign: $t) -> $t {
                x.copysign(sign)
            }
        }
    };
}
real!(f32, single);
real!(f64, double);
