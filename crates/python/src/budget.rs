//! Memory budgets.

use crate::error::exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::path::{Path, PathBuf};
use taut::MemoryBudget;

/// A budget from a number of bytes, from text such as `"200MB"`, or from a `MemoryBudget`.
pub fn budget(given: &Bound<'_, PyAny>) -> PyResult<MemoryBudget> {
    if let Ok(budget) = given.cast::<Budget>() {
        return Ok(budget.get().0);
    }
    if let Ok(text) = given.extract::<&str>() {
        return text.parse().map_err(|error| exception(given.py(), error));
    }
    let is_number = !given.is_instance_of::<PyBool>();
    if let Some(bytes) = given.extract::<i128>().ok().filter(|_| is_number) {
        let fitting = usize::try_from(bytes);
        let invalid = |_| PyValueError::new_err(format!("memory_budget must be >= 0 bytes, got {bytes}"));
        return Ok(MemoryBudget::from(fitting.map_err(invalid)?));
    }
    let text = given.repr()?;
    let message = format!("memory_budget must be a number of bytes or text such as '200MB', got {text}");
    Err(PyTypeError::new_err(message))
}

/// The bytes that a call of a function may allocate.
#[pyclass(frozen, eq, module = "taut.memory", name = "MemoryBudget")]
#[derive(PartialEq, Eq)]
pub struct Budget(MemoryBudget);

#[pymethods]
impl Budget {
    /// From a number of bytes or text such as "200MB". `total` counts arguments, variables and constants as well; `bit_equal`
    /// forbids splitting the batch, which changes the rounding of results; `spill_to` is a folder in which values may be written to
    /// a file and read back.
    #[new]
    #[pyo3(signature = (bytes, total=false, bit_equal=false, spill_to=None))]
    fn new(
        bytes: &Bound<'_, PyAny>,
        total: bool,
        bit_equal: bool,
        spill_to: Option<PathBuf>,
    ) -> PyResult<Budget> {
        let mut budget = budget(bytes)?;
        if total {
            budget = budget.total();
        }
        if bit_equal {
            budget = budget.bit_equal();
        }
        if let Some(folder) = spill_to {
            budget = budget.spill_to(folder);
        }
        Ok(Budget(budget))
    }

    /// The folder in which values may be written to a file.
    #[getter]
    fn spill_to(&self) -> Option<&'static Path> {
        self.0.spill_folder()
    }

    /// The number of bytes.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Whether arguments, variables and constants are counted.
    #[getter]
    fn total(&self) -> bool {
        self.0.is_total()
    }

    /// Whether splitting the batch is forbidden.
    #[getter]
    fn bit_equal(&self) -> bool {
        self.0.is_bit_equal()
    }

    fn __repr__(&self) -> String {
        format!("<memory budget: {}>", self.0)
    }
}
