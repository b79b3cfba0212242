//! The ops that write a value to the spill file and read it back.

use super::file::SpillFile;
use std::sync::Arc;
use taut_core::{Cost, DType, Effects, Error, Kernel, Op, Result, Spec, Specs};
use taut_kernels::{Arg, ViewMut};

/// How many times longer a byte takes to a disk than to memory: 1 GB a second.
const DISK: u64 = 17;

/// Writes a value; its output is where the value begins in the file.
#[derive(Clone, Debug)]
pub(super) struct Store(pub(super) Arc<SpillFile>);

/// Reads a value back, once.
#[derive(Clone, Debug)]
pub(super) struct Load(pub(super) Arc<SpillFile>, pub(super) Spec);

/// What [`Store`] returns.
pub(super) fn position_spec() -> Spec {
    Spec::new(DType::I64, [])
}

fn transfer(bytes: usize) -> Cost {
    Cost { flops: 0, bytes: DISK.saturating_mul(bytes as u64) }
}

impl Op for Store {
    fn name(&self) -> &'static str {
        "spill_store"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(position_spec().into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let Arg::View(value) = &inputs[0] else { return Err(missing()) };
        let start = self.0.write(value.contiguous_bytes().ok_or_else(missing)?)?;
        outputs[0].bytes().copy_from_slice(&start.to_ne_bytes());
        Ok(())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::ORDERED | Effects::NO_CSE
    }

    fn cost(&self, inputs: &[&Spec], _outputs: &[Spec]) -> Cost {
        transfer(inputs[0].bytes())
    }
}

impl Op for Load {
    fn name(&self) -> &'static str {
        "spill_load"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.1.clone().into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let Arg::View(position) = &inputs[0] else { return Err(missing()) };
        let start =
            position.contiguous_bytes().and_then(|bytes| bytes.try_into().ok()).ok_or_else(missing)?;
        self.0.read(u64::from_ne_bytes(start), outputs[0].bytes())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::ORDERED | Effects::NO_CSE
    }

    fn cost(&self, _inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        transfer(outputs[0].bytes())
    }
}

fn missing() -> Error {
    Error::value("the value to spill must be contiguous")
}
