//! The line of the Python program that is calling.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use taut::memory::Location;

/// What is known of lines of code objects. Asked while the interpreter lock is held, and never for long.
#[derive(Default)]
struct Known {
    /// By code object and line; none for the package's own code, which works on behalf of its callers.
    lines: HashMap<(usize, i32), Option<Location>>,
    /// Keeps the addresses that are keys from being used again.
    codes: Vec<Py<PyAny>>,
    /// Where the package's own code is, and that of packages which call on behalf of others.
    inner: Vec<String>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Lines that are remembered at once. A session that evaluates ever new code forgets and begins again.
const MOST: usize = 100_000;

/// Files that begin like this belong to the package, or work for others: their lines are passed over.
#[pyfunction]
pub fn pass_over(prefix: String) {
    with(|known| {
        known.inner.push(prefix);
        known.lines.clear();
    });
}

/// The line that is calling, as `file:line`.
#[pyfunction]
pub fn calling_line(py: Python<'_>) -> String {
    here(py).to_string()
}

fn with<R>(work: impl FnOnce(&mut Known) -> R) -> R {
    work(KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// The innermost line of the running Python program that is not passed over.
pub fn here(py: Python<'_>) -> Location {
    let mut frame = current(py);
    while let Some(now) = frame {
        if let Ok(Some(line)) = line_of(&now) {
            return line;
        }
        frame = now.getattr(pyo3::intern!(py, "f_back")).ok().filter(|back| !back.is_none());
    }
    Location::foreign("<python>", 0)
}

fn current(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: the interpreter is attached; what comes back is borrowed from it, or null outside of any code.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

/// A frame's line; none if it is passed over.
fn line_of(frame: &Bound<'_, PyAny>) -> PyResult<Option<Location>> {
    let py = frame.py();
    // SAFETY: `frame` came from `PyEval_GetFrame` or from a frame's `f_back`, so it is a frame object, alive.
    let number = unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) };
    // SAFETY: as above; what comes back is a new reference, never null.
    let code: Bound<'_, PyAny> =
        unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast()) };
    let key = (code.as_ptr().addr(), number);
    if let Some(line) = with(|known| known.lines.get(&key).copied()) {
        return Ok(line);
    }
    let file = code.getattr(pyo3::intern!(py, "co_filename"))?.cast_into::<PyString>()?.to_string();
    Ok(with(|known| {
        if known.lines.len() >= MOST {
            known.lines.clear();
            known.codes.clear();
        }
        let is_inner = known.inner.iter().any(|prefix| file.starts_with(prefix));
        let line = (!is_inner).then(|| Location::foreign(&file, number.try_into().unwrap_or(0)));
        known.codes.push(code.unbind());
        known.lines.insert(key, line);
        line
    }))
}
