//! Machine code on platforms without it.

use crate::program::TileProgram;

/// Machine code for a program; always `None` on this platform.
pub fn compile(_program: &TileProgram) -> Option<MachineCode> {
    None
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
