//! Machine code, where we have none.

use crate::program::Program;

/// Machine code for a program; there is none on this machine.
pub fn compile(_program: &Program) -> Option<Native> {
    None
}

/// A program's machine code, of which there is none on this machine.
#[derive(Debug)]
pub enum Native {}

impl Native {
    /// Computes the outputs.
    pub fn run(&self, _inputs: &[&[u8]], _outputs: &mut [&mut [u8]], _in_place: &[Option<usize>]) {
        match *self {}
    }

    pub(crate) fn run_part(
        &self,
        _inputs: &[&[u8]],
        _outputs: &mut [&mut [u8]],
        _in_place: &[Option<usize>],
        _stream: bool,
    ) {
        match *self {}
    }
}
