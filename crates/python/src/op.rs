//! The ops of the op table as Python functions.

use crate::array::{Array, wrap};
use crate::binary::{self, BinaryFunction};
use crate::call::call;
use crate::convert;
use crate::error::in_argument;
use crate::recording;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use taut::graph::suspend_tracing;
use taut::ops::{ArgValue, Args, OpEntry, ParamKind, table};
use taut::{Scalar, Tensor};

/// A handle of an op of the op table, under a public name and with public parameter names. `name=` is accepted without effect,
/// as everywhere in TensorFlow's interface.
#[pyclass(frozen, module = "taut")]
pub struct Op {
    entry: &'static OpEntry,
    name: String,
    params: Vec<OpParam>,
    /// The function of an op of two operands, which operators call as well.
    binary: Option<BinaryFunction>,
}

/// A parameter of a handle.
struct OpParam {
    name: Py<PyString>,
    kind: ParamKind,
    default: Option<DefaultValue>,
}

/// The names of all ops of the op table.
#[pyfunction]
pub fn op_names() -> Vec<&'static str> {
    table().map(|entry| entry.name).collect()
}

/// The value of a parameter that is not given.
#[derive(Clone, Copy)]
enum DefaultValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    DType(taut::DType),
    Str(&'static str),
}

impl DefaultValue {
    fn value(self) -> ArgValue {
        match self {
            DefaultValue::None => ArgValue::None,
            DefaultValue::Bool(value) => ArgValue::Bool(value),
            DefaultValue::Int(value) => ArgValue::Int(value),
            DefaultValue::Float(value) => ArgValue::Float(value),
            DefaultValue::DType(value) => ArgValue::DType(value),
            DefaultValue::Str(value) => ArgValue::Str(value.into()),
        }
    }

    /// Parses a default of the op table, which is written as in Python.
    fn parse(text: &'static str, kind: ParamKind) -> DefaultValue {
        match (text, kind) {
            ("None", _) => DefaultValue::None,
            ("True", _) => DefaultValue::Bool(true),
            ("False", _) => DefaultValue::Bool(false),
            (text, ParamKind::DType) => {
                let named = taut::DType::ALL.into_iter().find(|dtype| dtype.name() == text);
                named.map_or(DefaultValue::None, DefaultValue::DType)
            }
            (text, ParamKind::Str) => DefaultValue::Str(text.trim_matches(['"', '\''])),
            (text, ParamKind::Float) => text.parse().map_or(DefaultValue::None, DefaultValue::Float),
            (text, _) => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(value), _) => DefaultValue::Int(value),
                (_, Ok(value)) => DefaultValue::Float(value),
                _ => DefaultValue::None,
            },
        }
    }
}

/// Converts an argument for a parameter of this kind. An operand that is not a tensor takes the element type `beside`, if that
/// can hold it.
fn argument(object: &Bound<'_, PyAny>, kind: ParamKind, beside: Option<taut::DType>) -> PyResult<ArgValue> {
    if let Ok(array) = object.cast::<Array>()
        && matches!(kind, ParamKind::Tensor | ParamKind::Operand)
    {
        return Ok(ArgValue::Tensor(array.get().read()?));
    }
    if object.is_none() {
        return Ok(ArgValue::None);
    }
    Ok(match kind {
        ParamKind::Tensor => ArgValue::Tensor(convert::float_beside(object, beside)?),
        ParamKind::Operand | ParamKind::Scalar => match convert::number(object)? {
            Some(Scalar::Bool(value)) => ArgValue::Bool(value),
            Some(Scalar::Int(value)) => ArgValue::Int(value),
            Some(Scalar::Float(value)) => ArgValue::Float(value),
            Some(Scalar::Complex(value)) => ArgValue::Complex(value),
            _ if kind == ParamKind::Operand => ArgValue::Tensor(convert::tensor_beside(object, beside)?),
            _ => ArgValue::Float(convert::float(object)?),
        },
        ParamKind::Tensors => {
            let parts = if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
                let parts = convert::collected(object.len()?, object.try_iter()?)?;
                let beside = parts.iter().find_map(dtype_of);
                let made = parts.iter().map(|part| convert::tensor_beside(part, beside));
                convert::collected(parts.len(), made)?
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
        ParamKind::Str => ArgValue::Str(convert::string(object)?.into()),
    })
}

/// The element type of a tensor or variable; `None` for other objects.
fn dtype_of(object: &Bound<'_, PyAny>) -> Option<taut::DType> {
    object.cast::<Array>().ok().map(|array| array.get().spec().dtype)
}

/// Whether it is a single integer, and not a list or tensor of one.
fn is_one_integer(object: &Bound<'_, PyAny>) -> bool {
    match object.cast::<Array>() {
        Ok(array) => array.get().spec().shape.rank() == 0,
        Err(_) => object.extract::<i64>().is_ok(),
    }
}

/// Whether the result can be computed while tracing: all inputs are integers or booleans whose values are known, such as sizes.
fn is_static(values: &[ArgValue]) -> bool {
    // What is not an integer is computed only if it is small: the result is a constant of the program.
    const MOST_ELEMENTS: usize = 16;
    if !taut_core::is_tracing() {
        return false;
    }
    let (mut has_tensors, mut has_floats) = (false, false);
    for value in values {
        let tensors = match value {
            ArgValue::Tensor(tensor) => std::slice::from_ref(tensor),
            ArgValue::Tensors(tensors) => tensors,
            ArgValue::Float(_) | ArgValue::Complex(_) | ArgValue::DType(_) => {
                has_floats = true;
                continue;
            }
            _ => continue,
        };
        if !tensors.iter().all(convert::is_static) {
            return false;
        }
        has_tensors |= !tensors.is_empty();
        has_floats |= tensors.iter().any(|tensor| tensor.dtype().is_inexact());
    }
    let size = |value: &ArgValue| match value {
        ArgValue::Tensor(tensor) => tensor.len(),
        ArgValue::Tensors(tensors) => tensors.iter().map(Tensor::len).sum(),
        ArgValue::Int(int) => int.unsigned_abs() as usize,
        ArgValue::Ints(ints) => {
            ints.iter().fold(1usize, |all, int| all.saturating_mul(int.unsigned_abs() as usize))
        }
        _ => 0,
    };
    has_tensors && (!has_floats || values.iter().all(|value| size(value) <= MOST_ELEMENTS))
}

/// The bytes of the inputs, or of the result of an op that creates a tensor of a given shape.
fn bytes(values: &[ArgValue]) -> usize {
    let of = |value: &ArgValue| match value {
        ArgValue::Tensor(tensor) => tensor.spec().bytes(),
        ArgValue::Tensors(tensors) => tensors.iter().map(|tensor| tensor.spec().bytes()).sum(),
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
            return Err(PyValueError::new_err(format!("the op table has no op '{name}'")));
        };
        let names = params.unwrap_or_default();
        if names.len() > entry.params.len() {
            let (most, given) = (entry.params.len(), names.len());
            return Err(PyValueError::new_err(format!("{name} has {most} parameters, got {given} names")));
        }
        let params = entry.params.iter().enumerate().map(|(i, param)| OpParam {
            name: PyString::intern(py, names.get(i).map_or(param.name, String::as_str)).unbind(),
            kind: param.kind,
            default: param.default.map(|text| DefaultValue::parse(text, param.kind)),
        });
        let name = public.unwrap_or_else(|| name.to_owned());
        Ok(Op { entry, name, params: params.collect(), binary: binary::function(entry.name) })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = || Ok((slf.clone().into_any(), args.clone(), kwargs.cloned()));
        recording::record(slf.py(), call, || match slf.get().run(slf.py(), args, kwargs) {
            Err(error) => crate::dispatch::dispatch(slf, args, kwargs, error),
            made => made,
        })
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    /// The documentation of the op in the op table.
    #[getter]
    fn doc(&self) -> String {
        let doc = self.entry.doc();
        doc.split("\n```").next().unwrap_or_default().trim().to_owned()
    }

    /// The name of the op in the op table.
    #[getter]
    fn op(&self) -> &'static str {
        self.entry.name
    }

    /// The group of the op in the op table.
    #[getter]
    fn group(&self) -> &'static str {
        self.entry.group()
    }

    /// The parameters: name, kind, and default as Python writes it.
    #[getter]
    fn params(&self, py: Python<'_>) -> Vec<(String, String, Option<&'static str>)> {
        let rows = self.params.iter().zip(self.entry.params);
        rows.map(|(own, param)| (own.name.bind(py).to_string(), format!("{:?}", own.kind), param.default))
            .collect()
    }

    fn __repr__(&self) -> String {
        format!("<op {}>", self.name)
    }
}

impl Op {
    /// Converts the arguments and calls the op.
    #[inline]
    fn run<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(function) = self.binary {
            return self.call_binary(py, args, kwargs, function);
        }
        let mut values: smallvec::SmallVec<[ArgValue; 4]> = smallvec::SmallVec::new();
        let beside = args.iter().find_map(|arg| dtype_of(&arg));
        let beside = beside.or_else(|| kwargs?.values().iter().find_map(|arg| dtype_of(&arg)));
        let mut named = 0;
        for (i, param) in self.params.iter().enumerate() {
            let given = self.given(py, args, kwargs, i)?;
            named += usize::from(i >= args.len() && given.is_some());
            values.push(match (given, param.default) {
                (Some(given), _) => argument(&given, param.kind, beside)
                    .map_err(|error| in_argument(py, &self.name, &param.name.bind(py).to_string(), &error))?,
                (None, Some(default)) => default.value(),
                (None, None) => return Err(self.missing(py, i)),
            });
        }
        self.check_arguments(py, args, kwargs, named)?;
        let entry = self.entry;
        let is_static = is_static(&values);
        let mut outputs = call(py, bytes(&values), move || {
            let run = || (entry.call)(&Args(&values)).map_err(|error| error.in_op(entry.name, []));
            if is_static { suspend_tracing(run) } else { run() }
        })?;
        if outputs.len() == 1 {
            return wrap(py, outputs.swap_remove(0));
        }
        let outputs: Vec<Bound<'py, PyAny>> =
            outputs.into_iter().map(|tensor| wrap(py, tensor)).collect::<PyResult<_>>()?;
        Ok(PyTuple::new(py, outputs)?.into_any())
    }

    /// Whether an argument for a tensor is made of strings.
    pub fn takes_strings(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<bool> {
        for (i, param) in self.params.iter().enumerate() {
            let is_tensor = matches!(param.kind, ParamKind::Tensor | ParamKind::Operand | ParamKind::Tensors);
            let given = if is_tensor { self.given(args.py(), args, kwargs, i)? } else { None };
            if let Some(given) = given {
                let found = crate::strings::is_strings(&given)
                    || param.kind == ParamKind::Tensors
                        && given.try_iter().is_ok_and(|mut parts| {
                            parts.any(|part| part.is_ok_and(|part| crate::strings::is_strings(&part)))
                        });
                if found {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The argument of a parameter: by position, or by name.
    fn given<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        param: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if param < args.len() {
            return args.get_item(param).map(Some);
        }
        kwargs.map_or(Ok(None), |kwargs| kwargs.get_item(self.params[param].name.bind(py)))
    }

    #[inline]
    fn call_binary<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        function: BinaryFunction,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = self.given(py, args, kwargs, 0)?.ok_or_else(|| self.missing(py, 0))?;
        let y = self.given(py, args, kwargs, 1)?.ok_or_else(|| self.missing(py, 1))?;
        self.check_arguments(py, args, kwargs, 2usize.saturating_sub(args.len()))?;
        binary::op(&x, &y, function, &self.name, |param| self.params[param].name.bind(py).to_string())
    }

    /// Raises TypeError for too many positional arguments, and for keyword arguments beyond the `named` known ones.
    #[inline]
    fn check_arguments(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        named: usize,
    ) -> PyResult<()> {
        if args.len() > self.params.len() {
            return Err(self.too_many(args.len()));
        }
        match kwargs {
            Some(kwargs) if kwargs.len() > named => self.check_names(py, args.len(), kwargs),
            _ => Ok(()),
        }
    }

    #[cold]
    fn too_many(&self, given: usize) -> PyErr {
        let most = self.params.len();
        let plural = if most == 1 { "" } else { "s" };
        let were = if given == 1 { "was" } else { "were" };
        PyTypeError::new_err(format!(
            "{}() takes {most} positional argument{plural} but {given} {were} given",
            self.name
        ))
    }

    #[cold]
    fn missing(&self, py: Python<'_>, param: usize) -> PyErr {
        let param = self.params[param].name.bind(py);
        PyTypeError::new_err(format!("{}() missing required argument: '{param}'", self.name))
    }

    #[cold]
    fn check_names(&self, py: Python<'_>, positional: usize, kwargs: &Bound<'_, PyDict>) -> PyResult<()> {
        for key in kwargs.keys() {
            let key = key.cast_into::<PyString>()?;
            let word = key.to_str()?;
            match self.params.iter().position(|param| *param.name.bind(py) == *word) {
                None if word == "name" => {}
                Some(i) if i < positional => {
                    let message = format!("{}() got multiple values for argument '{word}'", self.name);
                    return Err(PyTypeError::new_err(message));
                }
                Some(_) => {}
                None => return Err(self.unexpected(py, word)),
            }
        }
        Ok(())
    }

    /// The error for a keyword argument that is not a parameter, with the closest parameter name or all of them.
    #[cold]
    fn unexpected(&self, py: Python<'_>, word: &str) -> PyErr {
        let names: Vec<String> = self.params.iter().map(|param| param.name.bind(py).to_string()).collect();
        let close = || -> PyResult<Vec<String>> {
            PyModule::import(py, "difflib")?.getattr("get_close_matches")?.call1((word, &names, 1))?.extract()
        };
        let help = match close().unwrap_or_default().first() {
            Some(name) => format!("did you mean '{name}'?"),
            None => format!("its parameters are {}", names.join(", ")),
        };
        PyTypeError::new_err(format!(
            "{}() got an unexpected keyword argument '{word}'\n  help: {help}",
            self.name
        ))
    }
}
