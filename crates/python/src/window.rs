//! The elements of `window`: datasets, in the structure of the elements.

use crate::call::into_python;
use crate::data::source;
use crate::nest::{StaticValue, Tree};
use pyo3::prelude::*;
use std::sync::Arc;
use taut::data;
use taut::memory::list_of;

/// A dataset of given elements.
fn from_list(elements: Vec<Tree>) -> data::Dataset<Tree> {
    let elements = Arc::new(elements);
    let count = elements.len() as u64;
    let made = data::Dataset::from_generator(move || {
        let elements = elements.clone();
        (0..elements.len()).map(move |i| Ok(elements[i].clone()))
    });
    made.assert_cardinality(data::Cardinality::Known(count))
}

/// A dataset of given elements, as a leaf of an element.
fn dataset_leaf(elements: Vec<Tree>) -> taut::Result<Tree> {
    into_python(|py| {
        let made = source(py, from_list(elements))?;
        let class = PyModule::import(py, "taut.data")?.getattr("Dataset")?;
        Ok(Tree::Value(StaticValue::Object(class.call_method1("_of", (made,))?.unbind())))
    })
}

/// The element of `window`: a dataset, or for elements that are tuples or dicts, a tuple or dict of windows.
pub fn window_of(elements: Vec<Tree>) -> taut::Result<Tree> {
    let column = |parts_of: fn(&Tree) -> Option<&[Tree]>, i: usize| {
        let part =
            |element: &Tree| parts_of(element).and_then(|parts| parts.get(i)).unwrap_or(element).clone();
        window_of(list_of(elements.iter().map(part))?)
    };
    let in_tuple: fn(&Tree) -> Option<&[Tree]> = |element| match element {
        Tree::Tuple(parts) | Tree::NamedTuple(_, parts) => Some(parts),
        _ => None,
    };
    match elements.first() {
        Some(Tree::Tuple(parts)) => {
            Ok(Tree::Tuple((0..parts.len()).map(|i| column(in_tuple, i)).collect::<taut::Result<_>>()?))
        }
        Some(Tree::NamedTuple(class, parts)) => {
            let columns = (0..parts.len()).map(|i| column(in_tuple, i)).collect::<taut::Result<_>>()?;
            Ok(Tree::NamedTuple(Python::attach(|py| class.clone_ref(py)), columns))
        }
        Some(Tree::Dict(parts, order)) => {
            let column = |i: usize| {
                let part = |element: &Tree| match element {
                    Tree::Dict(parts, _) => {
                        parts.get(i).map_or_else(|| element.clone(), |(_, part)| part.clone())
                    }
                    other => other.clone(),
                };
                window_of(list_of(elements.iter().map(part))?)
            };
            let entry = |(i, (key, _)): (usize, &(StaticValue, Tree))| Ok((key.copy(), column(i)?));
            let columns = parts.iter().enumerate().map(entry).collect::<taut::Result<_>>()?;
            Ok(Tree::Dict(columns, order.clone()))
        }
        _ => dataset_leaf(elements),
    }
}
