//! Kernels that are made at run time: a chain of elementwise operations in one pass over memory.
//!
//! A [`Program`] says what is computed of the elements at each place.
#![allow(unsafe_code)]

mod program;

pub use program::{Constant, Flaw, Program, Source, Step};
