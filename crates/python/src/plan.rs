//! Plans: what a call needs, known before it runs.

use crate::error::exception;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use taut::plan::Program;

type Row = (usize, Option<&'static str>, Option<String>, String, Option<String>);

/// What a call of a function does and needs, to the byte, known before it runs.
#[pyclass(frozen, module = "taut")]
pub struct Plan(pub Arc<Program>);

#[pymethods]
impl Plan {
    /// The most bytes that a call holds at any moment, beside arguments and variables.
    #[getter]
    fn peak_bytes(&self) -> usize {
        self.0.peak_bytes()
    }

    /// The bytes of the one block that holds all intermediate values.
    #[getter]
    fn arena_bytes(&self) -> usize {
        self.0.arena_bytes()
    }

    /// The bytes that no packing of these values in this order could go below.
    #[getter]
    fn lower_bound(&self) -> usize {
        self.0.lower_bound()
    }

    /// The bytes of the results.
    #[getter]
    fn output_bytes(&self) -> usize {
        self.0.output_bytes()
    }

    /// The bytes of the arguments.
    #[getter]
    fn input_bytes(&self) -> usize {
        self.0.input_bytes()
    }

    /// The bytes of the variables that the call uses.
    #[getter]
    fn variable_bytes(&self) -> usize {
        self.0.variable_bytes()
    }

    /// The bytes of the constants that are part of the program.
    #[getter]
    fn constant_bytes(&self) -> usize {
        self.0.constant_bytes()
    }

    /// Everything together: arguments, variables, constants and the peak of the call.
    #[getter]
    fn total_bytes(&self) -> usize {
        self.0.total_bytes()
    }

    /// The steps of the program: (op, line).
    #[getter]
    fn steps(&self) -> Vec<(String, String)> {
        self.0.steps.iter().map(|step| (step.name().to_owned(), step.at.to_string())).collect()
    }

    /// The values of the program, when they live and where they lie, as text.
    fn table(&self) -> String {
        self.0.table().to_string()
    }

    /// Who is alive at the peak, since which line, why, and what would free it: as text, and as rows of (bytes, op, line, why,
    /// remedy).
    fn _explain_peak(&self) -> (String, Vec<Row>) {
        let explanation = self.0.explain_peak();
        let rows = explanation.rows.iter().map(|row| {
            let at = row.at.map(|at| at.to_string());
            (row.bytes, row.op, at, row.why.clone(), row.remedy.clone())
        });
        (explanation.to_string(), rows.collect())
    }

    /// Writes the plan as a page for a browser.
    fn save_html(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let report = taut::profile::ProfileReport::new("plan").plan("function", &self.0);
        report.write(&path).map_err(|error| exception(py, error))
    }

    fn __str__(&self) -> String {
        format!("{}\n{}", self.0.table(), self.0.explain_peak())
    }

    fn __repr__(&self) -> String {
        let plan = &self.0;
        format!(
            "<plan: {} steps, peak {} bytes (lower bound {}), arena {} bytes>",
            plan.steps.len(),
            plan.peak_bytes(),
            plan.lower_bound(),
            plan.arena_bytes()
        )
    }
}
