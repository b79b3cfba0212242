//! Recordings of the calls that a traced Python function makes, so that a new size of an open dimension is traced by making the
//! same calls again, without the function: `python/taut/recording.py`.
//!
//! While a recording is active on a thread, the calls that come from outside of the package are recorded with their arguments and
//! results; what such a call calls itself is part of it. Everything that a program could learn of a size (a shape, the value of a
//! tensor that is known while tracing) is recorded as well, since the recording holds only where it is the same. A call that
//! cannot be made again ends the recording's validity, with its line.

use crate::line;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::RefCell;
use taut_core::graph::num_traced_calls;

type Object<'py> = PyResult<Bound<'py, PyAny>>;

thread_local! {
    /// The recording to which calls are added now. None inside of a recorded call.
    static ACTIVE: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// The active recording. Only traces are recorded, so eager calls read one word.
#[inline]
fn active(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    if !taut_core::is_tracing() {
        return None;
    }
    ACTIVE.with_borrow(|active| active.as_ref().map(|recording| recording.bind(py).clone()))
}

/// Takes the place of the active recording until it is dropped.
struct Suspension(Option<Py<PyAny>>);

impl Suspension {
    fn enter(recording: Option<Py<PyAny>>) -> Suspension {
        Suspension(ACTIVE.replace(recording))
    }
}

impl Drop for Suspension {
    fn drop(&mut self) {
        ACTIVE.set(self.0.take());
    }
}

/// Makes a recording the active one of this thread, or none; returns the one before.
#[pyfunction]
pub fn set_recording(recording: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    ACTIVE.replace(recording)
}

/// Whether calls are recorded on this thread, and this is not part of a recorded call.
#[pyfunction]
pub fn is_recording_calls() -> bool {
    taut_core::is_tracing() && ACTIVE.with_borrow(Option::is_some)
}

/// Calls a function of the package as one recorded call.
#[pyfunction]
#[pyo3(signature = (function, args, kwargs=None))]
pub fn recorded_call<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Object<'py> {
    let py = function.py();
    record(py, || Ok((function.clone(), args.clone(), kwargs.cloned())), || function.call(args, kwargs))
}

/// Runs `work`, a method of an object, as one recorded call.
#[inline]
pub fn method<'py, T: pyo3::PyTypeInfo>(
    slf: &Bound<'py, T>,
    name: &'static str,
    args: &[&Bound<'py, PyAny>],
    work: impl FnOnce() -> Object<'py>,
) -> Object<'py> {
    let py = slf.py();
    let call = || {
        let function = py.get_type::<T>().getattr(name)?;
        let args = [slf.as_any()].into_iter().chain(args.iter().copied());
        Ok((function, PyTuple::new(py, args.collect::<Vec<_>>())?, None))
    };
    record(py, call, work)
}

/// Runs `work`, a function of the extension module, as one recorded call. Arguments that are not given are None.
#[inline]
pub fn function<'py>(
    py: Python<'py>,
    name: &'static str,
    args: &[Option<&Bound<'py, PyAny>>],
    work: impl FnOnce() -> Object<'py>,
) -> Object<'py> {
    let call = || {
        let function = py.import("taut._native")?.getattr(name)?;
        let none = py.None().into_bound(py);
        let args: Vec<_> = args.iter().map(|arg| arg.unwrap_or(&none).clone()).collect();
        Ok((function, PyTuple::new(py, args)?, None))
    };
    record(py, call, work)
}

/// A function with its arguments.
type Call<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>);

/// Runs `work` as one recorded call, which `call` describes.
#[inline]
pub fn record<'py>(
    py: Python<'py>,
    call: impl FnOnce() -> PyResult<Call<'py>>,
    work: impl FnOnce() -> Object<'py>,
) -> Object<'py> {
    let Some(recording) = active(py) else { return work() };
    let (function, args, kwargs) = call()?;
    let at = line::here(py);
    let before = num_traced_calls();
    let suspended = Suspension::enter(None);
    let made = work();
    drop(suspended);
    match &made {
        Ok(result) => {
            let entry = (function, args, kwargs, result, at.file(), at.line(), before, num_traced_calls());
            recording.call_method1("add_call", entry)?
        }
        Err(error) => recording.call_method1("add_failure", (error.value(py), at.to_string()))?,
    };
    made
}

/// Notes a call that is not recorded: the recording then holds for these sizes only.
#[cold]
pub fn note_unrecorded(py: Python<'_>) {
    if let Some(recording) = active(py) {
        let at = line::here(py).to_string();
        // The recording is only less useful if this fails.
        let _ = recording.call_method1("invalidate", (at, "this call cannot be recorded"));
    }
}

/// The shape that a program may see, if a recording is active: sizes of open dimensions are None for the user's code. The
/// package's own code sees them, and the recording holds for them only.
pub fn shape<'py>(
    array: &Bound<'py, PyAny>,
    dims: &[usize],
    is_user_code: fn(Python<'_>) -> bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = array.py();
    let Some(recording) = active(py) else { return Ok(None) };
    let dims = PyTuple::new(py, dims)?;
    recording.call_method1("shape", (array, dims, is_user_code(py), line::here(py).to_string())).map(Some)
}

/// Notes that a program reads something of an array that depends on its shape or value.
pub fn note_read(array: &Bound<'_, PyAny>) -> PyResult<()> {
    note(array, "read")
}

/// Notes that a program reads the rank of an array.
pub fn note_rank(array: &Bound<'_, PyAny>) -> PyResult<()> {
    note(array, "rank")
}

/// Calls a method of the active recording with an array and the line.
fn note(array: &Bound<'_, PyAny>, method: &str) -> PyResult<()> {
    let py = array.py();
    let Some(recording) = active(py) else { return Ok(()) };
    let suspended = Suspension::enter(None);
    let noted = recording.call_method1(method, (array, line::here(py).to_string()));
    drop(suspended);
    noted.map(drop)
}
