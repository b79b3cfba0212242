//! What a trace is good for: structure, types, shapes, variables and plain values of the arguments.

use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use taut_autodiff::nest::{Leaf, Nest, Static};
use taut_core::{DType, Shape, Spec, Strides, Tensor};

/// What of the arguments a trace depends on.
pub(crate) struct Signature {
    pieces: Vec<Piece>,
    /// Whether the tensors are given to the call, which may overwrite them.
    given: bool,
}

enum Piece {
    Tensor { spec: Spec, strides: Option<Strides> },
    Variable { id: u64, text: String },
    Value(Box<dyn Static>),
    Parts(usize),
    Name(String),
}

/// The strides of a tensor that is not contiguous: programs are planned for the memory they find.
fn unusual(tensor: &Tensor) -> Option<&[isize]> {
    if tensor.is_traced() || tensor.is_contiguous() { None } else { Some(tensor.strides()) }
}

impl Piece {
    fn of(leaf: Leaf<'_>) -> Piece {
        match leaf {
            Leaf::Tensor(tensor) => Piece::Tensor {
                spec: tensor.spec().clone(),
                strides: unusual(tensor).map(|strides| strides.iter().copied().collect()),
            },
            Leaf::Variable(variable) => Piece::Variable { id: variable.id(), text: variable.to_string() },
            Leaf::Value(value) => Piece::Value(value.boxed()),
            Leaf::Parts(count) => Piece::Parts(count),
            Leaf::Name(name) => Piece::Name(name.to_owned()),
        }
    }

    #[inline]
    fn fits(&self, leaf: Leaf<'_>) -> bool {
        match (self, leaf) {
            (Piece::Tensor { spec, strides }, Leaf::Tensor(tensor)) => {
                tensor.spec() == spec && unusual(tensor) == strides.as_deref()
            }
            (Piece::Variable { id, .. }, Leaf::Variable(variable)) => *id == variable.id(),
            (Piece::Value(value), Leaf::Value(other)) => value.same(other as &dyn Any),
            (Piece::Parts(count), Leaf::Parts(other)) => *count == other,
            (Piece::Name(name), Leaf::Name(other)) => name == other,
            _ => false,
        }
    }

    fn is_like(&self, other: &Piece) -> bool {
        match (self, other) {
            (Piece::Tensor { spec, strides }, Piece::Tensor { spec: other, strides: others }) => {
                spec == other && strides == others
            }
            (Piece::Variable { id, .. }, Piece::Variable { id: other, .. }) => id == other,
            (Piece::Value(value), Piece::Value(other)) => value.same(&**other as &dyn Any),
            (Piece::Parts(count), Piece::Parts(other)) => count == other,
            (Piece::Name(name), Piece::Name(other)) => name == other,
            _ => false,
        }
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Tensor { spec, strides: None } => write!(f, "{spec}"),
            Piece::Tensor { spec, strides: Some(strides) } => {
                write!(f, "{spec} with strides {:?}", &strides[..])
            }
            Piece::Variable { id, text } => write!(f, "variable {text} (number {id})"),
            Piece::Value(value) => write!(f, "{value:?}"),
            Piece::Parts(count) => write!(f, "{count} parts"),
            Piece::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// A quick number for arguments, which equal ones share.
pub(crate) fn hash<N: Nest>(arguments: &N, given: bool) -> u64 {
    let mut state = u64::from(given);
    let mut mix = |x: u64| state = (state ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    arguments.leaves(&mut |leaf| match leaf {
        Leaf::Tensor(tensor) => {
            mix(tensor.dtype() as u64);
            tensor.shape().iter().for_each(|&dim| mix(dim as u64));
        }
        Leaf::Variable(variable) => mix(variable.id()),
        Leaf::Value(value) => mix(value.hash_value()),
        Leaf::Parts(count) => mix(count as u64),
        Leaf::Name(name) => name.bytes().for_each(|byte| mix(byte.into())),
    });
    state
}

/// What differs between two signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureChange {
    /// Which argument: `args[0]["w"]`.
    pub argument: String,
    /// What it was.
    pub old: String,
    /// What it is.
    pub new: String,
    /// Whether only sizes differ, so that an unknown dimension would cover both.
    pub only_sizes: bool,
}

impl fmt::Display for SignatureChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was {} and is {}", self.argument, self.old, self.new)
    }
}

impl Signature {
    pub(crate) fn of<N: Nest>(arguments: &N, given: bool) -> Signature {
        let mut pieces = Vec::new();
        arguments.leaves(&mut |leaf| pieces.push(Piece::of(leaf)));
        Signature { pieces, given }
    }

    /// Whether arguments have this signature.
    #[inline]
    pub(crate) fn fits<N: Nest>(&self, arguments: &N, given: bool) -> bool {
        let (mut rest, mut fits) = (self.pieces.iter(), given == self.given);
        arguments.leaves(&mut |leaf| fits = fits && rest.next().is_some_and(|piece| piece.fits(leaf)));
        fits && rest.next().is_none()
    }

    /// The tensors' types and shapes, in order.
    pub(crate) fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.tensors().map(|(spec, _)| spec)
    }

    /// The tensors' types and shapes, and the strides of those that are not contiguous.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = (&Spec, Option<&Strides>)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Tensor { spec, strides } => Some((spec, strides.as_ref())),
            _ => None,
        })
    }

    /// A number for all it says, values included.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.given.hash(&mut hasher);
        self.pieces.iter().for_each(|piece| piece.to_string().hash(&mut hasher));
        hasher.finish()
    }

    pub(crate) fn given(&self) -> bool {
        self.given
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.len() * size_of::<Piece>()
    }

    /// Whether no arguments will ever have this signature again.
    pub(crate) fn is_gone(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Value(value) if value.is_expired()))
    }

    /// Whether it is the same signature.
    pub(crate) fn is_like(&self, other: &Signature) -> bool {
        self.given == other.given && self.distance(other) == Some(0)
    }

    /// How many pieces differ; `None` if the structures do.
    pub(crate) fn distance(&self, other: &Signature) -> Option<usize> {
        let same_kind = |(a, b): (&Piece, &Piece)| match (a, b) {
            (Piece::Parts(a), Piece::Parts(b)) => a == b,
            (Piece::Name(a), Piece::Name(b)) => a == b,
            _ => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        let pairs = || self.pieces.iter().zip(&other.pieces);
        if self.pieces.len() != other.pieces.len() || !pairs().all(same_kind) {
            return None;
        }
        Some(pairs().filter(|(a, b)| !a.is_like(b)).count())
    }

    /// What differs from an earlier signature.
    pub(crate) fn changes_from(&self, old: &Signature) -> Vec<SignatureChange> {
        if self.distance(old).is_none() {
            let (old, new) = (old.to_string(), self.to_string());
            return vec![SignatureChange {
                argument: "the structure of args".into(),
                old,
                new,
                only_sizes: false,
            }];
        }
        let mut changes = Vec::new();
        if self.given != old.given {
            let text = |given| String::from(if given { "given" } else { "lent" });
            let (old, new) = (text(old.given), text(self.given));
            changes.push(SignatureChange {
                argument: "the way of passing args".into(),
                old,
                new,
                only_sizes: false,
            });
        }
        let differ = self.paths().into_iter().filter(|(i, _)| !self.pieces[*i].is_like(&old.pieces[*i]));
        changes.extend(differ.map(|(i, argument)| {
            let (old, new) = (&old.pieces[i], &self.pieces[i]);
            let only_sizes = match (old, new) {
                (Piece::Tensor { spec: a, .. }, Piece::Tensor { spec: b, .. }) => {
                    a.dtype == b.dtype && a.shape != b.shape && a.shape.rank() == b.shape.rank()
                }
                _ => false,
            };
            SignatureChange { argument, old: old.to_string(), new: new.to_string(), only_sizes }
        }));
        changes
    }

    /// The leaves by number and name.
    pub(crate) fn paths(&self) -> Vec<(usize, String)> {
        let (mut paths, mut at) = (Vec::new(), 0);
        // Once, unless a structure does not say how many parts it has.
        while at < self.pieces.len() {
            self.name_part(&mut at, "args", &mut paths);
        }
        paths
    }

    fn name_part(&self, at: &mut usize, path: &str, paths: &mut Vec<(usize, String)>) {
        let i = *at;
        *at += 1;
        match self.pieces.get(i) {
            Some(&Piece::Parts(count)) => {
                for part in 0..count {
                    if *at >= self.pieces.len() {
                        break;
                    }
                    let name = match self.pieces.get(*at) {
                        Some(Piece::Name(name)) => {
                            *at += 1;
                            format!("{path}[{name:?}]")
                        }
                        _ => format!("{path}[{part}]"),
                    };
                    self.name_part(at, &name, paths);
                }
            }
            Some(_) => paths.push((i, path.to_owned())),
            None => {}
        }
    }

    /// The names of the tensors among the arguments, in order.
    pub(crate) fn tensor_paths(&self) -> Vec<String> {
        let is_tensor = |(i, _): &(usize, String)| matches!(self.pieces[*i], Piece::Tensor { .. });
        self.paths().into_iter().filter(is_tensor).map(|(_, path)| path).collect()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.paths();
        let parts: Vec<String> = paths.iter().map(|(i, _)| self.pieces[*i].to_string()).collect();
        write!(f, "({})", parts.join(", "))
    }
}

/// The type and shape of a tensor argument, where a dimension can be left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Element type.
    pub dtype: DType,
    /// Dimensions; `None` stands for any size.
    pub dims: Vec<Option<usize>>,
}

impl TensorSpec {
    /// A tensor of this type and these dimensions.
    pub fn new(dtype: DType, dims: impl Into<Vec<Option<usize>>>) -> TensorSpec {
        TensorSpec { dtype, dims: dims.into() }
    }

    /// Whether a tensor of this type and shape is meant.
    pub fn covers(&self, spec: &Spec) -> bool {
        let fits = |(want, dim): (&Option<usize>, &usize)| want.is_none_or(|want| want == *dim);
        self.dtype == spec.dtype
            && self.dims.len() == spec.shape.rank()
            && self.dims.iter().zip(spec.shape.iter()).all(fits)
    }

    /// The dimensions that two shapes of one rank have in common; the others are left open.
    pub(crate) fn around(&mut self, shape: &Shape) {
        for (want, dim) in self.dims.iter_mut().zip(shape.iter()) {
            if *want != Some(*dim) {
                *want = None;
            }
        }
    }
}

impl From<&Spec> for TensorSpec {
    fn from(spec: &Spec) -> TensorSpec {
        TensorSpec { dtype: spec.dtype, dims: spec.shape.iter().map(|&dim| Some(dim)).collect() }
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> =
            self.dims.iter().map(|dim| dim.map_or_else(|| "?".into(), |dim| dim.to_string())).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(", "))
    }
}
