//! Element types such as `tf.float32`.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyType};
use taut::DType as Kind;

/// An element type.
#[pyclass(frozen, module = "taut")]
pub struct DType(pub Kind);

static ALL: PyOnceLock<Vec<Py<DType>>> = PyOnceLock::new();

/// The Python object of an element type. There is one per type.
pub fn object(py: Python<'_>, dtype: Kind) -> PyResult<Py<DType>> {
    let all = ALL.get_or_try_init(py, || Kind::ALL.iter().map(|&dtype| Py::new(py, DType(dtype))).collect());
    all.map(|all: &Vec<Py<DType>>| all[dtype as usize].clone_ref(py))
}

/// The Python object of the element type with this name.
#[pyfunction]
pub fn dtype_named(py: Python<'_>, name: &str) -> PyResult<Py<DType>> {
    match named(name) {
        Some(dtype) => object(py, dtype),
        None => Err(PyTypeError::new_err(format!("'{name}' is not an element type"))),
    }
}

fn named(name: &str) -> Option<Kind> {
    match name {
        "half" => Some(Kind::F16),
        "float" => Some(Kind::F32),
        "double" => Some(Kind::F64),
        "int" => Some(Kind::I64),
        "bool_" => Some(Kind::Bool),
        _ => Kind::ALL.into_iter().find(|dtype| dtype.name() == name),
    }
}

/// Converts an object to an element type: from a DType, its name, a Python type or a NumPy type.
pub fn given(object: &Bound<'_, PyAny>) -> PyResult<Kind> {
    if let Ok(dtype) = object.cast::<DType>() {
        return Ok(dtype.get().0);
    }
    let py = object.py();
    let refuse = || {
        PyTypeError::new_err(format!(
            "expected an element type such as tf.float32 or 'float32', got {}",
            crate::convert::described(object)
        ))
    };
    if let Ok(name) = object.cast::<PyString>() {
        return named(name.to_str()?).ok_or_else(refuse);
    }
    if object.is(py.get_type::<PyFloat>()) {
        return Ok(Kind::F32);
    }
    if object.is(py.get_type::<PyInt>()) {
        return Ok(Kind::I32);
    }
    if object.is(py.get_type::<PyBool>()) {
        return Ok(Kind::Bool);
    }
    let name = match object.getattr(pyo3::intern!(py, "name")) {
        Ok(name) => name,
        Err(_) => crate::numpy::dtype_like(object).map_err(|_| refuse())?.getattr("name")?,
    };
    named(&name.extract::<String>()?).ok_or_else(refuse)
}

#[pymethods]
impl DType {
    #[new]
    fn new(given: &Bound<'_, PyAny>) -> PyResult<DType> {
        self::given(given).map(DType)
    }

    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Bytes of one element.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    #[getter]
    fn is_floating(&self) -> bool {
        self.0.is_float()
    }

    #[getter]
    fn is_integer(&self) -> bool {
        self.0.is_integer()
    }

    #[getter]
    fn is_unsigned(&self) -> bool {
        self.0.is_unsigned_integer()
    }

    #[getter]
    fn is_bool(&self) -> bool {
        self.0 == Kind::Bool
    }

    /// The NumPy scalar type.
    #[getter]
    fn as_numpy_dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::numpy::descr(py, self.0)?.getattr("type")
    }

    /// TensorFlow's enumeration value of the type.
    #[getter]
    fn as_datatype_enum(&self) -> u32 {
        match self.0 {
            Kind::F32 => 1,
            Kind::F64 => 2,
            Kind::I32 => 3,
            Kind::U8 => 4,
            Kind::I16 => 5,
            Kind::I8 => 6,
            Kind::I64 => 9,
            Kind::Bool => 10,
            Kind::BF16 => 14,
            Kind::U16 => 17,
            Kind::F16 => 19,
            Kind::U32 => 22,
            Kind::U64 => 23,
        }
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> Option<bool> {
        let equal = !other.is_none() && given(other).is_ok_and(|other| other == self.0);
        match op {
            CompareOp::Eq => Some(equal),
            CompareOp::Ne => Some(!equal),
            _ => None,
        }
    }

    fn __hash__(&self) -> u64 {
        self.0 as u64
    }

    fn __repr__(&self) -> String {
        format!("tf.{}", self.0.name())
    }

    fn __str__(&self) -> String {
        format!("<dtype: '{}'>", self.0.name())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (&'static str,)) {
        (py.get_type::<DType>(), (self.0.name(),))
    }
}
