//! Memory budgets, and the plans among which they choose.

use crate::error::exception;
use crate::plan::Plan;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::sync::Arc;
use taut::{FrontierRow, MemoryBudget, MemoryFrontier};

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
    /// forbids splitting the batch, which changes the rounding of results.
    #[new]
    #[pyo3(signature = (bytes, total=false, bit_equal=false))]
    fn new(bytes: &Bound<'_, PyAny>, total: bool, bit_equal: bool) -> PyResult<Budget> {
        let mut budget = budget(bytes)?;
        if total {
            budget = budget.total();
        }
        if bit_equal {
            budget = budget.bit_equal();
        }
        Ok(Budget(budget))
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

/// A row: bytes, bytes with arguments and variables, time relative to the fastest plan, repeated steps, micro-batches.
type Row = (usize, usize, f64, usize, usize);

/// The plans of a call among which a memory budget chooses: with more bytes, a call takes less time.
#[pyclass(frozen, module = "taut")]
pub struct Frontier(pub Arc<MemoryFrontier>);

impl Frontier {
    fn row(&self, row: &FrontierRow) -> Row {
        let fastest = self.0.fastest().time.max(1) as f64;
        (row.bytes, row.total_bytes, row.time as f64 / fastest, row.repeated_steps, row.micro_batches)
    }
}

#[pymethods]
impl Frontier {
    /// The plans from the fewest bytes to the least time.
    fn _rows(&self) -> Vec<Row> {
        self.0.rows().iter().map(|row| self.row(row)).collect()
    }

    /// The plans that do not split the batch, from the fewest bytes to the least time.
    fn _bit_equal_rows(&self) -> Vec<Row> {
        self.0.bit_equal_rows().iter().map(|row| self.row(row)).collect()
    }

    /// The row that a budget chooses, or None.
    fn _within(&self, bytes: &Bound<'_, PyAny>) -> PyResult<Option<Row>> {
        Ok(self.0.within(budget(bytes)?).map(|row| self.row(&row)))
    }

    /// The plan that a budget chooses, or None if no plan fits.
    fn plan_within(&self, py: Python<'_>, bytes: &Bound<'_, PyAny>) -> PyResult<Option<Plan>> {
        let Some(row) = self.0.within(budget(bytes)?) else { return Ok(None) };
        let plan = py.detach(|| self.0.plan(row)).map_err(|error| exception(py, error))?;
        Ok(Some(Plan(Arc::new(plan))))
    }

    /// No order of the steps needs fewer bytes than this without splitting the batch.
    #[getter]
    fn bytes_bound(&self) -> usize {
        self.0.bytes_bound()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (smallest, fastest) = (self.0.smallest().bytes, self.0.fastest().bytes);
        format!("<frontier: {} plans from {smallest} to {fastest} bytes>", self.0.rows().len())
    }
}
