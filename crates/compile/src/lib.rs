//! Makes a graph smaller and its kernels fewer, without changing what it computes.
//!
//! [`compile`] runs the passes of one ordered list, each from a graph to a graph. No pass knows an op by name: they ask
//! the op what it computes ([`Op::form`](taut_core::Op::form)) and how it is carried out.
//!
//! ```
//! use taut_compile::{CompileOptions, compile};
//! use taut_core::{DType, Spec, trace};
//!
//! let x = Spec::new(DType::F32, [4096, 4096]);
//! let graph = trace(&[x], |x| Ok(vec![(((&x[0] * 2.0)? * &x[0])? + 1.0)?]))?.graph;
//! assert_eq!(graph.nodes.len(), 3);
//! assert_eq!(compile(&graph, &CompileOptions::default())?.nodes.len(), 1);
//! # Ok::<(), taut_core::Error>(())
//! ```

mod clusters;
mod epilogue;
mod fuse;
mod fused;
mod passes;
mod prune;
mod reach;
mod rewrite;
mod seen;
mod simplify;
mod uses;

pub use passes::{PassReport, compile, compile_with_report};

/// What the compiler may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// Whether chains of elementwise ops, and reductions of them, become one kernel, and matrix products end in what is
    /// computed of their elements.
    pub fuse: bool,
    /// Whether those kernels are machine code rather than interpreted tile by tile, where the machine allows it.
    pub native: bool,
}

impl Default for CompileOptions {
    /// Fuses, without machine code.
    fn default() -> CompileOptions {
        CompileOptions { fuse: true, native: false }
    }
}
