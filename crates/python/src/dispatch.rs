//! Ops for objects that are not tensors: ragged and sparse tensors, extension types, strings.
//!
//! An op converts its arguments to tensors. Only when that fails are the arguments asked what they make of the op, so that calls
//! with tensors pay nothing for it.

use crate::containers::NestingLevel;
use crate::op::Op;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// The first argument with a method `__taut_dispatch__`, also in lists and tuples.
fn dispatching<'py>(
    mut objects: impl Iterator<Item = Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let _level = NestingLevel::enter()?;
    objects.find_map(|object| found(object).transpose()).transpose()
}

fn found(object: Bound<'_, PyAny>) -> PyResult<Option<Bound<'_, PyAny>>> {
    if let Ok(list) = object.cast::<PyList>() {
        return dispatching(list.iter());
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return dispatching(tuple.iter());
    }
    Ok(object.get_type().hasattr(intern!(object.py(), "__taut_dispatch__"))?.then_some(object))
}

/// What an op makes of arguments that are not tensors of numbers, or the error that it raised because of them.
#[cold]
pub fn dispatch<'py>(
    op: &Bound<'py, Op>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    error: PyErr,
) -> PyResult<Bound<'py, PyAny>> {
    let py = op.py();
    let positional = dispatching(args.iter())?;
    let object = match (positional, kwargs) {
        (None, Some(kwargs)) => dispatching(kwargs.values().iter())?,
        (positional, _) => positional,
    };
    let Some(object) = object else { return crate::strings::dispatch(op, args, kwargs, error) };
    let kwargs = kwargs.map_or_else(|| PyDict::new(py), Clone::clone);
    object.call_method1(intern!(py, "__taut_dispatch__"), (op, args, kwargs, error))
}
