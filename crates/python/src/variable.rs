//! Variables.

use crate::array::{Array, ArrayValue, read, wrap};
use crate::call::call;
use crate::convert::{self, operand};
use crate::numpy::Memory;
use crate::recording::method;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// A mutable tensor, updated in place. Tapes watch it when it is read if it is trainable.
#[pyclass(frozen, extends = Array, subclass, weakref, module = "taut")]
pub struct Variable;

static KNOWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The Python object of a variable: the existing one, if there is one.
pub fn wrap_variable(py: Python<'_>, variable: taut::Variable) -> PyResult<Bound<'_, PyAny>> {
    let known = KNOWN.get_or_try_init(py, || {
        let module = PyModule::import(py, "taut.variable")?;
        Ok::<_, PyErr>(module.getattr("_known")?.unbind())
    })?;
    let known = known.bind(py).call_method1("get", (variable.id(),))?;
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
    call(py, variable.spec().bytes(), || work(variable, value))
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
