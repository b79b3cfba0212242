//! Test arguments: small deterministic tensors with irregular values, so that a wrong result is unlikely to match by chance.

use super::{ArgValue, InvalidArgs};
use crate::error::ErrorKind;
use crate::promote::promote;
use crate::tensor::Tensor;
use taut_kernels::DType;
use taut_kernels::{Element, dispatch};
use taut_memory::{Category, Location};

/// Lists of dtypes that ops accept.
pub mod dtypes {
    use taut_kernels::DType::{self, *};

    /// Every dtype that is not complex.
    pub const ALL: &[DType] = &[Bool, U8, U16, U32, U64, I8, I16, I32, I64, F16, BF16, F32, F64];
    /// Every number that is not complex.
    pub const NUMBERS: &[DType] = &[U8, U16, U32, U64, I8, I16, I32, I64, F16, BF16, F32, F64];
    /// Integer dtypes.
    pub const INTEGERS: &[DType] = &[U8, U16, U32, U64, I8, I16, I32, I64];
    /// Integer dtypes and `bool`.
    pub const BITS: &[DType] = &[Bool, U8, U16, U32, U64, I8, I16, I32, I64];
    /// Floating-point dtypes.
    pub const FLOATS: &[DType] = &[F16, BF16, F32, F64];
    /// Complex dtypes.
    pub const COMPLEX: &[DType] = &[C64, C128];
    /// Floating-point and complex dtypes.
    pub const INEXACT: &[DType] = &[F16, BF16, F32, F64, C64, C128];
    /// Every number, complex ones included.
    pub const ARITHMETIC: &[DType] = &[U8, U16, U32, U64, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128];
    /// Every dtype, complex ones included.
    pub const EVERY: &[DType] = &[Bool, U8, U16, U32, U64, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128];
    /// `float32`, `float64` and the complex dtypes.
    pub const WIDE_COMPLEX: &[DType] = &[F32, F64, C64, C128];
    /// `float32` and `float64`.
    pub const WIDE: &[DType] = &[F32, F64];
}

/// A tensor of irregular values in `[low, high)`, converted to `dtype`: unsigned types take the magnitudes, `bool`
/// alternates between true and false, and the parts of complex numbers are such values.
///
/// # Panics
/// If the allocation fails.
#[track_caller]
pub fn tensor(dtype: DType, shape: &[usize], low: f64, high: f64) -> Tensor {
    filled(dtype, shape, |i| {
        // The fractional parts of multiples of the golden ratio are evenly spread and do not repeat.
        let fraction = ((i as f64 + 0.5) * 0.618033988749895).fract();
        low + (high - low) * fraction
    })
}

/// [`tensor`] as an argument.
#[track_caller]
pub fn ramp(dtype: DType, shape: &[usize], low: f64, high: f64) -> ArgValue {
    ArgValue::Tensor(tensor(dtype, shape, low, high))
}

/// A tensor of these values.
///
/// # Panics
/// If the allocation fails, or the number of values is not that of the shape's elements.
#[track_caller]
pub fn of(dtype: DType, shape: &[usize], values: &[f64]) -> ArgValue {
    assert_eq!(shape.iter().product::<usize>(), values.len());
    ArgValue::Tensor(filled(dtype, shape, |i| values[i]))
}

#[track_caller]
pub(super) fn filled(dtype: DType, shape: &[usize], value: impl Fn(usize) -> f64) -> Tensor {
    let spec = crate::Spec::new(dtype, shape);
    Tensor::build(spec, Category::Tensor, Location::caller(), |out| {
        if dtype.is_complex() {
            // Real and imaginary parts are elements of the sequence, far from each other.
            let (parts, count) = (2 * out.len(), out.len());
            let at = |i: usize| value(if i.is_multiple_of(2) { i / 2 } else { count - 1 - i / 2 });
            return match dtype {
                DType::C64 => (0..parts).zip(out.bytes().chunks_exact_mut(4)).for_each(|(i, part)| {
                    part.copy_from_slice(&(at(i) as f32).to_ne_bytes());
                }),
                _ => (0..parts).zip(out.bytes().chunks_exact_mut(8)).for_each(|(i, part)| {
                    part.copy_from_slice(&at(i).to_ne_bytes());
                }),
            };
        }
        dispatch!(dtype, T in all => {
            for (i, element) in out.slice::<T>().iter_mut().enumerate() {
                let value = value(i);
                *element = match dtype {
                    DType::Bool => T::from_f64(f64::from(i % 2 == 0)),
                    d if d.is_unsigned_integer() => T::from_f64(value.abs()),
                    _ => T::from_f64(value),
                };
            }
        });
    })
    .expect("samples are small")
}

/// Shapes at the edges: scalar, empty, one element, and several dimensions with and without elements.
pub const SHAPES: &[&[usize]] = &[&[], &[0], &[1], &[5], &[2, 3], &[2, 0, 3], &[3, 1, 4]];

/// Arguments for a function of one tensor: every dtype with every shape, and for floats NaN, infinities and signed zeros.
pub fn unary(dtypes: &[DType], low: f64, high: f64) -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for &dtype in dtypes {
        samples.extend(SHAPES.iter().map(|shape| vec![ramp(dtype, shape, low, high)]));
        if dtype.is_float() {
            samples.push(vec![of(dtype, &[5], &SPECIAL)]);
        }
    }
    samples
}

const SPECIAL: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];

/// Arguments for a function of two tensors: every dtype with broadcastable shapes, scalars in place of tensors, mixed
/// dtypes, and for floats NaN, infinities and signed zeros.
pub fn binary(dtypes: &[DType], a: (f64, f64), b: (f64, f64)) -> Vec<Vec<ArgValue>> {
    const PAIRS: &[(&[usize], &[usize])] = &[
        (&[], &[]),
        (&[0], &[1]),
        (&[5], &[5]),
        (&[2, 3], &[3]),
        (&[2, 1], &[1, 4]),
        (&[], &[2, 2]),
        (&[2, 0], &[]),
    ];
    let mut samples = Vec::new();
    for &dtype in dtypes {
        for (left, right) in PAIRS {
            samples.push(vec![ramp(dtype, left, a.0, a.1), shifted(dtype, right, b)]);
        }
        if dtype.is_float() {
            let grid = |by_row: bool| (0..25).map(move |i| SPECIAL[if by_row { i / 5 } else { i % 5 }]);
            let (x, y): (Vec<f64>, Vec<f64>) = (grid(true).collect(), grid(false).collect());
            samples.push(vec![of(dtype, &[25], &x), of(dtype, &[25], &y)]);
            samples.push(vec![ramp(dtype, &[3], a.0, a.1), ArgValue::Float(midpoint(b))]);
            samples.push(vec![ArgValue::Float(midpoint(a)), shifted(dtype, &[3], b)]);
        }
    }
    for pair in dtypes.windows(2).filter(|pair| promote(pair[0], pair[1]).is_ok()) {
        samples.push(vec![ramp(pair[0], &[4], a.0, a.1), shifted(pair[1], &[4], b)]);
    }
    samples
}

fn midpoint(range: (f64, f64)) -> f64 {
    range.0 + 0.25 * (range.1 - range.0)
}

/// As [`ramp`], with another sequence, so that the operands of a binary op are uncorrelated.
fn shifted(dtype: DType, shape: &[usize], range: (f64, f64)) -> ArgValue {
    let len: usize = shape.iter().product();
    ArgValue::Tensor(filled(dtype, shape, |i| {
        let fraction = (((len - i) as f64 + 0.25) * 0.7548776662466927).fract();
        range.0 + (range.1 - range.0) * fraction
    }))
}

/// Arguments for a reduction: every dtype over one axis, several, none and all, with and without `keepdims`.
pub fn reductions(dtypes: &[DType], low: f64, high: f64) -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], Option<&[i64]>, bool); 10] = [
        (&[], None, false),
        (&[7], None, true),
        (&[0], Some(&[0]), false),
        (&[3, 4], Some(&[0]), false),
        (&[3, 4], Some(&[-1]), true),
        (&[2, 3, 4], Some(&[1]), false),
        (&[2, 3, 4], Some(&[0, -1]), true),
        (&[2, 0, 4], Some(&[1]), false),
        (&[2, 3], Some(&[]), false),
        (&[2, 2, 2, 2], Some(&[1, 2]), false),
    ];
    let axes = |axes: Option<&[i64]>| axes.map_or(ArgValue::None, |axes| ArgValue::Ints(axes.to_vec()));
    let with = |dtype| {
        cases.map(|(x, a, keepdims)| vec![ramp(dtype, x, low, high), axes(a), ArgValue::Bool(keepdims)])
    };
    dtypes.iter().flat_map(|&dtype| with(dtype)).collect()
}

/// Axes that a reduction must reject.
pub fn invalid_axes() -> Vec<InvalidArgs> {
    let bad = |axes: &[i64], message| {
        let args = vec![ramp(DType::F32, &[2, 3], 0.0, 1.0), ArgValue::Ints(axes.to_vec())];
        InvalidArgs::new(args, ErrorKind::Axis, message)
    };
    vec![
        bad(&[2], "axis must be in [-2, 2), got 2"),
        bad(&[-3], "got -3"),
        bad(&[0, -2], "axes must be distinct, got 0 twice"),
    ]
}

/// Arguments that an op of one tensor must reject: these dtypes.
pub fn invalid_unary(dtypes: &[DType]) -> Vec<InvalidArgs> {
    let refuse =
        |&dtype| InvalidArgs::new(vec![ramp(dtype, &[2], 0.0, 1.0)], ErrorKind::DType, "is not supported");
    dtypes.iter().map(refuse).collect()
}

/// Arguments that an op of two tensors must reject: shapes that do not broadcast, and these dtypes.
pub fn invalid_binary(dtypes: &[DType]) -> Vec<InvalidArgs> {
    let pair = |dtype, other: &[usize]| vec![ramp(dtype, &[2, 3], 0.0, 1.0), ramp(dtype, other, 0.0, 1.0)];
    let message = "shapes [2, 3] and [2] do not broadcast";
    let mut bad = vec![InvalidArgs::new(pair(DType::I32, &[2]), ErrorKind::Shape, message)];
    bad.extend(dtypes.iter().map(|&d| InvalidArgs::new(pair(d, &[3]), ErrorKind::DType, "is not supported")));
    bad
}
