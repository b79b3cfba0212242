//! Tensors and variables as Python objects, with a common base class.
#![allow(unsafe_op_in_unsafe_fn, reason = "code that the binding generates from methods written by a macro")]

use crate::binary::{self, BinaryFunction};
use crate::call::call;
use crate::convert::{self, operand};
use crate::dtype::{self, DType};
use crate::error::{exception, of_class};
use crate::index;
use crate::line;
use crate::numpy::{self, Memory};
use crate::recording::{self, method, note_rank, note_read};
use crate::strings;
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyTuple, PyType};
use taut::graph::suspend_tracing;
use taut::{Operand, Variable};

type Object<'py> = PyResult<Bound<'py, PyAny>>;

/// Base class of tensors and variables: arithmetic, comparisons, slicing, and conversion to NumPy.
#[pyclass(frozen, subclass, weakref, module = "taut")]
pub struct Array(pub ArrayValue);

/// The value of an array object.
pub enum ArrayValue {
    Tensor(taut::Tensor),
    Variable(Variable),
    /// Of a `StringTensor`, which overrides the methods that need numbers.
    Strings(taut::strings::StringTensor),
}

/// An immutable n-dimensional array of one element type.
#[pyclass(frozen, subclass, extends = Array, weakref, module = "taut")]
pub struct Tensor;

impl Array {
    /// The value as a tensor of numbers; an error for strings.
    #[inline]
    pub fn read(&self) -> PyResult<taut::Tensor> {
        match &self.0 {
            ArrayValue::Tensor(tensor) => Ok(tensor.clone()),
            ArrayValue::Variable(variable) => read(variable),
            ArrayValue::Strings(strings) => Err(strings::not_numbers(strings)),
        }
    }

    /// Type and shape. Of strings, the shape; the type is that of their ends.
    pub fn spec(&self) -> &taut_core::Spec {
        match &self.0 {
            ArrayValue::Tensor(tensor) => tensor.spec(),
            ArrayValue::Variable(variable) => variable.spec(),
            ArrayValue::Strings(strings) => strings.parts()[0].spec(),
        }
    }

    /// Whether it is a tensor of strings.
    pub fn is_strings(&self) -> bool {
        matches!(self.0, ArrayValue::Strings(_))
    }
}

/// A variable's value; an error if this thread is in the middle of updating it.
pub fn read(variable: &Variable) -> PyResult<taut::Tensor> {
    variable.check_unlocked().map_err(|error| Python::attach(|py| exception(py, error)))?;
    Ok(variable.read())
}

/// A tensor as a Python object.
#[inline]
pub fn wrap(py: Python<'_>, tensor: taut::Tensor) -> Object<'_> {
    let made = PyClassInitializer::from(Array(ArrayValue::Tensor(tensor))).add_subclass(Tensor);
    Ok(Bound::new(py, made)?.into_any())
}

static SHAPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static NEW_OBJECT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A shape as a Python object. The constructor of its class would check sizes that are known to be sizes.
pub fn shape<'py>(py: Python<'py>, dims: &[usize]) -> Object<'py> {
    let class = SHAPE.import(py, "taut.shape", "TensorShape")?;
    let new =
        NEW_OBJECT.get_or_try_init(py, || py.get_type::<PyAny>().getattr("__new__").map(Bound::unbind))?;
    let made = new.bind(py).call1((class,))?;
    made.setattr(pyo3::intern!(py, "_dims"), PyTuple::new(py, dims)?)?;
    Ok(made)
}

/// Whether it is a `TensorShape`.
pub fn is_shape(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.is_instance(SHAPE.import(object.py(), "taut.shape", "TensorShape")?)
}

/// The shape that the caller may see: that of a traced tensor may have open dimensions.
fn visible_shape<'py>(slf: &Bound<'py, Array>, is_user_code: fn(Python<'_>) -> bool) -> Object<'py> {
    let dims = &slf.get().spec().shape;
    if matches!(slf.get().0, ArrayValue::Tensor(_))
        && let Some(visible) = recording::shape(slf.as_any(), dims, is_user_code)?
    {
        return Ok(visible);
    }
    shape(slf.py(), dims)
}

fn unary<'py>(
    slf: &Bound<'py, Array>,
    work: impl FnOnce(taut::Tensor) -> taut::Result<taut::Tensor> + Send,
) -> Object<'py> {
    let x = slf.get().read()?;
    let py = slf.py();
    wrap(py, call(py, x.spec().bytes(), || work(x))?)
}

/// The only element, as a Python number.
fn item<'py>(slf: &Bound<'py, Array>) -> Object<'py> {
    let py = slf.py();
    let x = slf.get().read()?;
    if x.is_traced() {
        return Err(crate::error::no_value(py, &x));
    }
    note_read(slf.as_any())?;
    if x.len() != 1 {
        let text = format!(
            "only a tensor of one element can be converted to a Python number, got shape {}",
            x.shape()
        );
        return Err(of_class(py, "DTypeError", text));
    }
    let dtype = x.dtype();
    let one = suspend_tracing(|| taut::reshape(x, &[])).map_err(|error| exception(py, error))?;
    let read = || -> taut::Result<Py<PyAny>> {
        Ok(match dtype {
            taut::DType::Bool => PyBool::new(py, one.item::<bool>()?).to_owned().into_any().unbind(),
            taut::DType::U64 => one.item::<u64>()?.into_py_any(py).map_err(crate::error::raised)?,
            dtype if dtype.is_integer() => {
                let wide = taut::cast(&one, taut::DType::I64)?.item::<i64>()?;
                wide.into_py_any(py).map_err(crate::error::raised)?
            }
            dtype if dtype.is_complex() => {
                let wide = convert::converted(&one, taut::DType::C128)?.item::<taut::Complex<f64>>()?;
                PyComplex::from_doubles(py, wide.re, wide.im).into_any().unbind()
            }
            _ => {
                let wide = convert::converted(&one, taut::DType::F64)?.item::<f64>()?;
                wide.into_py_any(py).map_err(crate::error::raised)?
            }
        })
    };
    suspend_tracing(read).map(|value| value.into_bound(py)).map_err(|error| exception(py, error))
}

macro_rules! operators {
    ($($name:ident / $swapped:ident = $work:path;)*) => {
        #[pymethods]
        impl Array {
            $(
                fn $name<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                    method(slf, stringify!($name), &[other], || binary::operator(slf, other, false, |x, y| $work(x, y)))
                }

                fn $swapped<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                    method(slf, stringify!($swapped), &[other], || binary::operator(slf, other, true, |x, y| $work(x, y)))
                }
            )*

            fn __pow__<'py>(
                slf: &Bound<'py, Self>,
                other: &Bound<'py, PyAny>,
                modulo: &Bound<'py, PyAny>,
            ) -> Object<'py> {
                if !modulo.is_none() {
                    return Err(PyTypeError::new_err("pow() of a tensor does not support a modulus"));
                }
                method(slf, "__pow__", &[other], || binary::operator(slf, other, false, binary::pow))
            }

            fn __rpow__<'py>(
                slf: &Bound<'py, Self>,
                other: &Bound<'py, PyAny>,
                _modulo: &Bound<'py, PyAny>,
            ) -> Object<'py> {
                method(slf, "__rpow__", &[other], || binary::operator(slf, other, true, binary::pow))
            }

            fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                method(slf, "__matmul__", &[other], || matmul(slf, other, false))
            }

            fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                method(slf, "__rmatmul__", &[other], || matmul(slf, other, true))
            }

            fn __neg__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                method(slf, "__neg__", &[], || unary(slf, |x| taut::neg(x)))
            }

            fn __pos__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                method(slf, "__pos__", &[], || wrap(slf.py(), slf.get().read()?))
            }

            fn __abs__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                method(slf, "__abs__", &[], || unary(slf, |x| taut::abs(x)))
            }

            fn __invert__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                method(slf, "__invert__", &[], || {
                    unary(slf, |x| if x.dtype() == taut::DType::Bool { taut::logical_not(x) } else { taut::bitwise_not(x) })
                })
            }

            fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, op: CompareOp) -> Object<'py> {
                let py = slf.py();
                let (name, function): (_, BinaryFunction) = match op {
                    CompareOp::Lt => ("__lt__", |x, y| taut::less(x, y)),
                    CompareOp::Le => ("__le__", |x, y| taut::less_equal(x, y)),
                    CompareOp::Gt => ("__gt__", |x, y| taut::greater(x, y)),
                    CompareOp::Ge => ("__ge__", |x, y| taut::greater_equal(x, y)),
                    CompareOp::Eq => ("__eq__", binary::equal),
                    CompareOp::Ne => ("__ne__", binary::not_equal),
                };
                if other.is_none() && matches!(op, CompareOp::Eq | CompareOp::Ne) {
                    return Ok(PyBool::new(py, matches!(op, CompareOp::Ne)).to_owned().into_any());
                }
                method(slf, name, &[other], || binary::operator(slf, other, false, function))
            }

            fn __hash__(&self) -> PyResult<isize> {
                Err(PyTypeError::new_err("tensors are unhashable, since == compares elements: use tensor.ref() as a key"))
            }

            fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> Object<'py> {
                method(slf, "__getitem__", &[key], || wrap(slf.py(), index::get(slf, key)?))
            }

            fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
                note_read(slf.as_any())?;
                match slf.get().spec().shape.first() {
                    Some(&rows) => Ok(rows),
                    None => Err(PyTypeError::new_err("a scalar tensor has no len(): expected rank >= 1")),
                }
            }

            fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
                let x = slf.get().read()?;
                if x.is_traced() && crate::line::is_in_package(slf.py()) {
                    return Err(crate::error::no_value(slf.py(), &x));
                }
                if x.is_traced() {
                    return Err(crate::error::in_graph(slf.py(), "the truth value of a traced tensor is not known while tracing",
                        "use tf.cond, or let tf.function convert the `if`"));
                }
                if x.len() != 1 {
                    return Err(PyValueError::new_err(format!(
                        "the truth value of a tensor of shape {} is ambiguous\n  help: use tf.reduce_all or tf.reduce_any",
                        x.shape()
                    )));
                }
                let value = item(slf)?;
                value.is_truthy()
            }

            fn __int__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                let py = slf.py();
                py.get_type::<pyo3::types::PyInt>().call1((item(slf)?,))
            }

            fn __complex__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                let py = slf.py();
                py.get_type::<PyComplex>().call1((item(slf)?,))
            }

            fn __float__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                let py = slf.py();
                py.get_type::<pyo3::types::PyFloat>().call1((item(slf)?,))
            }

            fn __index__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                if !slf.get().spec().dtype.is_integer() {
                    return Err(PyTypeError::new_err("only a scalar integer tensor can be used as an index"));
                }
                item(slf)
            }

            /// The only element as a Python number.
            fn item<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                item(slf)
            }

            /// The elements as a read-only NumPy array over the same memory; a NumPy scalar for a scalar tensor.
            fn numpy<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                note_read(slf.as_any())?;
                let tensor = slf.get().read()?;
                if tensor.is_traced() {
                    return Err(crate::error::no_array(slf.py(), &tensor));
                }
                let array = numpy::array(slf, &tensor)?;
                if tensor.rank() == 0 { array.get_item(PyTuple::empty(slf.py())) } else { Ok(array) }
            }

            #[pyo3(signature = (dtype=None, copy=None))]
            fn __array__<'py>(
                slf: &Bound<'py, Self>,
                dtype: Option<Bound<'py, PyAny>>,
                copy: Option<bool>,
            ) -> Object<'py> {
                note_read(slf.as_any())?;
                let tensor = slf.get().read()?;
                let array = numpy::array(slf, &tensor)?;
                match (dtype, copy) {
                    (Some(dtype), Some(false)) if !array.getattr("dtype")?.eq(&dtype)? => {
                        Err(PyValueError::new_err("copy=False does not allow a conversion to another element type"))
                    }
                    (Some(dtype), _) if !array.getattr("dtype")?.eq(&dtype)? => array.call_method1("astype", (dtype,)),
                    (_, Some(true)) => array.call_method0("copy"),
                    _ => Ok(array),
                }
            }

            #[classattr]
            fn __array_priority__() -> i32 {
                100
            }

            #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
            fn __dlpack__<'py>(
                slf: &Bound<'py, Self>,
                stream: Option<Bound<'py, PyAny>>,
                max_version: Option<(u32, u32)>,
                dl_device: Option<(i32, i32)>,
                copy: Option<bool>,
            ) -> Object<'py> {
                note_read(slf.as_any())?;
                crate::dlpack::export(slf, stream, max_version, dl_device, copy)
            }

            fn __dlpack_device__(&self) -> (i32, i32) {
                crate::dlpack::CPU
            }

            #[getter]
            fn shape<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                visible_shape(slf, line::is_user_code)
            }

            /// The shape, as a method: `get_shape`.
            fn _seen_shape<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                // AutoGraph calls it for the user's code.
                visible_shape(slf, |_| true)
            }

            #[getter]
            fn dtype(&self, py: Python<'_>) -> PyResult<Py<DType>> {
                dtype::object(py, self.spec().dtype)
            }

            /// Number of dimensions.
            #[getter]
            fn ndim(slf: &Bound<'_, Self>) -> PyResult<usize> {
                note_rank(slf.as_any())?;
                Ok(slf.get().spec().shape.rank())
            }

            /// Number of elements.
            #[getter]
            fn size(slf: &Bound<'_, Self>) -> PyResult<usize> {
                note_read(slf.as_any())?;
                Ok(slf.get().spec().shape.len())
            }

            /// Bytes of the elements.
            #[getter]
            fn nbytes(slf: &Bound<'_, Self>) -> PyResult<usize> {
                note_read(slf.as_any())?;
                Ok(slf.get().spec().bytes())
            }

            /// Whether it is a traced tensor, which has no elements.
            #[getter]
            fn is_symbolic(&self) -> PyResult<bool> {
                Ok(self.read()?.is_traced())
            }

            /// The address of the first element.
            fn data_ptr(slf: &Bound<'_, Self>) -> PyResult<usize> {
                let tensor = slf.get().read()?;
                tensor.view().map_err(|error| exception(slf.py(), error))?;
                Ok(numpy::first_byte(&tensor).addr())
            }

            /// Strides in elements.
            #[getter]
            fn strides(slf: &Bound<'_, Self>) -> PyResult<Vec<isize>> {
                note_read(slf.as_any())?;
                Ok(slf.get().read()?.strides().to_vec())
            }

            /// A number that is unique among live tensors and variables.
            #[getter]
            fn _id(&self) -> u64 {
                match &self.0 {
                    ArrayValue::Tensor(tensor) => tensor.identity() as u64,
                    ArrayValue::Variable(variable) => variable.id(),
                    ArrayValue::Strings(strings) => strings.identity() as u64,
                }
            }
        }
    };
}

fn matmul<'py>(slf: &Bound<'py, Array>, other: &Bound<'py, PyAny>, swapped: bool) -> Object<'py> {
    let py = slf.py();
    let dtype = slf.get().spec().dtype;
    let Some(other) = operand(other, Some(dtype))? else { return Ok(py.NotImplemented().into_bound(py)) };
    let Operand::Tensor(other) = other else {
        return Err(PyTypeError::new_err("@ needs matrices, got a number: use * instead"));
    };
    let own = slf.get().read()?;
    let weight = own.spec().bytes() + other.spec().bytes();
    let (a, b) = if swapped { (other, own) } else { (own, other) };
    wrap(py, call(py, weight, || taut::matmul(a, b))?)
}

operators! {
    __add__ / __radd__ = taut::add;
    __sub__ / __rsub__ = taut::sub;
    __mul__ / __rmul__ = taut::mul;
    __truediv__ / __rtruediv__ = taut::div;
    __floordiv__ / __rfloordiv__ = binary::floor_div;
    __mod__ / __rmod__ = binary::mod_;
    __and__ / __rand__ = binary::and;
    __or__ / __ror__ = binary::or;
    __xor__ / __rxor__ = binary::xor;
    __lshift__ / __rlshift__ = taut::left_shift;
    __rshift__ / __rrshift__ = taut::right_shift;
}

#[pymethods]
impl Tensor {
    /// Converts an object to a tensor, without a copy where possible.
    #[new]
    #[pyo3(signature = (value, dtype=None))]
    fn new(
        value: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Tensor>> {
        let tensor = convert::tensor_of(value, convert::dtype_or(dtype)?, Memory::Share)?;
        Ok(PyClassInitializer::from(Array(ArrayValue::Tensor(tensor))).add_subclass(Tensor))
    }
}

/// Converts an object to a tensor, without a copy where possible.
#[pyfunction]
#[pyo3(signature = (value, dtype=None))]
pub fn as_tensor<'py>(value: &Bound<'py, PyAny>, dtype: Option<&Bound<'py, PyAny>>) -> Object<'py> {
    recording::function(value.py(), "as_tensor", &[Some(value), dtype], || {
        converted(value, dtype, Memory::Share)
    })
}

/// Converts an object to a tensor: of strings, if the type says so or if it has none and is made of strings.
fn converted<'py>(
    value: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    memory: Memory,
) -> Object<'py> {
    if dtype.is_some_and(dtype::is_string) {
        return strings::string_tensor(value);
    }
    let wanted = convert::dtype_or(dtype)?;
    if let Ok(tensor) = value.cast::<Tensor>()
        && wanted.is_none_or(|wanted| wanted == tensor.as_super().get().spec().dtype)
        && (memory == Memory::Share || tensor.as_super().get().is_strings())
        && (wanted.is_none() || !tensor.as_super().get().is_strings())
    {
        return Ok(value.clone());
    }
    match convert::tensor_of(value, wanted, memory) {
        Ok(tensor) => wrap(value.py(), tensor),
        Err(_) if wanted.is_none() && strings::is_strings(value) => strings::string_tensor(value),
        Err(error) => Err(error),
    }
}

/// Converts an operand beside a tensor of type `dtype`, which numbers, lists and arrays take.
#[pyfunction]
pub fn tensor_beside<'py>(value: &Bound<'py, PyAny>, dtype: &Bound<'py, PyAny>) -> Object<'py> {
    recording::function(value.py(), "tensor_beside", &[Some(value), Some(dtype)], || {
        operand_beside(value, dtype)
    })
}

fn operand_beside<'py>(value: &Bound<'py, PyAny>, dtype: &Bound<'py, PyAny>) -> Object<'py> {
    if value.is_instance_of::<Tensor>() {
        return Ok(value.clone());
    }
    if dtype::is_string(dtype) {
        return strings::string_tensor(value);
    }
    wrap(value.py(), convert::tensor_beside(value, Some(dtype::given(dtype)?))?)
}

/// Converts an object to a tensor that shares no memory with writable arrays.
#[pyfunction]
#[pyo3(signature = (value, dtype=None))]
pub fn own_tensor<'py>(value: &Bound<'py, PyAny>, dtype: Option<&Bound<'py, PyAny>>) -> Object<'py> {
    recording::function(value.py(), "own_tensor", &[Some(value), dtype], || {
        converted(value, dtype, Memory::Own)
    })
}
