//! Conversion from and to NumPy arrays, without a copy where layout and type allow.

use crate::array::{Array, ArrayValue};
use crate::error::exception;
use numpy::npyffi::{self, NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyInt;
use taut::{DType, Layout, Shape, Strides, Tensor};

static DESCRS: [PyOnceLock<Py<PyAny>>; DType::ALL.len()] = [const { PyOnceLock::new() }; DType::ALL.len()];
static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// The module `numpy`.
pub fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module = NUMPY.get_or_try_init(py, || PyModule::import(py, "numpy").map(Bound::unbind));
    module.map(|module| module.bind(py))
}

/// NumPy's `dtype` of an object.
pub fn dtype_like<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    module(object.py())?.getattr("dtype")?.call1((object,))
}

/// NumPy's `dtype` of an element type. Only that of `bfloat16` imports `ml_dtypes`, which takes longer than a first call.
pub fn descr(py: Python<'_>, dtype: DType) -> PyResult<&Bound<'_, PyAny>> {
    let descr = DESCRS[dtype as usize].get_or_try_init(py, || {
        let named = match dtype {
            DType::BF16 => PyModule::import(py, "ml_dtypes")?.getattr("bfloat16")?,
            _ => dtype.name().into_pyobject(py)?.into_any(),
        };
        Ok::<_, PyErr>(module(py)?.getattr("dtype")?.call1((named,))?.unbind())
    })?;
    Ok(descr.bind(py))
}

/// An array's element type, if it is supported and in native byte order.
fn dtype_of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Option<DType>> {
    let descr = array.dtype();
    if descr.is_native_byteorder() == Some(false) {
        return Ok(None);
    }
    Ok(Some(match (descr.kind(), descr.itemsize()) {
        (b'b', 1) => DType::Bool,
        (b'u', 1) => DType::U8,
        (b'u', 2) => DType::U16,
        (b'u', 4) => DType::U32,
        (b'u', 8) => DType::U64,
        (b'i', 1) => DType::I8,
        (b'i', 2) => DType::I16,
        (b'i', 4) => DType::I32,
        (b'i', 8) => DType::I64,
        (b'f', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        (b'f', 8) => DType::F64,
        (b'c', 8) => DType::C64,
        (b'c', 16) => DType::C128,
        (b'V', 2) if is_bfloat16(&descr)? => DType::BF16,
        _ => return Ok(None),
    }))
}

fn is_bfloat16(descr: &Bound<'_, PyArrayDescr>) -> PyResult<bool> {
    Ok(descr.getattr("name")?.extract::<String>()? == "bfloat16")
}

/// The memory of an array that a tensor borrows.
struct BorrowedArray {
    /// Keeps the memory alive.
    _array: Py<PyAny>,
    start: *const u8,
    bytes: usize,
}

// SAFETY: the memory is only read, and dropping a Python object is allowed on any thread.
unsafe impl Send for BorrowedArray {}
// SAFETY: as above.
unsafe impl Sync for BorrowedArray {}

impl AsRef<[u8]> for BorrowedArray {
    fn as_ref(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: NumPy reported that the array's elements are in these bytes, and the array is kept alive. A concurrent write
        // to the array is a data race with NumPy's own readers as well.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

/// Whether to share or copy an array's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Share it where possible.
    Share,
    /// Copy it, unless it is the immutable memory of a tensor.
    Own,
}

/// Converts an array to a tensor. In a trace it becomes a constant, which must not change with the array: it is copied.
pub fn tensor(array: &Bound<'_, PyUntypedArray>, sharing: Memory) -> PyResult<Tensor> {
    let py = array.py();
    let sharing = if taut_core::is_tracing() { Memory::Own } else { sharing };
    let Some(dtype) = dtype_of(array)? else { return other(array, sharing) };
    let size = dtype.size();
    // SAFETY: `array` is an array, so these are its fields.
    let fields = unsafe { &*npyffi::_PyArray_GET_ITEM_DATA(array.as_array_ptr()) };
    let start = fields.data.cast_const().cast::<u8>();
    let shape = Shape::from(array.shape());
    let is_aligned =
        start.addr().is_multiple_of(8) && array.strides().iter().all(|&stride| stride % size as isize == 0);
    let strides: Strides = array.strides().iter().map(|&stride| stride / size as isize).collect();
    let forward = strides.iter().all(|&stride| stride >= 0);
    let shares = is_aligned
        && forward
        && !shape.is_empty()
        && (sharing == Memory::Share || fields.flags & NPY_ARRAY_WRITEABLE == 0 && is_tensor_memory(array)?);
    let extent = if shares { Some(extent(&shape, &strides)) } else { None };
    if let Some(elements) = extent {
        let memory =
            BorrowedArray { _array: array.clone().into_any().unbind(), start, bytes: elements * size };
        let layout = Layout { shape, strides, offset: 0 };
        return Tensor::borrowed(dtype, layout, memory).map_err(|error| exception(py, error));
    }
    let row_major = if array.is_c_contiguous() && is_aligned {
        array.clone()
    } else {
        let copy = module(py)?.getattr("array")?.call1((array,))?;
        let copy = module(py)?.getattr("ascontiguousarray")?.call1((copy,))?;
        copy.call_method1("reshape", (array.shape().to_vec(),))?.cast_into::<PyUntypedArray>()?
    };
    // SAFETY: as above.
    let fields = unsafe { &*npyffi::_PyArray_GET_ITEM_DATA(row_major.as_array_ptr()) };
    let memory = BorrowedArray {
        _array: row_major.clone().into_any().unbind(),
        start: fields.data.cast_const().cast::<u8>(),
        bytes: shape.len() * size,
    };
    let spec = taut_core::Spec::new(dtype, shape);
    crate::call::call(py, spec.bytes(), || {
        Tensor::build(spec, taut::memory::Category::Tensor, taut::memory::Location::caller(), |out| {
            out.bytes().copy_from_slice(memory.as_ref());
        })
    })
}

/// Whether the array's memory is that of a tensor, which is immutable. A read-only view may still share memory with writable
/// arrays.
fn is_tensor_memory(array: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
    let mut base = array.getattr("base")?;
    while base.is_instance_of::<PyUntypedArray>() {
        base = base.getattr("base")?;
    }
    Ok(base.is_instance_of::<Array>())
}

/// The number of elements from the first to the last of a layout without negative strides.
fn extent(shape: &Shape, strides: &Strides) -> usize {
    shape.iter().zip(strides).map(|(&dim, &stride)| (dim - 1) * stride as usize).sum::<usize>() + 1
}

/// Converts an array in another byte order; refuses unsupported element types.
fn other(array: &Bound<'_, PyUntypedArray>, memory: Memory) -> PyResult<Tensor> {
    let py = array.py();
    let descr = array.dtype();
    if descr.is_native_byteorder() == Some(false) {
        let native = descr.call_method1("newbyteorder", ("=",))?;
        let native = array.call_method1("astype", (native,))?.cast_into::<PyUntypedArray>()?;
        return tensor(&native, memory);
    }
    if descr.has_object() {
        return Err(PyValueError::new_err(format!(
            "expected an array of numbers of one type, got an array of Python objects of shape {:?}",
            array.shape()
        )));
    }
    let error =
        taut_core::Error::dtype(format!("expected an array of a supported element type, got {descr}"));
    Err(exception(py, error))
}

/// A read-only array over a tensor's memory, which it keeps alive.
pub fn array<'py>(object: &Bound<'py, Array>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if tensor.is_traced() {
        return Err(crate::error::no_value(py, tensor));
    }
    // A variable is mutable: the array keeps the current value, so that later updates do not change it.
    let owner = match object.get().0 {
        ArrayValue::Tensor(_) | ArrayValue::Strings(_) => object.clone().into_any(),
        ArrayValue::Variable(_) => crate::array::wrap(py, tensor.clone())?,
    };
    let size = tensor.dtype().size() as isize;
    let mut dims: Vec<npyffi::npy_intp> = tensor.shape().iter().map(|&dim| dim as _).collect();
    let mut strides: Vec<npyffi::npy_intp> = tensor.strides().iter().map(|&stride| stride * size).collect();
    let first = first_byte(tensor);
    let descr = descr(py, tensor.dtype())?.clone();
    // SAFETY: dims and strides describe memory of the tensor, which `owner` keeps alive and the array keeps `owner`; the
    // references to `descr` and `owner` are transferred, and the array is not writable.
    unsafe {
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            npyffi::get_type_object(py, NpyTypes::PyArray_Type),
            descr.into_ptr().cast(),
            dims.len() as _,
            dims.as_mut_ptr(),
            strides.as_mut_ptr(),
            first.cast_mut().cast(),
            0,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), owner.into_ptr()) < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// The address of a tensor's first element; a dangling one for an empty tensor.
pub fn first_byte(tensor: &Tensor) -> *const u8 {
    match (tensor.memory(), tensor.is_empty()) {
        (Some((start, _)), false) => (start + tensor.layout().offset * tensor.dtype().size()) as *const u8,
        _ => std::ptr::NonNull::<u64>::dangling().as_ptr().cast_const().cast(),
    }
}

/// The elements of a list of Python integers below and above 2^63, which NumPy reads as `float64`, as `uint64`; other lists as they
/// were read.
pub fn exact_integers(list: &Bound<'_, PyAny>, made: Tensor) -> PyResult<Tensor> {
    let py = list.py();
    if made.dtype() != DType::F64 {
        return Ok(made);
    }
    let values = made.to_vec::<f64>().map_err(|error| exception(py, error))?;
    if !values.iter().any(|value| value.abs() >= 2f64.powi(63)) {
        return Ok(made);
    }
    let objects = module(py)?.getattr("array")?.call1((list, "object"))?;
    for part in objects.getattr("flat")?.try_iter()? {
        if !part?.is_instance_of::<PyInt>() {
            return Ok(made);
        }
    }
    let unsigned = objects.call_method1("astype", ("uint64",)).map_err(|_| {
        PyValueError::new_err("integers beyond int64 must be in the range of uint64, in all of the list")
    })?;
    tensor(unsigned.cast::<PyUntypedArray>()?, Memory::Share)
}

/// `int32`, if every element fits.
pub fn small(made: &Tensor) -> Option<DType> {
    let values = made.to_vec::<i64>().ok()?;
    values.iter().all(|&value| i32::try_from(value).is_ok()).then_some(DType::I32)
}

/// The type of a list whose first element has a NumPy type: TensorFlow takes that type where NumPy takes a wider one for the
/// Python numbers beside it. None if the type that NumPy takes is the list's.
pub fn type_of_first(first: &Bound<'_, PyAny>, made: &Tensor) -> PyResult<Option<DType>> {
    if !matches!(made.dtype(), DType::F64 | DType::I64) {
        return Ok(None);
    }
    let array = module(first.py())?.getattr("asarray")?.call1((first,))?;
    let Some(own) = dtype_of(array.cast::<PyUntypedArray>()?)? else { return Ok(None) };
    let largest = match (own, made.dtype()) {
        (DType::F16, DType::F64) => 65504.0,
        (DType::BF16 | DType::F32, DType::F64) => f64::from(f32::MAX),
        (
            DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::U16 | DType::U32,
            DType::F64,
        ) => {
            return Ok(Some(DType::F32));
        }
        (DType::I8 | DType::I16 | DType::I32 | DType::U8 | DType::U16 | DType::U32, DType::I64) => {
            return Ok(small(made));
        }
        _ => return Ok(None),
    };
    // Numbers beyond its range stay as they are.
    let values = made.to_vec::<f64>().map_err(|error| exception(first.py(), error))?;
    let fits = values.iter().all(|value| !value.is_finite() || value.abs() <= largest);
    Ok(fits.then_some(own))
}
