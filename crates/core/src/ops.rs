//! The ops: one file each, and the one table that lists them.
//!
//! An op's file holds the op itself (what comes out, how it is computed), the function people call, and its
//! [`OpEntry`]: parameters, samples, a NumPy reference. Tests, documentation and bindings are derived from the entries.
//! To add an op, write its file and add one word below; CONTRIBUTING.md walks through it.

mod batching;
mod draw;
mod elementwise;
mod entry;
mod indices;
mod matrices;
mod pass_through;
mod reduction;
pub mod sample;
mod slices;
mod window;
mod windowed;

pub use elementwise::{Code, Derivative, Elementwise, Partial, Types};
pub use entry::{ArgValue, Args, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
pub use pass_through::{PassGradient, PassThrough};
pub use reduction::{FoldRule, Folding, Over, Reduction};
pub use window::{Channels, Padding};

/// Declares a group's modules and collects their entries.
macro_rules! table {
    ($($(#[$doc:meta])* $group:ident: $($file:ident)*;)*) => {
        $(
            $(#[$doc])*
            pub mod $group {
                $(pub(super) mod $file; pub use $file::*;)*
            }
        )*

        /// Every op that people can call, in the order of the table.
        pub fn table() -> impl Iterator<Item = &'static OpEntry> {
            [$($($group::$file::ENTRIES),*),*].into_iter().flatten()
        }

        /// The group and the source of the file that declares an entry.
        fn home(entry: &OpEntry) -> Option<(&'static str, &'static str)> {
            $($(
                if $group::$file::ENTRIES.iter().any(|e| e.name == entry.name) {
                    let source = include_str!(concat!("ops/", stringify!($group), "/", stringify!($file), ".rs"));
                    return Some((stringify!($group), source));
                }
            )*)*
            None
        }
    };
}

table! {
    /// Tensors from nothing.
    creation: diagonal eye fill like meshgrid one_hot range triangle;

    /// Functions of one tensor, element by element.
    unary: bitcast cast check_numerics classify ensure erf exp gamma gelu hyperbolic not relu root round sigmoid sign trig;

    /// Functions of two or three tensors, element by element.
    binary: arithmetic atan2 bitwise clip compare division extremum logaddexp logical power select shift squared_difference;

    /// Folding axes away.
    reduce: cumulative extreme logic logsumexp norm sum variance;

    /// Other shapes, other orders; mostly views.
    shape: broadcast_to concat identity pad reshape reverse roll slice split stop_gradient tile transpose unit_axes;

    /// Picking elements, and putting them back.
    index: bincount bits gather mask scatter searchsorted segment sort top_k unique unsorted_segment;

    /// Random numbers, counted rather than drawn.
    random: bernoulli categorical fold_in gamma generator integers normal permutation uniform;

    /// Sums of products.
    contract: conv conv_gradient conv_transpose depthwise einsum matmul pool pool_gradient tensordot;

    /// What layers are made of.
    nn: attention channel_norm cross_entropy dropout embedding layer_norm softmax;

    /// Matrices: solving and factoring.
    linalg: cholesky det factor inv solve;
}
