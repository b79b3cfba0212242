//! Fused kernels, made at run time: a chain of elementwise operations in one pass over memory.
//!
//! A [`TileProgram`] is straight-line code for one element. A [`FusedKernel`] is a program that is ready to run: it runs
//! over views of any layout, in place or not, and can end in a reduction, whose operand is then never stored.
//!
//! Modules: `inputs` and `walk` bring inputs of any layout to contiguous tiles; `executor` is the interface of whatever
//! computes a tile; `interpret` computes it step by step, with the tile functions of `taut_kernels`; `jit` compiles it to
//! machine code, where it can.
#![allow(unsafe_code)]

mod executor;
mod inputs;
mod interpret;
#[cfg(all(target_arch = "x86_64", unix))]
mod jit;
#[cfg(not(all(target_arch = "x86_64", unix)))]
#[path = "jit/none.rs"]
mod jit;
mod kernel;
mod program;
mod scratch;
mod walk;

pub use jit::{MachineCode, check_support, compile, take_refusal};
pub use kernel::FusedKernel;
pub use program::{InvalidProgram, TileConstant, TileOperand, TileProgram, TileStep};
