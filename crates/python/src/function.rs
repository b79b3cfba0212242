//! Traced functions.

use crate::array::wrap;
use crate::call::{PyFunctionRef, call_back, into_python};
use crate::containers::{DictForm, container_names};
use crate::convert;
use crate::frontier::Frontier;
use crate::nest::{Leaves, StaticValue, Tree};
use crate::plan::Plan;
use crate::recording;
use crate::thread_bound::ThreadBound;
use crate::variable::{call_with_placeholders, wrap_variable};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::RefCell;
use taut::graph::TracingSuspension;
use taut::{OnRetrace, Shape, TensorSpec};
use taut_autodiff::nest::{Leaf, Nest, strip_values, tensors};

/// A Python function that is traced once per signature and then runs as a planned program.
#[pyclass(frozen, weakref, module = "taut")]
pub struct Function(taut::Function<Tree, Tree>, PyFunctionRef);

/// Positional and keyword arguments as one structure, and the kinds of containers in them if those matter.
fn arguments(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Tree> {
    // In a trace, the function is inlined.
    let leaves = if is_tracing() { Leaves::Arguments } else { Leaves::Signature };
    let mut parts: Vec<Tree> = Vec::with_capacity(args.len() + 1);
    for part in args.iter() {
        parts.push(Tree::of(&part, leaves)?);
    }
    parts.push(match kwargs {
        None => Tree::Dict(Vec::new(), DictForm::default()),
        Some(kwargs) => Tree::of(kwargs.as_any(), leaves)?,
    });
    if let Some(names) = container_names(args.py(), &parts)? {
        parts.push(Tree::Value(StaticValue::Str(names)));
    }
    Ok(Tree::Tuple(parts))
}

/// Calls a Python function with the arguments in a structure.
fn run(py: Python<'_>, body: &Bound<'_, PyAny>, arguments: &Tree) -> PyResult<Tree> {
    let Tree::Tuple(parts) = arguments else {
        return Err(PyValueError::new_err("expected a structure of arguments"));
    };
    let parts = match parts.split_last() {
        Some((Tree::Value(_), parts)) => parts,
        _ => parts,
    };
    let (kwargs, args) =
        parts.split_last().ok_or_else(|| PyValueError::new_err("expected keyword arguments at the end"))?;
    let args: Vec<Bound<'_, PyAny>> = args.iter().map(|part| part.object(py)).collect::<PyResult<_>>()?;
    let kwargs = kwargs.object(py)?.cast_into::<PyDict>()?;
    let args = PyTuple::new(py, args)?;
    let mut variables = Vec::new();
    arguments.leaves(&mut |leaf| {
        if let Leaf::Variable(variable) = leaf {
            variables.push(variable);
        }
    });
    call_with_placeholders(py, &variables, || {
        // Their last references here are dropped: what is alive then is held by the function's code.
        let result = body.call(args, Some(&kwargs))?;
        drop(kwargs);
        Tree::of(&result, Leaves::Tensors)
    })
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (body, name, jit_compile=true, reduce_retracing=false, on_retrace="warn", cache_bytes=None,
                        input_signature=None, fuse=true, memory_budget=None, trace_each_variable=false))]
    #[expect(clippy::fn_params_excessive_bools, reason = "keyword arguments in Python")]
    fn new(
        body: Py<PyAny>,
        name: &str,
        jit_compile: bool,
        reduce_retracing: bool,
        on_retrace: &str,
        cache_bytes: Option<usize>,
        input_signature: Option<Vec<(Bound<'_, PyAny>, Option<Vec<Option<usize>>>)>>,
        fuse: bool,
        memory_budget: Option<&Bound<'_, PyAny>>,
        trace_each_variable: bool,
    ) -> PyResult<Function> {
        let owned = PyFunctionRef::new(body);
        let body = owned.clone();
        let made =
            taut::function(move |arguments: &Tree| into_python(|py| run(py, &body.get(py)?, arguments)));
        let on_retrace = match on_retrace {
            "warn" => OnRetrace::Warn,
            "allow" => OnRetrace::Allow,
            "deny" => OnRetrace::Deny,
            other => {
                let message = format!("on_retrace must be 'warn', 'allow' or 'deny', got '{other}'");
                return Err(PyValueError::new_err(message));
            }
        };
        let mut made = made
            .named(name)
            .jit_compile(jit_compile)
            .reduce_retracing(reduce_retracing)
            .on_retrace(on_retrace)
            .fuse(fuse)
            .trace_each_variable(trace_each_variable);
        if let Some(bytes) = cache_bytes {
            made = made.cache_bytes(bytes);
        }
        if let Some(budget) = memory_budget {
            made = made.memory_budget(crate::budget::budget(budget)?);
        }
        if let Some(specs) = input_signature {
            let spec =
                |(dtype, dims): (Bound<'_, PyAny>, Option<Vec<Option<usize>>>)| -> PyResult<TensorSpec> {
                    Ok(TensorSpec { dtype: crate::dtype::given(&dtype)?, dims })
                };
            made = made.input_signature(specs.into_iter().map(spec).collect::<PyResult<Vec<TensorSpec>>>()?);
        }
        Ok(Function(made, owned))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.1.visit(&visit)
    }

    fn __clear__(&self) {
        self.1.clear();
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = || Ok((slf.clone().into_any(), args.clone(), kwargs.cloned()));
        recording::record(slf.py(), call, || slf.get().run(slf.py(), args, kwargs))
    }

    /// The plan of a call with these arguments.
    #[pyo3(signature = (*args, **kwargs))]
    fn plan(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Plan> {
        let arguments = arguments(args, kwargs)?.with_static_strings(py)?;
        call_back(py, || self.0.plan(&arguments)).map(Plan)
    }

    /// The plans of a call with these arguments for every memory budget.
    #[pyo3(signature = (*args, **kwargs))]
    fn frontier(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Frontier> {
        let arguments = arguments(args, kwargs)?.with_static_strings(py)?;
        call_back(py, || self.0.frontier(&arguments)).map(Frontier)
    }

    /// The plans of a call under a tape: of the forward and of the backward program.
    #[pyo3(signature = (*args, **kwargs))]
    fn plan_gradient(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Plan, Plan)> {
        let arguments = arguments(args, kwargs)?.with_static_strings(py)?;
        call_back(py, || self.0.plan_gradient(&arguments))
            .map(|(forward, backward)| (Plan(forward), Plan(backward)))
    }

    /// The graph of a call with these arguments, as text.
    #[pyo3(signature = (*args, **kwargs))]
    fn graph(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let arguments = arguments(args, kwargs)?.with_static_strings(py)?;
        call_back(py, || self.0.graph(&arguments)).map(|graph| graph.to_string())
    }

    /// The variables that a call with these arguments reads or writes without being given them.
    #[pyo3(signature = (*args, **kwargs))]
    fn captured_variables<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let arguments = arguments(args, kwargs)?.with_static_strings(py)?;
        let variables = call_back(py, || self.0.captured_variables(&arguments))?;
        variables.into_iter().map(|variable| wrap_variable(py, variable)).collect()
    }

    /// The traces that were made: (signature, ms, bytes, peak bytes, reason).
    fn traces(&self, py: Python<'_>) -> Vec<(String, f64, usize, usize, String)> {
        let traces = py.detach(|| self.0.traces());
        traces
            .into_iter()
            .map(|t| (t.signature, t.time.as_secs_f64() * 1e3, t.bytes, t.peak_bytes, t.reason.to_string()))
            .collect()
    }

    /// The number of traces that were made.
    #[getter]
    fn trace_count(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.trace_count())
    }

    /// The number of signatures it was traced for.
    #[getter]
    fn signature_count(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.signature_count())
    }

    /// The bytes that traces hold between calls.
    #[getter]
    fn cached_bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.cached_bytes())
    }

    /// The variables that the first trace created.
    #[getter]
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let variables = py.detach(|| self.0.variables());
        variables.into_iter().map(|variable| wrap_variable(py, variable)).collect()
    }

    /// Drops all traces.
    fn forget(&self, py: Python<'_>) {
        py.detach(|| self.0.forget());
    }

    /// Frees the memory that is kept between calls.
    fn release(&self, py: Python<'_>) {
        py.detach(|| self.0.release());
    }
}

impl Function {
    fn run<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = arguments(args, kwargs)?;
        if arguments.holds_strings() {
            // The bytes of strings are not known from their shapes, so no plan could hold: the function runs op by op.
            return self.1.get(py)?.call(args, kwargs);
        }
        let result = call_back(py, || self.0.call(&arguments))?;
        result.object(py)
    }
}

/// A tensor of this type and shape without a value, for planning.
#[pyfunction]
pub fn placeholder<'py>(dtype: &Bound<'py, PyAny>, shape: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.clone();
    let kind = crate::dtype::given(&dtype)?;
    let dims = convert::ints(shape)?;
    let size = |dim: &i64| usize::try_from(*dim).ok();
    let bytes = dims.iter().try_fold(kind.size(), |all, dim| all.checked_mul(size(dim)?));
    if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
        let message = format!("sizes must be >= 0 and the tensor must fit into memory, got shape {dims:?}");
        return Err(PyValueError::new_err(message));
    }
    let spec = taut_core::Spec::new(kind, dims.iter().filter_map(size).collect::<Shape>());
    wrap(dtype.py(), taut::Tensor::placeholder(spec))
}

/// Traces a function and returns its results as tensors without values: types and shapes only. Nothing is computed, and the trace
/// is dropped.
#[pyfunction]
#[pyo3(signature = (body, *args, **kwargs))]
pub fn trace_only<'py>(
    py: Python<'py>,
    body: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(trace_for_writes(py, body, args, kwargs)?.0)
}

/// As [`trace_only`], and whether the function writes to variables.
#[pyfunction]
#[pyo3(signature = (body, *args, **kwargs))]
pub fn trace_for_writes<'py>(
    py: Python<'py>,
    body: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let arguments = arguments(args, kwargs)?.with_static_strings(py)?;
    let body = body.clone().unbind();
    let specs: Vec<taut_core::Spec> =
        tensors(&arguments).into_iter().map(|tensor| tensor.spec().clone()).collect();
    let (result, writes) = call_back(py, || {
        let traced = taut_core::record::without_recording(|| {
            taut_core::graph::trace_function(&specs, true, None, |inputs| {
                let own = arguments.rebuild(&mut inputs.iter().cloned());
                let results = into_python(|py| run(py, body.bind(py), &own))?;
                Ok((tensors(&results).into_iter().cloned().collect(), results))
            })
        });
        traced.map(|(traced, results)| (strip_values(results), traced.states.iter().any(|used| used.writes)))
    })?;
    Ok((result.object(py)?, writes))
}

/// Begins a part of a thread's work in which functions are traced for the very variables that they are given, or ends it.
#[pyfunction]
pub fn bind_variables_by_identity(begins: bool) {
    taut_autodiff::bind_by_identity(begins);
}

/// How many nested bodies of loops and branches are being traced on this thread.
#[pyfunction]
pub fn body_depth() -> usize {
    taut_core::graph::body_depth()
}

/// Whether a function is being traced on this thread.
#[pyfunction]
pub fn is_tracing() -> bool {
    taut_core::is_tracing()
}

/// The number of calls in the graph that is traced on this thread; None if none is.
#[pyfunction]
pub fn num_traced_calls() -> Option<usize> {
    taut_core::graph::num_traced_calls()
}

/// A context manager that suspends tracing: ops run immediately.
#[pyclass(frozen, module = "taut")]
pub struct InitScope(ThreadBound<RefCell<Vec<TracingSuspension>>>);

#[pymethods]
impl InitScope {
    #[new]
    fn new() -> InitScope {
        InitScope(ThreadBound::new(RefCell::default()))
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        // What runs now is not part of a trace, and its results may depend on sizes.
        recording::note_unrecorded(slf.py());
        slf.get().0.get()?.borrow_mut().push(TracingSuspension::enter());
        Ok(slf)
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyTuple>) -> PyResult<bool> {
        drop(self.0.get()?.borrow_mut().pop());
        Ok(false)
    }
}
