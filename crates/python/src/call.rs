//! Calls from Python into the engine: source location, release of the interpreter lock, conversion of errors.

use crate::error::exception;
use crate::line;
use crate::recording;
use crate::thread_state;
use pyo3::exceptions::PyReferenceError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use taut::kernels::KeepDenormals;
use taut_core::{needs_source_location, with_source_location, without_source_location};

/// Work on at least this many bytes releases the interpreter lock: it takes longer than releasing and reacquiring it.
const RELEASE_BYTES: usize = 64 << 10;

/// Runs work of the engine on `bytes` bytes that does not call back into Python.
#[inline]
pub fn call<R: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> taut::Result<R> + Send,
) -> PyResult<R> {
    let outcome = if needs_source_location() {
        recording::note_unrecorded(py);
        let at = line::here(py);
        if bytes < RELEASE_BYTES {
            with_source_location(None, at, work)
        } else {
            py.detach(|| with_source_location(None, at, work))
        }
    } else if bytes < RELEASE_BYTES {
        work()
    } else {
        py.detach(work)
    };
    outcome.map_err(|error| exception(py, error))
}

/// Runs work of the engine that may call back into Python. The interpreter lock is released, so that it is never held while
/// waiting for a lock of the engine: that could deadlock with a callback.
pub fn call_back<R: Send>(py: Python<'_>, work: impl FnOnce() -> taut::Result<R> + Send) -> PyResult<R> {
    recording::note_unrecorded(py);
    let at = line::here(py);
    py.detach(|| with_source_location(None, at, work)).map_err(|error| exception(py, error))
}

/// Calls Python from inside the engine. Ops that the callback runs are attributed to its own lines, and its arithmetic has
/// denormal numbers, as everywhere in Python.
pub fn into_python<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> taut::Result<R> {
    let _mode = KeepDenormals::new();
    thread_state::keep();
    without_source_location(|| Python::attach(work)).map_err(crate::error::raised)
}

/// A Python function that the engine holds a reference to. The garbage collector can traverse and clear it.
#[derive(Clone)]
pub struct PyFunctionRef(Arc<Mutex<Option<Py<PyAny>>>>);

impl PyFunctionRef {
    pub fn new(function: Py<PyAny>) -> PyFunctionRef {
        PyFunctionRef(Arc::new(Mutex::new(Some(function))))
    }

    /// The function.
    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone =
            || PyReferenceError::new_err("the function was garbage-collected with the object that owned it");
        held.as_ref().map(|function| function.bind(py).clone()).ok_or_else(gone)
    }

    /// Reports the function to the garbage collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // If the lock is taken, the function is in use, so it is not garbage.
        self.0.try_lock().map_or(Ok(()), |held| visit.call(&*held))
    }

    /// Drops the function for the garbage collector.
    pub fn clear(&self) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(held);
    }
}

/// Work that runs on the calling thread while the interpreter lock is released.
struct SameThread<'a>(&'a mut dyn FnMut());

// SAFETY: `detach` runs its work on the calling thread; it requires `Send` to keep Python objects out.
unsafe impl Send for SameThread<'_> {}

impl SameThread<'_> {
    fn run(&mut self) {
        (self.0)();
    }
}

/// Lets Python's signal handlers interrupt long work, and releases the interpreter lock while waiting for a variable: the thread
/// that updates the variable may need it.
pub fn install_hooks() {
    fn check(py: Python<'_>) -> PyResult<()> {
        py.check_signals()
    }
    taut_exec::set_interrupt_check(|| Python::attach(check).map_err(crate::error::raised));
    taut_autodiff::set_blocking_hook(|work| {
        let mut work = SameThread(work);
        if Python::try_attach(|py| py.detach(|| work.run())).is_none() {
            work.run();
        }
    });
}
