mod layers;
mod rows;

use super::float::Stored;
use crate::view::{Arg, View, ViewMut};
use crate::{DType, Element};

/// A tensor with any strides.
#[derive(Clone)]
pub(crate) struct Host<T> {
    pub(crate) data: Vec<T>,
    pub(crate) offset: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

impl<T: Element> Host<T> {
    pub(crate) fn new(shape: &[usize], values: &[f64]) -> Host<T> {
        let data: Vec<T> = values.iter().map(|&v| T::from_f64(v)).collect();
        assert_eq!(data.len(), shape.iter().product::<usize>());
        Host { data, offset: 0, shape: shape.to_vec(), strides: row_major(shape) }
    }

    pub(crate) fn random(shape: &[usize], seed: u64) -> Host<T> {
        Host::new(shape, &random(shape.iter().product(), seed))
    }

    /// As [`Host::random`] but laid out with the axes in reverse order, the last one backwards.
    pub(crate) fn scattered(shape: &[usize], seed: u64) -> Host<T> {
        let reversed: Vec<usize> = shape.iter().rev().copied().collect();
        let mut host = Host::random(&reversed, seed);
        host.shape.reverse();
        host.strides.reverse();
        if let (Some(&dim), Some(stride)) = (host.shape.last(), host.strides.last_mut()) {
            host.offset = (dim.max(1) as isize - 1).unsigned_abs() * stride.unsigned_abs();
            *stride = -*stride;
        }
        host
    }

    /// The same elements for every index of a new first axis.
    pub(crate) fn repeated(mut self, times: usize) -> Host<T> {
        self.shape.insert(0, times);
        self.strides.insert(0, 0);
        self
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::new(T::DTYPE, bytemuck::cast_slice(&self.data), self.offset, &self.shape, &self.strides)
    }

    pub(crate) fn arg(&self) -> Arg<'_> {
        Arg::View(self.view())
    }

    pub(crate) fn out(&mut self) -> ViewMut<'_> {
        ViewMut::new(T::DTYPE, bytemuck::cast_slice_mut(&mut self.data), &self.shape)
    }

    /// All elements in row-major order.
    pub(crate) fn values(&self) -> Vec<f64> {
        let strides = row_major(&self.shape);
        (0..self.shape.iter().product())
            .map(|i: usize| {
                let at: isize = (0..self.shape.len())
                    .map(|d| (i / strides[d] as usize % self.shape[d]) as isize * self.strides[d])
                    .sum();
                self.data[(self.offset as isize + at) as usize].to_f64()
            })
            .collect()
    }

    /// The same elements one after the other.
    pub(crate) fn contiguous(&self) -> Host<T> {
        Host::new(&self.shape, &self.values())
    }
}

fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i].max(1) as isize;
    }
    strides
}

pub(crate) fn random(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 51) as f64 - 2.0
        })
        .collect()
}

/// The relative error a result of type `T` may have.
pub(crate) fn tolerance<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        DType::F32 => 2e-6,
        _ => 1e-14,
    }
}

pub(crate) fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (&x, &y)) in found.iter().zip(expected).enumerate() {
        let same = x == y || (x.is_nan() && y.is_nan());
        assert!(same || (x - y).abs() <= tolerance * (1.0 + y.abs()), "element {i}: {x}, expected {y}");
    }
}

/// Panics unless the two hold the same bits.
pub(crate) fn assert_same<T: Element>(x: &Host<T>, y: &Host<T>) {
    assert_eq!(bytemuck::cast_slice::<T, u8>(&x.data), bytemuck::cast_slice::<T, u8>(&y.data));
}

/// Runs a generic check for the four floats.
macro_rules! for_floats {
    ($check:ident) => {
        $check::<crate::dtype::f16>();
        $check::<crate::dtype::bf16>();
        $check::<f32>();
        $check::<f64>();
    };
}
pub(crate) use for_floats;

/// Runs with one thread and with several.
pub(crate) fn same_on_any_threads<R: PartialEq + std::fmt::Debug>(run: impl Fn() -> R) {
    let before = crate::pool::threads();
    crate::pool::set_threads(1);
    let one = run();
    crate::pool::set_threads(4);
    let four = run();
    crate::pool::set_threads(before);
    assert_eq!(one, four);
}

/// Splits row-major data around an axis: `(outer, n, inner)`.
fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

fn wide<T: Stored>(shape: &[usize]) -> Host<T::Wide> {
    Host::random(shape, 77)
}
