//! Conversion of Python objects to tensors, numbers, shapes and strings.

use crate::array::{Array, is_shape};
use crate::containers::NestingLevel;
use crate::dtype;
use crate::error::{exception, of_class};
use crate::numpy::{self, Memory};
use ::numpy::PyUntypedArray;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyComplexMethods, PyFloat, PyInt, PyList, PyMemoryView, PyRange, PyString,
    PyTuple, PyType,
};
use taut::graph::suspend_tracing;
use taut::kernels::KeepDenormals;
use taut::memory::list_with_capacity;
use taut::{Complex, DType, Operand, Scalar, Tensor};

/// A Python number as a weakly typed scalar; `None` for anything else.
#[inline]
pub fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Ok(value) = object.cast_exact::<PyFloat>() {
        return Ok(Some(Scalar::Float(value.extract()?)));
    }
    if let Ok(value) = object.cast_exact::<PyBool>() {
        return Ok(Some(Scalar::Bool(value.is_true())));
    }
    if let Ok(value) = object.cast_exact::<PyComplex>() {
        return Ok(Some(Scalar::Complex(Complex { re: value.real(), im: value.imag() })));
    }
    if let Ok(value) = object.cast_exact::<PyInt>() {
        return match (value.extract::<i64>(), value.extract::<u64>()) {
            (Ok(value), _) => Ok(Some(Scalar::Int(value))),
            (_, Ok(value)) => Ok(Some(Scalar::Uint(value))),
            _ => Err(PyValueError::new_err(format!("{object} is out of range for int64 and uint64"))),
        };
    }
    Ok(None)
}

/// A number as a value of this type, if one is given: a floating type has values beyond the largest integer, too.
fn number_of(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Option<Scalar>> {
    number(object).or_else(|error| match dtype {
        Some(dtype) if dtype.is_float() => {
            object.extract::<f64>().map(|value| Some(Scalar::Float(value))).map_err(|_| error)
        }
        _ => Err(error),
    })
}

/// Whether values could not be converted to a type, rather than read at all.
fn is_conversion(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py)
}

/// An operand of a binary operation beside a tensor of type `dtype`, if there is one: a tensor, or a scalar that takes the other
/// operand's type. `None` for other objects, so that Python can try the reflected operator.
#[inline]
pub fn operand(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Option<Operand>> {
    if let Ok(array) = object.cast::<Array>() {
        return Ok(Some(array.get().read()?.into()));
    }
    if let Some(value) = number_of(object, dtype)? {
        return Ok(Some(value.into()));
    }
    if object.is_none() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    // Complex numbers beside `float64` are not converted to it at once.
    let made = tensor_like(object, exact(dtype), Memory::Share).or_else(|error| {
        if is_conversion(object.py(), &error) { tensor_like(object, None, Memory::Share) } else { Err(error) }
    })?;
    let Some(made) = made else { return Ok(None) };
    match dtype {
        Some(dtype) => promote_weak(object, made, dtype).map(|tensor| Some(tensor.into())),
        None => Ok(Some(made.into())),
    }
}

/// Converts an object beside a tensor of type `dtype`, if there is one.
pub fn tensor_beside(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    match dtype {
        Some(dtype) if !object.is_instance_of::<Array>() => {
            let made = tensor_of(object, exact(Some(dtype)), Memory::Share).or_else(|error| {
                if is_conversion(object.py(), &error) {
                    tensor_of(object, None, Memory::Share)
                } else {
                    Err(error)
                }
            })?;
            promote_weak(object, made, dtype)
        }
        _ => tensor(object),
    }
}

/// The type to convert an operand to at once: Python's floats beside `float64` are not rounded to `float32` on the way.
fn exact(beside: Option<DType>) -> Option<DType> {
    beside.filter(|dtype| matches!(dtype, DType::F64 | DType::C128))
}

/// As [`tensor_beside`] for an argument that need not have the other's type, such as indices: only floats beside floats take it.
pub fn float_beside(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let made = tensor(object)?;
    let takes = |dtype: &DType| made.dtype().is_inexact() && dtype.is_inexact() && made.dtype() != *dtype;
    match dtype.filter(takes) {
        Some(dtype) => tensor_beside(object, Some(dtype)),
        None => Ok(made),
    }
}

/// Lists and arrays beside a tensor take its element type if that is of their kind or a float. `float64`, which NumPy makes
/// of any Python float, becomes `float32` beside integers.
fn promote_weak(object: &Bound<'_, PyAny>, made: Tensor, dtype: DType) -> PyResult<Tensor> {
    let (py, own) = (object.py(), made.dtype());
    let is_list_or_array = || {
        let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        is_list || object.cast::<PyUntypedArray>().is_ok()
    };
    let dtype = match own {
        // Lists and arrays without elements have no value to lose.
        _ if made.is_empty() && is_list_or_array() => dtype,
        DType::Bool => own,
        _ if own.is_integer() && dtype == DType::Bool => own,
        _ if own.is_complex() => dtype.complex(),
        DType::F64 if !dtype.is_inexact() => DType::F32,
        _ if own.is_float() && !dtype.is_inexact() => own,
        _ => dtype,
    };
    if own == dtype {
        return Ok(made);
    }
    if dtype.is_integer() {
        check_range(py, &made, dtype)?;
    }
    cast_constant(py, made, dtype)
}

/// Whether a tensor holds values that are known while tracing and that shapes may be computed from: integers and booleans, as shapes
/// and sizes are, or one float.
pub fn is_static(tensor: &Tensor) -> bool {
    !tensor.is_traced() && (!tensor.dtype().is_inexact() || tensor.rank() == 0)
}

/// Casts a converted object. A value that is known while tracing stays known.
fn cast_constant(py: Python<'_>, made: Tensor, dtype: DType) -> PyResult<Tensor> {
    crate::call::call(py, made.spec().bytes(), || {
        if made.is_traced() {
            taut::cast(made, dtype)
        } else if taut_core::record::is_tracked(&made) {
            suspend_tracing(|| taut::cast(made, dtype))
        } else {
            converted(&made, dtype)
        }
    })
}

/// The values in another type, denormal numbers included: a conversion between the program and a tensor is no arithmetic.
pub fn converted(made: &Tensor, dtype: DType) -> taut::Result<Tensor> {
    let view = made.view()?;
    let spec = taut_core::Spec::new(dtype, made.shape().clone());
    Tensor::build(spec, taut::memory::Category::Tensor, taut::memory::Location::caller(), |out| {
        let _mode = KeepDenormals::new();
        taut::kernels::cast(view, out.reborrow());
    })
}

/// Refuses integers that are out of a type's range.
fn check_range(py: Python<'_>, made: &Tensor, dtype: DType) -> PyResult<()> {
    if made.is_traced() || !matches!(made.dtype(), DType::I64 | DType::I32 | DType::U64) {
        return Ok(());
    }
    let values: Vec<Scalar> = if made.dtype() == DType::U64 {
        let values = made.to_vec::<u64>().map_err(|error| exception(py, error))?;
        values.into_iter().map(Scalar::Uint).collect()
    } else {
        integers(py, made)?.into_iter().map(Scalar::Int).collect()
    };
    match values.into_iter().find(|value| !value.fits(dtype)) {
        Some(value) => Err(PyValueError::new_err(format!("{value} is out of range for {}", dtype.name()))),
        None => Ok(()),
    }
}

/// Converts an object to a tensor.
#[inline]
pub fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    tensor_of(object, None, Memory::Share)
}

/// Converts an object to a tensor, of a given element type if there is one.
pub fn tensor_of(object: &Bound<'_, PyAny>, dtype: Option<DType>, memory: Memory) -> PyResult<Tensor> {
    let py = object.py();
    let made = if let Ok(array) = object.cast::<Array>() {
        array.get().read()?
    } else if let Some(value) = number_of(object, dtype)? {
        let dtype = dtype.unwrap_or_else(|| value.default_dtype());
        if !fits(value, dtype) {
            let name = dtype.name();
            let is_fraction = match value {
                Scalar::Float(value) => value.fract() != 0.0,
                value => matches!(value, Scalar::Complex(_)),
            };
            return Err(if is_fraction {
                PyTypeError::new_err(format!(
                    "{object} cannot be converted to {name} without loss: use tf.cast"
                ))
            } else {
                PyValueError::new_err(format!("{object} is out of range for {name}"))
            });
        }
        return crate::call::call(py, 0, || Tensor::constant(value, dtype));
    } else {
        let made = tensor_like(object, dtype, memory)?;
        made.ok_or_else(|| {
            // A TypeError, and a ValueError as in TensorFlow.
            let given = described(object);
            let text =
                format!("expected a tensor, an array, a number or a nested list of numbers, got {given}");
            of_class(py, "DTypeError", text)
        })?
    };
    match dtype {
        Some(dtype) if made.dtype().is_complex() && !dtype.is_complex() => Err(loss(&made, dtype)),
        Some(dtype) if dtype != made.dtype() && !object.is_instance_of::<Array>() => {
            cast_constant(py, made, dtype)
        }
        Some(dtype) if dtype != made.dtype() => {
            crate::call::call(py, made.spec().bytes(), || taut::cast(made, dtype))
        }
        _ => Ok(made),
    }
}

#[cold]
fn loss(made: &Tensor, dtype: DType) -> PyErr {
    let (own, name) = (made.dtype().name(), dtype.name());
    PyTypeError::new_err(format!("{own} values cannot be converted to {name} without loss: use tf.cast"))
}

/// Whether a number can be represented in a type without loss.
fn fits(value: Scalar, dtype: DType) -> bool {
    match value {
        Scalar::Float(_) if dtype.is_inexact() => true,
        // An integral float counts as an integer, up to 64 bits.
        Scalar::Float(value) if value.fract() == 0.0 && dtype != DType::Bool => {
            value.abs() < 2f64.powi(63) && Scalar::Int(value as i64).fits(dtype)
        }
        Scalar::Float(_) => false,
        Scalar::Bool(_) => true,
        _ => dtype != DType::Bool && value.fits(dtype),
    }
}

/// Converts arrays, lists, and objects with a conversion protocol; `None` for anything else.
fn tensor_like(object: &Bound<'_, PyAny>, dtype: Option<DType>, memory: Memory) -> PyResult<Option<Tensor>> {
    let py = object.py();
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        return numpy::tensor(array, memory).map(Some);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return from_list(object, dtype).map(Some);
    }
    if object.is_instance_of::<PyRange>() {
        let made = if object.is_empty()? {
            from_list(PyList::empty(py).as_any(), dtype)
        } else {
            from_range(object)
        };
        return made.map(Some);
    }
    if is_shape(object)? {
        return from_shape(object).map(Some);
    }
    if let Ok(method) = object.getattr(pyo3::intern!(py, "__taut_tensor__")) {
        let made = method.call0()?;
        return Ok(Some(made.cast::<Array>()?.get().read()?));
    }
    // TensorFlow's protocol. The result is converted to another element type as arrays are.
    if let Ok(method) = object.getattr(pyo3::intern!(py, "__tf_tensor__")) {
        let made = method.call1((py.None(), py.None()))?;
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
    let has_interface = object.hasattr(pyo3::intern!(py, "__array_interface__"))?;
    if has_interface || object.is_instance_of::<PyMemoryView>() || is_buffer(object) {
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

/// Converts a Python range of at least one element without making its elements as Python objects.
fn from_range(range: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = range.py();
    let part = |name: &str| {
        let value = number(&range.getattr(name)?)?;
        value.ok_or_else(|| PyTypeError::new_err("expected a range of integers"))
    };
    let (start, stop, step) = (part("start")?, part("stop")?, part("step")?);
    crate::call::call(py, usize::MAX, || suspend_tracing(|| taut::range(start, stop, step, None)))
}

/// Converts a `TensorShape`: to `int32`, or to `int64` for sizes beyond it.
fn from_shape(shape: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let py = shape.py();
    let sizes: Option<Vec<Option<i64>>> = shape.getattr(pyo3::intern!(py, "_dims"))?.extract()?;
    let Some(sizes) = sizes.and_then(|sizes| sizes.into_iter().collect::<Option<Vec<i64>>>()) else {
        return Err(PyValueError::new_err(format!("every size must be known, got {}", shape.repr()?)));
    };
    let dtype = if sizes.iter().all(|&size| i32::try_from(size).is_ok()) { DType::I32 } else { DType::I64 };
    let made = || taut::cast(Tensor::from_slice(&sizes, [sizes.len()])?, dtype);
    crate::call::call(py, usize::MAX, || suspend_tracing(made))
}

/// Whether it is an `array.array`, which NumPy can read.
fn is_buffer(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    class.name().is_ok_and(|name| name == "array") && class.module().is_ok_and(|module| module == "array")
}

/// Whether a nested list holds a tensor; also finds the first leaf that is not a list.
fn holds_tensors<'py>(list: &Bound<'py, PyAny>, first: &mut Option<Bound<'py, PyAny>>) -> PyResult<bool> {
    let mut found = false;
    let _level = NestingLevel::enter()?;
    for part in list.try_iter()? {
        let part = part?;
        if part.is_instance_of::<PyList>() || part.is_instance_of::<PyTuple>() {
            found |= holds_tensors(&part, first)?;
        } else {
            found |= part.is_instance_of::<Array>()
                || part.hasattr(pyo3::intern!(part.py(), "__taut_tensor__"))?;
            if first.is_none() {
                *first = if is_shape(&part)? { part.try_iter()?.next().transpose()? } else { Some(part) };
            }
        }
        if found {
            break;
        }
    }
    Ok(found)
}

/// The parts of a Python list of this length; a MemoryError if the system refuses the memory of ours.
pub fn collected<T>(len: usize, parts: impl Iterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let refused = |_| PyMemoryError::new_err(format!("no memory for a list of {len} elements"));
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(refused)?;
    for part in parts {
        list.push(part?);
    }
    Ok(list)
}

/// Converts nested lists of numbers, arrays or tensors.
fn from_list(list: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let py = list.py();
    let mut first = None;
    if holds_tensors(list, &mut first)? {
        let _level = NestingLevel::enter()?;
        let part = |part: PyResult<Bound<'_, PyAny>>| -> PyResult<Operand> {
            let part = part?;
            match number(&part)? {
                // Python numbers take the type of the tensors beside them.
                Some(value) if dtype.is_none() => Ok(value.into()),
                _ => tensor_of(&part, dtype, Memory::Share).map(Into::into),
            }
        };
        let parts: Vec<Operand> = collected(list.len()?, list.try_iter()?.map(part))?;
        let tensors = parts.iter().filter_map(|part| match part {
            Operand::Tensor(tensor) => Some(tensor.dtype()),
            Operand::Scalar(_) => None,
        });
        let mut tensors = tensors;
        let first = tensors.next().unwrap_or(DType::F32);
        let common = tensors.try_fold(first, taut::promote).map_err(|error| exception(py, error))?;
        let common = parts.iter().fold(common, |common, part| match part {
            Operand::Tensor(_) => common,
            Operand::Scalar(scalar) => taut_core::promote_scalar(common, *scalar),
        });
        return crate::call::call(py, 0, || {
            let mut rows = list_with_capacity(parts.len())?;
            for part in parts {
                rows.push(match part {
                    Operand::Tensor(tensor) => taut::cast(tensor, common)?,
                    Operand::Scalar(scalar) => Tensor::constant(scalar, common)?,
                });
            }
            taut::stack(&rows, 0)
        });
    }
    let array = PyModule::import(py, "numpy")?.getattr("array")?.call1((list,)).map_err(|error| {
        if error.is_instance_of::<PyMemoryError>(py) {
            return error;
        }
        PyValueError::new_err(format!(
            "expected nested lists of equal lengths and of numbers only: {}\n  help: tf.ragged.constant takes lists of \
             different lengths",
            error.value(py)
        ))
    })?;
    let array = array.cast_into::<PyUntypedArray>()?;
    let mut made = numpy::tensor(&array, Memory::Share)?;
    if let Some(first) = &first
        && first.is_instance_of::<PyInt>()
    {
        made = numpy::exact_integers(list, made)?;
    }
    // Python numbers are weakly typed; NumPy's are not.
    let weak = match &first {
        None => Some(DType::F32),
        Some(first)
            if first.is_instance_of::<PyFloat>() && made.dtype() == DType::F64 && !is_numpy(first)? =>
        {
            Some(DType::F32)
        }
        Some(first) if number(first)?.is_some() && made.dtype() == DType::F64 => Some(DType::F32),
        Some(first) if number(first)?.is_some() && made.dtype() == DType::I64 => numpy::small(&made),
        Some(first) if is_numpy(first)? => numpy::type_of_first(first, &made)?,
        _ => None,
    };
    match dtype.or(weak) {
        Some(dtype) if dtype != made.dtype() => {
            let refused = dtype.is_integer() && made.dtype().is_float()
                || made.dtype().is_complex() && !dtype.is_complex()
                || dtype == DType::Bool && made.dtype() != DType::Bool;
            if refused && !made.is_empty() {
                return Err(loss(&made, dtype));
            }
            if dtype.is_integer() {
                check_range(py, &made, dtype)?;
            }
            cast_constant(py, made, dtype)
        }
        _ => Ok(made),
    }
}

/// Whether it is a NumPy scalar such as `numpy.float32(3)`, which is a tensor among the arguments of a function, so that
/// another value is no other trace. One that is a number of Python, too, `numpy.float64(3)`, is taken for that number.
pub fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_python = object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyComplex>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyType>();
    Ok(!is_python
        && is_numpy(object)?
        && object.hasattr(pyo3::intern!(object.py(), "__array_interface__"))?)
}

fn is_numpy(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr(pyo3::intern!(object.py(), "dtype"))
}

/// The most integers that are taken from an object that computes them, such as a range.
const MOST_INTEGERS: usize = 1 << 20;

/// One or several integers: from an integer, a list, a shape, an array, or a tensor whose value is known.
pub fn ints(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(vec![value]);
    }
    if let Ok(array) = object.cast::<Array>() {
        return integers(object.py(), &array.get().read()?);
    }
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        return integers(object.py(), &numpy::tensor(array, Memory::Share)?);
    }
    let mut values = Vec::new();
    let refuse = || {
        let message = format!("expected an integer or a list of integers, got {}", described(object));
        PyTypeError::new_err(message)
    };
    if object.is_instance_of::<PyString>() {
        return Err(refuse());
    }
    let is_stored = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    for part in object.try_iter().map_err(|_| refuse())? {
        if values.len() == MOST_INTEGERS && !is_stored {
            let message =
                format!("expected at most {MOST_INTEGERS} integers, got more from {}", described(object));
            return Err(PyValueError::new_err(message));
        }
        values.push(int(&part?)?);
    }
    Ok(values)
}

/// One integer: from a number, or from a tensor of one element.
pub fn int(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Ok(value) = object.extract::<i64>() {
        return Ok(value);
    }
    let found = ints_of_one(object)?;
    found.ok_or_else(|| PyTypeError::new_err(format!("expected an integer, got {}", described(object))))
}

fn ints_of_one(object: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if object.is_none() || object.is_instance_of::<PyString>() || object.is_instance_of::<PyFloat>() {
        return Ok(None);
    }
    let values = integers(object.py(), &tensor(object)?)?;
    Ok(if values.len() == 1 { Some(values[0]) } else { None })
}

fn integers(py: Python<'_>, tensor: &Tensor) -> PyResult<Vec<i64>> {
    if !tensor.dtype().is_integer() {
        return Err(PyTypeError::new_err(format!("expected integers, got {}", tensor.spec())));
    }
    if tensor.is_traced() {
        return Err(exception(py, taut::Error::dynamic_shape(tensor.spec())));
    }
    let cast = suspend_tracing(|| taut::cast(tensor, DType::I64).and_then(|cast| cast.to_vec::<i64>()));
    cast.map_err(|error| exception(py, error))
}

/// A number: from Python or NumPy, or from a tensor of one element.
pub fn float(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    if let Ok(value) = object.extract::<f64>() {
        return Ok(value);
    }
    let tensor = tensor(object)?;
    let value = suspend_tracing(|| taut::cast(&tensor, DType::F64).and_then(|cast| cast.item::<f64>()));
    value.map_err(|error| exception(object.py(), error))
}

/// An optional element type.
pub fn dtype_or(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<DType>> {
    object.filter(|object| !object.is_none()).map(dtype::given).transpose()
}

/// A string.
pub fn string(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = object.cast::<PyString>();
    let text =
        text.map_err(|_| PyTypeError::new_err(format!("expected a string, got {}", described(object))))?;
    Ok(text.to_str()?.to_owned())
}

/// An object in an error message: its `repr` if that is short, and its type.
pub fn described(object: &Bound<'_, PyAny>) -> String {
    const LONGEST: usize = 40;
    let kind = object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
    match object.repr().map(|text| text.to_string()) {
        Ok(text) if object.is_none() || object.is_instance_of::<PyString>() && text.len() <= LONGEST => text,
        Ok(text) if text.len() <= LONGEST && !text.contains('\n') && !text.starts_with('<') => {
            format!("{text} of type {kind}")
        }
        _ => format!("an object of type {kind}"),
    }
}
