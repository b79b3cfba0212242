//! Softmax, cross-entropies and normalisations: kernels that reduce a row and come back to it.
//!
//! Inputs have any strides and are one of the four float types; halves are computed in `f32`. Statistics (means,
//! reciprocal deviations, log-sum-exps) have the type [`statistics_dtype`] names. Rows are shared out among the
//! threads in chunks that depend on shapes alone.

mod cross_entropy;
pub(crate) mod float;
mod group;
mod layer;
mod moments;
mod softmax;
pub(crate) mod source;
#[cfg(test)]
pub(crate) mod tests;

pub use cross_entropy::{LabelOutOfRange, softmax_cross_entropy, sparse_softmax_cross_entropy};
pub use group::{group_norm, normalize_apply};
pub use layer::{layer_norm, rms_norm};
pub use moments::moments;
pub use softmax::{log_softmax, softmax};

use crate::DType;

/// The type of the statistics of data of type `dtype`: `f32`, or `f64` for `f64`.
pub const fn statistics_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

/// Elements that make a chunk of work for one thread.
const CHUNK: usize = 16 * 1024;

/// How many rows of `len` elements make a chunk.
fn rows_per_chunk(len: usize) -> usize {
    (CHUNK / len.max(1)).max(1)
}
