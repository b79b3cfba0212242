//! Loops, branches and maps over Python functions.

use crate::array::Array;
use crate::call::{call_back, into_python};
use crate::convert;
use crate::nest::{Leaves, Tree};
use crate::variable::wrap_variable;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use taut::{Case, Loops};
use taut_autodiff::nest::{Nest, strip_values, tensors};

type Object<'py> = PyResult<Bound<'py, PyAny>>;

/// Calls a Python function of one structure.
fn call_function(function: &Py<PyAny>, argument: &Tree) -> taut::Result<Tree> {
    into_python(|py| Tree::of(&function.bind(py).call1((argument.object(py)?,))?, Leaves::Tensors))
}

/// Calls a Python function of two structures.
fn call_function2(function: &Py<PyAny>, first: &Tree, second: &Tree) -> taut::Result<Tree> {
    into_python(|py| {
        let result = function.bind(py).call1((first.object(py)?, second.object(py)?))?;
        Tree::of(&result, Leaves::Tensors)
    })
}

fn one(object: &Bound<'_, PyAny>) -> PyResult<taut::Tensor> {
    convert::tensor(object)
}

fn loops(
    grad_budget: Option<usize>,
    maximum_iterations: Option<usize>,
    invariants: Option<Vec<Vec<Option<usize>>>>,
    parallel_iterations: Option<usize>,
    memory_budget: Option<usize>,
) -> Loops {
    let mut loops = Loops::new();
    if let Some(bytes) = grad_budget {
        loops = loops.grad_budget(bytes);
    }
    if let Some(steps) = maximum_iterations {
        loops = loops.maximum_iterations(steps);
    }
    if let Some(shapes) = invariants {
        loops = loops.shape_invariants(shapes);
    }
    if let Some(elements) = parallel_iterations {
        loops = loops.parallel_iterations(elements);
    }
    if let Some(bytes) = memory_budget {
        loops = loops.memory_budget(bytes);
    }
    loops
}

/// Repeats `body` on the states while `cond` is true. Both take the whole structure of states.
#[pyfunction]
#[pyo3(signature = (cond, body, states, invariants=None, maximum_iterations=None, grad_budget=None))]
pub fn while_loop<'py>(
    py: Python<'py>,
    cond: Py<PyAny>,
    body: Py<PyAny>,
    states: &Bound<'py, PyAny>,
    invariants: Option<Vec<Vec<Option<usize>>>>,
    maximum_iterations: Option<usize>,
    grad_budget: Option<usize>,
) -> Object<'py> {
    let states = Tree::of(states, Leaves::Tensors)?;
    let loops = loops(grad_budget, maximum_iterations, invariants, None, None);
    let done = call_back(py, move || {
        loops.while_loop(
            |states: &Tree| into_python(|py| one(&cond.bind(py).call1((states.object(py)?,))?)),
            |states: Tree| call_function(&body, &states),
            states,
        )
    })?;
    done.object(py)
}

/// The result of one of two functions. Outside of a trace, the other is not called.
#[pyfunction]
pub fn cond<'py>(py: Python<'py>, pred: &Bound<'py, PyAny>, yes: Py<PyAny>, no: Py<PyAny>) -> Object<'py> {
    let pred = one(pred)?;
    let branch = |function: Py<PyAny>| {
        move || into_python(|py| Tree::of(&function.bind(py).call0()?, Leaves::Tensors))
    };
    let (yes, no) = (branch(yes), branch(no));
    call_back(py, move || taut::cond(pred, yes, no))?.object(py)
}

/// The result of the function with this index; of the last one if the index is out of range.
#[pyfunction]
pub fn switch_case<'py>(
    py: Python<'py>,
    number: &Bound<'py, PyAny>,
    branches: Vec<Py<PyAny>>,
) -> Object<'py> {
    let number = one(number)?;
    let done = call_back(py, move || {
        let case = |function: Py<PyAny>| -> Case<'static, Tree> {
            Box::new(move || into_python(|py| Tree::of(&function.bind(py).call0()?, Leaves::Tensors)))
        };
        taut::switch_case(number, branches.into_iter().map(case).collect())
    })?;
    done.object(py)
}

/// Applies `body` to each element, in chunks that fit into the budget.
#[pyfunction]
#[pyo3(signature = (body, elements, parallel_iterations=None, memory_budget=None))]
pub fn map_fn<'py>(
    py: Python<'py>,
    body: Py<PyAny>,
    elements: &Bound<'py, PyAny>,
    parallel_iterations: Option<usize>,
    memory_budget: Option<usize>,
) -> Object<'py> {
    let elements = Tree::of(elements, Leaves::Tensors)?;
    let loops = loops(None, None, None, parallel_iterations, memory_budget);
    call_back(py, move || loops.map_fn(|element: Tree| call_function(&body, &element), elements))?.object(py)
}

/// Applies `body` to all elements at once.
#[pyfunction]
pub fn vectorized_map<'py>(py: Python<'py>, body: Py<PyAny>, elements: &Bound<'py, PyAny>) -> Object<'py> {
    let elements = Tree::of(elements, Leaves::Tensors)?;
    call_back(py, move || taut::vectorized_map(|element: Tree| call_function(&body, &element), elements))?
        .object(py)
}

/// Scans the elements with a state: `body(state, element)` returns the next state and an output, which is stacked.
#[pyfunction]
#[pyo3(signature = (body, state, elements, reverse=false, grad_budget=None))]
pub fn scan<'py>(
    py: Python<'py>,
    body: Py<PyAny>,
    state: &Bound<'py, PyAny>,
    elements: &Bound<'py, PyAny>,
    reverse: bool,
    grad_budget: Option<usize>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (state, elements) = (Tree::of(state, Leaves::Tensors)?, Tree::of(elements, Leaves::Tensors)?);
    let loops = loops(grad_budget, None, None, None, None);
    let step = move |state: Tree, element: Tree| match call_function2(&body, &state, &element)? {
        Tree::Tuple(mut parts) if parts.len() == 2 => {
            let made = parts.pop();
            let next = parts.pop();
            next.zip(made).ok_or_else(|| {
                taut::Error::value("the body of a scan must return the next state and an output")
            })
        }
        _ => Err(taut::Error::value("the body of a scan must return the next state and an output")),
    };
    let (state, made) = call_back(py, move || {
        if reverse { loops.scan_reversed(step, state, elements) } else { loops.scan(step, state, elements) }
    })?;
    Ok((state.object(py)?, made.object(py)?))
}

/// Calls a function whose gradient recomputes it instead of saving intermediate values.
#[pyfunction]
pub fn recompute<'py>(py: Python<'py>, function: Py<PyAny>, inputs: &Bound<'py, PyAny>) -> Object<'py> {
    let inputs = Tree::of(inputs, Leaves::Arguments)?;
    let given: Vec<taut::Tensor> = tensors(&inputs).into_iter().cloned().collect();
    // The structure of the result, and its values other than tensors, are known after the call.
    let shape = Arc::new(Mutex::new(None));
    let found = shape.clone();
    let body = move |given: &[taut::Tensor]| -> taut::Result<Vec<taut::Tensor>> {
        let result = call_function(&function, &inputs.rebuild(&mut given.iter().cloned()))?;
        let made = tensors(&result).into_iter().cloned().collect();
        *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(strip_values(result));
        Ok(made)
    };
    let outputs = call_back(py, move || taut::recompute_grad(body).call(given))?;
    let shape = shape.lock().unwrap_or_else(PoisonError::into_inner).take();
    match shape {
        Some(shape) => shape.rebuild(&mut outputs.into_iter()).object(py),
        None => Err(PyTypeError::new_err("the function to recompute was not called")),
    }
}

/// The result of the forward function: outputs, saved tensors, the gradient function, and whether it handles variables.
type ForwardResult<'py> = (Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>, Py<PyAny>, bool);

/// Calls a function with a custom gradient. `forward(*inputs)` returns its outputs, the tensors to save, the gradient function,
/// and whether that handles variables. The gradient function takes (saved tensors, output gradients, variables) and returns a
/// gradient per input and per variable.
#[pyfunction]
pub fn custom_gradient<'py>(
    py: Python<'py>,
    forward: Py<PyAny>,
    inputs: Vec<Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let inputs: Vec<taut::Tensor> = inputs.iter().map(one).collect::<PyResult<_>>()?;
    let outputs = call_back(py, move || {
        taut::custom_gradient(inputs, |inputs| {
            let (outputs, saved, gradient_function, has_variables) = into_python(|py| {
                let arguments = objects(py, inputs)?;
                let made = forward.bind(py).call1(pyo3::types::PyTuple::new(py, arguments)?)?;
                let (outputs, saved, backward, has_variables): ForwardResult<'_> = made.extract()?;
                Ok((all(&outputs)?, all(&saved)?, backward, has_variables))
            })?;
            let backward =
                move |saved: &[taut::Tensor], given: &[taut::Tensor], variables: &[taut::Variable]| {
                    into_python(|py| {
                        let variables = variables.iter().map(|variable| wrap_variable(py, variable.clone()));
                        let variables = variables.collect::<PyResult<Vec<_>>>()?;
                        let found = gradient_function.bind(py).call1((
                            objects(py, saved)?,
                            objects(py, given)?,
                            variables,
                        ))?;
                        let found: Vec<Bound<'_, PyAny>> = found.extract()?;
                        found.iter().map(gradient).collect()
                    })
                };
            Ok(if has_variables {
                taut::GradientRule::with_variables(outputs, saved, backward)
            } else {
                taut::GradientRule::new(outputs, saved, move |saved, given| backward(saved, given, &[]))
            })
        })
    })?;
    objects(py, &outputs)
}

fn objects<'py>(py: Python<'py>, tensors: &[taut::Tensor]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    tensors.iter().map(|tensor| crate::array::wrap(py, tensor.clone())).collect()
}

fn all(objects: &[Bound<'_, PyAny>]) -> PyResult<Vec<taut::Tensor>> {
    objects.iter().map(one).collect()
}

/// A gradient that a Python function returned: a tensor, an `IndexedSlices`, or None.
pub fn gradient(object: &Bound<'_, PyAny>) -> PyResult<Option<taut::Gradient>> {
    if object.is_none() {
        return Ok(None);
    }
    if object.is_instance_of::<Array>() || !object.hasattr("indices")? {
        return Ok(Some(one(object)?.into()));
    }
    let slices = taut::IndexedSlices {
        values: one(&object.getattr("values")?)?,
        indices: one(&object.getattr("indices")?)?,
        dense_shape: convert::ints(&object.getattr("_static_shape")?)?
            .into_iter()
            .map(|dim| dim.max(0) as usize)
            .collect(),
    };
    Ok(Some(taut::Gradient::Sparse(slices)))
}
