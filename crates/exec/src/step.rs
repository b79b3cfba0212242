//! The steps of a run: each finds its memory and calls its op.

use crate::bind::BorrowedInput;
use crate::observe::Observed;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;
use taut_core::{Error, ErrorKind, Result, Spec, interrupt};
use taut_kernels::denormals::FlushDenormals;
use taut_kernels::{Arg, View, ViewMut, elementwise};
use taut_memory::DisjointSlices;
use taut_plan::{Access, Home, Program, ProgramStep, StepInput, Storage};

/// A byte that makes a NaN of every float.
const POISON: u8 = 0xff;

/// The memory that steps read and write.
pub(crate) struct Memory<'a, 'm> {
    pub(crate) arena: &'a mut [u8],
    pub(crate) outputs: &'a mut [&'m mut [u8]],
    pub(crate) inputs: &'a mut [BorrowedInput<'m>],
    pub(crate) borrowed: &'a mut BorrowedRanges,
}

/// The ranges of the arena that a step borrows. The list's own memory is reused by the next run of this thread.
#[derive(Default)]
pub(crate) struct BorrowedRanges(Vec<(Range<usize>, bool)>);

thread_local! {
    static IDLE_RANGES: RefCell<Vec<BorrowedRanges>> = const { RefCell::new(Vec::new()) };
}

impl BorrowedRanges {
    pub(crate) fn take() -> BorrowedRanges {
        IDLE_RANGES.with_borrow_mut(Vec::pop).unwrap_or_default()
    }
}

impl Drop for BorrowedRanges {
    fn drop(&mut self) {
        let list = std::mem::take(&mut self.0);
        if list.capacity() > 0 {
            // The thread may be ending: then the list is freed.
            let _ = IDLE_RANGES.try_with(|idle| idle.borrow_mut().push(BorrowedRanges(list)));
        }
    }
}

#[cold]
pub(crate) fn overlap() -> Error {
    Error::new(ErrorKind::Graph, "the plan places two live values in overlapping memory")
}

impl<'m> Memory<'_, 'm> {
    /// Writable memory outside the arena. The caller takes the slice and puts it back.
    #[expect(clippy::mut_mut, reason = "the slice itself is taken")]
    fn outside_arena(&mut self, home: Home) -> Option<&mut &'m mut [u8]> {
        match home {
            Home::Output(output) => self.outputs.get_mut(output),
            Home::Input(input) => match self.inputs.get_mut(input) {
                Some(BorrowedInput::Write(bytes)) => Some(bytes),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a step is likely to take longer than reading the clock.
    fn is_large(&self) -> bool {
        const LARGE: usize = 1 << 20;
        self.arena.len() >= LARGE || self.outputs.iter().any(|output| output.len() >= LARGE)
    }

    /// Runs every step, in order.
    pub(crate) fn run_all(
        &mut self,
        program: &Program,
        poison: bool,
        observed: Option<&Observed>,
    ) -> Result<()> {
        if poison {
            self.arena.fill(POISON);
            self.outputs.iter_mut().for_each(|output| output.fill(POISON));
        }
        let is_long = self.is_large();
        let _mode = FlushDenormals::new();
        interrupt::poll_short_work()?;
        for (i, step) in program.steps.iter().enumerate() {
            if is_long {
                interrupt::poll()?;
            }
            if let Some(observed) = observed {
                observed.step_begins(i);
            }
            let outcome = self.run(program, step);
            if let Some(observed) = observed {
                observed.step_ends();
            }
            if let Err(error) = outcome {
                let specs = step.operands.iter().map(|o| Spec::new(o.dtype, o.layout.shape.clone()));
                let specs: SmallVec<[Spec; 3]> = specs.collect();
                return Err(error.in_op(step.name(), &specs).at(step.at));
            }
            if poison {
                self.poison_dead(program, i);
            }
        }
        Ok(())
    }

    fn run(&mut self, program: &Program, step: &ProgramStep) -> Result<()> {
        // The slices that are written are taken out, so that all others can be read during the call.
        let mut taken: SmallVec<[&'m mut [u8]; 4]> = SmallVec::new();
        for target in &step.targets {
            if let Some(bytes) = self.outside_arena(program.storages[target.storage].home) {
                taken.push(std::mem::take(bytes));
            }
        }
        let outcome = self.call(program, step, &mut taken);
        let mut taken = taken.into_iter();
        for target in &step.targets {
            if let Some(bytes) = self.outside_arena(program.storages[target.storage].home)
                && let Some(back) = taken.next()
            {
                *bytes = back;
            }
        }
        outcome
    }

    fn call(&mut self, program: &Program, step: &ProgramStep, taken: &mut [&'m mut [u8]]) -> Result<()> {
        let mut parts = DisjointSlices::new(self.arena, &mut self.borrowed.0);
        let (start, len) = step.scratch;
        let scratch =
            if len == 0 { &mut [][..] } else { parts.write(start..start + len).ok_or_else(overlap)? };
        let mut targets: SmallVec<[ViewMut<'_>; 8]> = SmallVec::new();
        let mut taken = taken.iter_mut();
        for target in &step.targets {
            let Storage { home, bytes, .. } = program.storages[target.storage];
            let bytes = match home {
                Home::Arena(offset) => parts.write(offset..offset + bytes).ok_or_else(overlap)?,
                _ => taken.next().map(|bytes| &mut **bytes).ok_or_else(overlap)?,
            };
            targets.push(ViewMut::new(target.spec.dtype, bytes, &target.spec.shape));
        }
        let mut arguments: SmallVec<[Arg<'_>; 16]> = SmallVec::new();
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

    /// Overwrites the memory whose last use is step `i`.
    fn poison_dead(&mut self, program: &Program, i: usize) {
        for &Storage { home, bytes, end, .. } in &program.storages {
            if end != i + 1 {
                continue;
            }
            match home {
                Home::Arena(offset) => self.arena[offset..offset + bytes].fill(POISON),
                Home::Input(input) if program.inputs[input].access != Access::Donated => {}
                home => {
                    if let Some(bytes) = self.outside_arena(home) {
                        bytes.fill(POISON);
                    }
                }
            }
        }
    }
}

fn view<'a>(
    program: &'a Program,
    operand: &'a StepInput,
    parts: &mut DisjointSlices<'a>,
    inputs: &'a [BorrowedInput<'_>],
    outputs: &'a [&mut [u8]],
) -> Result<View<'a>> {
    let (storage, layout) = (&program.storages[operand.storage], &operand.layout);
    let bytes = match storage.home {
        Home::Input(input) => inputs[input].bytes(),
        Home::Constant(constant) => program.constants[constant].span().unwrap_or_default(),
        Home::Arena(offset) => parts.read(offset..offset + storage.bytes).ok_or_else(overlap)?,
        Home::Output(output) => &*outputs[output],
    };
    Ok(View::new(operand.dtype, bytes, layout.offset, &layout.shape, &layout.strides))
}
