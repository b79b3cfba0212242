//! How work of the engine is called from Python: whose line it is, when the interpreter lock is given up, what becomes of errors.

use crate::error::exception;
use crate::line;
use pyo3::exceptions::PyReferenceError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use taut_core::{needs_source_location, with_source_location, without_source_location};

/// Work on at least as many bytes gives up the interpreter lock: it takes longer than giving up and taking back.
const HEAVY: usize = 64 << 10;

/// Does work of the engine on `bytes` bytes, without callbacks into Python.
#[inline]
pub fn call<R: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> taut::Result<R> + Send,
) -> PyResult<R> {
    let outcome = if needs_source_location() {
        let at = line::here(py);
        if bytes < HEAVY {
            with_source_location(None, at, work)
        } else {
            py.detach(|| with_source_location(None, at, work))
        }
    } else if bytes < HEAVY {
        work()
    } else {
        py.detach(work)
    };
    outcome.map_err(|error| exception(py, error))
}

/// Does work of the engine that may call back into Python. The interpreter lock is given up, so that nobody who waits for
/// the engine's own locks holds it.
pub fn call_back<R: Send>(py: Python<'_>, work: impl FnOnce() -> taut::Result<R> + Send) -> PyResult<R> {
    let at = line::here(py);
    py.detach(|| with_source_location(None, at, work)).map_err(|error| exception(py, error))
}

/// Calls Python from inside the engine: what it does is attributed to its own lines.
pub fn into_python<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> taut::Result<R> {
    without_source_location(|| Python::attach(work)).map_err(crate::error::raised)
}

/// A Python function that the engine holds. The garbage collector sees it, and can take it back.
#[derive(Clone)]
pub struct Held(Arc<Mutex<Option<Py<PyAny>>>>);

impl Held {
    pub fn new(function: Py<PyAny>) -> Held {
        Held(Arc::new(Mutex::new(Some(function))))
    }

    /// The function.
    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = || PyReferenceError::new_err("the function was collected, with everything that held it");
        held.as_ref().map(|function| function.bind(py).clone()).ok_or_else(gone)
    }

    /// Shows it to the garbage collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever holds the lock is using the function, so it is not garbage.
        self.0.try_lock().map_or(Ok(()), |held| visit.call(&*held))
    }

    /// Gives it to the garbage collector.
    pub fn clear(&self) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(held);
    }
}

/// Work that stays on its thread while the interpreter lock is given up.
struct Here<'a>(&'a mut dyn FnMut());

// SAFETY: `detach` runs its work on the calling thread; it only asks for `Send` so that nothing of Python's gets in.
unsafe impl Send for Here<'_> {}

impl Here<'_> {
    fn run(&mut self) {
        (self.0)();
    }
}

/// Lets Python's signal handlers run in the middle of long work: a key press ends it. Who waits for a variable gives up the
/// interpreter lock: whoever holds the variable may need it.
pub fn listen() {
    fn ask(py: Python<'_>) -> PyResult<()> {
        py.check_signals()
    }
    taut_exec::set_interrupt_check(|| Python::attach(ask).map_err(crate::error::raised));
    taut_autodiff::set_blocking_hook(|work| {
        let mut here = Here(work);
        if Python::try_attach(|py| py.detach(|| here.run())).is_none() {
            here.run();
        }
    });
}
