//! Tensors from numbers, and numbers from tensors.

use taut_core::{Element, Tensor};
use taut_kernels::dispatch;

/// A `float64` tensor of rank 1.
#[track_caller]
pub fn vector(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

/// A `float32` tensor of rank 1.
#[track_caller]
pub fn vector_f32(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

/// A `float64` tensor of rank 0.
#[track_caller]
pub fn scalar(value: f64) -> Tensor {
    Tensor::scalar(value).unwrap()
}

/// A `float64` tensor of irregular values in [-1, 1), the same in every run; no two neighbours are equal.
#[track_caller]
pub fn ramp(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|i| ((i * 37 + 11) % 101) as f64 / 50.5 - 1.0).collect();
    Tensor::from_vec(values, shape).unwrap()
}

/// The elements as `f64` in row-major order, whatever their type and layout; integers beyond 2^53 are rounded. Of complex elements,
/// the real and the imaginary parts in turn.
#[track_caller]
pub fn values(tensor: &Tensor) -> Vec<f64> {
    let copy = tensor.copy().unwrap();
    let view = copy.view().unwrap();
    if copy.dtype().is_complex() {
        return dispatch!(copy.dtype(), T in complex => {
            let parts = view.contiguous::<T>().unwrap().iter().flat_map(|z| [z.re, z.im]);
            parts.map(Element::to_f64).collect()
        });
    }
    dispatch!(copy.dtype(), T in all => {
        view.contiguous::<T>().unwrap().iter().map(|&element| Element::to_f64(element)).collect()
    })
}

/// The elements of a `float32` tensor in row-major order.
#[track_caller]
pub fn values_f32(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

/// The bits of the elements as `f64`: equal for equal floats, different for 0 and -0.
#[track_caller]
pub fn bits(tensor: &Tensor) -> Vec<u64> {
    values(tensor).into_iter().map(f64::to_bits).collect()
}
