//! Kernels that are made at run time: a chain of elementwise operations in one pass over memory.
//!
//! A [`Program`] says what is computed of the elements at each place; [`compile`] makes machine code of it.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", unix))]
mod jit;
#[cfg(not(all(target_arch = "x86_64", unix)))]
#[path = "jit/none.rs"]
mod jit;
mod program;

pub use jit::{Native, compile};
pub use program::{Constant, Flaw, Program, Source, Step};
