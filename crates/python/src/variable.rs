//! Variables.

use crate::array::{Array, ArrayValue, read, wrap};
use crate::call::call;
use crate::convert::{self, operand};
use crate::error::of_class;
use crate::line::calling_line;
use crate::numpy::Memory;
use crate::recording::method;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

/// A mutable tensor, updated in place. Tapes watch it when it is read if it is trainable.
#[pyclass(frozen, extends = Array, subclass, weakref, module = "taut")]
pub struct Variable;

static KNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The class of variables that programs make.
pub fn variable_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "taut.variable", "Variable")
}

/// A variable for the constructor of its Python class, which takes it in place of an initial value.
#[pyclass(frozen, module = "taut")]
pub struct VariableHandle(taut::Variable);

#[pymethods]
impl VariableHandle {
    /// Which argument of which trace it is.
    #[getter]
    fn key(&self) -> Option<(u64, u64)> {
        argument_key(&self.0)
    }
}

/// Which argument of which trace a variable is.
fn argument_key(variable: &taut::Variable) -> Option<(u64, u64)> {
    variable.argument_of().map(|trace| (trace.number(), variable.untraced_id()))
}

fn arguments_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    PyModule::import(py, "taut.variable_arguments")
}

/// The object of a variable for the arguments of a function: that of the variable itself, or in a trace one that stands for it.
pub fn argument_object<'py>(
    object: &Bound<'py, PyAny>,
    variable: &taut::Variable,
) -> PyResult<Bound<'py, PyAny>> {
    if variable.argument_of().is_none() {
        return Ok(object.clone());
    }
    let handle = Bound::new(object.py(), VariableHandle(variable.clone()))?;
    arguments_module(object.py())?.getattr("placeholder")?.call1((object, handle))
}

/// Calls a function that is being traced with objects that stand for variables. What shows that it depends on those is noted.
pub fn call_with_placeholders<R>(
    py: Python<'_>,
    variables: &[&taut::Variable],
    call: impl FnOnce() -> PyResult<R>,
) -> PyResult<R> {
    let Some(trace) = variables.first().and_then(|variable| variable.argument_of()) else { return call() };
    let module = arguments_module(py)?;
    let observer = module.getattr("Observer")?.call0()?;
    let result = call();
    let compares = observer.call_method0("end")?.is_truthy()?;
    // Only errors of the program may come from a comparison: no interrupt.
    if compares && result.as_ref().err().is_none_or(|error| error.is_instance_of::<PyException>(py)) {
        trace.reject();
    }
    let keys: Vec<(u64, u64)> = variables.iter().filter_map(|variable| argument_key(variable)).collect();
    if result.is_ok() && module.getattr("are_held")?.call1((keys,))?.is_truthy()? {
        trace.note_identity();
    }
    result
}

/// The Python object of a variable: the existing one, if there is one.
pub fn wrap_variable(py: Python<'_>, variable: taut::Variable) -> PyResult<Bound<'_, PyAny>> {
    if let Some(key) = argument_key(&variable) {
        let found = arguments_module(py)?.getattr("find")?.call1((key,))?;
        if !found.is_none() {
            return Ok(found);
        }
    }
    let known = KNOWN.get_or_try_init(py, || {
        let module = PyModule::import(py, "taut.variable")?;
        Ok::<_, PyErr>(module.getattr("_known")?.unbind())
    })?;
    let known = known.bind(py).call_method1("get", (variable.untraced_id(),))?;
    if !known.is_none() {
        return Ok(known);
    }
    let made = PyClassInitializer::from(Array(ArrayValue::Variable(variable))).add_subclass(Variable);
    Ok(Bound::new(py, made)?.into_any())
}

/// The variable behind an object.
pub fn variable(array: &Array) -> PyResult<&taut::Variable> {
    match &array.0 {
        ArrayValue::Variable(variable) => Ok(variable),
        ArrayValue::Tensor(_) | ArrayValue::Strings(_) => {
            Err(PyTypeError::new_err("expected a variable, got a tensor"))
        }
    }
}

fn own<'a>(slf: &'a Bound<'_, Variable>) -> PyResult<&'a taut::Variable> {
    variable(slf.as_super().get())
}

fn assign<'py>(
    slf: &Bound<'py, Variable>,
    value: &Bound<'py, PyAny>,
    work: impl FnOnce(&taut::Variable, taut::Operand) -> taut::Result<()> + Send,
) -> PyResult<()> {
    let py = slf.py();
    let variable = own(slf)?;
    let Some(value) = operand(value, Some(variable.dtype()))? else {
        return Err(PyTypeError::new_err("expected a tensor, an array or a number"));
    };
    let spec = variable.spec();
    let given = match &value {
        taut::Operand::Tensor(value) if *value.shape() == spec.shape => None,
        taut::Operand::Tensor(value) => Some(value.shape().to_string()),
        taut::Operand::Scalar(_) if spec.shape.rank() == 0 => None,
        taut::Operand::Scalar(_) => Some("[]".to_owned()),
    };
    if let Some(given) = given {
        let (wanted, line) = (&spec.shape, calling_line(py));
        let text = format!("the value must have the variable's shape {wanted}, got {given}\n  at {line}");
        return Err(of_class(py, "InvalidArgumentError", text));
    }
    call(py, spec.bytes(), || work(variable, value))
}

fn scatter<'py>(
    slf: &Bound<'py, Variable>,
    indices: &Bound<'py, PyAny>,
    updates: &Bound<'py, PyAny>,
    work: impl FnOnce(&taut::Variable, taut::Tensor, taut::Tensor) -> taut::Result<()> + Send,
) -> PyResult<()> {
    let variable = own(slf)?;
    let indices = convert::tensor(indices)?;
    let updates = convert::tensor_beside(updates, Some(variable.dtype()))?;
    call(slf.py(), updates.spec().bytes(), || work(variable, indices, updates))
}

#[pymethods]
impl Variable {
    #[new]
    #[pyo3(signature = (initial_value, trainable=true, name=None, dtype=None, category=None))]
    fn new(
        initial_value: &Bound<'_, PyAny>,
        trainable: bool,
        name: Option<String>,
        dtype: Option<&Bound<'_, PyAny>>,
        category: Option<&str>,
    ) -> PyResult<PyClassInitializer<Variable>> {
        let py = initial_value.py();
        if let Ok(handle) = initial_value.cast::<VariableHandle>() {
            let own = Array(ArrayValue::Variable(handle.get().0.clone()));
            return Ok(PyClassInitializer::from(own).add_subclass(Variable));
        }
        let value = convert::tensor_of(initial_value, convert::dtype_or(dtype)?, Memory::Share)?;
        let mut builder = taut::Variable::builder().trainable(trainable);
        if let Some(name) = name {
            builder = builder.name(name);
        }
        if category == Some("optimizer") {
            builder = builder.category(taut::memory::Category::Optimizer);
        }
        let made = call(py, value.spec().bytes(), || builder.build(value))?;
        Ok(PyClassInitializer::from(Array(ArrayValue::Variable(made))).add_subclass(Variable))
    }

    /// The name, if it has one.
    #[getter]
    fn _name(slf: &Bound<'_, Self>) -> PyResult<Option<String>> {
        Ok(own(slf)?.name().map(str::to_owned))
    }

    /// Whether tapes watch it when it is read.
    #[getter]
    fn trainable(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(own(slf)?.is_trainable())
    }

    /// A number that is unique among all variables of the process.
    #[getter]
    fn id(slf: &Bound<'_, Self>) -> PyResult<u64> {
        Ok(own(slf)?.id())
    }

    /// Notes that a function depends on which variable it is given, if it is traced with this one.
    fn _note_identity(slf: &Bound<'_, Self>) -> PyResult<()> {
        own(slf)?.id();
        Ok(())
    }

    /// The address of its memory.
    #[getter]
    fn address(slf: &Bound<'_, Self>) -> PyResult<usize> {
        let variable = own(slf)?;
        read(variable)?;
        Ok(variable.address())
    }

    /// Reads the value; tapes record it.
    fn read_value<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "read_value", &[], || {
            let value = read(own(slf)?)?;
            wrap(slf.py(), call(slf.py(), 0, || Ok(value))?)
        })
    }

    fn _assign<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "_assign", &[value], || {
            none(slf, assign(slf, value, |variable, value| variable.assign(value)))
        })
    }

    fn _assign_add<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "_assign_add", &[value], || {
            none(slf, assign(slf, value, |variable, value| variable.assign_add(value)))
        })
    }

    fn _assign_sub<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "_assign_sub", &[value], || {
            none(slf, assign(slf, value, |variable, value| variable.assign_sub(value)))
        })
    }

    fn _scatter<'py>(
        slf: &Bound<'py, Self>,
        how: &Bound<'py, PyString>,
        indices: &Bound<'py, PyAny>,
        updates: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        method(slf, "_scatter", &[how.as_any(), indices, updates], || {
            none(slf, scatter_by(slf, &how.to_cow()?, indices, updates))
        })
    }
}

fn scatter_by<'py>(
    slf: &Bound<'py, Variable>,
    how: &str,
    indices: &Bound<'py, PyAny>,
    updates: &Bound<'py, PyAny>,
) -> PyResult<()> {
    match how {
        "update" => scatter(slf, indices, updates, |v, i, u| v.scatter_update(i, u)),
        "add" => scatter(slf, indices, updates, |v, i, u| v.scatter_add(i, u)),
        "sub" => scatter(slf, indices, updates, |v, i, u| v.scatter_sub(i, u)),
        "mul" => scatter(slf, indices, updates, |v, i, u| v.scatter_mul(i, u)),
        "max" => scatter(slf, indices, updates, |v, i, u| v.scatter_max(i, u)),
        "min" => scatter(slf, indices, updates, |v, i, u| v.scatter_min(i, u)),
        _ => Err(PyTypeError::new_err(format!("how must be update, add, sub, mul, max or min, got {how}"))),
    }
}

/// None as the result of a method, after its work.
fn none<'py>(slf: &Bound<'py, Variable>, done: PyResult<()>) -> PyResult<Bound<'py, PyAny>> {
    done.map(|()| slf.py().None().into_bound(slf.py()))
}
