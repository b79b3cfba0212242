//! Python objects as what the engine takes: tensors, numbers, shapes, words.

use crate::array::Array;
use crate::dtype;
use crate::error::exception;
use crate::nest::Level;
use crate::numpy::{self, Memory};
use ::numpy::PyUntypedArray;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyMemoryView, PyRange, PyString, PyTuple};
use taut::graph::suspend_tracing;
use taut::{DType, Operand, Scalar, Tensor};

/// A Python number as a number without a type of its own; none for anything else.
#[inline]
pub fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Ok(value) = object.cast_exact::<PyFloat>() {
        return Ok(Some(Scalar::Float(value.extract()?)));
    }
    if let Ok(value) = object.cast_exact::<PyBool>() {
        return Ok(Some(Scalar::Bool(value.is_true())));
    }
    if let Ok(value) = object.cast_exact::<PyInt>() {
        return match (value.extract::<i64>(), value.extract::<u64>()) {
            (Ok(value), _) => Ok(Some(Scalar::Int(value))),
            (_, Ok(value)) => Ok(Some(Scalar::Uint(value))),
            (Err(error), _) => Err(error),
        };
    }
    Ok(None)
}

/// An object as one side of an operation, beside a tensor of this type: a tensor, or a number that takes the other side's type.
/// None for what is neither, so that Python can ask the other side.
#[inline]
pub fn operand(object: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<Operand>> {
    if let Ok(array) = object.cast::<Array>() {
        return Ok(Some(array.get().read()?.into()));
    }
    if let Some(value) = number(object)? {
        return Ok(Some(value.into()));
    }
    if object.is_none() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    let made = tensor_like(object, None, Memory::Share)?;
    made.map(|made| meeting(object.py(), made, dtype).map(Into::into)).transpose()
}

/// An object beside a tensor of this type.
pub fn beside(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let made = tensor(object)?;
    match dtype {
        Some(dtype) if !object.is_instance_of::<Array>() => meeting(object.py(), made, dtype),
        _ => Ok(made),
    }
}

/// What lists and arrays become beside a tensor: they take its type, if theirs is of the same kind.
fn meeting(py: Python<'_>, made: Tensor, dtype: DType) -> PyResult<Tensor> {
    let own = made.dtype();
    let same_kind =
        own.is_float() && dtype.is_float() || own.is_integer() && (dtype.is_float() || dtype.is_integer());
    if own == dtype || !same_kind {
        return Ok(made);
    }
    if dtype.is_integer() {
        check_range(py, &made, dtype)?;
    }
    constant(py, made, dtype)
}

/// Whether a tensor's value is known while a function is traced, and is whole numbers: such are shapes and sizes.
pub fn is_known(tensor: &Tensor) -> bool {
    !tensor.is_traced() && !tensor.dtype().is_float()
}

/// Numbers of Python's in another type. What is known is known inside a trace, too.
fn constant(py: Python<'_>, made: Tensor, dtype: DType) -> PyResult<Tensor> {
    crate::call::call(py, made.spec().bytes(), || {
        if made.is_traced() { taut::cast(made, dtype) } else { suspend_tracing(|| taut::cast(made, dtype)) }
    })
}

/// Refuses whole numbers that a type does not have.
fn check_range(py: Python<'_>, made: &Tensor, dtype: DType) -> PyResult<()> {
    if made.is_traced() || !matches!(made.dtype(), DType::I64 | DType::I32 | DType::U64) {
        return Ok(());
    }
    let values: Vec<Scalar> = if made.dtype() == DType::U64 {
        let values = made.to_vec::<u64>().map_err(|error| exception(py, error))?;
        values.into_iter().map(Scalar::Uint).collect()
    } else {
        whole(py, made)?.into_iter().map(Scalar::Int).collect()
    };
    match values.into_iter().find(|value| !value.fits(dtype)) {
        Some(value) => Err(PyValueError::new_err(format!("{value} is no {}", dtype.name()))),
        None => Ok(()),
    }
}

/// An object as a tensor.
#[inline]
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    tensor_of(object, None, Memory::Share)
}

/// An object as a tensor, of a given type if there is one.
pub fn tensor_of(object: &Bound<'_, PyAny>, dtype: Option<DType>, memory: Memory) -> PyResult<Tensor> {
    let py = object.py();
    let made = if let Ok(array) = object.cast::<Array>() {
        array.get().read()?
    } else if let Some(value) = number(object)? {
        let dtype = dtype.unwrap_or_else(|| value.default_dtype());
        if !fits(value, dtype) {
            let text = format!("{object} is no {}", dtype.name());
            // A fraction is of the wrong type, a whole number out of range.
            let is_fraction = matches!(value, Scalar::Float(value) if value.fract() != 0.0);
            return Err(if is_fraction { PyTypeError::new_err(text) } else { PyValueError::new_err(text) });
        }
        return crate::call::call(py, 0, || Tensor::constant(value, dtype));
    } else {
        let made = tensor_like(object, dtype, memory)?;
        made.ok_or_else(|| {
            let kind = object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
            PyTypeError::new_err(format!("a {kind} is no tensor, and nothing says how to make it one"))
        })?
    };
    match dtype {
        Some(dtype) if dtype != made.dtype() && !object.is_instance_of::<Array>() => {
            constant(py, made, dtype)
        }
        Some(dtype) if dtype != made.dtype() => {
            crate::call::call(py, made.spec().bytes(), || taut::cast(made, dtype))
        }
        _ => Ok(made),
    }
}

/// Whether a number can be an element of a type without losing what it is.
fn fits(value: Scalar, dtype: DType) -> bool {
    match value {
        Scalar::Float(_) if dtype.is_float() => true,
        // As a whole number; beyond 64 bits there is none.
        Scalar::Float(value) if value.fract() == 0.0 && dtype != DType::Bool => {
            value.abs() < 2f64.powi(63) && Scalar::Int(value as i64).fits(dtype)
        }
        Scalar::Float(_) => false,
        Scalar::Bool(_) => true,
        _ => dtype != DType::Bool && value.fits(dtype),
    }
}

/// Arrays, lists, and objects that say how to become a tensor. None for anything else.
fn tensor_like(object: &Bound<'_, PyAny>, dtype: Option<DType>, memory: Memory) -> PyResult<Option<Tensor>> {
    let py = object.py();
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        return numpy::tensor(array, memory).map(Some);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return from_list(object, dtype).map(Some);
    }
    if object.is_instance_of::<PyRange>() {
        return from_list(
            PyList::new(py, object.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.as_any(),
            dtype,
        )
        .map(Some);
    }
    if let Ok(method) = object.getattr(pyo3::intern!(py, "__taut_tensor__")) {
        let made = method.call0()?;
        return Ok(Some(made.cast::<Array>()?.get().read()?));
    }
    if object.is_none() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    if object.hasattr(pyo3::intern!(py, "__array__"))? {
        let array = object.call_method0(pyo3::intern!(py, "__array__"))?;
        let Ok(array) = array.cast::<PyUntypedArray>() else { return Ok(None) };
        return numpy::tensor(array, memory).map(Some);
    }
    if object.is_instance_of::<PyMemoryView>() || is_buffer(object) {
        let array = numpy::module(py)?.getattr("asarray")?.call1((object,))?;
        return numpy::tensor(array.cast::<PyUntypedArray>()?, memory).map(Some);
    }
    if object.hasattr(pyo3::intern!(py, "__dlpack__"))? {
        return crate::dlpack::import(object).map(Some);
    }
    if let Ok(index) = object.call_method0("__index__") {
        return Ok(match number(&index)? {
            Some(value) => Some(crate::call::call(py, 0, || Tensor::constant(value, value.default_dtype()))?),
            None => None,
        });
    }
    Ok(None)
}

/// Whether it is an `array.array`, whose elements NumPy reads.
fn is_buffer(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    class.name().is_ok_and(|name| name == "array") && class.module().is_ok_and(|module| module == "array")
}

/// Whether a nested list holds something that is a tensor already, and the first leaf that is not a list.
fn look<'py>(list: &Bound<'py, PyAny>, first: &mut Option<Bound<'py, PyAny>>) -> PyResult<bool> {
    let mut found = false;
    let _level = Level::enter()?;
    for part in list.try_iter()? {
        let part = part?;
        if part.is_instance_of::<PyList>() || part.is_instance_of::<PyTuple>() {
            found |= look(&part, first)?;
        } else {
            found |= part.is_instance_of::<Array>()
                || part.hasattr(pyo3::intern!(part.py(), "__taut_tensor__"))?;
            if first.is_none() {
                *first = Some(part);
            }
        }
        if found {
            break;
        }
    }
    Ok(found)
}

/// Nested lists of numbers, arrays or tensors.
fn from_list(list: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let py = list.py();
    let mut first = None;
    if look(list, &mut first)? {
        let _level = Level::enter()?;
        let part = |part: PyResult<Bound<'_, PyAny>>| -> PyResult<Operand> {
            let part = part?;
            match number(&part)? {
                // Numbers of Python's take the type of what they stand beside.
                Some(value) if dtype.is_none() => Ok(value.into()),
                _ => tensor_of(&part, dtype, Memory::Share).map(Into::into),
            }
        };
        let parts: Vec<Operand> = list.try_iter()?.map(part).collect::<PyResult<_>>()?;
        let tensors = parts.iter().filter_map(|part| match part {
            Operand::Tensor(tensor) => Some(tensor.dtype()),
            Operand::Scalar(_) => None,
        });
        let common = tensors.reduce(taut::promote).unwrap_or(DType::F32);
        let common = parts.iter().fold(common, |common, part| match part {
            Operand::Tensor(_) => common,
            Operand::Scalar(scalar) => taut_core::promote_scalar(common, *scalar),
        });
        return crate::call::call(py, 0, || {
            let parts = parts.into_iter().map(|part| match part {
                Operand::Tensor(tensor) => taut::cast(tensor, common),
                Operand::Scalar(scalar) => Tensor::constant(scalar, common),
            });
            taut::stack(&parts.collect::<taut::Result<Vec<_>>>()?, 0)
        });
    }
    let array = PyModule::import(py, "numpy")?.getattr("array")?.call1((list,)).map_err(|error| {
        PyValueError::new_err(format!(
            "lists of different lengths, or of different things, are no tensor: {}",
            error.value(py)
        ))
    })?;
    let array = array.cast_into::<PyUntypedArray>()?;
    let made = numpy::tensor(&array, Memory::Share)?;
    // Python's numbers have no size of their own; NumPy's have.
    let weak = match &first {
        None => Some(DType::F32),
        Some(first)
            if first.is_instance_of::<PyFloat>() && made.dtype() == DType::F64 && !is_numpy(first)? =>
        {
            Some(DType::F32)
        }
        Some(first) if number(first)?.is_some() && made.dtype() == DType::F64 => Some(DType::F32),
        Some(first) if number(first)?.is_some() && made.dtype() == DType::I64 => small(&made),
        _ => None,
    };
    match dtype.or(weak) {
        Some(dtype) if dtype != made.dtype() => {
            let refused = dtype.is_integer() && made.dtype().is_float()
                || dtype == DType::Bool && made.dtype() != DType::Bool;
            if refused && !made.is_empty() {
                let message = format!("these {} values are no {}", made.dtype().name(), dtype.name());
                return Err(PyTypeError::new_err(message));
            }
            if dtype.is_integer() {
                check_range(py, &made, dtype)?;
            }
            constant(py, made, dtype)
        }
        _ => Ok(made),
    }
}

fn is_numpy(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr(pyo3::intern!(object.py(), "dtype"))
}

/// 32 bits, if they are enough for every element.
fn small(made: &Tensor) -> Option<DType> {
    let values = made.to_vec::<i64>().ok()?;
    values.iter().all(|&value| i32::try_from(value).is_ok()).then_some(DType::I32)
}

/// Integers: one, or several in a list, a shape, an array or a tensor with a value.
pub fn ints(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(vec![value]);
    }
    if let Ok(array) = object.cast::<Array>() {
        return whole(object.py(), &array.get().read()?);
    }
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        return whole(object.py(), &numpy::tensor(array, Memory::Share)?);
    }
    let mut values = Vec::new();
    for part in
        object.try_iter().map_err(|_| PyTypeError::new_err(format!("{object} is not a list of integers")))?
    {
        let part = part?;
        values.push(int(&part)?);
    }
    Ok(values)
}

/// One integer: a number, or a tensor of one element.
pub fn int(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(value);
    }
    let found = ints_of_one(object)?;
    found.ok_or_else(|| PyTypeError::new_err(format!("{object} is not an integer")))
}

fn ints_of_one(object: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if object.is_none() || object.is_instance_of::<PyString>() || object.is_instance_of::<PyFloat>() {
        return Ok(None);
    }
    let values = whole(object.py(), &tensor(object)?)?;
    Ok(if values.len() == 1 { Some(values[0]) } else { None })
}

fn whole(py: Python<'_>, tensor: &Tensor) -> PyResult<Vec<i64>> {
    if !tensor.dtype().is_integer() {
        return Err(PyTypeError::new_err(format!("{} are not integers", tensor.spec())));
    }
    let cast = suspend_tracing(|| taut::cast(tensor, DType::I64).and_then(|cast| cast.to_vec::<i64>()));
    cast.map_err(|error| exception(py, error))
}

/// A number: Python's, NumPy's, or a tensor of one element.
pub fn float(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Ok(value) = object.extract::<f64>() {
        return Ok(value);
    }
    let tensor = tensor(object)?;
    let value = suspend_tracing(|| taut::cast(&tensor, DType::F64).and_then(|cast| cast.item::<f64>()));
    value.map_err(|error| exception(object.py(), error))
}

/// A type, or none.
pub fn dtype_or(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<DType>> {
    object.filter(|object| !object.is_none()).map(dtype::given).transpose()
}
