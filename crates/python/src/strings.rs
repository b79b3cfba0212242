//! String tensors as Python objects, and the functions of `taut::strings`.

use crate::array::{Array, ArrayValue, Tensor, wrap};
use crate::call::call;
use crate::containers::NestingLevel;
use crate::convert;
use crate::op::Op;
use ::numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::path::PathBuf;
use taut::strings::{self, StringBuilder};

type Object<'py> = PyResult<Bound<'py, PyAny>>;

/// An immutable n-dimensional array of byte strings.
#[pyclass(frozen, extends = Tensor, weakref, module = "taut")]
pub struct StringTensor {
    /// The file whose contents it has, which errors about them name.
    file: Option<PathBuf>,
}

/// A string tensor as a Python object.
pub fn wrap_strings(py: Python<'_>, strings: strings::StringTensor) -> Object<'_> {
    wrap_contents(py, strings, None)
}

/// The contents of a file as a Python object.
pub fn wrap_contents(py: Python<'_>, strings: strings::StringTensor, file: Option<PathBuf>) -> Object<'_> {
    let made = PyClassInitializer::from(Array(ArrayValue::Strings(strings)))
        .add_subclass(Tensor)
        .add_subclass(StringTensor { file });
    Ok(Bound::new(py, made)?.into_any())
}

/// The file whose contents a string tensor has; `None` if it was made in another way.
#[pyfunction]
pub fn file_of(value: &Bound<'_, PyAny>) -> Option<PathBuf> {
    value.cast::<StringTensor>().ok()?.get().file.clone()
}

/// The error for a string tensor where numbers are needed.
#[cold]
pub fn not_numbers(strings: &strings::StringTensor) -> PyErr {
    PyTypeError::new_err(format!(
        "expected a tensor of numbers, got a tensor of strings of shape {}: tf.strings.to_number converts",
        strings.shape()
    ))
}

/// A string tensor, or what can be converted to one: strings, bytes, arrays and nested lists of them.
pub fn strings_of(object: &Bound<'_, PyAny>) -> PyResult<strings::StringTensor> {
    if let Ok(array) = object.cast::<Array>() {
        return match &array.get().0 {
            ArrayValue::Strings(strings) => Ok(strings.clone()),
            _ => Err(PyTypeError::new_err(format!(
                "expected strings, got a tensor of {}: tf.strings.as_string converts",
                array.get().spec().dtype
            ))),
        };
    }
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        let shape = array.shape().to_vec();
        let flat = array.call_method1("reshape", (-1,))?.call_method0("tolist")?.cast_into::<PyList>()?;
        let mut builder = StringBuilder::new(flat.len(), 0);
        for item in flat.iter() {
            push(&item, &mut builder)?;
        }
        return finished(object.py(), builder, shape);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let (mut shape, mut builder) = (Vec::new(), StringBuilder::new(0, 0));
        flatten(object, 0, &mut shape, &mut builder)?;
        return finished(object.py(), builder, shape);
    }
    if !object.is_instance_of::<PyString>()
        && !object.is_instance_of::<PyBytes>()
        && object.hasattr(pyo3::intern!(object.py(), "__array__"))?
    {
        return strings_of(&object.call_method0("__array__")?);
    }
    let mut builder = StringBuilder::new(1, 0);
    push(object, &mut builder)?;
    finished(object.py(), builder, Vec::new())
}

fn finished(py: Python<'_>, builder: StringBuilder, shape: Vec<usize>) -> PyResult<strings::StringTensor> {
    builder.finish(shape).map_err(|error| crate::error::exception(py, error))
}

/// Appends the strings of a nested list, whose parts must have equal shapes.
fn flatten(
    object: &Bound<'_, PyAny>,
    depth: usize,
    shape: &mut Vec<usize>,
    out: &mut StringBuilder,
) -> PyResult<()> {
    let ragged =
        || PyValueError::new_err("expected nested lists of equal lengths: use tf.ragged.constant for others");
    let rows: Vec<Bound<'_, PyAny>> = convert::collected(object.len()?, object.try_iter()?)?;
    match shape.get(depth) {
        None if out.count() == 0 => shape.push(rows.len()),
        Some(&dim) if dim == rows.len() => {}
        _ => return Err(ragged()),
    }
    let _level = NestingLevel::enter()?;
    for row in rows {
        if row.is_instance_of::<PyList>() || row.is_instance_of::<PyTuple>() {
            flatten(&row, depth + 1, shape, out)?;
        } else if is_leaf(&row) {
            if shape.len() != depth + 1 {
                return Err(ragged());
            }
            push(&row, out)?;
        } else {
            let inner = strings_of(&row)?;
            match shape.get(depth + 1..) {
                Some([]) if out.count() == 0 => shape.extend(inner.shape().iter()),
                Some(rest) if rest == &inner.shape()[..] => {}
                _ => return Err(ragged()),
            }
            let values = inner.values().map_err(|error| crate::error::exception(row.py(), error))?;
            for value in values.iter() {
                out.push(value).map_err(|error| crate::error::exception(row.py(), error))?;
            }
        }
    }
    Ok(())
}

fn is_leaf(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>()
}

/// Appends a string: the bytes of `bytes`, the UTF-8 bytes of `str`.
fn push(object: &Bound<'_, PyAny>, out: &mut StringBuilder) -> PyResult<()> {
    let made = if let Ok(bytes) = object.cast::<PyBytes>() {
        out.push(bytes.as_bytes())
    } else if let Ok(text) = object.cast::<PyString>() {
        out.push(text.to_str()?.as_bytes())
    } else if let Ok(array) = object.cast::<Array>() {
        let ArrayValue::Strings(strings) = &array.get().0 else {
            return Err(PyTypeError::new_err("expected strings, got a tensor of numbers"));
        };
        let value = strings.item().map_err(|error| crate::error::exception(object.py(), error))?;
        out.push(value)
    } else {
        return Err(PyTypeError::new_err(format!(
            "expected bytes or str, got {}",
            convert::described(object)
        )));
    };
    made.map_err(|error| crate::error::exception(object.py(), error))
}

/// Whether an object is made of strings: a string tensor, strings, arrays and lists of them.
pub fn is_strings(object: &Bound<'_, PyAny>) -> bool {
    if let Ok(array) = object.cast::<Array>() {
        return matches!(array.get().0, ArrayValue::Strings(_));
    }
    if is_leaf(object) {
        return true;
    }
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        let first = || -> PyResult<bool> {
            let flat = array.getattr("flat")?;
            Ok(array.len() > 0 && is_strings(&flat.get_item(0)?))
        };
        return match array.dtype().kind() {
            b'S' | b'U' | b'T' => true,
            b'O' => first().unwrap_or(false),
            _ => false,
        };
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let Ok(_level) = NestingLevel::enter() else { return false };
        let Ok(mut parts) = object.try_iter() else { return false };
        return parts.next().is_some_and(|part| part.is_ok_and(|part| is_strings(&part)));
    }
    // Columns of tables, such as those of pandas.
    object.hasattr("dtype").unwrap_or(false)
        && object.hasattr("__array__").unwrap_or(false)
        && object
            .call_method0("__array__")
            .is_ok_and(|array| array.cast::<PyUntypedArray>().is_ok() && is_strings(&array))
}

static DISPATCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// What an op makes of strings, or the error that it raised because it takes numbers.
#[cold]
pub fn dispatch<'py>(
    op: &Bound<'py, Op>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    error: PyErr,
) -> Object<'py> {
    let py = op.py();
    if !op.get().takes_strings(args, kwargs)? {
        return Err(error);
    }
    let function = DISPATCH.get_or_try_init(py, || {
        PyModule::import(py, "taut.string_tensor")?.getattr("dispatch").map(Bound::unbind)
    })?;
    let kwargs = kwargs.map_or_else(|| PyDict::new(py), Clone::clone);
    function.bind(py).call1((op, args, kwargs, error))
}

/// Converts strings, bytes, and arrays and nested lists of them to a string tensor.
#[pyfunction]
pub fn string_tensor<'py>(value: &Bound<'py, PyAny>) -> Object<'py> {
    if value.is_instance_of::<StringTensor>() {
        return Ok(value.clone());
    }
    wrap_strings(value.py(), strings_of(value)?)
}

/// A copy of bytes for Python; a MemoryError if there is no memory for it, where `PyBytes::new` panics.
pub fn bytes<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, value.len(), |out| {
        out.copy_from_slice(value);
        Ok(())
    })
}

/// The strings as `bytes`, in row-major order.
#[pyfunction]
pub fn string_values<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let py = value.py();
    let strings = strings_of(value)?;
    let values = strings.values().map_err(|error| crate::error::exception(py, error))?;
    let list = PyList::empty(py);
    for value in values.iter() {
        list.append(bytes(py, value)?)?;
    }
    Ok(list)
}

/// The bytes that a string tensor uses.
#[pyfunction]
pub fn string_bytes(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    strings_of(value).map(|strings| strings.byte_len())
}

/// The ends of the strings, and their bytes, as tensors over the same memory.
#[pyfunction]
pub fn string_parts<'py>(value: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let strings = strings_of(value)?;
    let [ends, bytes] = strings.parts();
    Ok((wrap(value.py(), ends.clone())?, wrap(value.py(), bytes.clone())?))
}

/// A string tensor over ends (`int64`) and bytes (`uint8`).
#[pyfunction]
pub fn string_from_parts<'py>(ends: &Bound<'py, PyAny>, bytes: &Bound<'py, PyAny>) -> Object<'py> {
    let (ends, data) = (convert::tensor(ends)?, convert::tensor(bytes)?);
    made(ends.len(), bytes.py(), || strings::StringTensor::from_parts(ends, data))
}

/// Runs a function of strings and wraps its result.
fn made(
    bytes: usize,
    py: Python<'_>,
    work: impl FnOnce() -> taut::Result<strings::StringTensor> + Send,
) -> Object<'_> {
    wrap_strings(py, call(py, bytes, work)?)
}
