//! Python's containers: what a [`Tree`] keeps of dicts, named tuples, extension types and dataclasses, beside their parts.

use crate::line;
use crate::nest::{Leaves, StaticValue, Tree, composite};
use pyo3::exceptions::{PyRecursionError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::cell::Cell;

/// The deepest nesting of a structure; a deeper one is taken for a cycle.
const MAX_DEPTH: u32 = 200;

/// A guard that counts the nesting depth of the structure being converted.
pub struct NestingLevel(());

thread_local! {
    static LEVEL: Cell<u32> = const { Cell::new(0) };
}

impl NestingLevel {
    pub fn enter() -> PyResult<NestingLevel> {
        if LEVEL.get() >= MAX_DEPTH {
            let text = format!(
                "structures must be nested at most {MAX_DEPTH} levels deep and must not contain themselves"
            );
            return Err(PyRecursionError::new_err(text));
        }
        LEVEL.set(LEVEL.get() + 1);
        Ok(NestingLevel(()))
    }
}

impl Drop for NestingLevel {
    fn drop(&mut self) {
        LEVEL.set(LEVEL.get() - 1);
    }
}

/// What a tree keeps of a dict beside its sorted keys, for copies of it.
#[derive(Clone, Default)]
pub struct DictForm {
    /// The positions of the sorted keys in the order in which the dict has them; empty if that is the same. It is not part
    /// of a trace's signature.
    order: Box<[usize]>,
    is_ordered_dict: bool,
}

impl DictForm {
    /// The form of a dict with these keys.
    pub fn of(dict: &Bound<'_, PyDict>, sorted: &Bound<'_, PyList>) -> PyResult<DictForm> {
        let is_ordered_dict =
            !dict.is_exact_instance_of::<PyDict>() && dict.is_instance(ordered_dict_class(dict.py())?)?;
        Ok(DictForm { order: key_order(dict, sorted)?, is_ordered_dict })
    }

    /// A dict with these values of the sorted keys.
    pub fn filled<'py>(
        &self,
        py: Python<'py>,
        parts: &[(StaticValue, Tree)],
        values: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dict =
            if self.is_ordered_dict { ordered_dict_class(py)?.call0()? } else { PyDict::new(py).into_any() };
        let set = |i: usize| match (parts.get(i), values.get(i)) {
            (Some((key, _)), Some(value)) => dict.set_item(key.object(py)?, value),
            _ => Ok(()),
        };
        if self.order.is_empty() {
            (0..parts.len()).try_for_each(set)?;
        } else {
            self.order.iter().try_for_each(|&i| set(i))?;
        }
        Ok(dict)
    }
}

static ORDERED_DICT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn ordered_dict_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    ORDERED_DICT.import(py, "collections", "OrderedDict")
}

/// The positions of a dict's sorted keys, in the dict's order; empty if that is the same.
fn key_order(dict: &Bound<'_, PyDict>, sorted: &Bound<'_, PyList>) -> PyResult<Box<[usize]>> {
    let own = dict.keys();
    if own.iter().zip(sorted.iter()).all(|(one, other)| one.is(&other)) {
        return Ok(Box::default());
    }
    let positions = PyDict::new(dict.py());
    for (position, key) in sorted.iter().enumerate() {
        positions.set_item(key, position)?;
    }
    let position = |key: Bound<'_, PyAny>| positions.as_any().get_item(key)?.extract::<usize>();
    own.iter().map(position).collect()
}

/// The attribute of classes of `_taut_parts` that traces take apart.
pub const TRACED: &str = "_taut_traced";

/// The metadata and the components of an object with `__tf_flatten__`, such as a dataclass.
pub fn flattened<'py>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let py = object.py();
    let is_plain = object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>();
    if is_plain || !object.get_type().hasattr(pyo3::intern!(py, UNFLATTEN))? {
        return Ok(None);
    }
    object.call_method0(pyo3::intern!(py, "__tf_flatten__"))?.extract().map(Some)
}

/// The method of classes that makes an object of metadata and components.
const UNFLATTEN: &str = "__tf_unflatten__";

/// A named tuple, an object of an extension type, or one of [`flattened`] parts, from its parts.
pub fn named_tuple<'py>(
    py: Python<'py>,
    class: &Py<PyType>,
    parts: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if class.bind(py).hasattr(pyo3::intern!(py, TRACED))? {
        return composite(py, class, parts);
    }
    if class.bind(py).hasattr(pyo3::intern!(py, UNFLATTEN))? {
        return class.bind(py).call_method1(pyo3::intern!(py, UNFLATTEN), PyTuple::new(py, parts)?);
    }
    class.bind(py).call1(PyTuple::new(py, parts)?)
}

/// The kinds of the containers in arguments, in order, if there are others than tuples and dicts: a function may tell a list from a
/// tuple, so that they are part of a trace's signature.
pub fn container_names(py: Python<'_>, arguments: &[Tree]) -> PyResult<Option<String>> {
    let (mut names, mut others) = (String::new(), false);
    for part in arguments {
        name_containers(py, part, &mut names, &mut others)?;
    }
    Ok(others.then_some(names))
}

fn name_containers(py: Python<'_>, tree: &Tree, names: &mut String, others: &mut bool) -> PyResult<()> {
    let mut visit = |name: &str, parts: &[Tree], other: bool| -> PyResult<()> {
        names.push_str(name);
        names.push(' ');
        *others |= other;
        parts.iter().try_for_each(|part| name_containers(py, part, names, others))
    };
    match tree {
        Tree::List(parts) => visit("list", parts, true),
        Tree::Tuple(parts) => visit("tuple", parts, false),
        Tree::NamedTuple(class, parts) => {
            let bound = class.bind(py);
            visit(&format!("{}@{:x}", bound.qualname()?, bound.as_ptr() as usize), parts, true)
        }
        Tree::Dict(parts, form) => {
            if form.is_ordered_dict {
                names.push_str("OrderedDict ");
                *others = true;
            }
            parts.iter().try_for_each(|(_, part)| name_containers(py, part, names, others))
        }
        _ => Ok(()),
    }
}

/// Refuses an argument of a function that compares by its content, which may change: a signature could not tell.
pub fn check_hashable(object: &Bound<'_, PyAny>, leaves: Leaves) -> PyResult<()> {
    if leaves != Leaves::Signature
        || !object.get_type().getattr(pyo3::intern!(object.py(), "__hash__"))?.is_none()
    {
        return Ok(());
    }
    let class = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "arguments other than tensors and their structures must be hashable, got {} of the class {class}\n  at {}\n  help: \
         pass the values in it, or an object that does not change (a frozen dataclass, a tuple, a frozenset)",
        object.repr()?,
        line::here(object.py())
    )))
}
