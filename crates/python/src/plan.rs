//! Plans: the memory of a call, known before it runs.

use crate::error::exception;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use taut::Spec;
use taut::plan::{Home, Program};

/// A node of a graph: its name, its op, the names of the nodes whose results it reads, its line, and its first result's type and
/// shape.
type Node = (String, String, Vec<String>, String, String, Vec<usize>);

type Row = (usize, Option<&'static str>, Option<String>, String, Option<String>);

/// The steps and the memory of a call, to the byte, known before it runs.
#[pyclass(frozen, module = "taut")]
pub struct Plan(pub Arc<Program>);

#[pymethods]
impl Plan {
    /// The peak bytes of a call, excluding arguments and variables.
    #[getter]
    fn peak_bytes(&self) -> usize {
        self.0.peak_bytes()
    }

    /// The bytes of the arena that holds all intermediate values.
    #[getter]
    fn arena_bytes(&self) -> usize {
        self.0.arena_bytes()
    }

    /// A lower bound of the arena for this order of steps.
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

    /// The sum of arguments, variables, constants and the peak of the call.
    #[getter]
    fn total_bytes(&self) -> usize {
        self.0.total_bytes()
    }

    /// Whether a call allocates at most this many bytes.
    fn fits(&self, bytes: &Bound<'_, PyAny>) -> PyResult<bool> {
        let budget = crate::budget::budget(bytes)?;
        let needed = if budget.is_total() { self.0.total_bytes() } else { self.0.peak_bytes() };
        Ok(needed <= budget.bytes())
    }

    /// The steps that compute again what an earlier step computed, to keep a memory budget: (op, line).
    #[getter]
    fn repeated_steps(&self) -> Vec<(String, String)> {
        self.0.repeated_steps().map(|step| (step.name().to_owned(), step.at.to_string())).collect()
    }

    /// The steps of the program: (op, line).
    #[getter]
    fn steps(&self) -> Vec<(String, String)> {
        self.0.steps.iter().map(|step| (step.name().to_owned(), step.at.to_string())).collect()
    }

    /// The inputs, constants and steps of the program as nodes of a graph, each after the nodes that it reads.
    fn _nodes(&self) -> Vec<Node> {
        let program = &self.0;
        let mut nodes: Vec<Node> = Vec::new();
        let mut add = |name: &str, op: &str, reads: Vec<String>, at: String, spec: &Spec| {
            let (dtype, shape) = (spec.dtype.name().to_owned(), spec.shape.to_vec());
            nodes.push((name.to_owned(), op.to_owned(), reads, at, dtype, shape));
        };
        for (i, input) in program.inputs.iter().enumerate() {
            add(&format!("input_{i}"), "input", Vec::new(), String::new(), &input.spec);
        }
        for (i, constant) in program.constants.iter().enumerate() {
            add(&format!("constant_{i}"), "constant", Vec::new(), String::new(), constant.spec());
        }
        // The node that wrote each storage last. Steps write over storages that are no longer read.
        let mut writers: Vec<String> = program
            .storages
            .iter()
            .map(|storage| match storage.home {
                Home::Input(i) => format!("input_{i}"),
                Home::Constant(i) => format!("constant_{i}"),
                Home::Arena(_) | Home::Output(_) => String::new(),
            })
            .collect();
        for (i, step) in program.steps.iter().enumerate() {
            let reads = step.operands.iter().map(|operand| writers[operand.storage].clone());
            let reads = reads.filter(|name| !name.is_empty()).collect();
            let name = format!("{}_{i}", step.name());
            for target in &step.targets {
                writers[target.storage].clone_from(&name);
            }
            if let Some(first) = step.targets.first() {
                add(&name, step.name(), reads, step.at.to_string(), &first.spec);
            }
        }
        nodes
    }

    /// The buffers of the program with live ranges and offsets, as text.
    fn table(&self) -> String {
        self.0.table().to_string()
    }

    /// The buffers that are live at the peak: as text, and as rows of (bytes, op, line, reason, remedy).
    fn _explain_peak(&self) -> (String, Vec<Row>) {
        let explanation = self.0.explain_peak();
        let rows = explanation.rows.iter().map(|row| {
            let at = row.at.map(|at| at.to_string());
            (row.bytes, row.op, at, row.why.clone(), row.remedy.clone())
        });
        (explanation.to_string(), rows.collect())
    }

    /// Writes the plan as an HTML page.
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
