//! Arguments and results of functions: nested structures of tensors, variables and plain values.

use crate::variable::Variable;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use taut_core::Tensor;

/// A plain argument of a traced function: another value is another trace.
pub trait Static: Any + Debug + Send + Sync {
    /// Whether it is the same value.
    fn same(&self, other: &dyn Any) -> bool;

    /// A copy that outlives the call.
    fn boxed(&self) -> Box<dyn Static>;

    /// A hash: equal values have equal hashes.
    fn hash_value(&self) -> u64;

    /// Whether no value can ever equal it again, because it refers to an object that was dropped.
    fn is_expired(&self) -> bool {
        false
    }
}

/// An item of a structure, in depth-first order.
#[derive(Clone, Copy)]
pub enum Leaf<'a> {
    /// A tensor: its type and shape are part of the signature.
    Tensor(&'a Tensor),
    /// A variable: its type and shape are part of the signature, and which other arguments are the same variable. So is its
    /// identity, if the function shows that it depends on it.
    Variable(&'a Variable),
    /// A variable whose identity is part of the signature.
    BoundVariable(&'a Variable),
    /// A plain value.
    Value(&'a dyn Static),
    /// A list or tuple with this many parts, which follow.
    Parts(usize),
    /// The name of the next part, in a map.
    Name(&'a str),
}

/// Arguments or results of a traced function: tensors, variables and plain values, alone or in nested lists, tuples and maps.
///
/// A function of several arguments takes a tuple. Plain values (numbers, strings, flags; anything else in
/// [`StaticValue`]) are known while the function is traced, so they can decide what it does.
pub trait Nest {
    /// The same structure, owned.
    type Owned: Nest<Owned = Self::Owned>;

    /// Calls `visit` with each item.
    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>));

    /// The same structure with these tensors in place of its own, in the same order.
    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Self::Owned;
}

/// A variable of a structure in [`Nest::rebuild`]. In the arguments of a function that is being traced, it is a handle that
/// belongs to the trace.
pub fn rebuilt_variable(variable: &Variable) -> Variable {
    variable.bound()
}

/// The tensors of a structure, in order.
pub fn tensors<N: Nest>(nest: &N) -> Vec<&Tensor> {
    let mut found = Vec::new();
    nest.leaves(&mut |leaf| {
        if let Leaf::Tensor(tensor) = leaf {
            found.push(tensor);
        }
    });
    found
}

/// The same structure with placeholders for its tensors, so that it keeps no memory alive.
pub fn strip_values<N: Nest<Owned = N>>(nest: N) -> N {
    let placeholders: Vec<Tensor> =
        tensors(&nest).into_iter().map(|tensor| Tensor::placeholder(tensor.spec().clone())).collect();
    nest.rebuild(&mut placeholders.into_iter())
}

impl Nest for Tensor {
    type Owned = Tensor;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Tensor(self));
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Tensor {
        tensors.next().unwrap_or_else(|| self.clone())
    }
}

impl Nest for Variable {
    type Owned = Variable;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Variable(self));
    }

    fn rebuild(&self, _tensors: &mut dyn Iterator<Item = Tensor>) -> Variable {
        rebuilt_variable(self)
    }
}

impl<N: Nest> Nest for &N {
    type Owned = N::Owned;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        (**self).leaves(visit);
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> N::Owned {
        (**self).rebuild(tensors)
    }
}

impl<N: Nest> Nest for Vec<N> {
    type Owned = Vec<N::Owned>;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Parts(self.len()));
        self.iter().for_each(|part| part.leaves(visit));
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Vec<N::Owned> {
        self.iter().map(|part| part.rebuild(tensors)).collect()
    }
}

impl<N: Nest, const COUNT: usize> Nest for [N; COUNT] {
    type Owned = [N::Owned; COUNT];

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Parts(COUNT));
        self.iter().for_each(|part| part.leaves(visit));
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> [N::Owned; COUNT] {
        std::array::from_fn(|i| self[i].rebuild(tensors))
    }
}

impl<N: Nest> Nest for Option<N> {
    type Owned = Option<N::Owned>;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Parts(usize::from(self.is_some())));
        self.iter().for_each(|part| part.leaves(visit));
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Option<N::Owned> {
        self.as_ref().map(|part| part.rebuild(tensors))
    }
}

impl<N: Nest> Nest for BTreeMap<String, N> {
    type Owned = BTreeMap<String, N::Owned>;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Parts(self.len()));
        for (name, part) in self {
            visit(Leaf::Name(name));
            part.leaves(visit);
        }
    }

    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> BTreeMap<String, N::Owned> {
        self.iter().map(|(name, part)| (name.clone(), part.rebuild(tensors))).collect()
    }
}

impl Nest for () {
    type Owned = ();

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Parts(0));
    }

    fn rebuild(&self, _tensors: &mut dyn Iterator<Item = Tensor>) {}
}

macro_rules! tuples {
    ($($count:literal: $($name:ident $i:tt),*;)*) => {$(
        impl<$($name: Nest),*> Nest for ($($name,)*) {
            type Owned = ($($name::Owned,)*);

            fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
                visit(Leaf::Parts($count));
                $(self.$i.leaves(visit);)*
            }

            fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Self::Owned {
                ($(self.$i.rebuild(tensors),)*)
            }
        }
    )*};
}
tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}

/// Any comparable value, as a plain argument of a traced function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticValue<T>(pub T);

impl<T: Clone + PartialEq + Debug + Send + Sync + 'static> Static for StaticValue<T> {
    fn same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<StaticValue<T>>().is_some_and(|other| self == other)
    }

    fn boxed(&self) -> Box<dyn Static> {
        Box::new(self.clone())
    }

    fn hash_value(&self) -> u64 {
        0
    }
}

impl<T: Clone + PartialEq + Debug + Send + Sync + 'static> Nest for StaticValue<T> {
    type Owned = StaticValue<T>;

    fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
        visit(Leaf::Value(self));
    }

    fn rebuild(&self, _tensors: &mut dyn Iterator<Item = Tensor>) -> StaticValue<T> {
        self.clone()
    }
}

macro_rules! values {
    ($($ty:ty: |$x:ident| $bits:expr;)*) => {$(
        impl Static for $ty {
            fn same(&self, other: &dyn Any) -> bool {
                let bits = |$x: &$ty| $bits;
                other.downcast_ref::<$ty>().is_some_and(|other| bits(self) == bits(other))
            }

            fn boxed(&self) -> Box<dyn Static> {
                Box::new(self.clone())
            }

            fn hash_value(&self) -> u64 {
                let bits = |$x: &$ty| $bits;
                let mut hasher = DefaultHasher::new();
                bits(self).hash(&mut hasher);
                hasher.finish()
            }
        }

        impl Nest for $ty {
            type Owned = $ty;

            fn leaves<'a>(&'a self, visit: &mut dyn FnMut(Leaf<'a>)) {
                visit(Leaf::Value(self));
            }

            fn rebuild(&self, _tensors: &mut dyn Iterator<Item = Tensor>) -> $ty {
                self.clone()
            }
        }
    )*};
}
// Floats are compared by their bits: a NaN equals itself, and -0 differs from 0.
values! {
    bool: |x| *x;
    i32: |x| *x;
    i64: |x| *x;
    u32: |x| *x;
    u64: |x| *x;
    usize: |x| *x;
    isize: |x| *x;
    f32: |x| x.to_bits();
    f64: |x| x.to_bits();
    String: |x| x.clone();
    &'static str: |x| *x;
}
