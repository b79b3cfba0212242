//! Conversion of errors: the engine's errors to exceptions, and exceptions through the engine unchanged.

use crate::line;
use pyo3::exceptions::{PyOSError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;
use std::fmt;
use taut::memory::Location;
use taut::{Error, ErrorKind};

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// A Python exception that passes through the engine.
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

/// The exception for a shape that depends on the value of a traced tensor.
const DYNAMIC_SHAPE: &str = "DynamicShapeError";
/// The exception for the value of a traced tensor, and the one that its method `numpy` raises.
const NOT_ALLOWED: &str = "OperatorNotAllowedInGraphError";
const NO_ARRAY: &str = "NoArrayError";

/// An exception class of the package.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = ERRORS.get_or_try_init(py, || PyModule::import(py, "taut.errors").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// Wraps an exception in an error of the engine.
pub fn raised(error: PyErr) -> Error {
    let dynamic_shape = Python::attach(|py| {
        let class = class(py, DYNAMIC_SHAPE).ok()?;
        error.value(py).is_instance(&class).ok()?.then(|| dynamic_shape(&error.value(py).to_string()))
    });
    let wrapped = dynamic_shape.unwrap_or_else(|| Error::new(ErrorKind::Value, error.to_string()));
    wrapped.caused_by(Raised(error))
}

/// The engine's error for a `DynamicShapeError` with this text: its first line is the message, and a further one gives the line.
fn dynamic_shape(text: &str) -> Error {
    let message = text.lines().next().unwrap_or_default();
    let error = Error::new(ErrorKind::DynamicShape, message);
    let place = text.lines().find_map(|line| line.strip_prefix("  at ")?.rsplit_once(':'));
    match place.and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => error.at(Location::foreign(file, line)),
        None => error,
    }
}

/// Whether a function cannot be traced, because it needs the value of a traced tensor.
pub fn needs_values(py: Python<'_>, error: &Error) -> bool {
    match error.cause() {
        Some(Raised(error)) => {
            error.get_type(py).name().is_ok_and(|name| name == NOT_ALLOWED || name == NO_ARRAY)
        }
        None => error.kind() == ErrorKind::Graph,
    }
}

/// The exception for an error of the engine. A wrapped exception is unwrapped.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    if let Some(Raised(error)) = error.cause() {
        return error.clone_ref(py);
    }
    let error = match error.location() {
        Some(line) if line.is_foreign() => error,
        _ => error.moved_to(line::here(py)),
    };
    // Help lines name Python functions.
    let text = error
        .to_string()
        .replace("`record(true)`", "`tf.memory.record(True)`")
        .replace("(GradientRule::with_variables)", "(a gradient function with the argument `variables`)");
    let named = match error.kind() {
        ErrorKind::DType => "DTypeError",
        ErrorKind::Io => return PyOSError::new_err(text),
        ErrorKind::Index | ErrorKind::Axis => "InvalidIndexError",
        ErrorKind::OutOfMemory => "ResourceExhaustedError",
        ErrorKind::Format => "DataFormatError",
        ErrorKind::Unavailable => "UnavailableError",
        ErrorKind::Graph => NOT_ALLOWED,
        ErrorKind::DynamicShape => DYNAMIC_SHAPE,
        _ => "InvalidArgumentError",
    };
    of_class(py, named, text)
}

/// An exception of a class of `tf.errors`.
pub fn of_class(py: Python<'_>, name: &str, text: String) -> PyErr {
    match class(py, name).and_then(|class| class.call1((text.as_str(),))) {
        Ok(value) => PyErr::from_value(value),
        Err(_) => PyRuntimeError::new_err(text),
    }
}

/// Turns the engine's warnings into Python warnings at the caller's line.
pub fn install_warnings() {
    taut_core::set_warning_sink(Some(Box::new(|message| {
        let warned = Python::try_attach(|py| warn(py, message));
        if !matches!(warned, Some(Ok(()))) {
            eprintln!("taut: {message}");
        }
    })));
}

fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let line = line::here(py);
    let text = message.replace("Profiler::with_capacity", "tf.profiler.Profile(capacity=...)");
    let text = at_python_line(&text, &line);
    let class = py.get_type::<pyo3::exceptions::PyRuntimeWarning>();
    let explicit = PyModule::import(py, "warnings")?.getattr("warn_explicit")?;
    explicit.call1((text, class, line.file(), line.line())).map(drop)
}

/// A message in which `(at FILE.rs:LINE)`, a line of the extension module, is the caller's.
fn at_python_line(text: &str, line: &Location) -> String {
    let Some((before, rest)) = text.split_once("(at ") else { return text.into() };
    match rest.split_once(')') {
        Some((place, after)) if place.contains(".rs:") => format!("{before}(at {line}){after}"),
        _ => text.into(),
    }
}

/// The error for an operation that needs the value of a traced tensor.
pub fn in_graph(py: Python<'_>, what: &str, help: &str) -> PyErr {
    exception(py, Error::new(ErrorKind::Graph, what).help(help))
}

/// The error for reading the elements of a traced tensor. A function of the package reads them only to find a shape.
#[cold]
pub fn no_value(py: Python<'_>, tensor: &taut::Tensor) -> PyErr {
    if line::is_in_package(py) {
        return exception(py, Error::dynamic_shape(tensor.spec()));
    }
    let error = tensor.view().err().unwrap_or_else(|| Error::value("a traced tensor has no value"));
    exception(py, error)
}

/// The exception for `numpy()` of a tensor without a value, which is an `AttributeError`, as in TensorFlow.
#[cold]
pub fn no_array(py: Python<'_>, tensor: &taut::Tensor) -> PyErr {
    let error = no_value(py, tensor);
    if error.get_type(py).name().is_ok_and(|name| name == NOT_ALLOWED) {
        return of_class(py, NO_ARRAY, error.value(py).to_string());
    }
    error
}

/// An error in the conversion of an argument, with the names of function and parameter and the caller's line.
#[cold]
pub fn in_argument(py: Python<'_>, function: &str, param: &str, error: &PyErr) -> PyErr {
    let is_about_the_value = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py);
    if !is_about_the_value {
        return error.clone_ref(py);
    }
    let text = error.value(py).to_string();
    let at = if text.contains("\n  at ") { String::new() } else { format!("\n  at {}", line::here(py)) };
    PyErr::from_type(error.get_type(py), format!("{function}: {param}: {text}{at}"))
}
