//! Tensors, ops, graphs, and the one choke point that every op call goes through.
//!
//! [`Tensor`] is a shared handle on typed, strided memory. An [`Op`] says what its outputs are, how they are computed and which
//! input it may overwrite; [`apply()`] runs it, or appends it to a [`Graph`] inside [`trace`]. Every failure is an [`Error`].

mod apply;
mod convert;
mod error;
mod gradient;
pub mod graph;
mod index;
pub mod interrupt;
pub mod io;
mod layout;
mod mode;
pub mod observe;
mod op;
mod operators;
pub mod ops;
mod print;
mod promote;
pub mod record;
pub mod rows;
mod scalar;
mod shape;
mod tensor;
mod warning;

pub use apply::{Outputs, apply, apply_at, apply_many, update};
pub use convert::IntoTensor;
pub use error::{Error, ErrorKind, Result};
pub use gradient::{
    Differentiable, Gradient, Gradients, IndexedSlices, Placement, SavedValue, Saves, Set, VjpCall,
};
pub use graph::{Graph, Traced, trace};
pub use index::{Ellipsis, Index, NewAxis};
pub use layout::Layout;
pub use mode::{
    is_checking_numerics, is_tracing, needs_source_location, set_checking_numerics, source_location,
    with_source_location, without_source_location,
};
pub use op::{
    CloneOp, Cost, Decompose, Effects, Epilogue, Form, FuseEpilogue, Kernel, Op, PrunedOp, Spec, Specs,
    Subgraphs, Traffic, ViewOp, VmapCall,
};
pub use promote::{float_of, promote, promote_scalar};
pub use scalar::{Host, Operand, Scalar};
pub use shape::{Axes, Shape, Strides, normalize_axis};
pub use taut_kernels::dtype::{Bool, Complex, DType, Element, bf16, f16};
pub use taut_memory::Location;
pub use tensor::Tensor;
pub use warning::{set_warning_sink, warn};
