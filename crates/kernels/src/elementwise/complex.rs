//! Complex elements: pairs of floats. What treats both parts alike runs the loops of the parts; functions are computed in double
//! precision, one element at a time.

use super::cast::cast_tile;
use super::half::STEP;
use super::{Binary, Unary};
use crate::dtype::{Bool, DType, Element};
use crate::math::complex as math;
use bytemuck::{cast_slice, cast_slice_mut};
use num_complex::Complex;

/// A part of a complex number.
pub(super) trait ComplexPart: Element {
    fn narrow(value: f64) -> Self;
}

impl ComplexPart for f32 {
    fn narrow(value: f64) -> f32 {
        value as f32
    }
}

impl ComplexPart for f64 {
    fn narrow(value: f64) -> f64 {
        value
    }
}

fn wide<T: ComplexPart>(z: &[T; 2]) -> Complex<f64> {
    Complex { re: z[0].to_f64(), im: z[1].to_f64() }
}

fn narrow<T: ComplexPart>(z: Complex<f64>) -> [T; 2] {
    [T::narrow(z.re), T::narrow(z.im)]
}

/// The pairs of a slice of bytes.
fn pairs<T: ComplexPart>(bytes: &[u8]) -> &[[T; 2]] {
    cast_slice::<u8, T>(bytes).as_chunks().0
}

fn pairs_mut<T: ComplexPart>(bytes: &mut [u8]) -> &mut [[T; 2]] {
    cast_slice_mut::<u8, T>(bytes).as_chunks_mut().0
}

/// The type of a unary operation's result for complex operands.
pub(super) fn unary_result(code: Unary, dtype: DType) -> Option<DType> {
    match code {
        Unary::Abs | Unary::Real | Unary::Imag | Unary::Angle => Some(dtype.part()),
        Unary::IsNan | Unary::IsInf | Unary::IsFinite => Some(DType::Bool),
        Unary::Neg | Unary::Conj => Some(dtype),
        _ => function(code).map(|_| dtype),
    }
}

/// The type of a binary operation's result for complex operands.
pub(super) fn binary_result(code: Binary, dtype: DType) -> Option<DType> {
    match code {
        Binary::Eq | Binary::Ne => Some(DType::Bool),
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::DivNoNan | Binary::Pow => Some(dtype),
        _ => None,
    }
}

/// The function of a complex number that an operation computes.
fn function(code: Unary) -> Option<fn(Complex<f64>) -> Complex<f64>> {
    Some(match code {
        Unary::Square => math::square,
        Unary::Reciprocal => math::reciprocal,
        Unary::Sqrt => math::sqrt,
        Unary::Rsqrt => math::rsqrt,
        Unary::Exp => math::exp,
        Unary::Expm1 => math::expm1,
        Unary::Log => math::log,
        Unary::Log1p => math::log1p,
        Unary::Sin => math::sin_c,
        Unary::Cos => math::cos_c,
        Unary::Tan => math::tan_c,
        Unary::Asin => math::asin_c,
        Unary::Acos => math::acos_c,
        Unary::Atan => math::atan_c,
        Unary::Sinh => math::sinh_c,
        Unary::Cosh => math::cosh_c,
        Unary::Tanh => math::tanh_c,
        Unary::Asinh => math::asinh_c,
        Unary::Acosh => math::acosh_c,
        Unary::Atanh => math::atanh_c,
        Unary::Sigmoid => math::sigmoid,
        _ => return None,
    })
}

fn map<T: ComplexPart>(x: &[u8], out: &mut [u8], f: fn(Complex<f64>) -> Complex<f64>) {
    for (x, out) in pairs::<T>(x).iter().zip(pairs_mut::<T>(out)) {
        *out = narrow(f(wide(x)));
    }
}

fn to_part<T: ComplexPart>(x: &[u8], out: &mut [u8], f: impl Fn(&[T; 2]) -> T) {
    for (x, out) in pairs::<T>(x).iter().zip(cast_slice_mut::<u8, T>(out)) {
        *out = f(x);
    }
}

fn test<T: ComplexPart>(x: &[u8], out: &mut [u8], f: fn(f64, f64) -> bool) {
    for (x, out) in pairs::<T>(x).iter().zip(cast_slice_mut::<u8, Bool>(out)) {
        *out = Bool::from(f(x[0].to_f64(), x[1].to_f64()));
    }
}

/// A unary operation on contiguous complex elements, other than [`Unary::Neg`].
pub(super) fn unary<T: ComplexPart>(code: Unary, x: &[u8], out: &mut [u8]) {
    match code {
        Unary::Real => to_part::<T>(x, out, |z| z[0]),
        Unary::Imag => to_part::<T>(x, out, |z| z[1]),
        Unary::Abs => to_part::<T>(x, out, |z| T::narrow(math::abs(wide(z)))),
        Unary::Angle => to_part::<T>(x, out, |z| T::narrow(math::angle(wide(z)))),
        Unary::IsNan => test::<T>(x, out, |re, im| re.is_nan() || im.is_nan()),
        Unary::IsInf => test::<T>(x, out, |re, im| re.is_infinite() || im.is_infinite()),
        Unary::IsFinite => test::<T>(x, out, |re, im| re.is_finite() && im.is_finite()),
        Unary::Conj => map::<T>(x, out, |z| z.conj()),
        _ => match function(code) {
            Some(function) => map::<T>(x, out, function),
            None => panic!("{code:?} is not defined for complex numbers"),
        },
    }
}

fn zip<T: ComplexPart>(a: &[u8], b: &[u8], out: &mut [u8], f: impl Fn(&[T; 2], &[T; 2]) -> [T; 2]) {
    for ((a, b), out) in pairs::<T>(a).iter().zip(pairs::<T>(b)).zip(pairs_mut::<T>(out)) {
        *out = f(a, b);
    }
}

/// A binary operation on contiguous complex elements, other than sums and differences. The parts of a product of single
/// precision are exact before the sum of two of them is rounded.
pub(super) fn binary<T: ComplexPart>(code: Binary, a: &[u8], b: &[u8], out: &mut [u8]) {
    match code {
        Binary::Mul => zip::<T>(a, b, out, |a, b| narrow(wide(a) * wide(b))),
        Binary::Div => zip::<T>(a, b, out, |a, b| narrow(math::div(wide(a), wide(b)))),
        Binary::DivNoNan => zip::<T>(a, b, out, |a, b| {
            let b = wide(b);
            narrow(if b.re == 0.0 && b.im == 0.0 { b * 0.0 } else { math::div(wide(a), b) })
        }),
        Binary::Pow => zip::<T>(a, b, out, |a, b| narrow(math::pow(wide(a), wide(b)))),
        Binary::Eq | Binary::Ne => {
            let equal = code == Binary::Eq;
            let operands = pairs::<T>(a).iter().zip(pairs::<T>(b));
            for ((a, b), out) in operands.zip(cast_slice_mut::<u8, Bool>(out)) {
                *out = Bool::from((a == b) == equal);
            }
        }
        _ => panic!("{code:?} is not defined for complex numbers"),
    }
}

/// The complex numbers with these real and imaginary parts.
pub(super) fn join<T: ComplexPart>(re: &[u8], im: &[u8], out: &mut [u8]) {
    let parts = cast_slice::<u8, T>(re).iter().zip(cast_slice::<u8, T>(im));
    for ((&re, &im), out) in parts.zip(pairs_mut::<T>(out)) {
        *out = [re, im];
    }
}

/// Converts from or to complex numbers: the real part of a complex number, which a real number alone has. A complex number is true if a
/// part is not zero.
pub(super) fn cast(from: DType, to: DType, x: &[u8], out: &mut [u8]) {
    if from.is_complex() && to.is_complex() {
        return cast_tile(from.part(), to.part()).call(x, out);
    }
    if to == DType::Bool {
        let nonzero = |re: f64, im: f64| re != 0.0 || im != 0.0;
        return match from {
            DType::C64 => test::<f32>(x, out, nonzero),
            _ => test::<f64>(x, out, nonzero),
        };
    }
    // 8-byte words, so that the parts of either precision are aligned.
    let mut words = [0f64; STEP];
    let part = if from.is_complex() { from.part() } else { to.part() };
    let inner = if from.is_complex() { cast_tile(part, to) } else { cast_tile(from, part) };
    for (x, out) in x.chunks(STEP * from.size()).zip(out.chunks_mut(STEP * to.size())) {
        let count = x.len() / from.size();
        let parts = &mut cast_slice_mut::<f64, u8>(&mut words)[..count * part.size()];
        match (part, from.is_complex()) {
            (DType::F32, true) => to_part::<f32>(x, parts, |z| z[0]),
            (_, true) => to_part::<f64>(x, parts, |z| z[0]),
            _ => inner.call(x, parts),
        }
        match (part, from.is_complex()) {
            (_, true) => inner.call(parts, out),
            (DType::F32, _) => {
                let pairs = cast_slice::<u8, f32>(parts).iter().zip(pairs_mut::<f32>(out));
                pairs.for_each(|(&re, out)| *out = [re, 0.0]);
            }
            _ => {
                let pairs = cast_slice::<u8, f64>(parts).iter().zip(pairs_mut::<f64>(out));
                pairs.for_each(|(&re, out)| *out = [re, 0.0]);
            }
        }
    }
}
