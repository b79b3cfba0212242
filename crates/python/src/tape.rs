//! Gradient tapes and forward accumulators.

use crate::array::{read, wrap};
use crate::call::{call, call_back};
use crate::convert;
use crate::nest::{Leaves, Tree, indexed_slices};
use crate::recording::method;
use crate::thread_bound::ThreadBound;
use crate::variable::wrap_variable;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use std::cell::{Ref, RefCell};
use taut::{
    ForwardAccumulator as Forward, Gradient, GradientRequest, GradientSource, GradientTape as Inner,
    TapeOptions, Unconnected,
};

/// Records operations on watched tensors and variables for reverse-mode differentiation. Of each op it saves only what the op's
/// gradient needs.
#[pyclass(frozen, weakref, subclass, module = "taut")]
pub struct GradientTape(ThreadBound<TapeState>);

struct TapeState {
    options: TapeOptions,
    tape: RefCell<Option<Inner>>,
    /// The watched variables of a tape that is used up.
    watched: RefCell<Vec<taut::Variable>>,
}

/// A gradient as a Python object: a tensor, an `IndexedSlices`, or None.
fn object(py: Python<'_>, gradient: Option<Gradient>) -> PyResult<Bound<'_, PyAny>> {
    match gradient {
        None => Ok(py.None().into_bound(py)),
        Some(Gradient::Dense(tensor)) => wrap(py, tensor),
        Some(Gradient::Sparse(slices)) => {
            let dims: Vec<i64> = slices.dense_shape.iter().map(|&dim| dim as i64).collect();
            indexed_slices(py, [wrap(py, slices.values)?, wrap(py, slices.indices)?], &dims)
        }
    }
}

/// A method without a result, as one recorded call.
fn effect<'py, T: pyo3::PyTypeInfo>(
    slf: &Bound<'py, T>,
    name: &'static str,
    args: &[&Bound<'py, PyAny>],
    work: impl FnOnce() -> PyResult<()>,
) -> PyResult<()> {
    method(slf, name, args, || work().map(|()| slf.py().None().into_bound(slf.py()))).map(drop)
}

/// The tensors and variables in a structure.
fn sources(tree: &Tree) -> Vec<GradientSource> {
    let mut found = Vec::new();
    tree.sources(&mut found);
    found
}

/// An object as a structure in which variables stay variables.
pub fn tree(object: &Bound<'_, PyAny>) -> PyResult<Tree> {
    Tree::of(object, Leaves::Arguments)
}

impl GradientTape {
    fn inner(&self) -> PyResult<Ref<'_, Inner>> {
        Ref::filter_map(self.0.get()?.tape.borrow(), Option::as_ref).map_err(|_| {
            PyRuntimeError::new_err("the tape has not recorded anything: use it in a `with` statement")
        })
    }

    /// The recording, from which a gradient is computed. Fails if it is used up.
    fn unused(&self, py: Python<'_>) -> PyResult<Ref<'_, Inner>> {
        let inner = self.inner()?;
        if inner.is_used() {
            let text =
                "gradient() can be called only once on a tape that is not persistent: use persistent=True";
            return Err(PyRuntimeError::new_err(format!("{text}\n  at {}", crate::line::here(py))));
        }
        Ok(inner)
    }

    fn gradients_of<'py>(
        &self,
        py: Python<'py>,
        target: &Bound<'py, PyAny>,
        sources: &Bound<'py, PyAny>,
        output_gradients: Option<&Bound<'py, PyAny>>,
        is_zero: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (targets, asked) = (tree(target)?, tree(sources)?);
        let targets = self::sources(&targets);
        let wanted = self::sources(&asked);
        let seeds = output_gradients.map(|given| seeds(given, targets.len())).transpose()?;
        let unconnected = if is_zero { Unconnected::Zero } else { Unconnected::None };
        let request = GradientRequest { output_gradients: seeds, unconnected };
        let inner = self.unused(py)?;
        *self.0.get()?.watched.borrow_mut() = inner.watched_variables();
        let shared = SameThreadTape(&inner);
        let found = call_back(py, move || shared.get().gradient_with(&targets, &wanted, request))?;
        let mut found =
            found.into_iter().map(|gradient| object(py, gradient)).collect::<PyResult<Vec<_>>>()?.into_iter();
        asked.filled(py, &mut found)
    }

    /// A property of the tape; the default of `T` before it has started recording.
    fn property<T: Default>(&self, read: impl FnOnce(&Inner) -> T) -> PyResult<T> {
        Ok(self.0.get()?.tape.borrow().as_ref().map(read).unwrap_or_default())
    }
}

#[pymethods]
impl GradientTape {
    #[new]
    #[pyo3(signature = (persistent=false, watch_accessed_variables=true, memory_budget=None))]
    fn new(
        persistent: bool,
        watch_accessed_variables: bool,
        memory_budget: Option<Py<PyAny>>,
    ) -> PyResult<GradientTape> {
        if memory_budget.is_some() {
            let message = "GradientTape: memory_budget must be None, because eager ops run before it is known what follows\n  \
                           help: trace the step: tf.function(step, memory_budget=...)";
            return Err(PyValueError::new_err(message));
        }
        Ok(GradientTape(ThreadBound::new(TapeState {
            options: TapeOptions { persistent, watch_accessed_variables },
            tape: RefCell::new(None),
            watched: RefCell::default(),
        })))
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "__enter__", &[], || {
            let this = slf.get().0.get()?;
            let Ok(mut tape) = this.tape.try_borrow_mut() else {
                return Err(PyRuntimeError::new_err("the tape is computing gradients"));
            };
            match &*tape {
                Some(tape) if tape.is_recording() => {
                    return Err(PyValueError::new_err("the tape is already recording"));
                }
                Some(tape) => tape.resume(),
                None => *tape = Some(Inner::with(this.options)),
            }
            Ok(slf.clone().into_any())
        })
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(slf: &Bound<'_, Self>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        effect(slf, "__exit__", &[], || {
            slf.get().inner()?.stop();
            Ok(())
        })
    }

    /// Starts recording these tensors and variables.
    fn watch<'py>(slf: &Bound<'py, Self>, tensor: &Bound<'py, PyAny>) -> PyResult<()> {
        effect(slf, "watch", &[tensor], || {
            let sources = sources(&tree(tensor)?);
            let at = crate::line::here(slf.py());
            let inner = slf.get().inner()?;
            taut_core::with_source_location(None, at, || {
                for source in sources {
                    match source {
                        GradientSource::Tensor(tensor) => inner.watch(&tensor),
                        GradientSource::Variable(variable) => inner.watch(&variable),
                    }
                }
            });
            Ok(())
        })
    }

    /// The watched variables, in order.
    fn watched_variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut variables = self.inner()?.watched_variables();
        if variables.is_empty() {
            variables.clone_from(&self.0.get()?.watched.borrow());
        }
        let objects: Vec<_> = variables.into_iter().map(|v| wrap_variable(py, v)).collect::<PyResult<_>>()?;
        PyTuple::new(py, objects)
    }

    /// Pauses recording until `_resume` is called.
    fn _pause(slf: &Bound<'_, Self>) -> PyResult<()> {
        effect(slf, "_pause", &[], || {
            slf.get().inner()?.stop();
            Ok(())
        })
    }

    fn _resume(slf: &Bound<'_, Self>) -> PyResult<()> {
        effect(slf, "_resume", &[], || {
            slf.get().inner()?.resume();
            Ok(())
        })
    }

    /// Whether it is recording.
    #[getter]
    fn is_recording(&self) -> PyResult<bool> {
        self.property(Inner::is_recording)
    }

    /// Drops everything that was recorded and watched, and keeps recording.
    fn reset(slf: &Bound<'_, Self>) -> PyResult<()> {
        effect(slf, "reset", &[], || {
            slf.get().inner()?.reset();
            Ok(())
        })
    }

    /// The number of recorded ops.
    fn num_entries(&self) -> PyResult<usize> {
        self.property(Inner::num_entries)
    }

    /// The bytes saved for gradients, each buffer counted once.
    fn bytes_held(&self) -> PyResult<usize> {
        self.property(Inner::bytes_held)
    }

    /// The saved values by op and line, with the reason: as text, and as rows of (bytes, op, line, reason).
    fn _explain(&self) -> PyResult<(String, Vec<(usize, String, String, String)>)> {
        let explanation = self.inner()?.explain();
        let rows = explanation
            .rows
            .iter()
            .map(|row| (row.bytes, row.op.to_string(), row.at.to_string(), row.role.clone()));
        Ok((explanation.to_string(), rows.collect()))
    }

    /// Why the gradient of a target with respect to a source is None; None if it is not.
    fn explain_none(&self, target: &Bound<'_, PyAny>, source: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let (targets, sources) = (sources(&tree(target)?), sources(&tree(source)?));
        let inner = self.inner()?;
        Ok(inner.explain_none(&targets, &sources).map(|why| why.to_string()))
    }

    #[pyo3(signature = (target, sources, output_gradients=None, unconnected_gradients=None))]
    fn gradient<'py>(
        slf: &Bound<'py, Self>,
        target: &Bound<'py, PyAny>,
        sources: &Bound<'py, PyAny>,
        output_gradients: Option<&Bound<'py, PyAny>>,
        unconnected_gradients: Option<&Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let none = py.None().into_bound(py);
        let unconnected = unconnected_gradients.map_or(&none, |text| text.as_any());
        let args = [target, sources, output_gradients.unwrap_or(&none), unconnected];
        method(slf, "gradient", &args, || {
            let is_zero = unconnected_gradients.is_some_and(|text| text == "zero");
            slf.get().gradients_of(py, target, sources, output_gradients, is_zero)
        })
    }

    /// The Jacobians of the target with respect to the sources, in the sources' structure.
    fn _jacobian<'py>(
        &self,
        py: Python<'py>,
        target: &Bound<'py, PyAny>,
        sources: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (target, asked) = (&convert::tensor(target)?, tree(sources)?);
        let wanted = &self::sources(&asked);
        let inner = self.unused(py)?;
        let shared = SameThreadTape(&inner);
        let found = call_back(py, move || shared.get().jacobian(target, wanted))?;
        let mut found =
            found.into_iter().map(|tensor| optional(py, tensor)).collect::<PyResult<Vec<_>>>()?.into_iter();
        asked.filled(py, &mut found)
    }

    /// The Jacobian of each row of the target with respect to the same row of the source.
    fn _batch_jacobian<'py>(
        &self,
        py: Python<'py>,
        target: &Bound<'py, PyAny>,
        source: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (target, asked) = (&convert::tensor(target)?, tree(source)?);
        let wanted = &sources(&asked);
        let inner = self.unused(py)?;
        let shared = SameThreadTape(&inner);
        let found = call_back(py, move || shared.get().batch_jacobian(target, wanted))?;
        let mut found =
            found.into_iter().map(|tensor| optional(py, tensor)).collect::<PyResult<Vec<_>>>()?.into_iter();
        asked.filled(py, &mut found)
    }

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, _item: &Bound<'py, PyAny>) -> Bound<'py, PyType> {
        cls.clone()
    }
}

fn optional(py: Python<'_>, tensor: Option<taut::Tensor>) -> PyResult<Bound<'_, PyAny>> {
    tensor.map_or_else(|| Ok(py.None().into_bound(py)), |tensor| wrap(py, tensor))
}

/// A tape that is used on its own thread while the interpreter lock is released.
#[derive(Clone, Copy)]
struct SameThreadTape<'a>(&'a Inner);

// SAFETY: `detach` runs its work on the calling thread; it requires `Send` to keep Python objects out.
unsafe impl Send for SameThreadTape<'_> {}

impl<'a> SameThreadTape<'a> {
    fn get(self) -> &'a Inner {
        self.0
    }
}

/// Computes derivatives along tangents together with the values (forward mode).
#[pyclass(frozen, weakref, module = "taut")]
pub struct ForwardAccumulator(ThreadBound<ForwardState>);

struct ForwardState {
    given: (Vec<GradientSource>, Vec<GradientSource>),
    forward: RefCell<Option<Forward>>,
}

#[pymethods]
impl ForwardAccumulator {
    #[new]
    fn new(primals: &Bound<'_, PyAny>, tangents: &Bound<'_, PyAny>) -> PyResult<ForwardAccumulator> {
        Ok(ForwardAccumulator(ThreadBound::new(ForwardState {
            given: (sources(&tree(primals)?), sources(&tree(tangents)?)),
            forward: RefCell::new(None),
        })))
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "__enter__", &[], || {
            let this = slf.get().0.get()?;
            if let Some(forward) = &*this.forward.borrow() {
                forward.resume().map_err(|error| crate::error::exception(slf.py(), error))?;
                return Ok(slf.clone().into_any());
            }
            let (primals, tangents) = &this.given;
            let made =
                Forward::new(primals, tangents).map_err(|error| crate::error::exception(slf.py(), error))?;
            *this.forward.borrow_mut() = Some(made);
            Ok(slf.clone().into_any())
        })
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(slf: &Bound<'_, Self>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        effect(slf, "__exit__", &[], || {
            if let Some(forward) = &*slf.get().0.get()?.forward.borrow() {
                forward.stop();
            }
            Ok(())
        })
    }

    /// The derivative of a value along the tangents; None if it does not depend on the primals.
    fn jvp<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "jvp", &[value], || {
            let value = convert::tensor(value)?;
            let found = slf.get().0.get()?.forward.borrow().as_ref().and_then(|forward| forward.jvp(&value));
            optional(slf.py(), found)
        })
    }
}

/// The initial output gradients: one per target, or None.
pub fn seeds(given: &Bound<'_, PyAny>, targets: usize) -> PyResult<Vec<Option<taut::Tensor>>> {
    let one = |part: &Bound<'_, PyAny>| -> PyResult<Option<taut::Tensor>> {
        if part.is_none() { Ok(None) } else { convert::tensor(part).map(Some) }
    };
    let is_list = given.is_instance_of::<pyo3::types::PyList>() || given.is_instance_of::<PyTuple>();
    if is_list && !(targets == 1 && given.len()? != 1) {
        return given.try_iter()?.map(|part| one(&part?)).collect();
    }
    Ok(vec![one(given)?])
}

/// The gradients of tensors inside a traced function.
#[pyfunction]
#[pyo3(signature = (ys, xs, grad_ys, stop_gradients))]
pub fn gradients<'py>(
    py: Python<'py>,
    ys: &Bound<'py, PyAny>,
    xs: &Bound<'py, PyAny>,
    grad_ys: Option<&Bound<'py, PyAny>>,
    stop_gradients: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let targets: Vec<taut::Tensor> = tensors(ys)?;
    let sources: Vec<taut::Tensor> = tensors(xs)?;
    let seeds = grad_ys.map(|given| seeds(given, targets.len())).transpose()?;
    let stops = tensors(stop_gradients)?;
    let found =
        call(py, usize::MAX, || taut::gradients_with_stops(&targets, &sources, seeds.as_deref(), &stops))?;
    found.into_iter().map(|gradient| object(py, gradient)).collect()
}

fn tensors(object: &Bound<'_, PyAny>) -> PyResult<Vec<taut::Tensor>> {
    let found = sources(&Tree::of(object, Leaves::Tensors)?).into_iter().map(|source| match source {
        GradientSource::Tensor(tensor) => Ok(tensor),
        GradientSource::Variable(variable) => read(&variable),
    });
    found.collect()
}
