//! Python's containers: what a [`Tree`] keeps of dicts, named tuples and extension types, beside their parts.

use crate::nest::{StaticValue, Tree, composite};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

/// The positions of a dict's sorted keys in the order in which the dict has them, which is that of its copies. It is not part
/// of a trace's signature.
pub type KeyOrder = Box<[usize]>;

/// The positions of a dict's sorted keys, in the dict's order; empty if that is the same.
pub fn key_order(dict: &Bound<'_, PyDict>, sorted: &Bound<'_, PyList>) -> PyResult<KeyOrder> {
    let own = dict.keys();
    if own.iter().zip(sorted.iter()).all(|(one, other)| one.is(&other)) {
        return Ok(KeyOrder::default());
    }
    let positions = PyDict::new(dict.py());
    for (position, key) in sorted.iter().enumerate() {
        positions.set_item(key, position)?;
    }
    let position = |key: Bound<'_, PyAny>| positions.as_any().get_item(key)?.extract::<usize>();
    own.iter().map(position).collect()
}

/// A dict with these values of the sorted keys.
pub fn ordered_dict<'py>(
    py: Python<'py>,
    parts: &[(StaticValue, Tree)],
    order: &[usize],
    values: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let dict = PyDict::new(py);
    let set = |i: usize| match (parts.get(i), values.get(i)) {
        (Some((key, _)), Some(value)) => dict.set_item(key.object(py)?, value),
        _ => Ok(()),
    };
    if order.is_empty() {
        (0..parts.len()).try_for_each(set)?;
    } else {
        order.iter().try_for_each(|&i| set(i))?;
    }
    Ok(dict.into_any())
}

/// The attribute of classes of `_taut_parts` that traces take apart.
pub const TRACED: &str = "_taut_traced";

/// A named tuple, or an object of an extension type, from its fields.
pub fn named_tuple<'py>(
    py: Python<'py>,
    class: &Py<PyType>,
    parts: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if class.bind(py).hasattr(pyo3::intern!(py, TRACED))? {
        return composite(py, class, parts);
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
        Tree::Dict(parts, _) => {
            parts.iter().try_for_each(|(_, part)| name_containers(py, part, names, others))
        }
        _ => Ok(()),
    }
}
