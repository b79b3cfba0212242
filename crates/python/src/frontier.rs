//! The plans among which a memory budget chooses.

use crate::budget::budget;
use crate::error::exception;
use crate::plan::Plan;
use pyo3::prelude::*;
use std::sync::Arc;
use taut::{FrontierRow, MemoryFrontier};

/// A row: bytes, bytes with arguments and variables, time relative to the fastest plan, repeated steps, micro-batches, spilled
/// bytes.
type Row = (usize, usize, f64, usize, usize, usize);

/// The plans of a call among which a memory budget chooses: with more bytes, a call takes less time.
#[pyclass(frozen, module = "taut")]
pub struct Frontier(pub Arc<MemoryFrontier>);

impl Frontier {
    fn row(&self, row: &FrontierRow) -> Row {
        let fastest = self.0.fastest().time.max(1) as f64;
        let time = row.time as f64 / fastest;
        (row.bytes, row.total_bytes, time, row.repeated_steps, row.micro_batches, row.spilled_bytes)
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
        match self.0.rows().len() {
            1 => format!("<frontier: 1 plan of {smallest} bytes>"),
            count => format!("<frontier: {count} plans from {smallest} to {fastest} bytes>"),
        }
    }
}
