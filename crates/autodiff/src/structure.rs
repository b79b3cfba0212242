//! Nested structures of tensors and variables: lists, tuples, maps.

use crate::variable::Variable;
use std::collections::BTreeMap;
use taut_core::{Error, ErrorKind, Gradient, Result, Spec, Tensor};

/// A leaf of a structure: a target or a source of a gradient.
#[derive(Clone, Debug)]
pub enum GradientSource {
    /// A tensor.
    Tensor(Tensor),
    /// A variable.
    Variable(Variable),
}

impl GradientSource {
    pub(crate) fn spec(&self) -> &Spec {
        match self {
            GradientSource::Tensor(tensor) => tensor.spec(),
            GradientSource::Variable(variable) => variable.spec(),
        }
    }
}

/// Tensors and variables, alone or in nested lists, tuples and maps. The result of a gradient has the structure of its
/// sources.
pub trait Structure {
    /// The same structure with other leaves.
    type Of<T>;

    /// The leaves, in order.
    fn leaves(&self, found: &mut Vec<GradientSource>);

    /// The same structure with these leaves, in the same order.
    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> Self::Of<T>;
}

fn next<T>(leaves: &mut dyn Iterator<Item = T>) -> T {
    leaves.next().expect("as many leaves as `leaves` returned")
}

impl Structure for Tensor {
    type Of<T> = T;

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        found.push(GradientSource::Tensor(self.clone()));
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> T {
        next(leaves)
    }
}

impl Structure for Variable {
    type Of<T> = T;

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        found.push(GradientSource::Variable(self.clone()));
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> T {
        next(leaves)
    }
}

impl Structure for GradientSource {
    type Of<T> = T;

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        found.push(self.clone());
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> T {
        next(leaves)
    }
}

impl<S: Structure + ?Sized> Structure for &S {
    type Of<T> = S::Of<T>;

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        (**self).leaves(found);
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> S::Of<T> {
        (**self).with(leaves)
    }
}

impl<S: Structure> Structure for [S] {
    type Of<T> = Vec<S::Of<T>>;

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        self.iter().for_each(|part| part.leaves(found));
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> Vec<S::Of<T>> {
        self.iter().map(|part| part.with(leaves)).collect()
    }
}

impl<S: Structure> Structure for Vec<S> {
    type Of<T> = Vec<S::Of<T>>;

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        self[..].leaves(found);
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> Vec<S::Of<T>> {
        self[..].with(leaves)
    }
}

impl<S: Structure, const N: usize> Structure for [S; N] {
    type Of<T> = [S::Of<T>; N];

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        self[..].leaves(found);
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> [S::Of<T>; N] {
        std::array::from_fn(|i| self[i].with(leaves))
    }
}

impl<S: Structure> Structure for Option<S> {
    type Of<T> = Option<S::Of<T>>;

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        self.iter().for_each(|part| part.leaves(found));
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> Option<S::Of<T>> {
        self.as_ref().map(|part| part.with(leaves))
    }
}

impl<K: Clone + Ord, S: Structure> Structure for BTreeMap<K, S> {
    type Of<T> = BTreeMap<K, S::Of<T>>;

    fn leaves(&self, found: &mut Vec<GradientSource>) {
        self.values().for_each(|part| part.leaves(found));
    }

    fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> BTreeMap<K, S::Of<T>> {
        self.iter().map(|(key, part)| (key.clone(), part.with(leaves))).collect()
    }
}

macro_rules! tuples {
    ($($($name:ident $i:tt),*;)*) => {$(
        impl<$($name: Structure),*> Structure for ($($name,)*) {
            type Of<T> = ($($name::Of<T>,)*);

            fn leaves(&self, found: &mut Vec<GradientSource>) {
                $(self.$i.leaves(found);)*
            }

            fn with<T>(&self, leaves: &mut dyn Iterator<Item = T>) -> Self::Of<T> {
                ($(self.$i.with(leaves),)*)
            }
        }
    )*};
}
tuples! { A 0; A 0, B 1; A 0, B 1, C 2; A 0, B 1, C 2, D 3; A 0, B 1, C 2, D 3, E 4; A 0, B 1, C 2, D 3, E 4, F 5; }

/// A gradient that must exist, as a dense tensor.
pub trait DenseGradient {
    /// The gradient as a tensor; an error if there is none.
    fn dense(self) -> Result<Tensor>;
}

impl DenseGradient for Option<Gradient> {
    #[track_caller]
    fn dense(self) -> Result<Tensor> {
        match self {
            Some(gradient) => gradient.dense(),
            None => Err(Error::new(ErrorKind::Value, "expected a gradient, got none")
                .help("call the tape's explain_none() for the reason")
                .at(taut_memory::Location::caller())),
        }
    }
}
