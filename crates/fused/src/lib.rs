//! Kernels that are made at run time: a chain of elementwise operations in one pass over memory.
//!
//! A [`Program`] says what is computed of the elements at each place. A [`Kernel`] is a program made ready: it runs over
//! views of any layout, in place or not, and can end in a reduction, so that what is reduced is never stored.
//!
//! Rooms: `feed` and `walk` bring inputs of any layout to contiguous pieces; `tiles` is the seam behind which a piece is
//! computed; `interpret` computes it step by step, with the tile functions of `taut_kernels`; `jit` makes machine code
//! of it, where it can.
#![allow(unsafe_code)]

mod feed;
mod interpret;
#[cfg(all(target_arch = "x86_64", unix))]
mod jit;
#[cfg(not(all(target_arch = "x86_64", unix)))]
#[path = "jit/none.rs"]
mod jit;
mod kernel;
mod program;
mod scratch;
mod tiles;
mod walk;

pub use jit::{Native, compile};
pub use kernel::Kernel;
pub use program::{Constant, Flaw, Program, Source, Step};
