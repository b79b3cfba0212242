//! The ops: one file each, and the one table that lists them.
//!
//! An op's file holds the [`Op`](crate::Op) implementation, the public function, and the [`OpEntry`]: parameters, test
//! samples, a NumPy reference. Tests, documentation and the Python bindings are derived from the entries.
//! To add an op, write its file and add one word below; CONTRIBUTING.md walks through it.

mod along_axis;
mod draw;
mod elementwise;
mod entry;
mod indices;
#[cfg(feature = "linalg")]
mod matrices;
mod pass_through;
mod reduction;
pub mod sample;
mod sparse_gradient;
mod vmap;
mod window;
mod windowed;

pub use elementwise::{Code, ComputeDType, Elementwise, ElementwiseGradient, ElementwiseVjp};
pub use entry::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
pub use pass_through::{PassGradient, PassThrough};
pub use reduction::{ReduceAxes, Reduction, ReductionCode, ReductionGradient};
pub use window::{Channels, Padding};

/// Declares a group's modules and collects their entries. A group behind a feature has no rows where the feature is off.
macro_rules! table {
    ($($(#[doc = $doc:literal])* $(#[cfg($cfg:meta)])? $group:ident: $($file:ident)*;)*) => {
        $(
            $(#[doc = $doc])*
            $(#[cfg($cfg)])?
            pub mod $group {
                $(pub(super) mod $file; pub use $file::*;)*

                /// The group's files: entries and source text.
                pub(super) const FILES: &[(&[super::OpEntry], &str)] = &[
                    $(($file::ENTRIES, include_str!(concat!("ops/", stringify!($group), "/", stringify!($file), ".rs")))),*
                ];
            }
        )*

        /// The groups, in the order of the table.
        const GROUPS: &[(&str, &[(&[OpEntry], &str)])] = &[
            $($(#[cfg($cfg)])? (stringify!($group), $group::FILES)),*
        ];
    };
}

/// Every public op, in the order of the table.
pub fn table() -> impl Iterator<Item = &'static OpEntry> {
    GROUPS.iter().flat_map(|(_, files)| files.iter()).flat_map(|(entries, _)| entries.iter())
}

/// The group and the source text of the file that declares an entry.
fn home(entry: &OpEntry) -> Option<(&'static str, &'static str)> {
    GROUPS.iter().find_map(|(group, files)| {
        let (_, source) = files.iter().find(|(entries, _)| entries.iter().any(|e| e.name == entry.name))?;
        Some((*group, *source))
    })
}

table! {
    /// Tensors made from shapes, values and ranges.
    creation: diagonal eye fill like meshgrid one_hot range triangle;

    /// Elementwise functions of one tensor.
    unary: bitcast cast check_numerics classify complex ensure erf exp gamma gelu hyperbolic not relu root round sigmoid sign trig;

    /// Elementwise functions of two or three tensors, with broadcasting.
    binary: arithmetic atan2 bitwise clip compare complex division extremum logaddexp logical power select shift squared_difference;

    /// Reductions and scans along axes.
    reduce: cumulative extreme logic logsumexp norm sum variance;

    /// Changes of shape and order of elements; mostly views without a copy.
    shape: broadcast_to concat identity pad reshape reverse roll slice split stop_gradient tile transpose unit_axes;

    /// Indexing: gather, scatter, segments, sorting, masks.
    index: bincount bits gather mask scatter searchsorted segment sort top_k unique unsorted_segment;

    /// Counter-based (Philox) random numbers.
    random: bernoulli categorical fold_in gamma generator integers normal permutation uniform;

    /// Contractions: matrix products, convolution, pooling, einsum.
    contract: conv conv_gradient conv_transpose depthwise einsum matmul pool pool_gradient tensordot;

    /// Neural-network primitives: normalization, attention, losses, dropout, embedding.
    nn: attention attention_dropout attention_gradient channel_norm cross_entropy dropout embedding group_norm layer_norm
        softmax;

    /// Fourier transforms.
    #[cfg(feature = "fft")]
    signal: fft;

    /// Linear algebra: solvers and factorizations.
    #[cfg(feature = "linalg")]
    linalg: cholesky det eig factor inv logm solve;
}
