//! Arrays for the tests of convolution and pooling: values in `f64`, stored in any type and with any strides.

use crate::dispatch;
use crate::dtype::{DType, Element};
use crate::view::{View, ViewMut};

/// How an array lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Contiguous,
    /// Every dimension backwards.
    Reversed,
    /// Dimensions in reverse order in memory, with gaps.
    TransposedGaps,
    /// The last dimension every second element.
    Gaps,
}

pub(crate) const STORAGES: [Storage; 4] =
    [Storage::Contiguous, Storage::Reversed, Storage::TransposedGaps, Storage::Gaps];

#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

impl Array {
    pub(crate) fn zeros(shape: &[usize]) -> Array {
        Array { shape: shape.to_vec(), values: vec![0.0; shape.iter().product()] }
    }

    /// Multiples of 1/8 between -2 and 2, exact in every float type.
    pub(crate) fn random(shape: &[usize], seed: u64) -> Array {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let values = (0..shape.iter().product())
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((state >> 40) % 33) as f64 / 8.0 - 2.0
            })
            .collect();
        Array { shape: shape.to_vec(), values }
    }

    pub(crate) fn index(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.shape).fold(0, |at, (i, n)| at * n + i)
    }

    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        self.values[self.index(index)]
    }

    pub(crate) fn dot(&self, other: &Array) -> f64 {
        assert_eq!(self.shape, other.shape);
        self.values.iter().zip(&other.values).map(|(a, b)| a * b).sum()
    }

    pub(crate) fn store(&self, dtype: DType, storage: Storage) -> Stored {
        let rank = self.shape.len();
        let mut strides = vec![0isize; rank];
        let mut extent = if storage == Storage::Gaps { 2 } else { 1 };
        let order: Vec<usize> =
            if storage == Storage::TransposedGaps { (0..rank).collect() } else { (0..rank).rev().collect() };
        for d in order {
            strides[d] = extent as isize;
            extent *= self.shape[d] + usize::from(storage == Storage::TransposedGaps);
        }
        let mut offset = 0;
        if storage == Storage::Reversed {
            for (stride, &size) in strides.iter_mut().zip(&self.shape) {
                offset += size.saturating_sub(1) * *stride as usize;
                *stride = -*stride;
            }
        }
        let mut stored = Stored {
            dtype,
            memory: vec![u64::MAX; (extent * dtype.size()).div_ceil(8) + 1],
            offset,
            shape: self.shape.clone(),
            strides,
        };
        for (linear, &value) in self.values.iter().enumerate() {
            let at = stored.position(linear);
            dispatch!(dtype, T in all => {
                bytemuck::cast_slice_mut::<u64, T>(&mut stored.memory)[at] = T::from_f64(value);
            });
        }
        stored
    }
}

pub(crate) struct Stored {
    dtype: DType,
    memory: Vec<u64>,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl Stored {
    fn position(&self, mut linear: usize) -> usize {
        let mut at = self.offset as isize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            at += (linear % size) as isize * stride;
            linear /= size;
        }
        at as usize
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::new(self.dtype, bytemuck::cast_slice(&self.memory), self.offset, &self.shape, &self.strides)
    }
}

/// Runs a kernel on an output filled with garbage and gives its values.
pub(crate) fn output(dtype: DType, shape: &[usize], kernel: impl FnOnce(ViewMut<'_>)) -> Array {
    let mut array = Array::zeros(shape);
    let mut memory = vec![u64::MAX; (array.values.len() * dtype.size()).div_ceil(8)];
    kernel(ViewMut::new(dtype, bytemuck::cast_slice_mut(&mut memory), shape));
    dispatch!(dtype, T in all => {
        for (to, from) in array.values.iter_mut().zip(bytemuck::cast_slice::<u64, T>(&memory)) {
            *to = from.to_f64();
        }
    });
    array
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Scratch memory, aligned to 64 bytes and filled with garbage.
pub(crate) struct Scratch {
    lines: Vec<Line>,
    bytes: usize,
}

impl Scratch {
    pub(crate) fn new(bytes: usize) -> Scratch {
        Scratch { lines: vec![Line([0xff; 64]); bytes.div_ceil(64)], bytes }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.bytes]
    }
}

/// Asserts that two arrays agree to `tolerance`, relative to the larger of one and the expected value.
#[track_caller]
pub(crate) fn assert_close(got: &Array, want: &Array, tolerance: f64, context: &str) {
    assert_eq!(got.shape, want.shape, "{context}");
    for (i, (&g, &w)) in got.values.iter().zip(&want.values).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance * w.abs().max(1.0);
        assert!(same, "{context}: element {i} is {g}, not {w}");
    }
}

/// The rounding error of a type, for tolerances.
pub(crate) fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        DType::F32 => 1e-6,
        DType::F64 => 1e-14,
        _ => 0.0,
    }
}
