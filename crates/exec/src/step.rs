//! One step: find its memory, call its op.

use crate::NONSENSE;
use crate::bind::Slot;
use smallvec::SmallVec;
use std::ops::Range;
use taut_core::{Error, ErrorKind, Result};
use taut_kernels::{Arg, View, ViewMut, elementwise};
use taut_memory::{Buffer, Parts};
use taut_plan::{Access, Home, Operand, Program, Step, Storage};

/// All that steps read and write.
pub(crate) struct Memory<'a, 'i> {
    pub(crate) arena: &'a mut Buffer,
    pub(crate) outputs: &'a mut [Buffer],
    pub(crate) inputs: &'a mut [Slot<'i>],
    pub(crate) lent: &'a mut Vec<(Range<usize>, bool)>,
}

#[cold]
pub(crate) fn overlap() -> Error {
    Error::new(ErrorKind::Graph, "the plan puts two live values in one place")
}

impl Memory<'_, '_> {
    /// A buffer outside the arena that may be written.
    fn buffer(&mut self, home: Home) -> Option<&mut Buffer> {
        match home {
            Home::Output(output) => self.outputs.get_mut(output),
            Home::Input(input) => match self.inputs.get_mut(input) {
                Some(Slot::Own(buffer)) => Some(buffer),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn run(&mut self, program: &Program, step: &Step) -> Result<()> {
        // A buffer that is written is taken out for the time being: the others can be read meanwhile.
        let mut taken: SmallVec<[Buffer; 2]> = SmallVec::new();
        for target in &step.targets {
            if let Some(buffer) = self.buffer(program.storages[target.storage].home) {
                taken.push(std::mem::take(buffer));
            }
        }
        let outcome = self.call(program, step, &mut taken);
        let mut taken = taken.into_iter();
        for target in &step.targets {
            if let Some(buffer) = self.buffer(program.storages[target.storage].home)
                && let Some(back) = taken.next()
            {
                *buffer = back;
            }
        }
        outcome
    }

    fn call(&mut self, program: &Program, step: &Step, taken: &mut [Buffer]) -> Result<()> {
        let mut parts = Parts::new(self.arena.as_mut_slice(), self.lent);
        let (start, len) = step.scratch;
        let scratch =
            if len == 0 { &mut [][..] } else { parts.write(start..start + len).ok_or_else(overlap)? };
        let mut targets: SmallVec<[ViewMut<'_>; 2]> = SmallVec::new();
        let mut taken = taken.iter_mut();
        for target in &step.targets {
            let Storage { home, bytes, .. } = program.storages[target.storage];
            let bytes = match home {
                Home::Arena(offset) => parts.write(offset..offset + bytes).ok_or_else(overlap)?,
                _ => taken.next().map(Buffer::as_mut_slice).ok_or_else(overlap)?,
            };
            targets.push(ViewMut::new(target.spec.dtype, bytes, &target.spec.shape));
        }
        let mut arguments: SmallVec<[Arg<'_>; 4]> = SmallVec::new();
        for operand in &step.operands {
            arguments.push(match operand.in_place {
                Some(output) => Arg::InPlace(output),
                None => Arg::View(view(program, operand, &mut parts, self.inputs, self.outputs)?),
            });
        }
        match &step.op {
            Some(op) => op.run(&arguments, &mut targets, scratch),
            None => {
                elementwise::copy(arguments[0].view(), targets[0].reborrow());
                Ok(())
            }
        }
    }

    /// Overwrites what nobody needs after step `i`.
    pub(crate) fn poison(&mut self, program: &Program, i: usize) {
        for &Storage { home, bytes, end, .. } in &program.storages {
            if end != i + 1 {
                continue;
            }
            match home {
                Home::Arena(offset) => self.arena.as_mut_slice()[offset..offset + bytes].fill(NONSENSE),
                Home::Input(input) if program.inputs[input].access != Access::Given => {}
                home => {
                    if let Some(buffer) = self.buffer(home) {
                        buffer.as_mut_slice().fill(NONSENSE);
                    }
                }
            }
        }
    }
}

fn view<'a>(
    program: &'a Program,
    operand: &'a Operand,
    parts: &mut Parts<'a>,
    inputs: &'a [Slot<'_>],
    outputs: &'a [Buffer],
) -> Result<View<'a>> {
    let (storage, layout) = (&program.storages[operand.storage], &operand.layout);
    let bytes = match storage.home {
        Home::Input(input) => inputs[input].bytes(),
        Home::Constant(constant) => program.constants[constant].span().unwrap_or_default(),
        Home::Arena(offset) => parts.read(offset..offset + storage.bytes).ok_or_else(overlap)?,
        Home::Output(output) => outputs[output].as_slice(),
    };
    Ok(View::new(operand.dtype, bytes, layout.offset, &layout.shape, &layout.strides))
}
