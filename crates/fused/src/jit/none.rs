//! Machine code on platforms without it.

use crate::program::TileProgram;
use std::sync::Arc;

/// Machine code for a program; always `None` on this platform.
pub fn compile(_program: &TileProgram) -> Option<MachineCode> {
    None
}

pub(crate) fn machine_code(_program: &TileProgram) -> Option<Arc<MachineCode>> {
    None
}

/// Whether fused kernels can be machine code on this machine; if not, the reason why they are interpreted.
pub fn check_support() -> Result<(), &'static str> {
    Err("there is no code generator for this platform")
}

/// Whether the operating system has refused executable memory since the last call; never on this platform.
pub fn take_refusal() -> bool {
    false
}

/// A program's machine code; there is none on this platform.
#[derive(Debug)]
pub enum MachineCode {}

impl MachineCode {
    /// Computes the outputs.
    pub fn run(&self, _inputs: &[&[u8]], _outputs: &mut [&mut [u8]], _in_place: &[Option<usize>]) {
        match *self {}
    }

    pub(crate) fn bytes(&self) -> usize {
        match *self {}
    }

    pub(crate) fn run_tile(
        &self,
        _inputs: &[&[u8]],
        _outputs: &mut [&mut [u8]],
        _in_place: &[Option<usize>],
        _stream: bool,
    ) {
        match *self {}
    }
}
