//! The rows of the op table as Python functions.

use crate::array::{Array, wrap};
use crate::call::call;
use crate::convert;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use taut::graph::suspend_tracing;
use taut::ops::{ArgValue, Args, OpEntry, ParamKind, table};
use taut::{Scalar, Tensor};

/// A function of the op table, under a name and with parameter names of one's choice. `name=` is accepted and ignored, as
/// everywhere in TensorFlow's shape.
#[pyclass(frozen, module = "taut")]
pub struct Op {
    entry: &'static OpEntry,
    name: String,
    params: Vec<(Py<PyString>, ParamKind, Option<Default>)>,
}

/// The names of all ops of the table.
#[pyfunction]
pub fn op_names() -> Vec<&'static str> {
    table().map(|entry| entry.name).collect()
}

/// What a parameter is when left out.
#[derive(Clone, Copy)]
enum Default {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    DType(taut::DType),
    Word(&'static str),
}

impl Default {
    fn value(self) -> ArgValue {
        match self {
            Default::None => ArgValue::None,
            Default::Bool(value) => ArgValue::Bool(value),
            Default::Int(value) => ArgValue::Int(value),
            Default::Float(value) => ArgValue::Float(value),
            Default::DType(value) => ArgValue::DType(value),
            Default::Word(value) => ArgValue::Str(value),
        }
    }

    /// A default as the table writes it, which is as Python does.
    fn parse(text: &str, kind: ParamKind) -> Default {
        match (text, kind) {
            ("None", _) => Default::None,
            ("True", _) => Default::Bool(true),
            ("False", _) => Default::Bool(false),
            (text, ParamKind::DType) => {
                let named = taut::DType::ALL.into_iter().find(|dtype| dtype.name() == text);
                named.map_or(Default::None, Default::DType)
            }
            (text, ParamKind::Str) => Default::Word(word(text.trim_matches(['"', '\'']))),
            (text, ParamKind::Float) => text.parse().map_or(Default::None, Default::Float),
            (text, _) => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(value), _) => Default::Int(value),
                (_, Ok(value)) => Default::Float(value),
                _ => Default::None,
            },
        }
    }
}

/// A word that stays. Ops know few words, and each is kept once.
fn word(text: &str) -> &'static str {
    static WORDS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let words = words.get_or_insert_default();
    if let Some(known) = words.get(text) {
        return known;
    }
    let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
    words.insert(kept);
    kept
}

/// An argument as a parameter takes it. An operand that is no tensor takes its type from `beside`, as far as that can be.
fn value(object: &Bound<'_, PyAny>, kind: ParamKind, beside: Option<taut::DType>) -> PyResult<ArgValue> {
    if let Ok(array) = object.cast::<Array>()
        && matches!(kind, ParamKind::Tensor | ParamKind::Operand)
    {
        return Ok(ArgValue::Tensor(array.get().read()?));
    }
    if object.is_none() {
        return Ok(ArgValue::None);
    }
    Ok(match kind {
        ParamKind::Tensor => ArgValue::Tensor(convert::tensor(object)?),
        ParamKind::Operand | ParamKind::Scalar => match convert::number(object)? {
            Some(Scalar::Bool(value)) => ArgValue::Bool(value),
            Some(Scalar::Int(value)) => ArgValue::Int(value),
            Some(Scalar::Float(value)) => ArgValue::Float(value),
            _ if kind == ParamKind::Operand => ArgValue::Tensor(convert::beside(object, beside)?),
            _ => ArgValue::Float(convert::float(object)?),
        },
        ParamKind::Tensors => {
            let parts = if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
                object.try_iter()?.map(|part| convert::tensor(&part?)).collect::<PyResult<Vec<Tensor>>>()?
            } else {
                vec![convert::tensor(object)?]
            };
            ArgValue::Tensors(parts)
        }
        ParamKind::Int => ArgValue::Int(convert::int(object)?),
        ParamKind::Ints => match convert::ints(object)?[..] {
            [one] if is_one_integer(object) => ArgValue::Int(one),
            ref several => ArgValue::Ints(several.to_vec()),
        },
        ParamKind::Pairs => {
            let mut flat = Vec::new();
            if object.is_instance_of::<Array>() || object.hasattr("__array__")? {
                flat = convert::ints(object)?;
            } else {
                for pair in object.try_iter()? {
                    flat.extend(convert::ints(&pair?)?);
                }
            }
            ArgValue::Ints(flat)
        }
        ParamKind::Float => ArgValue::Float(convert::float(object)?),
        ParamKind::Bool => ArgValue::Bool(object.is_truthy()?),
        ParamKind::DType => ArgValue::DType(crate::dtype::given(object)?),
        ParamKind::Str => ArgValue::Str(word(&object.extract::<String>()?)),
    })
}

/// Whether it is an integer, and not a list or tensor of one.
fn is_one_integer(object: &Bound<'_, PyAny>) -> bool {
    match object.cast::<Array>() {
        Ok(array) => array.get().spec().shape.rank() == 0,
        Err(_) => object.extract::<i64>().is_ok(),
    }
}

/// Whether a trace can know the result: whole numbers that are known already, as shapes are computed of. Everything else is
/// for the program.
fn is_known(values: &[ArgValue]) -> bool {
    if !taut_core::is_tracing() {
        return false;
    }
    let known = |tensor: &Tensor| convert::is_known(tensor);
    let mut found = false;
    let all = values.iter().all(|value| match value {
        ArgValue::Tensor(tensor) => {
            found = true;
            known(tensor)
        }
        ArgValue::Tensors(tensors) => {
            found = true;
            tensors.iter().all(known)
        }
        ArgValue::Float(_) | ArgValue::DType(_) => false,
        _ => true,
    });
    found && all
}

fn bytes(values: &[ArgValue]) -> usize {
    let of = |value: &ArgValue| match value {
        ArgValue::Tensor(tensor) => tensor.spec().bytes(),
        ArgValue::Tensors(tensors) => tensors.iter().map(|tensor| tensor.spec().bytes()).sum(),
        // The size of what is made from nothing is not known before.
        ArgValue::Ints(ints) => {
            ints.iter().fold(1usize, |all, &dim| all.saturating_mul(dim.unsigned_abs() as usize))
        }
        _ => 0,
    };
    values.iter().map(of).fold(0, usize::saturating_add)
}

#[pymethods]
impl Op {
    /// The op of this name, under `public` and with these parameter names in place of its own, in order.
    #[new]
    #[pyo3(signature = (name, public=None, params=None))]
    fn new(py: Python<'_>, name: &str, public: Option<String>, params: Option<Vec<String>>) -> PyResult<Op> {
        let Some(entry) = table().find(|entry| entry.name == name) else {
            return Err(PyValueError::new_err(format!("there is no op {name}")));
        };
        let names = params.unwrap_or_default();
        if names.len() > entry.params.len() {
            return Err(PyValueError::new_err(format!("{name} has {} parameters", entry.params.len())));
        }
        let params = entry.params.iter().enumerate().map(|(i, param)| {
            let name = names.get(i).map_or(param.name, String::as_str);
            (
                PyString::intern(py, name).unbind(),
                param.kind,
                param.default.map(|text| Default::parse(text, param.kind)),
            )
        });
        Ok(Op { entry, name: public.unwrap_or_else(|| name.to_owned()), params: params.collect() })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let count = args.len();
        if count > self.params.len() {
            let message = format!("{}() takes {} arguments, not {count}", self.name, self.params.len());
            return Err(PyTypeError::new_err(message));
        }
        let mut values: smallvec::SmallVec<[ArgValue; 4]> = smallvec::SmallVec::new();
        let mut named = 0;
        let beside =
            args.iter().find_map(|arg| arg.cast::<Array>().ok().map(|array| array.get().spec().dtype));
        for (i, (name, kind, default)) in self.params.iter().enumerate() {
            let given = if i < count {
                Some(args.get_item(i)?)
            } else {
                kwargs
                    .map(|kwargs| kwargs.get_item(name.bind(py)))
                    .transpose()?
                    .flatten()
                    .inspect(|_| named += 1)
            };
            values.push(match (given, default) {
                (Some(given), _) => value(&given, *kind, beside)?,
                (None, Some(default)) => default.value(),
                (None, None) => {
                    let message = format!("{}() needs {}", self.name, name.bind(py));
                    return Err(PyTypeError::new_err(message));
                }
            });
        }
        if let Some(kwargs) = kwargs
            && kwargs.len() > named
        {
            self.check_names(py, count, kwargs)?;
        }
        let entry = self.entry;
        let known = is_known(&values);
        let mut made = call(py, bytes(&values), move || {
            let run = || (entry.call)(&Args(&values)).map_err(|error| error.in_op(entry.name, []));
            if known { suspend_tracing(run) } else { run() }
        })?;
        if made.len() == 1 {
            return wrap(py, made.swap_remove(0));
        }
        let made: Vec<Bound<'py, PyAny>> =
            made.into_iter().map(|tensor| wrap(py, tensor)).collect::<PyResult<_>>()?;
        Ok(PyTuple::new(py, made)?.into_any())
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    /// What the op table says of it.
    #[getter]
    fn doc(&self) -> String {
        let doc = self.entry.doc();
        doc.split("\n```").next().unwrap_or_default().trim().to_owned()
    }

    /// Its name in the op table.
    #[getter]
    fn op(&self) -> &'static str {
        self.entry.name
    }

    /// The group it belongs to in the op table.
    #[getter]
    fn group(&self) -> &'static str {
        self.entry.group()
    }

    /// Its parameters: name, what it takes, and its default as Python writes it.
    #[getter]
    fn params(&self, py: Python<'_>) -> Vec<(String, String, Option<&'static str>)> {
        let rows = self.params.iter().zip(self.entry.params);
        rows.map(|((name, kind, _), param)| (name.bind(py).to_string(), format!("{kind:?}"), param.default))
            .collect()
    }

    fn __repr__(&self) -> String {
        format!("<op {}>", self.name)
    }
}

impl Op {
    #[cold]
    fn check_names(&self, py: Python<'_>, count: usize, kwargs: &Bound<'_, PyDict>) -> PyResult<()> {
        for key in kwargs.keys() {
            let key = key.cast_into::<PyString>()?;
            let word = key.to_str()?;
            let place = self.params.iter().position(|(name, ..)| *name.bind(py) == *word);
            match place {
                None if word == "name" => {}
                Some(i) if i < count => {
                    return Err(PyTypeError::new_err(format!("{}() got {key} twice", self.name)));
                }
                Some(_) => {}
                None => {
                    return Err(PyTypeError::new_err(format!("{}() has no parameter {key}", self.name)));
                }
            }
        }
        Ok(())
    }
}
