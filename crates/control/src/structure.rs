//! What bodies are given and what they return: nested structures, flattened and compared.

use taut_autodiff::nest::{self, Leaf, Nest};
use taut_core::{Error, Result, Spec, Tensor};

/// The tensors of a structure, in order.
pub(crate) fn tensors(nest: &impl Nest) -> Vec<Tensor> {
    nest::tensors(nest).into_iter().cloned().collect()
}

/// What a structure looks like, whatever its tensors are.
#[derive(PartialEq)]
enum Bone {
    Tensor,
    Other(String),
    Parts(usize),
    Name(String),
}

fn skeleton(nest: &impl Nest) -> Vec<Bone> {
    let mut bones = Vec::new();
    nest.leaves(&mut |leaf| {
        bones.push(match leaf {
            Leaf::Tensor(_) => Bone::Tensor,
            Leaf::Variable(variable) => Bone::Other(format!("variable {}", variable.id())),
            Leaf::Value(value) => Bone::Other(format!("{value:?}")),
            Leaf::Parts(count) => Bone::Parts(count),
            Leaf::Name(name) => Bone::Name(name.into()),
        });
    });
    bones
}

/// A structure in a few words.
fn described(bones: &[Bone]) -> String {
    fn one(bones: &mut std::slice::Iter<'_, Bone>) -> String {
        match bones.next() {
            None => String::new(),
            Some(Bone::Tensor) => "tensor".into(),
            Some(Bone::Other(what)) => what.clone(),
            Some(Bone::Name(name)) => format!("{name}: {}", one(bones)),
            Some(Bone::Parts(count)) => {
                let parts: Vec<String> = (0..*count).map(|_| one(bones)).collect();
                format!("({})", parts.join(", "))
            }
        }
    }
    one(&mut bones.iter())
}

/// Refuses structures that differ.
pub(crate) fn same_structure(what: &str, wanted: &impl Nest, whose: &str, got: &impl Nest) -> Result<()> {
    let (wanted, got) = (skeleton(wanted), skeleton(got));
    if wanted == got {
        return Ok(());
    }
    let message = format!("{whose} returned {}, and {what} {}", described(&got), described(&wanted));
    Err(Error::value(message).help("return what was given, part for part"))
}

/// What each tensor of a structure is called: by its place, or by the names on the way to it.
pub(crate) fn names(nest: &impl Nest) -> Vec<String> {
    let bones = skeleton(nest);
    let mut found = Vec::new();
    walk(&mut bones.iter(), String::new(), &mut found);
    found
}

fn walk(bones: &mut std::slice::Iter<'_, Bone>, path: String, found: &mut Vec<String>) {
    match bones.next() {
        None | Some(Bone::Other(_)) => {}
        Some(Bone::Tensor) => found.push(path),
        Some(Bone::Name(name)) => walk(bones, join(&path, name), found),
        Some(Bone::Parts(count)) => {
            for i in 0..*count {
                // A part with a name goes by that.
                match bones.as_slice().first() {
                    Some(Bone::Name(_)) => walk(bones, path.clone(), found),
                    _ => walk(bones, join(&path, &i.to_string()), found),
                }
            }
        }
    }
}

fn join(path: &str, part: &str) -> String {
    if path.is_empty() { part.into() } else { format!("{path}.{part}") }
}

/// Refuses states that a body changed in type or shape.
pub(crate) fn same_specs(names: &[String], before: &[Spec], after: &[Tensor]) -> Result<()> {
    for ((name, before), after) in names.iter().zip(before).zip(after) {
        let after = after.spec();
        if before == after {
            continue;
        }
        let which =
            if name.is_empty() { "the loop variable".into() } else { format!("loop variable {name}") };
        let message = format!("{which} is {before} before a step and {after} after it");
        return Err(if before.dtype == after.dtype {
            Error::shape(message).help("keep its shape, or say with shape_invariants which dimensions change")
        } else {
            Error::dtype(message).help("cast it back to the type that it came with")
        });
    }
    Ok(())
}
