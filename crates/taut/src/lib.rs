//! Taut: a tensor engine whose memory is known, kept and explained.
//!
//! ```
//! use taut::{DType, Result, Tensor};
//!
//! fn main() -> Result<()> {
//!     let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
//!     let y = ((&x * 2.0)? + 1.0)?; // operators return a Result, like every call that can fail
//!     assert_eq!(y.to_vec::<f32>()?, [3.0, 5.0, 7.0, 9.0]);
//!
//!     let before = taut::memory::live_bytes();
//!     let z = taut::zeros([1024], DType::F32)?;
//!     assert_eq!(taut::memory::live_bytes() - before, 4096); // every byte is accounted for
//!     drop(z);
//!     assert_eq!(taut::memory::live_bytes(), before);
//!     Ok(())
//! }
//! ```
//!
//! Functions take tensors by reference or by value: `exp(&x)` keeps `x`, `exp(x)` may compute in `x`'s own memory.

pub use taut_autodiff::*;
pub use taut_control::recurrent;
pub use taut_control::{
    Case, LoopReport, Loops, cond, foldl, foldr, fori_loop, map_fn, scan, switch_case, vectorized_map,
    while_loop,
};
pub use taut_core::ops::binary::*;
pub use taut_core::ops::contract::*;
pub use taut_core::ops::creation::*;
pub use taut_core::ops::index::*;
#[cfg(feature = "linalg")]
pub use taut_core::ops::linalg;
pub use taut_core::ops::reduce::*;
pub use taut_core::ops::shape::*;
#[cfg(feature = "fft")]
pub use taut_core::ops::signal;
pub use taut_core::ops::unary::*;
pub use taut_core::ops::{self, nn, random};
pub use taut_core::{
    Bool, Complex, Cost, DType, Differentiable, Effects, Element, Ellipsis, Error, ErrorKind, Form,
    Gradients, Graph, Host, Index, IntoTensor, Kernel, Layout, NewAxis, Op, Operand, Outputs, Result, Saves,
    Scalar, Set, Shape, Spec, Specs, Strides, Subgraphs, Tensor, Traced, Traffic, ViewOp, VjpCall, VmapCall,
    apply, apply_many, bf16, f16, graph, io, promote, s, set_warning_sink, trace,
};
pub use taut_data as data;
pub use taut_distribute as distribute;
pub use taut_function::{
    FrontierRow, Function, MemoryBudget, MemoryFrontier, OnRetrace, TensorSpec, function,
};
pub use taut_nn::{
    Checkpoint, Layer, Mode, NamedVariables, Trainer, initializers, layers, losses, metrics, optimizers,
    schedules, train,
};
pub use taut_plan::assert_peak;

pub use taut_profile as profile;
pub use taut_strings as strings;

/// What functions tell of their traces, and what arguments are made of.
pub mod traces {
    pub use taut_autodiff::nest::{Leaf, Static};
    pub use taut_function::{FunctionTrace, SignatureChange, TraceReason};
}

/// What a call of a function does and needs, known before it runs.
pub mod plan {
    pub use taut_plan::*;
}

/// Who holds how many bytes: the ledger, the limit, the allocators.
pub mod memory {
    pub use taut_memory::*;
}

/// What ops see of tensors: views, element types.
pub mod kernels {
    pub use taut_kernels::denormals::{FlushDenormals, KeepDenormals};
    pub use taut_kernels::elementwise::{cast, copy};
    pub use taut_kernels::pool::{set_threads, threads};
    pub use taut_kernels::{Arg, View, ViewMut, dispatch};
}

/// The README and the book: their examples are tests.
#[cfg(doctest)]
mod book {
    macro_rules! pages {
        ($($name:ident: $path:literal;)*) => {$(
            #[doc = include_str!($path)]
            struct $name;
        )*};
    }
    pages! {
        Readme: "../../../README.md";
        FirstSteps: "../../../docs/src/first-steps.md";
        Tensors: "../../../docs/src/tensors.md";
        Memory: "../../../docs/src/memory.md";
        Errors: "../../../docs/src/errors.md";
        Gradients: "../../../docs/src/gradients.md";
        Functions: "../../../docs/src/functions.md";
        MemoryBudgets: "../../../docs/src/memory-budget.md";
        ControlFlow: "../../../docs/src/control-flow.md";
        Layers: "../../../docs/src/layers.md";
        Data: "../../../docs/src/data.md";
        TextAndFiles: "../../../docs/src/text-and-files.md";
        Optimizers: "../../../docs/src/optimizers.md";
        Training: "../../../docs/src/training.md";
        Distribute: "../../../docs/src/distribute.md";
        Profile: "../../../docs/src/profile.md";
        Graphs: "../../../docs/src/graphs.md";
        AddingAnOp: "../../../docs/src/adding-an-op.md";
        Speed: "../../../docs/src/speed.md";
    }
}
