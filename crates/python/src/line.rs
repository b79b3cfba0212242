//! The caller's line in the Python program.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use taut::memory::Location;

/// A cache of the source locations of code objects. Used with the interpreter lock held, for a short time.
#[derive(Default)]
struct LineCache {
    /// By code object and line; `None` for skipped files, whose work is attributed to their callers.
    lines: HashMap<(usize, i32), Option<Location>>,
    /// Keeps the code objects alive, so that their addresses stay unique.
    codes: Vec<Py<PyAny>>,
    /// Path prefixes of skipped files.
    skipped: Vec<String>,
}

thread_local! {
    /// The line of a recorded call that is made again: `recording.rs`.
    static REPLAYED: Cell<Option<Location>> = const { Cell::new(None) };
    /// The line that made the dataset whose function runs: that of calls without a line of the user's.
    static STAGE: Cell<Option<Location>> = const { Cell::new(None) };
}

/// Runs a function of a dataset, which was made at a line.
pub fn within_stage<R>(at: Location, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<Location>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STAGE.set(self.0);
        }
    }
    let _restore = Restore(STAGE.replace(Some(at)));
    work()
}

static CACHE: Mutex<Option<LineCache>> = Mutex::new(None);

/// The largest number of cached lines. The cache is cleared when it is full, as in a session that keeps evaluating new code.
const MAX_LINES: usize = 100_000;

/// Skips files whose path starts with this prefix when the caller's line is searched.
#[pyfunction]
pub fn pass_over(prefix: String) {
    with(|cache| {
        cache.skipped.push(prefix);
        cache.lines.clear();
    });
}

/// The caller's line, as `file:line`.
#[pyfunction]
pub fn calling_line(py: Python<'_>) -> String {
    here(py).to_string()
}

fn with<R>(work: impl FnOnce(&mut LineCache) -> R) -> R {
    work(CACHE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Attributes what follows on this thread to a line, or, without one, to the caller's again.
#[pyfunction]
#[pyo3(signature = (file=None, line=0))]
pub fn set_replayed_line(file: Option<&str>, line: u32) {
    REPLAYED.set(file.map(|file| Location::foreign(file, line)));
}

/// Whether the innermost Python function is the user's.
pub fn is_user_code(py: Python<'_>) -> bool {
    current(py).is_some_and(|frame| matches!(line_of(&frame), Ok(Some(_))))
}

/// The innermost line of the running Python program that is not skipped.
pub fn here(py: Python<'_>) -> Location {
    if let Some(line) = REPLAYED.get() {
        return line;
    }
    let mut frame = current(py);
    while let Some(now) = frame {
        if let Ok(Some(line)) = line_of(&now) {
            return line;
        }
        frame = now.getattr(pyo3::intern!(py, "f_back")).ok().filter(|back| !back.is_none());
    }
    STAGE.get().unwrap_or_else(|| Location::foreign("<python>", 0))
}

/// Whether the innermost Python function is one of the package that computes with tensors. AutoGraph and the Keras backend call
/// functions of the user, whose frames may be native.
pub fn is_in_package(py: Python<'_>) -> bool {
    const CALLERS: [&str; 2] = ["autograph", "keras"];
    let file = current(py).and_then(|frame| {
        let code = frame.getattr(pyo3::intern!(py, "f_code")).ok()?;
        code.getattr(pyo3::intern!(py, "co_filename")).ok()?.extract::<String>().ok()
    });
    let Some(file) = file else { return false };
    with(|cache| {
        cache.skipped.first().and_then(|package| file.strip_prefix(package.as_str()).map(String::from))
    })
    .is_some_and(|inside| !CALLERS.iter().any(|caller| inside.starts_with(caller)))
}

fn current(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: the interpreter is attached; the result is borrowed from it, or null outside of any code.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

/// A frame's line; `None` if it is skipped.
fn line_of(frame: &Bound<'_, PyAny>) -> PyResult<Option<Location>> {
    let py = frame.py();
    // SAFETY: `frame` came from `PyEval_GetFrame` or from a frame's `f_back`, so it is a frame object, alive.
    let number = unsafe { ffi::PyFrame_GetLineNumber(frame.as_ptr().cast()) };
    // SAFETY: as above; the result is a new reference and never null.
    let code: Bound<'_, PyAny> =
        unsafe { Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast()) };
    let key = (code.as_ptr().addr(), number);
    if let Some(line) = with(|cache| cache.lines.get(&key).copied()) {
        return Ok(line);
    }
    let file = code.getattr(pyo3::intern!(py, "co_filename"))?.cast_into::<PyString>()?.to_string();
    Ok(with(|cache| {
        if cache.lines.len() >= MAX_LINES {
            cache.lines.clear();
            cache.codes.clear();
        }
        let is_skipped = cache.skipped.iter().any(|prefix| file.starts_with(prefix));
        let line = (!is_skipped).then(|| Location::foreign(&file, number.try_into().unwrap_or(0)));
        cache.codes.push(code.unbind());
        cache.lines.insert(key, line);
        line
    }))
}

/// Runs work whose allocations are attributed to the caller's line.
pub fn at_line<R>(py: Python<'_>, work: impl FnOnce() -> R) -> R {
    taut_core::with_source_location(None, here(py), work)
}
