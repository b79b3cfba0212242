//! Element types such as `tf.float32`.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyString, PyType};
use taut::DType as Kind;

/// An element type: of numbers, or `None` for strings.
#[pyclass(frozen, module = "taut")]
pub struct DType(pub Option<Kind>);

static ALL: PyOnceLock<Vec<Py<DType>>> = PyOnceLock::new();
static STRING: PyOnceLock<Py<DType>> = PyOnceLock::new();

/// The Python object of an element type. There is one per type.
pub fn object(py: Python<'_>, dtype: Kind) -> PyResult<Py<DType>> {
    let all =
        ALL.get_or_try_init(py, || Kind::ALL.iter().map(|&dtype| Py::new(py, DType(Some(dtype)))).collect());
    all.map(|all: &Vec<Py<DType>>| all[dtype as usize].clone_ref(py))
}

/// The Python object of the element type with this name.
#[pyfunction]
pub fn dtype_named(py: Python<'_>, name: &str) -> PyResult<Py<DType>> {
    match named(name) {
        Some(dtype) => object(py, dtype),
        None if name == "string" => {
            STRING.get_or_try_init(py, || Py::new(py, DType(None))).map(|dtype| dtype.clone_ref(py))
        }
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
        "complex" => Some(Kind::C128),
        _ => Kind::ALL.into_iter().find(|dtype| dtype.name() == name),
    }
}

/// Converts an object to an element type: from a DType, its name, a Python type or a NumPy type.
pub fn given(object: &Bound<'_, PyAny>) -> PyResult<Kind> {
    if let Ok(dtype) = object.cast::<DType>() {
        return dtype
            .get()
            .0
            .ok_or_else(|| PyTypeError::new_err("expected a type of numbers, got tf.string"));
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
    if object.is(py.get_type::<PyComplex>()) {
        return Ok(Kind::C128);
    }
    let name = match object.getattr(pyo3::intern!(py, "name")) {
        Ok(name) => name,
        Err(_) => crate::numpy::dtype_like(object).map_err(|_| refuse())?.getattr("name")?,
    };
    named(&name.extract::<String>()?).ok_or_else(refuse)
}

/// Whether an object is the type of strings: `tf.string`, its name, `str`, `bytes`, or a NumPy type of strings or objects.
pub fn is_string(object: &Bound<'_, PyAny>) -> bool {
    if let Ok(dtype) = object.cast::<DType>() {
        return dtype.get().0.is_none();
    }
    if let Ok(name) = object.cast::<PyString>() {
        return name.to_str().is_ok_and(|name| name == "string");
    }
    let py = object.py();
    if object.is(py.get_type::<PyString>()) || object.is(py.get_type::<PyBytes>()) {
        return true;
    }
    let kind = |object: &Bound<'_, PyAny>| -> PyResult<String> { object.getattr("kind")?.extract() };
    let is_numpy = object.is_instance_of::<PyType>() || object.hasattr("kind").unwrap_or(false);
    let found = || crate::numpy::dtype_like(object).and_then(|descr| kind(&descr));
    is_numpy
        && !object.is(py.get_type::<PyFloat>())
        && found().is_ok_and(|kind| matches!(&*kind, "S" | "U" | "T" | "O"))
}

/// Bytes of one element of a type of strings, as TensorFlow reports them.
const STRING_SIZE: usize = 8;

#[pymethods]
impl DType {
    #[new]
    fn new(given: &Bound<'_, PyAny>) -> PyResult<DType> {
        if is_string(given) { Ok(DType(None)) } else { self::given(given).map(Some).map(DType) }
    }

    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.map_or("string", Kind::name)
    }

    /// Bytes of one element.
    #[getter]
    fn size(&self) -> usize {
        self.0.map_or(STRING_SIZE, Kind::size)
    }

    #[getter]
    fn itemsize(&self) -> usize {
        self.size()
    }

    #[getter]
    fn is_floating(&self) -> bool {
        self.0.is_some_and(Kind::is_float)
    }

    #[getter]
    fn is_integer(&self) -> bool {
        self.0.is_some_and(Kind::is_integer)
    }

    #[getter]
    fn is_unsigned(&self) -> bool {
        self.0.is_some_and(Kind::is_unsigned_integer)
    }

    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_some_and(Kind::is_complex)
    }

    /// The type of the real and imaginary parts; the type itself if it is not complex.
    #[getter]
    fn real_dtype(slf: &Bound<'_, Self>) -> PyResult<Py<DType>> {
        match slf.get().0 {
            Some(kind) if kind.is_complex() => object(slf.py(), kind.part()),
            _ => Ok(slf.clone().unbind()),
        }
    }

    #[getter]
    fn is_bool(&self) -> bool {
        self.0 == Some(Kind::Bool)
    }

    /// The NumPy scalar type.
    #[getter]
    fn as_numpy_dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            Some(kind) => crate::numpy::descr(py, kind)?.getattr("type"),
            None => crate::numpy::module(py)?.getattr("object_"),
        }
    }

    /// TensorFlow's enumeration value of the type.
    #[getter]
    fn as_datatype_enum(&self) -> u32 {
        let Some(kind) = self.0 else { return 7 };
        match kind {
            Kind::F32 => 1,
            Kind::F64 => 2,
            Kind::I32 => 3,
            Kind::U8 => 4,
            Kind::I16 => 5,
            Kind::I8 => 6,
            Kind::C64 => 8,
            Kind::I64 => 9,
            Kind::Bool => 10,
            Kind::BF16 => 14,
            Kind::U16 => 17,
            Kind::C128 => 18,
            Kind::F16 => 19,
            Kind::U32 => 22,
            Kind::U64 => 23,
        }
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> Option<bool> {
        let equal = !other.is_none()
            && match self.0 {
                Some(kind) => given(other).is_ok_and(|other| other == kind),
                None => is_string(other),
            };
        match op {
            CompareOp::Eq => Some(equal),
            CompareOp::Ne => Some(!equal),
            _ => None,
        }
    }

    fn __hash__(&self) -> u64 {
        self.0.map_or(u64::MAX >> 1, |kind| kind as u64)
    }

    fn __repr__(&self) -> String {
        format!("tf.{}", self.name())
    }

    fn __str__(&self) -> String {
        format!("<dtype: '{}'>", self.name())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (&'static str,)) {
        (py.get_type::<DType>(), (self.name(),))
    }
}
