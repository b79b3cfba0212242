//! Observers: hooks that are called for every run of a program and for its steps.

use std::sync::{PoisonError, RwLock};
use taut_core::observe::has_observer;
use taut_memory::{Buffer, Location};
use taut_plan::Program;

/// Called for every run of a program, on the thread where it runs, while [calls are observed](taut_core::observe::set_observer).
/// Runs and steps nest: one that begins inside another ends before it.
pub trait StepObserver: Sync {
    /// A run begins, before it allocates. `at` is the caller's line; `None` if an op that holds the program runs it.
    fn run_begins(&self, program: &Program, at: Option<Location>);

    /// The run has allocated its memory: the arena, and one buffer for each of [`Program::buffers`].
    fn run_placed(&self, arena: &Buffer, outputs: &[Buffer]);

    /// A step of the run begins.
    fn step_begins(&self, step: usize);

    /// The step ends. Not called if the step panics.
    fn step_ends(&self);

    /// The run ends, whether it succeeded or not.
    fn run_ends(&self);
}

static OBSERVER: RwLock<Option<&'static dyn StepObserver>> = RwLock::new(None);

/// Calls this observer for every run from now on; `None` removes it. There is one at a time.
pub fn observe(observer: Option<&'static dyn StepObserver>) {
    *OBSERVER.write().unwrap_or_else(PoisonError::into_inner) = observer;
}

/// A run that is observed; drop ends it.
pub(crate) struct Observed {
    observer: &'static dyn StepObserver,
}

impl Observed {
    /// Begins a run, if calls are observed.
    #[inline]
    pub(crate) fn begin(program: &Program, at: Option<Location>) -> Option<Observed> {
        if has_observer() { Observed::found(program, at) } else { None }
    }

    #[cold]
    fn found(program: &Program, at: Option<Location>) -> Option<Observed> {
        let observer = (*OBSERVER.read().unwrap_or_else(PoisonError::into_inner))?;
        observer.run_begins(program, at);
        Some(Observed { observer })
    }

    pub(crate) fn placed(&self, arena: &Buffer, outputs: &[Buffer]) {
        self.observer.run_placed(arena, outputs);
    }

    #[cold]
    pub(crate) fn step_begins(&self, step: usize) {
        self.observer.step_begins(step);
    }

    #[cold]
    pub(crate) fn step_ends(&self) {
        self.observer.step_ends();
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.observer.run_ends();
    }
}
