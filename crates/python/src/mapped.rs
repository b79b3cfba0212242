//! Python functions of the elements of datasets: traced where that is possible, else called.

use crate::call::{PyFunctionRef, into_python};
use crate::line;
use crate::nest::{Leaves, Tree};
use crate::random::with_seed;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use taut::OnRetrace;
use taut_core::with_source_location;

/// An element as the arguments of a function: the parts of a tuple, or the element itself.
pub fn arguments<'py>(py: Python<'py>, element: &Tree) -> PyResult<Bound<'py, PyTuple>> {
    match element {
        Tree::Tuple(parts) => {
            let parts: Vec<Bound<'py, PyAny>> =
                parts.iter().map(|part| part.object(py)).collect::<PyResult<_>>()?;
            PyTuple::new(py, parts)
        }
        one => PyTuple::new(py, [one.object(py)?]),
    }
}

/// A Python function of elements, traced once per type and shape. Its calls are attributed to the line that made the dataset.
pub fn traced(
    function: PyFunctionRef,
    seed: Option<u64>,
) -> impl Fn(Tree) -> taut::Result<Tree> + Send + Sync + Clone + 'static {
    let (body, at) = (function.clone(), Python::attach(line::here));
    let program = taut::function(move |element: &Tree| {
        into_python(|py| Tree::of(&body.get(py)?.call1(arguments(py, element)?)?, Leaves::Tensors))
    });
    let program = Arc::new(program.named("map").on_retrace(OnRetrace::Allow));
    let called = Arc::new(AtomicBool::new(false));
    let computed = move |element: Tree| {
        let call = || {
            with_seed(seed, || {
                into_python(|py| {
                    Tree::of(&function.get(py)?.call1(arguments(py, &element)?)?, Leaves::Tensors)
                })
            })
        };
        // Elements that contain datasets or strings cannot be traced.
        if element.holds_objects() || called.load(Ordering::Relaxed) {
            return call();
        }
        match with_seed(seed, || with_source_location(None, at, || program.call(&element))) {
            // A function whose shapes or strings depend on values is called for each element, as it is in eager code.
            Err(error) if Python::attach(|py| crate::error::needs_values(py, &error)) => {
                called.store(true, Ordering::Relaxed);
                call()
            }
            outcome => outcome,
        }
    };
    move |element: Tree| line::within_stage(at, || computed(element))
}

/// A Python function that selects elements.
pub fn predicate(
    function: PyFunctionRef,
    seed: Option<u64>,
) -> impl Fn(&Tree) -> taut::Result<bool> + Send + Sync + 'static {
    let function = traced(function, seed);
    move |element: &Tree| match function(element.clone())? {
        Tree::Tensor(answer) => answer.item::<bool>(),
        _ => Err(taut::Error::dtype("the predicate must return a scalar boolean")),
    }
}

/// A batch of elements that have ragged or sparse tensors, which the package joins; `None` for others.
pub fn joined_composites(elements: &[Tree]) -> Option<taut::Result<Tree>> {
    elements.first().filter(|first| first.holds_composites())?;
    Some(into_python(|py| {
        let module = PyModule::import(py, "taut.data._composites")?;
        let objects: Vec<_> = elements.iter().map(|element| element.object(py)).collect::<PyResult<_>>()?;
        Tree::of(&module.call_method1("joined", (objects,))?, Leaves::Tensors)
    }))
}

/// The rows of an element that has ragged or sparse tensors; `None` for others.
pub fn split_composites(element: &Tree) -> Option<taut::Result<Vec<Tree>>> {
    if !element.holds_composites() {
        return None;
    }
    Some(into_python(|py| {
        let module = PyModule::import(py, "taut.data._composites")?;
        let rows = module.call_method1("rows", (element.object(py)?,))?;
        rows.try_iter()?.map(|row| Tree::of(&row?, Leaves::Tensors)).collect()
    }))
}
