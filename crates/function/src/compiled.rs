//! A graph made ready to be called: compiled, planned, with arenas that are kept between calls.

use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use taut_compile::{Options, compile};
use taut_core::{Graph, Result, Tensor};
use taut_exec::{Executor, Input};
use taut_plan::{Program, Request};

/// How graphs become programs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) options: Options,
    /// Whether runs overwrite dead memory with nonsense.
    pub(crate) verify: bool,
}

/// A program, and an executor with its arena for each call that was ever under way at once.
pub(crate) struct Compiled {
    program: Arc<Program>,
    verify: bool,
    idle: Mutex<Vec<Executor>>,
}

impl Compiled {
    pub(crate) fn new(graph: &Graph, settings: Settings, request: &Request) -> Result<Compiled> {
        let program = Arc::new(Program::plan(&compile(graph, &settings.options)?, request)?);
        Ok(Compiled { program, verify: settings.verify, idle: Mutex::new(Vec::new()) })
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Runs the program. Says, too, whether that took an arena more than there was.
    pub(crate) fn run(
        &self,
        inputs: &mut [Input<'_>],
        at: &'static Location<'static>,
    ) -> Result<(Vec<Tensor>, bool)> {
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

    /// The bytes of the arenas that no call is using, and of the constants.
    pub(crate) fn bytes(&self) -> usize {
        let arenas: usize = self.idle().iter().map(Executor::arena_bytes).sum();
        arenas + self.program.constant_bytes() + self.program.steps.len() * size_of::<taut_plan::Step>()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Executor>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
