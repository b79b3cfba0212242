//! Telling Python of values while a program runs.

use crate::call::{call_back, into_python};
use crate::convert;
use crate::numpy;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::fmt;
use std::sync::Arc;
use taut::DType;
use taut::kernels::{Arg, View, ViewMut};
use taut_core::{Op, Result, Shape, Spec, Specs, apply_many, record};

/// Calls a Python function with its inputs as arrays, when the program gets there.
#[derive(Clone)]
struct Tell(Arc<Py<PyAny>>);

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

impl Op for Tell {
    fn name(&self) -> &'static str {
        "print"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(Spec::new(DType::Bool, Shape::scalar()).into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        into_python(|py| {
            let arrays = inputs.iter().map(|input| array(py, input.view())).collect::<PyResult<Vec<_>>>()?;
            self.0.bind(py).call1((PyList::new(py, arrays)?,)).map(drop)
        })?;
        outputs[0].bytes().fill(1);
        Ok(())
    }

    fn is_strided(&self) -> bool {
        false
    }

    fn is_check(&self) -> bool {
        true
    }

    fn is_seen(&self) -> bool {
        true
    }

    fn is_data(&self) -> bool {
        false
    }
}

/// A copy of contiguous elements.
fn array<'py>(py: Python<'py>, view: View<'_>) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new(py, view.contiguous_bytes().unwrap_or_default());
    let shape = PyTuple::new(py, view.shape())?;
    numpy::module(py)?.getattr("ndarray")?.call1((shape, numpy::descr(py, view.dtype())?, bytes))
}

/// Calls `function` with a list of the tensors' values as arrays: in a traced function, whenever it runs.
#[pyfunction]
pub fn tell(py: Python<'_>, function: Py<PyAny>, tensors: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
    let inputs = tensors.iter().map(convert::tensor).collect::<PyResult<Vec<_>>>()?;
    let op = Tell(Arc::new(function));
    call_back(py, move || record::unrecorded(|| apply_many(&op, inputs)).map(drop))
}
