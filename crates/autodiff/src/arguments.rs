//! Variables among the arguments of functions that are being traced.
//!
//! A trace serves every variable of a type and shape if it uses the variables that it is given as its arguments alone: it reads
//! and writes them through the handles that it was given. Those handles know the trace that they belong to. Everything else shows
//! which variable it is: its number, its name, its value while tracing, a use of the same variable through a handle from elsewhere.
//! Then the trace is for these variables only.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    /// The traces in progress on this thread that have variables among their arguments.
    static IN_PROGRESS: RefCell<Vec<Arc<VariableArguments>>> = const { RefCell::new(Vec::new()) };
    /// The trace whose arguments are being made.
    static BINDING: RefCell<Option<Arc<VariableArguments>>> = const { RefCell::new(None) };
    /// How many callers on this thread want functions to be traced for the very variables that they are given.
    static BY_IDENTITY: Cell<usize> = const { Cell::new(0) };
}

/// The variables among the arguments of a function that is being traced, and what the trace has shown about their use.
pub struct VariableArguments {
    number: u64,
    ids: Vec<u64>,
    /// Whether the trace depends on which variables they are.
    by_identity: AtomicBool,
    /// Whether the function has to be traced again, with the variables themselves in place of handles that stand for them.
    rejected: AtomicBool,
    /// The variables that the trace uses through other handles.
    direct: Mutex<BTreeSet<u64>>,
}

/// A trace in progress; drop ends it.
pub struct VariableArgumentsGuard(Arc<VariableArguments>);

impl VariableArguments {
    /// Begins a trace on this thread whose arguments contain the variables with these ids.
    #[must_use]
    pub fn begin(ids: Vec<u64>) -> VariableArgumentsGuard {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let arguments = Arc::new(VariableArguments {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            ids,
            by_identity: AtomicBool::new(false),
            rejected: AtomicBool::new(false),
            direct: Mutex::default(),
        });
        IN_PROGRESS.with_borrow_mut(|traces| traces.push(arguments.clone()));
        VariableArgumentsGuard(arguments)
    }

    /// A number that no other trace has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Notes that the trace depends on which variables its arguments are.
    pub fn note_identity(&self) {
        self.by_identity.store(true, Ordering::Relaxed);
    }

    /// Notes that the trace may be wrong, since the function has compared handles: it has to be traced with the variables themselves.
    pub fn reject(&self) {
        self.rejected.store(true, Ordering::Relaxed);
    }

    /// Whether the trace depends on which variables its arguments are.
    pub fn is_by_identity(&self) -> bool {
        self.by_identity.load(Ordering::Relaxed)
    }

    /// Whether the function has to be traced again, with the variables themselves.
    pub fn is_rejected(&self) -> bool {
        self.rejected.load(Ordering::Relaxed)
    }

    /// The ids of the variables that the trace uses through handles other than its arguments.
    pub fn direct_uses(&self) -> Vec<u64> {
        self.direct().iter().copied().collect()
    }

    fn direct(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.direct.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_direct_use(&self, id: u64) {
        if self.ids.contains(&id) {
            self.note_identity();
        }
        self.direct().insert(id);
    }
}

impl VariableArgumentsGuard {
    /// The trace's variables.
    pub fn arguments(&self) -> &Arc<VariableArguments> {
        &self.0
    }

    /// Runs `work`, which makes the arguments of the trace: the variables among them belong to it.
    pub fn bind<R>(&self, work: impl FnOnce() -> R) -> R {
        struct Reset(Option<Arc<VariableArguments>>);
        impl Drop for Reset {
            fn drop(&mut self) {
                BINDING.set(self.0.take());
            }
        }
        let _reset = Reset(BINDING.replace(Some(self.0.clone())));
        work()
    }
}

impl Drop for VariableArgumentsGuard {
    fn drop(&mut self) {
        IN_PROGRESS.with_borrow_mut(|traces| traces.retain(|other| !Arc::ptr_eq(other, &self.0)));
    }
}

/// Where a handle on a variable comes from.
#[derive(Clone, Default)]
pub(crate) enum HandleSource {
    /// It was made with the variable.
    #[default]
    Direct,
    /// It is an argument of a trace.
    Argument(Arc<VariableArguments>),
    /// The engine made it, for a variable whose use it has seen before.
    Engine,
}

/// The trace whose arguments are being made, if the variable is one of them.
pub(crate) fn binding(id: u64) -> Option<Arc<VariableArguments>> {
    BINDING.with_borrow(Clone::clone).filter(|arguments| arguments.ids.contains(&id))
}

/// Notes a use of a variable in the traces in progress: it is one of their arguments only through the handle that they were given.
pub(crate) fn note_use(id: u64, source: &HandleSource) {
    if matches!(source, HandleSource::Engine) {
        return;
    }
    IN_PROGRESS.with_borrow(|traces| {
        for trace in traces.iter().rev() {
            if matches!(source, HandleSource::Argument(own) if Arc::ptr_eq(own, trace)) {
                // What a trace around this one sees of it, it sees when this one is called.
                return;
            }
            trace.note_direct_use(id);
        }
    });
}

/// Notes that something shows which variable it is.
pub(crate) fn note_identity(id: u64) {
    IN_PROGRESS.with_borrow(|traces| {
        traces.iter().filter(|trace| trace.ids.contains(&id)).for_each(|trace| trace.note_identity());
    });
}

/// Whether functions are traced for the very variables that they are given, on this thread.
pub fn is_bound_by_identity() -> bool {
    BY_IDENTITY.get() > 0
}

/// Begins a part of a thread's work in which functions are traced for the very variables that they are given, or ends it.
pub fn bind_by_identity(begins: bool) {
    BY_IDENTITY.set(if begins { BY_IDENTITY.get() + 1 } else { BY_IDENTITY.get().saturating_sub(1) });
}
