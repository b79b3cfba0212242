//! Python in the middle of a program: functions that are told of values while it runs, and asked for others.

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

/// Calls a Python function with its inputs as arrays, when the program gets there.
#[derive(Clone)]
struct Callback {
    name: &'static str,
    function: Arc<Py<PyAny>>,
    /// What it returns; nothing if it is only told.
    results: Specs,
    /// Whether it is called though nobody wants its results, and in the order of the program.
    has_side_effects: bool,
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Op for Callback {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        // An op has an output, wanted or not.
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
                    _ => return Err(PyValueError::new_err(format!("result {i} is not what was announced"))),
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

/// A copy of contiguous elements.
fn array<'py>(py: Python<'py>, view: View<'_>) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new(py, view.contiguous_bytes().unwrap_or_default());
    let shape = PyTuple::new(py, view.shape())?;
    numpy::module(py)?.getattr("ndarray")?.call1((shape, numpy::descr(py, view.dtype())?, bytes))
}

fn called(py: Python<'_>, callback: Callback, tensors: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<taut::Tensor>> {
    let inputs = tensors.iter().map(convert::tensor).collect::<PyResult<Vec<_>>>()?;
    call_back(py, move || {
        record::without_recording(|| apply_many(&callback, inputs))
            .map(|outputs| outputs.into_iter().collect())
    })
}

/// Calls `function` with a list of the tensors' values as arrays: in a traced function, whenever it runs.
#[pyfunction]
pub fn tell(py: Python<'_>, function: Py<PyAny>, tensors: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
    let callback = Callback {
        name: "print",
        function: Arc::new(function),
        results: Specs::new(),
        has_side_effects: true,
    };
    called(py, callback, tensors).map(drop)
}

/// As `tell`, with results: `function` returns the bytes of tensors of these types and shapes. If it is not seen, it is called
/// only where somebody wants them.
#[pyfunction]
pub fn ask<'py>(
    py: Python<'py>,
    function: Py<PyAny>,
    tensors: Vec<Bound<'py, PyAny>>,
    results: Vec<(Bound<'py, PyAny>, Vec<usize>)>,
    has_side_effects: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let spec = |(dtype, shape): &(Bound<'py, PyAny>, Vec<usize>)| {
        Ok(Spec::new(dtype::given(dtype)?, Shape::from(&shape[..])))
    };
    let results = results.iter().map(spec).collect::<PyResult<Specs>>()?;
    let callback = Callback { name: "py_function", function: Arc::new(function), results, has_side_effects };
    let made = called(py, callback, tensors)?.into_iter();
    made.map(|tensor| wrap(py, tensor).map(Bound::into_any)).collect()
}
