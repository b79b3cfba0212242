//! Convolution.

pub(crate) mod real;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod window;

pub use window::{Layout, output_size};
