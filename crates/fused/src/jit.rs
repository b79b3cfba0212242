//! Machine code for programs: one loop over memory, intermediate results in vector registers.
//!
//! [`compile`] turns a [`TileProgram`] into [`MachineCode`] if the processor has AVX2 and FMA and every step has code;
//! otherwise the caller interprets the program. With AVX-512, programs whose types have one size get vectors of 512 bits. Elements have the same bits either way, except the payload of a NaN.
//!
//! `lower` emits vector code for the steps, with `lane` for the kernels' functions of floats; `registers` assigns registers
//! and encodes the loop, `pages` makes it executable, `shared` makes the code of a program once. The code holds no addresses and computes whole blocks of elements
//! only; the remainder of an array is copied to a full block.

mod block;
mod encode;
mod integer;
mod lane;
mod lower;
mod machine_code;
mod pages;
mod registers;
mod shared;
#[cfg(test)]
mod tests;
mod vector;

pub use machine_code::MachineCode;
pub use pages::take_refusal;
pub(crate) use shared::machine_code;

use crate::program::TileProgram;
use taut_kernels::simd::{Level, level};

/// Machine code for a program, or `None` if the processor, the operating system or a step does not support it.
///
/// ```
/// use taut_fused::{TileProgram, TileOperand, TileStep, compile};
/// use taut_kernels::{DType, elementwise::{Code, Unary}};
/// let square = TileStep { code: Code::Unary(Unary::Square), operands: [TileOperand::Input(0)].into_iter().collect() };
/// let program = TileProgram::new(vec![DType::F32], vec![], vec![square], vec![0])?;
/// if let Some(code) = compile(&program) {
///     let (x, mut out) = ([1f32, 2.0, 3.0], [0f32; 3]);
///     code.run(&[bytemuck::cast_slice(&x)], &mut [bytemuck::cast_slice_mut(&mut out)], &[None]);
///     assert_eq!(out, [1.0, 4.0, 9.0]);
/// }
/// # Ok::<(), taut_fused::InvalidProgram>(())
/// ```
pub fn compile(program: &TileProgram) -> Option<MachineCode> {
    MachineCode::new(program)
}

/// Whether fused kernels can be machine code on this machine; if not, the reason why they are interpreted.
pub fn check_support() -> Result<(), &'static str> {
    /// A function that returns.
    const RETURN: [u8; 1] = [0xc3];
    if level() == Level::Baseline {
        return Err("the processor has no AVX2 and FMA");
    }
    pages::Pages::new(&RETURN).map(drop).ok_or("the operating system refuses executable memory")
}
