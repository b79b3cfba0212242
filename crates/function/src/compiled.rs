//! A graph made ready to be called: compiled, planned, with arenas that are kept between calls.

use std::sync::{Arc, Mutex, PoisonError};
use taut_compile::{CompileOptions, compile};
use taut_core::{Graph, Result, Tensor};
use taut_exec::{Executor, RunInput};
use taut_memory::Location;
use taut_plan::{PlanRequest, Program};

/// How graphs become programs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) options: CompileOptions,
    /// Whether runs overwrite dead memory with nonsense.
    pub(crate) verify: bool,
}

/// A program, and an executor with its arena for each call that was ever under way at once.
pub(crate) struct Compiled {
    program: Arc<Program>,
    program_bytes: usize,
    verify: bool,
    idle: Mutex<Vec<Executor>>,
}

impl Compiled {
    pub(crate) fn new(graph: &Graph, settings: Settings, request: &PlanRequest) -> Result<Compiled> {
        let program = Arc::new(Program::plan(&compile(graph, &settings.options)?, request)?);
        let program_bytes = program_bytes(&program);
        Ok(Compiled { program, program_bytes, verify: settings.verify, idle: Mutex::new(Vec::new()) })
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Runs the program. Says, too, whether that took an arena more than there was.
    pub(crate) fn run(&self, inputs: &mut [RunInput<'_>], at: Location) -> Result<(Vec<Tensor>, bool)> {
        let idle = self.idle().pop();
        let grew = idle.is_none();
        let mut executor = match idle {
            Some(executor) => executor,
            None => {
                let mut executor = Executor::new(self.program.clone());
                executor.verify(self.verify)?;
                executor
            }
        };
        let outcome = executor.run_at(inputs, at);
        self.idle().push(executor);
        outcome.map(|outputs| (outputs, grew))
    }

    /// Gives the arenas back that no call is using.
    pub(crate) fn release(&self) {
        self.idle().clear();
    }

    /// What it holds: the program with its kernels and constants, and the arenas that no call is using.
    pub(crate) fn bytes(&self) -> usize {
        let arenas: usize = self.idle().iter().map(Executor::arena_bytes).sum();
        arenas + self.program_bytes
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Executor>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn program_bytes(program: &Program) -> usize {
    let step = |step: &taut_plan::ProgramStep| {
        let lists = size_of_val(&step.operands[..]) + size_of_val(&step.targets[..]);
        size_of::<taut_plan::ProgramStep>() + lists + step.op.as_ref().map_or(0, |op| op.footprint())
    };
    let steps: usize = program.steps.iter().map(step).sum();
    steps + size_of_val(&program.storages[..]) + program.constant_bytes()
}
