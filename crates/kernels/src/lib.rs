//! Kernels: pure functions on strided views. This crate has no tensors.
//!
//! Every kernel takes read-only [`View`]s and writes a contiguous row-major [`ViewMut`]. Shapes are checked by
//! the caller (an op's `infer`); a kernel given shapes that contradict each other panics, it never reads or
//! writes out of bounds. Kernels allocate nothing that grows with the data: a `*_scratch` function returns the size of
//! the scratch memory that the caller passes in.
//!
//! Modules: [`dtype`] and [`view`] describe data; [`simd`] selects the instruction set at run time; [`denormals`] is a mode of
//! arithmetic; [`pool`] is the thread pool; the others are kernels.
#![allow(unsafe_code)]

pub mod attention;
pub mod bits;
pub mod conv;
pub mod denormals;
pub mod dtype;
pub mod elementwise;
#[cfg(feature = "fft")]
pub mod fft;
pub mod index;
mod lanes;
pub mod limits;
#[cfg(feature = "linalg")]
pub mod linalg;
pub mod math;
pub mod matmul;
pub mod norm;
pub mod pool;
pub mod pooling;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod simd;
pub mod sort;
pub mod strided;
pub mod view;

pub use dtype::{Bool, DType, Element};
pub use view::{Arg, View, ViewMut};
