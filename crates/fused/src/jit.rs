//! Machine code for programs: one loop over memory, values in vector registers.
//!
//! [`compile`] turns a [`Program`] into a [`Native`] function where the machine has AVX2 and FMA and every step has code;
//! elsewhere there is none, and the caller interprets the program instead. Elements have the same bits either way
//! (a NaN is a NaN, of whatever payload).
//!
//! `lower` writes vector code for the steps, `registers` assigns registers and encodes the loop, `pages` makes it
//! executable. The code holds no addresses and knows whole blocks of elements only; what is left of a piece is copied to
//! a block with room around it.

mod block;
mod encode;
mod float;
mod integer;
mod lower;
mod math;
mod native;
mod pages;
mod registers;
#[cfg(test)]
mod tests;
mod vector;

pub use native::Native;

use crate::program::Program;

/// Machine code for a program, or `None` where this machine, its system or a step has none.
///
/// ```
/// use taut_fused::{Program, Source, Step, compile};
/// use taut_kernels::{DType, elementwise::{Code, Unary}};
/// let square = Step { code: Code::Unary(Unary::Square), sources: [Source::Input(0)].into_iter().collect() };
/// let program = Program::new(vec![DType::F32], vec![], vec![square], vec![0])?;
/// if let Some(native) = compile(&program) {
///     let (x, mut out) = ([1f32, 2.0, 3.0], [0f32; 3]);
///     native.run(&[bytemuck::cast_slice(&x)], &mut [bytemuck::cast_slice_mut(&mut out)], &[None]);
///     assert_eq!(out, [1.0, 4.0, 9.0]);
/// }
/// # Ok::<(), taut_fused::Flaw>(())
/// ```
pub fn compile(program: &Program) -> Option<Native> {
    Native::new(program)
}
