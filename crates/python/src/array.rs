//! Tensors and variables as Python objects: what both can do is in their common base.
#![allow(unsafe_op_in_unsafe_fn, reason = "what the binding makes of methods that a macro writes")]

use crate::call::call;
use crate::convert::{self, operand};
use crate::dtype::{self, DType};
use crate::error::exception;
use crate::index;
use crate::numpy::{self, Memory};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyTuple, PyType};
use taut::graph::suspend_tracing;
use taut::{Operand, Variable};

type Object<'py> = PyResult<Bound<'py, PyAny>>;

/// What tensors and variables have in common: arithmetic, comparisons, slicing, and their values as NumPy's.
#[pyclass(frozen, subclass, weakref, module = "taut")]
pub struct Array(pub Value);

pub enum Value {
    Tensor(taut::Tensor),
    Variable(Variable),
}

/// An n-dimensional array of one element type. It never changes.
#[pyclass(frozen, extends = Array, weakref, module = "taut")]
pub struct Tensor;

impl Array {
    /// The value as a tensor.
    #[inline]
    pub fn read(&self) -> PyResult<taut::Tensor> {
        match &self.0 {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Variable(variable) => read(variable),
        }
    }

    pub fn spec(&self) -> &taut_core::Spec {
        match &self.0 {
            Value::Tensor(tensor) => tensor.spec(),
            Value::Variable(variable) => variable.spec(),
        }
    }
}

/// A variable's value; an error in the middle of its update by this thread.
pub fn read(variable: &Variable) -> PyResult<taut::Tensor> {
    variable.check_unlocked().map_err(|error| Python::attach(|py| exception(py, error)))?;
    Ok(variable.read())
}

/// A tensor as a Python object.
#[inline]
pub fn wrap(py: Python<'_>, tensor: taut::Tensor) -> Object<'_> {
    let made = PyClassInitializer::from(Array(Value::Tensor(tensor))).add_subclass(Tensor);
    Ok(Bound::new(py, made)?.into_any())
}

static SHAPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A shape as a Python object.
pub fn shape<'py>(py: Python<'py>, dims: &[usize]) -> Object<'py> {
    let class = SHAPE.import(py, "taut.shape", "TensorShape")?;
    class.call1((PyTuple::new(py, dims)?,))
}

fn bytes(operand: &Operand) -> usize {
    match operand {
        Operand::Tensor(tensor) => tensor.spec().bytes(),
        Operand::Scalar(_) => 0,
    }
}

/// Whether a trace can know it: a whole number that is known already.
fn is_known(operand: &Operand) -> bool {
    match operand {
        Operand::Tensor(tensor) => convert::is_known(tensor),
        Operand::Scalar(scalar) => !matches!(scalar, taut::Scalar::Float(_)),
    }
}

#[inline]
fn binary<'py>(
    slf: &Bound<'py, Array>,
    other: &Bound<'py, PyAny>,
    swapped: bool,
    work: fn(Operand, Operand) -> taut::Result<taut::Tensor>,
) -> Object<'py> {
    let py = slf.py();
    let dtype = slf.get().spec().dtype;
    let Some(other) = operand(other, dtype)? else { return Ok(py.NotImplemented().into_bound(py)) };
    let own = Operand::Tensor(slf.get().read()?);
    let weight = bytes(&own) + bytes(&other);
    let known = taut_core::is_tracing() && is_known(&own) && is_known(&other);
    let (x, y) = if swapped { (other, own) } else { (own, other) };
    wrap(py, call(py, weight, || if known { suspend_tracing(|| work(x, y)) } else { work(x, y) })?)
}

fn unary<'py>(
    slf: &Bound<'py, Array>,
    work: impl FnOnce(taut::Tensor) -> taut::Result<taut::Tensor> + Send,
) -> Object<'py> {
    let x = slf.get().read()?;
    let py = slf.py();
    wrap(py, call(py, x.spec().bytes(), || work(x))?)
}

/// The only element, in a type of Python's.
fn item<'py>(slf: &Bound<'py, Array>) -> Object<'py> {
    let py = slf.py();
    let x = slf.get().read()?;
    if x.is_traced() {
        let error = x.view().err().unwrap_or_else(|| taut::Error::value("it has no value"));
        return Err(exception(py, error));
    }
    if x.len() != 1 {
        return Err(PyValueError::new_err(format!(
            "only a tensor of one element is a number, not one of shape {}",
            x.shape()
        )));
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
            _ => {
                let wide = taut::cast(&one, taut::DType::F64)?.item::<f64>()?;
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
                    binary(slf, other, false, |x, y| $work(x, y))
                }

                fn $swapped<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                    binary(slf, other, true, |x, y| $work(x, y))
                }
            )*

            fn __pow__<'py>(
                slf: &Bound<'py, Self>,
                other: &Bound<'py, PyAny>,
                modulo: &Bound<'py, PyAny>,
            ) -> Object<'py> {
                if !modulo.is_none() {
                    return Err(PyTypeError::new_err("pow() of a tensor takes no modulus"));
                }
                binary(slf, other, false, |x, y| taut::pow(x, y))
            }

            fn __rpow__<'py>(
                slf: &Bound<'py, Self>,
                other: &Bound<'py, PyAny>,
                _modulo: &Bound<'py, PyAny>,
            ) -> Object<'py> {
                binary(slf, other, true, |x, y| taut::pow(x, y))
            }

            fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                matmul(slf, other, false)
            }

            fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Object<'py> {
                matmul(slf, other, true)
            }

            fn __neg__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                unary(slf, |x| taut::neg(x))
            }

            fn __pos__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                wrap(slf.py(), slf.get().read()?)
            }

            fn __abs__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                unary(slf, |x| taut::abs(x))
            }

            fn __invert__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                unary(slf, |x| if x.dtype() == taut::DType::Bool { taut::logical_not(x) } else { taut::bitwise_not(x) })
            }

            fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, op: CompareOp) -> Object<'py> {
                let py = slf.py();
                let work: fn(Operand, Operand) -> taut::Result<taut::Tensor> = match op {
                    CompareOp::Lt => |x, y| taut::less(x, y),
                    CompareOp::Le => |x, y| taut::less_equal(x, y),
                    CompareOp::Gt => |x, y| taut::greater(x, y),
                    CompareOp::Ge => |x, y| taut::greater_equal(x, y),
                    CompareOp::Eq => |x, y| taut::equal(x, y),
                    CompareOp::Ne => |x, y| taut::not_equal(x, y),
                };
                if other.is_none() && matches!(op, CompareOp::Eq | CompareOp::Ne) {
                    return Ok(PyBool::new(py, matches!(op, CompareOp::Ne)).to_owned().into_any());
                }
                binary(slf, other, false, work)
            }

            fn __hash__(&self) -> PyResult<isize> {
                Err(PyTypeError::new_err("a tensor is not hashable, since == compares its elements; tensor.ref() is"))
            }

            fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> Object<'py> {
                wrap(slf.py(), index::get(slf, key)?)
            }

            fn __len__(&self) -> PyResult<usize> {
                match self.spec().shape.first() {
                    Some(&rows) => Ok(rows),
                    None => Err(PyTypeError::new_err("a tensor without dimensions has no length")),
                }
            }

            fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
                if slf.get().read()?.is_traced() {
                    return Err(crate::error::in_graph(slf.py(), "its truth is not known while a function is traced",
                        "use tf.cond, or let tf.function convert the `if`"));
                }
                let value = item(slf)?;
                value.is_truthy()
            }

            fn __int__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                let py = slf.py();
                py.get_type::<pyo3::types::PyInt>().call1((item(slf)?,))
            }

            fn __float__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                let py = slf.py();
                py.get_type::<pyo3::types::PyFloat>().call1((item(slf)?,))
            }

            fn __index__<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                if !slf.get().spec().dtype.is_integer() {
                    return Err(PyTypeError::new_err("only a tensor of one integer is an index"));
                }
                item(slf)
            }

            /// The only element as a number of Python's.
            fn item<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                item(slf)
            }

            /// The elements as an array of NumPy's that looks at the same memory and cannot be written to; a number for a
            /// tensor without dimensions.
            fn numpy<'py>(slf: &Bound<'py, Self>) -> Object<'py> {
                let tensor = slf.get().read()?;
                let array = numpy::array(slf, &tensor)?;
                if tensor.rank() == 0 { array.get_item(PyTuple::empty(slf.py())) } else { Ok(array) }
            }

            #[pyo3(signature = (dtype=None, copy=None))]
            fn __array__<'py>(
                slf: &Bound<'py, Self>,
                dtype: Option<Bound<'py, PyAny>>,
                copy: Option<bool>,
            ) -> Object<'py> {
                let tensor = slf.get().read()?;
                let array = numpy::array(slf, &tensor)?;
                match (dtype, copy) {
                    (Some(dtype), Some(false)) if !array.getattr("dtype")?.eq(&dtype)? => {
                        Err(PyValueError::new_err("elements of another type are a copy, and copy=False allows none"))
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
                crate::dlpack::export(slf, stream, max_version, dl_device, copy)
            }

            fn __dlpack_device__(&self) -> (i32, i32) {
                crate::dlpack::CPU
            }

            #[getter]
            fn shape<'py>(&self, py: Python<'py>) -> Object<'py> {
                shape(py, &self.spec().shape)
            }

            #[getter]
            fn dtype(&self, py: Python<'_>) -> PyResult<Py<DType>> {
                dtype::object(py, self.spec().dtype)
            }

            /// Number of dimensions.
            #[getter]
            fn ndim(&self) -> usize {
                self.spec().shape.rank()
            }

            /// Number of elements.
            #[getter]
            fn size(&self) -> usize {
                self.spec().shape.len()
            }

            /// Bytes of its elements.
            #[getter]
            fn nbytes(&self) -> usize {
                self.spec().bytes()
            }

            /// Whether it is a value of a function that is being traced, without elements.
            #[getter]
            fn is_symbolic(&self) -> PyResult<bool> {
                Ok(self.read()?.is_traced())
            }

            /// The address of its first element.
            fn data_ptr(slf: &Bound<'_, Self>) -> PyResult<usize> {
                let tensor = slf.get().read()?;
                tensor.view().map_err(|error| exception(slf.py(), error))?;
                Ok(numpy::first_byte(&tensor).addr())
            }

            /// Strides in elements.
            #[getter]
            fn strides(&self) -> PyResult<Vec<isize>> {
                Ok(self.read()?.strides().to_vec())
            }

            /// A number that no other tensor has while this one is there.
            #[getter]
            fn _id(&self) -> u64 {
                match &self.0 {
                    Value::Tensor(tensor) => tensor.identity() as u64,
                    Value::Variable(variable) => variable.id(),
                }
            }
        }
    };
}

fn matmul<'py>(slf: &Bound<'py, Array>, other: &Bound<'py, PyAny>, swapped: bool) -> Object<'py> {
    let py = slf.py();
    let dtype = slf.get().spec().dtype;
    let Some(other) = operand(other, dtype)? else { return Ok(py.NotImplemented().into_bound(py)) };
    let Operand::Tensor(other) = other else {
        return Err(PyTypeError::new_err("@ multiplies matrices, and a number is none"));
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
    __floordiv__ / __rfloordiv__ = taut::floor_div;
    __mod__ / __rmod__ = taut::mod_;
    __and__ / __rand__ = and;
    __or__ / __ror__ = or;
    __xor__ / __rxor__ = xor;
    __lshift__ / __rlshift__ = taut::left_shift;
    __rshift__ / __rrshift__ = taut::right_shift;
}

macro_rules! logical_or_bitwise {
    ($($name:ident: $logical:path, $bitwise:path;)*) => {$(
        fn $name(x: Operand, y: Operand) -> taut::Result<taut::Tensor> {
            let is_bool = |operand: &Operand| match operand {
                Operand::Tensor(tensor) => tensor.dtype() == taut::DType::Bool,
                Operand::Scalar(scalar) => matches!(scalar, taut::Scalar::Bool(_)),
            };
            if is_bool(&x) && is_bool(&y) { $logical(x, y) } else { $bitwise(x, y) }
        }
    )*};
}
logical_or_bitwise! {
    and: taut::logical_and, taut::bitwise_and;
    or: taut::logical_or, taut::bitwise_or;
    xor: taut::logical_xor, taut::bitwise_xor;
}

#[pymethods]
impl Tensor {
    /// A tensor over an object's own memory where that is possible, of a given type if there is one.
    #[new]
    #[pyo3(signature = (value, dtype=None))]
    fn new(
        value: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Tensor>> {
        let tensor = convert::tensor_of(value, convert::dtype_or(dtype)?, Memory::Share)?;
        Ok(PyClassInitializer::from(Array(Value::Tensor(tensor))).add_subclass(Tensor))
    }
}

/// An object as a tensor: itself if it is one, over its own memory where that is possible.
#[pyfunction]
#[pyo3(signature = (value, dtype=None))]
pub fn as_tensor<'py>(value: &Bound<'py, PyAny>, dtype: Option<&Bound<'py, PyAny>>) -> Object<'py> {
    let wanted = convert::dtype_or(dtype)?;
    if let Ok(tensor) = value.cast::<Tensor>()
        && wanted.is_none_or(|wanted| wanted == tensor.as_super().get().spec().dtype)
    {
        return Ok(value.clone());
    }
    wrap(value.py(), convert::tensor_of(value, wanted, Memory::Share)?)
}

/// A tensor of an object's elements, which nobody else can change.
#[pyfunction]
#[pyo3(signature = (value, dtype=None))]
pub fn own_tensor<'py>(value: &Bound<'py, PyAny>, dtype: Option<&Bound<'py, PyAny>>) -> Object<'py> {
    wrap(value.py(), convert::tensor_of(value, convert::dtype_or(dtype)?, Memory::Own)?)
}
