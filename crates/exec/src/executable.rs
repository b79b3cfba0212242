//! A compiled and planned graph, ready to run.

use crate::bind::{self, BorrowedInput, BoundInputs, RunInput};
use crate::observe::Observed;
use crate::results;
use crate::step::{BorrowedRanges, Memory};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taut_compile::{CompileOptions, compile};
use taut_core::graph::suspend_tracing;
use taut_core::{Error, Graph, Result, Tensor, record};
use taut_memory::{Buffer, Category, Location};
use taut_plan::{Access, Home, PlanRequest, Program, ProgramInput, ProgramStep};

/// How a graph becomes an [`Executable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutableOptions {
    /// What the compiler may do.
    pub compile: CompileOptions,
    /// Whether the plan is checked, and runs overwrite dead memory: [`Executable::poison_dead_memory`].
    pub poison_dead_memory: bool,
}

/// A program with the arenas it runs in.
///
/// The arena and the buffers that are returned are all that a run allocates, except where an input that is
/// [updated](RunInput::Updated) is shared. An arena is kept for each run that was ever in progress at the same time.
pub struct Executable {
    program: Arc<Program>,
    program_bytes: usize,
    /// Per result, whether it fills a buffer of its own, in row-major order.
    owns_buffer: Vec<bool>,
    poison: bool,
    idle_arenas: Mutex<Vec<Buffer>>,
}

/// What a run returned.
pub struct RunOutputs {
    /// The outputs, without those that are updates of inputs.
    pub outputs: Vec<Tensor>,
    /// Whether the run allocated an arena, so that the executable holds more than before.
    pub allocated_arena: bool,
}

impl Executable {
    /// Compiles and plans a graph.
    pub fn compile(graph: &Graph, options: ExecutableOptions, request: &PlanRequest) -> Result<Executable> {
        let compiled = Executable::compile_graph(graph, options)?;
        Executable::with_options(Program::plan(&compiled, request)?, options)
    }

    /// Runs the compiler's passes on a graph.
    pub fn compile_graph(graph: &Graph, options: ExecutableOptions) -> Result<Graph> {
        // Passes apply ops to constants: those calls belong to no trace and to no tape.
        suspend_tracing(|| record::without_recording(|| compile(graph, &options.compile)))
    }

    /// Makes a program ready to run, as the options say.
    pub fn with_options(program: Program, options: ExecutableOptions) -> Result<Executable> {
        let mut executable = Executable::new(program);
        executable.poison_dead_memory(options.poison_dead_memory)?;
        Ok(executable)
    }

    /// Plans a graph that is already compiled.
    pub fn plan(graph: &Graph, request: &PlanRequest) -> Result<Executable> {
        Ok(Executable::new(Program::plan(graph, request)?))
    }

    /// Makes a program ready to run. The first run allocates the arena.
    pub fn new(program: impl Into<Arc<Program>>) -> Executable {
        let program = program.into();
        let owns_buffer = (0..program.results.len()).map(|i| results::owns_buffer(&program, i)).collect();
        let program_bytes = program_bytes(&program);
        Executable { program, program_bytes, owns_buffer, poison: false, idle_arenas: Mutex::default() }
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Whether a result fills an output buffer alone.
    pub fn owns_output_buffer(&self, result: usize) -> bool {
        let home = self.program.storages[self.program.results[result].storage].home;
        self.owns_buffer[result] && matches!(home, Home::Output(_))
    }

    /// Checks the plan, and from then on fills memory with NaN before the first write and after the last use, so that a
    /// read of a dead value is noticed.
    pub fn poison_dead_memory(&mut self, on: bool) -> Result<()> {
        if on {
            self.program.verify()?;
        }
        self.poison = on;
        Ok(())
    }

    /// The bytes held between runs: the program with its ops and constants, and the idle arenas.
    pub fn bytes(&self) -> usize {
        self.program_bytes + self.idle_arenas().iter().map(Buffer::len).sum::<usize>()
    }

    /// Frees the arenas that no run is using. The next run allocates one.
    pub fn release_arenas(&self) {
        self.idle_arenas().clear();
    }

    /// Runs the program on one [`RunInput`] for each of its inputs, and returns its outputs, without those that are
    /// updates.
    ///
    /// All memory is allocated before the first step; if that fails, every input is unchanged. If a step fails, an
    /// updated input has its old value or its new one, and donated inputs are gone.
    #[track_caller]
    pub fn run(&self, inputs: &mut [RunInput<'_>]) -> Result<Vec<Tensor>> {
        let at = Location::caller();
        self.run_at(inputs, at).map(|run| run.outputs).map_err(|error| error.at(at))
    }

    /// As [`Executable::run`]; memory is attributed to the line `at`, or to that of [`taut_core::with_source_location`].
    pub fn run_at(&self, inputs: &mut [RunInput<'_>], at: Location) -> Result<RunOutputs> {
        let at = taut_core::source_location(at);
        bind::check(&self.program, inputs)?;
        let observed = Observed::begin(&self.program, Some(at));
        // The outputs first: a run that fails for lack of memory must not leave a new arena behind.
        let mut outputs: SmallVec<[Buffer; 4]> = SmallVec::new();
        for &bytes in &self.program.buffers {
            outputs.push(Buffer::new_at(bytes, Category::Tensor, at)?);
        }
        let idle = self.idle_arenas().pop();
        let allocated_arena = idle.is_none();
        let mut arena = match idle {
            Some(arena) => arena,
            None => Buffer::new_at(self.program.arena_bytes(), Category::Arena, at)?,
        };
        let outcome = self.run_steps(inputs, &mut arena, &mut outputs, observed.as_ref(), at);
        self.idle_arenas().push(arena);
        Ok(RunOutputs { outputs: outcome?, allocated_arena })
    }

    fn run_steps(
        &self,
        inputs: &mut [RunInput<'_>],
        arena: &mut Buffer,
        outputs: &mut [Buffer],
        observed: Option<&Observed>,
        at: Location,
    ) -> Result<Vec<Tensor>> {
        if let Some(observed) = observed {
            observed.placed(arena, outputs);
        }
        let mut bound = BoundInputs::new(inputs, &self.program, at)?;
        let mut output_slices: SmallVec<[&mut [u8]; 4]> =
            outputs.iter_mut().map(Buffer::as_mut_slice).collect();
        let mut input_slices = bound.borrow();
        let mut ranges = BorrowedRanges::take();
        let mut memory = Memory {
            arena: arena.as_mut_slice(),
            outputs: &mut output_slices,
            inputs: &mut input_slices,
            borrowed: &mut ranges,
        };
        memory.run_all(&self.program, self.poison, observed)?;
        drop((input_slices, output_slices));
        results::tensors(&self.program, &self.owns_buffer, &mut bound, outputs)
    }

    /// Runs a program all of whose outputs are updates, in memory of the caller: one [`BorrowedInput`] per input, and an
    /// arena of at least [`Program::arena_bytes`].
    ///
    /// An op that holds graphs runs them this way, in its own outputs and scratch memory.
    pub fn run_in(&self, inputs: &mut [BorrowedInput<'_>], arena: &mut [u8]) -> Result<()> {
        let program = &*self.program;
        let fits = |(wanted, input): (&ProgramInput, &BorrowedInput<'_>)| match (wanted.access, input) {
            (Access::Updated, BorrowedInput::Write(bytes)) => bytes.len() == wanted.spec.bytes(),
            (Access::Read, BorrowedInput::Read(bytes)) => {
                wanted.strides.is_some() || bytes.len() >= wanted.spec.bytes()
            }
            _ => false,
        };
        let all_fit = program.inputs.len() == inputs.len() && program.inputs.iter().zip(&*inputs).all(fits);
        if !all_fit || !program.buffers.is_empty() || arena.len() < program.arena_bytes() {
            return Err(Error::value("the borrowed inputs and arena must have the sizes that were planned"));
        }
        let observed = Observed::begin(program, None);
        let mut ranges = BorrowedRanges::take();
        let mut memory = Memory { arena, outputs: &mut [], inputs, borrowed: &mut ranges };
        memory.run_all(program, self.poison, observed.as_ref())
    }

    fn idle_arenas(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.idle_arenas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn program_bytes(program: &Program) -> usize {
    let step_bytes = |step: &ProgramStep| {
        let lists = size_of_val(&step.operands[..]) + size_of_val(&step.targets[..]);
        size_of::<ProgramStep>() + lists + step.op.as_ref().map_or(0, |op| op.footprint())
    };
    let steps: usize = program.steps.iter().map(step_bytes).sum();
    steps + size_of_val(&program.storages[..]) + program.constant_bytes()
}
