//! Nested structures that bodies take and return: flattened, compared and described.

use taut_autodiff::nest::{self, Leaf, Nest};
use taut_core::{Error, Result, Spec, Tensor};

/// The tensors of a structure, in order.
pub(crate) fn tensors(nest: &impl Nest) -> Vec<Tensor> {
    nest::tensors(nest).into_iter().cloned().collect()
}

/// One element of a structure, without the tensors' values.
#[derive(PartialEq)]
enum Element {
    Tensor,
    Other(String),
    Parts(usize),
    Name(String),
}

fn elements(nest: &impl Nest) -> Vec<Element> {
    let mut list = Vec::new();
    nest.leaves(&mut |leaf| {
        list.push(match leaf {
            Leaf::Tensor(_) => Element::Tensor,
            Leaf::Variable(variable) | Leaf::BoundVariable(variable) => {
                Element::Other(format!("variable {}", variable.key()))
            }
            Leaf::Value(value) => Element::Other(format!("{value:?}")),
            Leaf::Parts(count) => Element::Parts(count),
            Leaf::Name(name) => Element::Name(name.into()),
        });
    });
    list
}

/// A structure as messages show it: `(tensor, name: tensor)`.
fn description(elements: &[Element]) -> String {
    fn one(elements: &mut std::slice::Iter<'_, Element>) -> String {
        match elements.next() {
            None => String::new(),
            Some(Element::Tensor) => "tensor".into(),
            Some(Element::Other(what)) => what.clone(),
            Some(Element::Name(name)) => format!("{name}: {}", one(elements)),
            Some(Element::Parts(count)) => {
                let parts: Vec<String> = (0..*count).map(|_| one(elements)).collect();
                format!("({})", parts.join(", "))
            }
        }
    }
    one(&mut elements.iter())
}

/// Checks that what `callee` returned has the structure of `expected`, which is that of `model`.
pub(crate) fn check_structure(
    callee: &str,
    got: &impl Nest,
    model: &str,
    expected: &impl Nest,
) -> Result<()> {
    let (got, expected) = (elements(got), elements(expected));
    if got == expected {
        return Ok(());
    }
    let (got, expected) = (description(&got), description(&expected));
    let message = format!("{callee} returned {got}, expected {expected}, the structure of {model}");
    Err(Error::value(message).help("return the same structure, element for element"))
}

/// The path to each tensor of a structure: `1.speed.0`; empty if the structure is a single tensor.
pub(crate) fn tensor_paths(nest: &impl Nest) -> Vec<String> {
    let mut paths = Vec::new();
    walk(&mut elements(nest).iter(), String::new(), &mut paths);
    paths
}

fn walk(elements: &mut std::slice::Iter<'_, Element>, path: String, paths: &mut Vec<String>) {
    match elements.next() {
        None | Some(Element::Other(_)) => {}
        Some(Element::Tensor) => paths.push(path),
        Some(Element::Name(name)) => walk(elements, join(&path, name), paths),
        Some(Element::Parts(count)) => {
            for i in 0..*count {
                // A name replaces the number of the element.
                match elements.as_slice().first() {
                    Some(Element::Name(_)) => walk(elements, path.clone(), paths),
                    _ => walk(elements, join(&path, &i.to_string()), paths),
                }
            }
        }
    }
}

fn join(path: &str, part: &str) -> String {
    if path.is_empty() { part.into() } else { format!("{path}.{part}") }
}

/// Checks that a body left the types and shapes of its states as they were.
pub(crate) fn check_same_specs(paths: &[String], before: &[Spec], after: &[Tensor]) -> Result<()> {
    for ((path, before), after) in paths.iter().zip(before).zip(after) {
        let after = after.spec();
        if before == after {
            continue;
        }
        let which =
            if path.is_empty() { "the loop variable".into() } else { format!("loop variable {path}") };
        let message = format!("{which} is {before} before a step and {after} after it");
        return Err(if before.dtype == after.dtype {
            Error::shape(message).help("keep its shape, or leave dimensions open with shape_invariants")
        } else {
            Error::dtype(message).help(format!("cast it back to {}", before.dtype))
        });
    }
    Ok(())
}
