//! The graph compiler: fewer nodes and fewer kernels that compute the same.
//!
//! [`compile`] runs the passes of one ordered list, each from a graph to a graph: dead-code elimination, decomposition,
//! simplification, compilation of subgraphs, recomputation of cheap values, fusion, epilogue fusion. No pass matches on a concrete op: all use what the op declares of
//! itself ([`Op::form`](taut_core::Op::form), [`Op::kernel`](taut_core::Op::kernel)).
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
mod context;
mod dead_code;
mod decompose;
mod epilogue;
mod fuse;
mod fused;
mod liveness;
mod passes;
mod reachability;
mod recompute;
mod rewrite;
mod simplify;
mod strided_view;

pub use passes::{PassReport, compile, compile_with_report};

/// Which optional passes the compiler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// Whether elementwise ops and reductions of their results are fused into one kernel, and matrix products compute
    /// the elementwise ops that follow them as an epilogue.
    pub fuse: bool,
    /// How far the graph is rewritten before ops are fused, if they are.
    pub rewrites: Rewrites,
    /// Whether fused kernels are machine code, where the machine supports it, rather than interpreted tile by tile.
    pub native: bool,
}

/// Rewrites that fusion profits from. Each level includes those before it, and none changes the bits of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rewrites {
    /// Ops stay as they were traced.
    None,
    /// Composite ops, such as batch norm, become elementwise ops, which are fused with their neighbours.
    Decompose,
    /// Cheap values of the forward pass are also computed again for the backward pass, where their operands are kept anyway.
    Recompute,
}

impl Default for CompileOptions {
    /// Runs all passes, and fuses with machine code.
    fn default() -> CompileOptions {
        CompileOptions { fuse: true, rewrites: Rewrites::Recompute, native: true }
    }
}
