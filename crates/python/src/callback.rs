//! Host callbacks: Python functions that a program calls with values while it runs.

use crate::array::wrap;
use crate::call::{call_back, into_python};
use crate::convert;
use crate::dtype;
use crate::numpy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyBytesMethods, PyList, PyTuple};
use std::fmt;
use std::sync::Arc;
use taut::DType;
use taut::kernels::{Arg, View, ViewMut};
use taut_core::{Effects, Kernel, Op, Result, Shape, Spec, Specs, apply_many, record};

/// An op that calls a Python function with its inputs as arrays.
#[derive(Clone)]
struct HostCallback {
    name: &'static str,
    function: Arc<Py<PyAny>>,
    /// The specs of its results; empty if it is called for its side effects alone.
    results: Specs,
    /// Whether it is called even if its results are not used, and in program order.
    has_side_effects: bool,
}

impl fmt::Debug for HostCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Op for HostCallback {
    fn name(&self) -> &'static str {
        self.name
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        // An op has at least one output: a callback without results has a boolean that is not used.
        let none = self.results.is_empty();
        Ok(if none { Spec::new(DType::Bool, Shape::scalar()).into() } else { self.results.clone() })
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        into_python(|py| {
            let arrays = inputs.iter().map(|input| array(py, input.view())).collect::<PyResult<Vec<_>>>()?;
            let made = self.function.bind(py).call1((PyList::new(py, arrays)?,))?;
            if self.results.is_empty() {
                outputs[0].bytes().fill(1);
                return Ok(());
            }
            let made: Vec<Bound<'_, PyBytes>> = made.extract()?;
            for (i, output) in outputs.iter_mut().enumerate() {
                let to = output.bytes();
                match made.get(i).map(PyBytesMethods::as_bytes) {
                    Some(from) if from.len() == to.len() => to.copy_from_slice(from),
                    _ => {
                        let message =
                            format!("result {i} must have {} bytes, as its type and shape say", to.len());
                        return Err(PyValueError::new_err(message));
                    }
                }
            }
            Ok(())
        })
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn effects(&self) -> Effects {
        let observed = if self.has_side_effects { Effects::CHECK | Effects::ORDERED } else { Effects::NONE };
        Effects::CAN_FAIL | Effects::NO_CSE | observed
    }
}

/// A NumPy array with a copy of contiguous elements.
fn array<'py>(py: Python<'py>, view: View<'_>) -> PyResult<Bound<'py, PyAny>> {
    let bytes = crate::strings::bytes(py, view.contiguous_bytes().unwrap_or_default())?;
    let shape = PyTuple::new(py, view.shape())?;
    numpy::module(py)?.getattr("ndarray")?.call1((shape, numpy::descr(py, view.dtype())?, bytes))
}

/// The names under which callbacks appear in graphs, plans and profiles.
const NAMES: [&str; 4] = ["print", "py_function", "numpy_function", "dataset"];

/// Calls `function` with a list of the tensors' values as arrays: now, or whenever the traced function runs. It returns the
/// bytes of results of these types and shapes. Without side effects, it is called only if its results are used.
#[pyfunction]
#[pyo3(signature = (name, function, tensors, results=Vec::new(), has_side_effects=true))]
pub fn host_callback<'py>(
    py: Python<'py>,
    name: &str,
    function: Py<PyAny>,
    tensors: Vec<Bound<'py, PyAny>>,
    results: Vec<(Bound<'py, PyAny>, Vec<usize>)>,
    has_side_effects: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let Some(name) = NAMES.into_iter().find(|known| *known == name) else {
        return Err(PyValueError::new_err(format!("name must be one of {}, got {name}", NAMES.join(", "))));
    };
    let spec = |(dtype, shape): &(Bound<'py, PyAny>, Vec<usize>)| {
        Ok(Spec::new(dtype::given(dtype)?, Shape::from(&shape[..])))
    };
    let results = results.iter().map(spec).collect::<PyResult<Specs>>()?;
    let count = results.len();
    let callback = HostCallback { name, function: Arc::new(function), results, has_side_effects };
    let inputs = tensors.iter().map(convert::tensor).collect::<PyResult<Vec<_>>>()?;
    let outputs = call_back(py, move || {
        record::without_recording(|| apply_many(&callback, inputs))
            .map(|outputs| outputs.into_iter().collect::<Vec<_>>())
    })?;
    outputs.into_iter().take(count).map(|tensor| wrap(py, tensor)).collect()
}
