//! Runs a planned program: one arena, no allocation per step, everything where the plan says.
//!
//! ```
//! use std::sync::Arc;
//! use taut_core::{DType, Spec, Tensor, trace};
//! use taut_exec::{Executor, Input};
//! use taut_plan::Program;
//!
//! let graph = trace(&[Spec::new(DType::F32, [1000])], |x| Ok(vec![((&x[0] * 2.0)? + 1.0)?]))?.graph;
//! let program = Program::new(&graph)?;
//! assert_eq!((program.peak_bytes(), program.arena_bytes()), (4000, 0)); // all of it in the output's own memory
//! let mut executor = Executor::new(Arc::new(program));
//! let x = Tensor::from_vec(vec![3.0f32; 1000], [1000])?;
//! let y = executor.run(&mut [RunInput::Read(&x)])?;
//! assert_eq!(y[0].to_vec::<f32>()?[7], 7.0);
//! # Ok::<(), taut_core::Error>(())
//! ```

mod bind;
mod observe;
mod step;

pub use bind::{BorrowedInput, RunInput};
pub use observe::{StepObserver, observe};
pub use taut_core::interrupt::{InterruptCheck, set_interrupt_check};

use bind::Bound;
use observe::Observed;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use step::Memory;
use taut_core::{Error, Result, Spec, Tensor};
use taut_memory::{Buffer, Category, Location};
use taut_plan::{Access, Home, Program, ProgramInput};

/// A program and the arena it runs in, which is kept between runs.
///
/// The arena and the buffers that are returned are all that a run allocates, except where an input that is
/// [updated](RunInput::Updated) is held by somebody else too.
pub struct Executor {
    program: Arc<Program>,
    arena: Option<Buffer>,
    /// Parts of the arena that a step uses: always the same memory.
    lent: Vec<(Range<usize>, bool)>,
    /// Per result, whether it is all that lies in its buffer, and in row-major order.
    alone: Vec<bool>,
    verifying: bool,
}

/// A byte that makes a NaN of every float.
const POISON: u8 = 0xff;

impl Executor {
    /// Gets ready to run a program. The arena is made by the first run.
    pub fn new(program: Arc<Program>) -> Executor {
        let is_alone = |i: usize| {
            let result = &program.results[i];
            let storage = &program.storages[result.storage];
            let (layout, shape) = (&result.layout, &result.layout.shape);
            let others = program.results.iter().filter(|r| program.storages[r.storage].home == storage.home);
            others.count() == 1
                && layout.offset == 0
                && layout.is_contiguous()
                && shape.len() * result.dtype.size() == storage.bytes
        };
        let alone = (0..program.results.len()).map(is_alone).collect();
        Executor { program, arena: None, lent: Vec::new(), alone, verifying: false }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Checks the plan, and from then on overwrites memory with nonsense before anything lies there and after its last
    /// use, so that a read of something dead shows.
    pub fn verify(&mut self, on: bool) -> Result<()> {
        if on {
            self.program.verify()?;
        }
        self.verifying = on;
        Ok(())
    }

    /// The bytes of the arena that is kept for the next run.
    pub fn arena_bytes(&self) -> usize {
        self.arena.as_ref().map_or(0, Buffer::len)
    }

    /// Gives the arena back. The next run makes another.
    pub fn release(&mut self) {
        self.arena = None;
    }

    /// Runs the program on one [`RunInput`] for each of its inputs, and returns its outputs, without those that are
    /// updates.
    ///
    /// All memory is there before the first call runs, or nothing runs and every input is as it was. If a call fails
    /// later, inputs that are updated have their old value or their new one, and those that were given are gone.
    #[track_caller]
    pub fn run(&mut self, inputs: &mut [RunInput<'_>]) -> Result<Vec<Tensor>> {
        let at = Location::caller();
        self.run_at(inputs, at).map_err(|error| error.at(at))
    }

    /// As [`Executor::run`], on behalf of a caller's line.
    pub fn run_at(&mut self, inputs: &mut [RunInput<'_>], at: Location) -> Result<Vec<Tensor>> {
        let Executor { program, arena, lent, alone, verifying } = self;
        bind::check(program, inputs)?;
        let observed = Observed::begin(program, Some(at));
        // The results first: a run that gets no memory leaves none behind.
        let mut outputs: SmallVec<[Buffer; 4]> = SmallVec::new();
        for &bytes in &program.buffers {
            outputs.push(Buffer::new_at(bytes, Category::Tensor, at)?);
        }
        let arena = match arena {
            Some(arena) => arena,
            None => arena.insert(Buffer::new_at(program.arena_bytes(), Category::Arena, at)?),
        };
        if let Some(observed) = &observed {
            observed.placed(arena, &outputs);
        }
        let mut bound = Bound::new(inputs, program, at)?;
        let mut lent_outputs: SmallVec<[&mut [u8]; 4]> =
            outputs.iter_mut().map(Buffer::as_mut_slice).collect();
        let mut lent_inputs = bound.lend();
        let mut memory = Memory {
            arena: arena.as_mut_slice(),
            outputs: &mut lent_outputs,
            inputs: &mut lent_inputs,
            lent,
        };
        memory.run_all(program, *verifying, observed.as_ref())?;
        drop((lent_inputs, lent_outputs));
        results(program, alone, &mut bound, &mut outputs)
    }
}

/// Runs a program all of whose outputs are updates, in memory that somebody else keeps: one [`BorrowedInput`] per input, and an arena
/// of at least [`Program::arena_bytes`]. `lent` is a list whose memory is used again and again.
///
/// This is how an op that holds graphs runs them, in its own outputs and scratch memory.
pub fn run_in(
    program: &Program,
    inputs: &mut [BorrowedInput<'_>],
    arena: &mut [u8],
    lent: &mut Vec<(Range<usize>, bool)>,
) -> Result<()> {
    let fits = |(wanted, input): (&ProgramInput, &BorrowedInput<'_>)| match (wanted.access, input) {
        (Access::Updated, BorrowedInput::Write(bytes)) => bytes.len() == wanted.spec.bytes(),
        (Access::Read, BorrowedInput::Read(bytes)) => {
            wanted.strides.is_some() || bytes.len() >= wanted.spec.bytes()
        }
        _ => false,
    };
    let all_fit = program.inputs.len() == inputs.len() && program.inputs.iter().zip(&*inputs).all(fits);
    if !all_fit || !program.buffers.is_empty() || arena.len() < program.arena_bytes() {
        return Err(Error::value("the memory lent to a program is not what it was planned for"));
    }
    let observed = Observed::begin(program, None);
    Memory { arena, outputs: &mut [], inputs, lent }.run_all(program, false, observed.as_ref())
}

/// The outputs as tensors: over the buffers made for them, or views of those, of inputs or of constants.
fn results(
    program: &Program,
    alone: &[bool],
    bound: &mut Bound<'_, '_>,
    outputs: &mut [Buffer],
) -> Result<Vec<Tensor>> {
    let mut shared: SmallVec<[(Home, Tensor); 2]> = SmallVec::new();
    let mut list = Vec::with_capacity(program.results.len());
    for (result, &alone) in program.results.iter().zip(alone) {
        let home = program.storages[result.storage].home;
        let buffer = |bound: &mut Bound<'_, '_>, outputs: &mut [Buffer]| match home {
            Home::Output(output) => Some(std::mem::take(&mut outputs[output])),
            Home::Input(input) => bound.take(input),
            _ => None,
        };
        if alone && let Some(buffer) = buffer(bound, outputs) {
            list.push(Tensor::from_buffer(Spec::new(result.dtype, result.layout.shape.clone()), buffer)?);
            continue;
        }
        let known = shared.iter().position(|(other, _)| *other == home);
        let known = match (known, home) {
            (Some(known), _) => known,
            (None, Home::Constant(constant)) => {
                shared.push((home, program.constants[constant].clone()));
                shared.len() - 1
            }
            (None, _) => {
                let base = match buffer(bound, outputs) {
                    Some(buffer) => {
                        Tensor::from_buffer(Spec::new(taut_core::DType::U8, [buffer.len()]), buffer)?
                    }
                    None => bound.tensor(home).ok_or_else(step::overlap)?,
                };
                shared.push((home, base));
                shared.len() - 1
            }
        };
        list.push(shared[known].1.with_layout(result.dtype, &result.layout)?);
    }
    Ok(list)
}
