//! Errors there and back: the engine's as exceptions of fitting classes, and exceptions through the engine unchanged.

use crate::line;
use pyo3::exceptions::{PyIndexError, PyOSError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;
use std::fmt;
use taut::{Error, ErrorKind};

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// An exception on its way through the engine.
pub struct Raised(PyErr);

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Raised {}

/// An exception as an error that the engine passes on.
pub fn raised(error: PyErr) -> Error {
    Error::new(ErrorKind::Value, error.to_string()).caused_by(Raised(error))
}

/// The engine's error as an exception. One that began as an exception is that exception again.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    if let Some(Raised(error)) = error.cause() {
        return error.clone_ref(py);
    }
    let error = match error.location() {
        Some(line) if line.is_foreign() => error,
        _ => error.moved_to(line::here(py)),
    };
    // What people are told to do next is Python, too.
    let text = error.to_string().replace("`record(true)`", "`tf.memory.record(True)`");
    let named = match error.kind() {
        ErrorKind::DType => return PyTypeError::new_err(text),
        ErrorKind::Index => return PyIndexError::new_err(text),
        ErrorKind::Io => return PyOSError::new_err(text),
        ErrorKind::OutOfMemory => "ResourceExhaustedError",
        ErrorKind::Format => "DataLossError",
        ErrorKind::Graph => "OperatorNotAllowedInGraphError",
        _ => "InvalidArgumentError",
    };
    let class = ERRORS
        .get_or_try_init(py, || PyModule::import(py, "taut.errors").map(Bound::unbind))
        .and_then(|module| module.bind(py).getattr(named));
    match class.and_then(|class| class.call1((text.as_str(),))) {
        Ok(value) => PyErr::from_value(value),
        Err(_) => PyRuntimeError::new_err(text),
    }
}

/// From now on, what the engine warns of is a warning of Python's, at the line that is calling.
pub fn warn_as_python() {
    taut_core::set_warning_sink(Some(Box::new(|message| {
        let told = Python::try_attach(|py| warned(py, message));
        if !matches!(told, Some(Ok(()))) {
            eprintln!("taut: {message}");
        }
    })));
}

fn warned(py: Python<'_>, message: &str) -> PyResult<()> {
    let line = line::here(py);
    let text = message.replace("Profiler::with_capacity", "tf.profiler.Profile(capacity=...)");
    let class = py.get_type::<pyo3::exceptions::PyRuntimeWarning>();
    let explicit = PyModule::import(py, "warnings")?.getattr("warn_explicit")?;
    explicit.call1((text, class, line.file(), line.line())).map(drop)
}

/// Something that a traced tensor cannot do.
pub fn in_graph(py: Python<'_>, what: &str, help: &str) -> PyErr {
    exception(py, Error::new(ErrorKind::Graph, what).help(help))
}
