//! Signatures: the structure, types, shapes, variables and plain values of the arguments that a trace is for.
//!
//! A variable is part of a signature by its type, its shape, whether it is trainable, and which other arguments are the same variable;
//! by its identity only if the trace depends on that.

use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use taut_autodiff::Variable;
use taut_autodiff::nest::{Leaf, Nest, Static};
use taut_core::{Spec, Strides, Tensor};

/// What a trace depends on: the leaves of the arguments' structure.
pub(crate) struct Signature {
    leaves: Vec<SignatureLeaf>,
    /// Whether the tensors are donated to the call, which may overwrite them.
    donated: bool,
    /// The ids of the variables that the trace uses without being given them, in order: no argument may be one of them.
    captured: Vec<u64>,
}

enum SignatureLeaf {
    Tensor { spec: Spec, strides: Option<Strides> },
    Variable(VariableLeaf),
    Value(Box<dyn Static>),
    Parts(usize),
    Name(String),
}

/// A variable among the arguments.
struct VariableLeaf {
    spec: Spec,
    is_trainable: bool,
    /// Its number among the different variables of the arguments.
    number: usize,
    /// Whether it has that number because an argument before it is the same variable.
    is_repeated: bool,
    /// The variable that the trace was made for.
    id: u64,
    /// Its name and type.
    text: String,
    /// Whether only that variable has this signature.
    is_bound: bool,
}

impl VariableLeaf {
    fn new(variable: &Variable, numbers: &mut VariableNumbers, is_bound: bool) -> VariableLeaf {
        let (number, is_repeated) = numbers.of(variable);
        VariableLeaf {
            spec: variable.spec().clone(),
            is_trainable: variable.is_trainable(),
            number,
            is_repeated,
            id: variable.untraced_id(),
            text: variable.to_string(),
            is_bound,
        }
    }

    fn is_same(&self, other: &VariableLeaf) -> bool {
        if self.is_bound || other.is_bound {
            return self.is_bound == other.is_bound && self.id == other.id;
        }
        self.spec == other.spec && self.is_trainable == other.is_trainable && self.number == other.number
    }

    fn describe(&self, is_bound: bool) -> String {
        if is_bound {
            return format!("variable {} (id {})", self.text, self.id);
        }
        let kind = if self.is_trainable { "variable" } else { "non-trainable variable" };
        let again =
            if self.is_repeated { format!(", the same as variable {}", self.number) } else { String::new() };
        format!("{kind} {}{again}", self.spec)
    }
}

/// The numbers of the different variables among arguments, in order.
#[derive(Default)]
struct VariableNumbers(SmallVec<[u64; 8]>);

impl VariableNumbers {
    /// The number of a variable, and whether it occurred before.
    fn of(&mut self, variable: &Variable) -> (usize, bool) {
        let id = variable.untraced_id();
        if let Some(number) = self.0.iter().position(|&other| other == id) {
            return (number, true);
        }
        self.0.push(id);
        (self.0.len() - 1, false)
    }
}

/// The strides of a tensor that is not contiguous: programs are planned for them.
fn explicit_strides(tensor: &Tensor) -> Option<&[isize]> {
    if tensor.is_traced() || tensor.is_contiguous() { None } else { Some(tensor.strides()) }
}

impl SignatureLeaf {
    fn of(leaf: Leaf<'_>, numbers: &mut VariableNumbers) -> SignatureLeaf {
        match leaf {
            Leaf::Tensor(tensor) => SignatureLeaf::Tensor {
                spec: tensor.spec().clone(),
                strides: explicit_strides(tensor).map(|strides| strides.iter().copied().collect()),
            },
            Leaf::Variable(variable) => SignatureLeaf::Variable(VariableLeaf::new(variable, numbers, false)),
            Leaf::BoundVariable(variable) => {
                SignatureLeaf::Variable(VariableLeaf::new(variable, &mut VariableNumbers::default(), true))
            }
            Leaf::Value(value) => SignatureLeaf::Value(value.boxed()),
            Leaf::Parts(count) => SignatureLeaf::Parts(count),
            Leaf::Name(name) => SignatureLeaf::Name(name.to_owned()),
        }
    }

    #[inline]
    fn matches(&self, leaf: Leaf<'_>, numbers: &mut VariableNumbers, captured: &[u64]) -> bool {
        match (self, leaf) {
            (SignatureLeaf::Tensor { spec, strides }, Leaf::Tensor(tensor)) => {
                tensor.spec() == spec && explicit_strides(tensor) == strides.as_deref()
            }
            (SignatureLeaf::Variable(own), Leaf::Variable(variable)) => {
                if own.is_bound {
                    return own.id == variable.untraced_id();
                }
                numbers.of(variable).0 == own.number
                    && own.spec == *variable.spec()
                    && own.is_trainable == variable.is_trainable()
                    && captured.binary_search(&variable.untraced_id()).is_err()
            }
            (SignatureLeaf::Variable(own), Leaf::BoundVariable(variable)) => {
                own.is_bound && own.id == variable.untraced_id()
            }
            (SignatureLeaf::Value(value), Leaf::Value(other)) => value.same(other as &dyn Any),
            (SignatureLeaf::Parts(count), Leaf::Parts(other)) => *count == other,
            (SignatureLeaf::Name(name), Leaf::Name(other)) => name == other,
            _ => false,
        }
    }

    fn is_same(&self, other: &SignatureLeaf) -> bool {
        match (self, other) {
            (
                SignatureLeaf::Tensor { spec, strides },
                SignatureLeaf::Tensor { spec: other, strides: others },
            ) => spec == other && strides == others,
            (SignatureLeaf::Variable(own), SignatureLeaf::Variable(other)) => own.is_same(other),
            (SignatureLeaf::Value(value), SignatureLeaf::Value(other)) => value.same(&**other as &dyn Any),
            (SignatureLeaf::Parts(count), SignatureLeaf::Parts(other)) => count == other,
            (SignatureLeaf::Name(name), SignatureLeaf::Name(other)) => name == other,
            _ => false,
        }
    }
}

impl fmt::Display for SignatureLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignatureLeaf::Tensor { spec, strides: None } => write!(f, "{spec}"),
            SignatureLeaf::Tensor { spec, strides: Some(strides) } => {
                write!(f, "{spec} with strides {:?}", &strides[..])
            }
            SignatureLeaf::Variable(variable) => f.write_str(&variable.describe(variable.is_bound)),
            SignatureLeaf::Value(value) => write!(f, "{value:?}"),
            SignatureLeaf::Parts(count) => write!(f, "{count} parts"),
            SignatureLeaf::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// A hash of arguments, without building their signature. With `by_identity`, it is that of a trace for these very variables.
pub(crate) fn hash<N: Nest>(arguments: &N, donated: bool, by_identity: bool) -> u64 {
    let mut numbers = VariableNumbers::default();
    let mut state = u64::from(donated);
    let mut mix = |x: u64| state = (state ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    arguments.leaves(&mut |leaf| match leaf {
        Leaf::Tensor(tensor) => {
            mix(tensor.dtype() as u64);
            tensor.shape().iter().for_each(|&dim| mix(dim as u64));
        }
        Leaf::Variable(variable) if !by_identity => {
            mix(numbers.of(variable).0 as u64);
            mix(variable.dtype() as u64);
            variable.shape().iter().for_each(|&dim| mix(dim as u64));
        }
        Leaf::Variable(variable) | Leaf::BoundVariable(variable) => mix(variable.untraced_id()),
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
    /// Whether only sizes differ, so that an open dimension would match both.
    pub only_sizes: bool,
}

impl fmt::Display for SignatureChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was {} and is {}", self.argument, self.old, self.new)
    }
}

impl Signature {
    pub(crate) fn of<N: Nest>(arguments: &N, donated: bool) -> Signature {
        let (mut leaves, mut numbers) = (Vec::new(), VariableNumbers::default());
        arguments.leaves(&mut |leaf| leaves.push(SignatureLeaf::of(leaf, &mut numbers)));
        Signature { leaves, donated, captured: Vec::new() }
    }

    /// The signature of these very variables.
    pub(crate) fn bound(mut self) -> Signature {
        for leaf in &mut self.leaves {
            if let SignatureLeaf::Variable(variable) = leaf {
                variable.is_bound = true;
            }
        }
        self
    }

    /// The signature of a trace that uses these variables without being given them.
    pub(crate) fn capturing(mut self, captured: impl Iterator<Item = u64>) -> Signature {
        self.captured = captured.collect();
        self.captured.sort_unstable();
        self.captured.dedup();
        self
    }

    /// Whether the trace is for the very variables that it was made with.
    pub(crate) fn is_bound(&self) -> bool {
        let is_bound =
            |leaf: &SignatureLeaf| matches!(leaf, SignatureLeaf::Variable(variable) if variable.is_bound);
        self.leaves.iter().any(is_bound)
    }

    /// The argument that is one of the variables which a trace with this signature uses without being given them.
    pub(crate) fn captured_argument(&self, known: &Signature) -> Option<SignatureChange> {
        let is_captured = |(i, _): &(usize, String)| matches!(&self.leaves[*i], SignatureLeaf::Variable(v) if known.captured.binary_search(&v.id).is_ok());
        if !known.is_same(self) {
            return None;
        }
        let (i, argument) = self.paths().into_iter().find(is_captured)?;
        let SignatureLeaf::Variable(variable) = &self.leaves[i] else { return None };
        let old = known.leaves.get(i).map_or_else(String::new, SignatureLeaf::to_string);
        let new = format!("{}, which the function also captures", variable.describe(true));
        Some(SignatureChange { argument, old, new, only_sizes: false })
    }

    /// Whether arguments have this signature.
    #[inline]
    pub(crate) fn matches<N: Nest>(&self, arguments: &N, donated: bool) -> bool {
        let (mut rest, mut fits) = (self.leaves.iter(), donated == self.donated);
        let mut numbers = VariableNumbers::default();
        arguments.leaves(&mut |leaf| {
            fits = fits && rest.next().is_some_and(|own| own.matches(leaf, &mut numbers, &self.captured));
        });
        fits && rest.next().is_none()
    }

    /// The tensors' types and shapes, in order.
    pub(crate) fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.tensors().map(|(spec, _)| spec)
    }

    /// The tensors' types and shapes, and the strides of those that are not contiguous.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = (&Spec, Option<&Strides>)> {
        self.leaves.iter().filter_map(|leaf| match leaf {
            SignatureLeaf::Tensor { spec, strides } => Some((spec, strides.as_ref())),
            _ => None,
        })
    }

    /// A hash of its text, values included; with `by_identity`, for these very variables.
    pub(crate) fn digest(&self, by_identity: bool) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.donated.hash(&mut hasher);
        for leaf in &self.leaves {
            match leaf {
                SignatureLeaf::Variable(variable) => {
                    variable.describe(by_identity || variable.is_bound).hash(&mut hasher);
                }
                other => other.to_string().hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    pub(crate) fn is_donated(&self) -> bool {
        self.donated
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.leaves.len() * size_of::<SignatureLeaf>()
    }

    /// Whether no arguments can have this signature any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.leaves.iter().any(|leaf| matches!(leaf, SignatureLeaf::Value(value) if value.is_expired()))
    }

    /// Whether it is the same signature.
    pub(crate) fn is_same(&self, other: &Signature) -> bool {
        self.donated == other.donated && self.distance(other) == Some(0)
    }

    /// Whether another signature differs at most in the shapes and strides of its tensors.
    pub(crate) fn differs_only_in_shapes(&self, other: &Signature) -> bool {
        let is_alike = |(a, b): (&SignatureLeaf, &SignatureLeaf)| match (a, b) {
            (SignatureLeaf::Tensor { spec: a, .. }, SignatureLeaf::Tensor { spec: b, .. }) => {
                a.dtype == b.dtype
            }
            (a, b) => a.is_same(b),
        };
        let same_length = self.leaves.len() == other.leaves.len();
        self.donated == other.donated && same_length && self.leaves.iter().zip(&other.leaves).all(is_alike)
    }

    /// How many leaves differ; `None` if the structures do.
    pub(crate) fn distance(&self, other: &Signature) -> Option<usize> {
        let same_kind = |(a, b): (&SignatureLeaf, &SignatureLeaf)| match (a, b) {
            (SignatureLeaf::Parts(a), SignatureLeaf::Parts(b)) => a == b,
            (SignatureLeaf::Name(a), SignatureLeaf::Name(b)) => a == b,
            _ => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        let pairs = || self.leaves.iter().zip(&other.leaves);
        if self.leaves.len() != other.leaves.len() || !pairs().all(same_kind) {
            return None;
        }
        Some(pairs().filter(|(a, b)| !a.is_same(b)).count())
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
        if self.donated != old.donated {
            let text = |donated| String::from(if donated { "donated" } else { "not donated" });
            let (old, new) = (text(old.donated), text(self.donated));
            changes.push(SignatureChange { argument: "args".into(), old, new, only_sizes: false });
        }
        let differ = self.paths().into_iter().filter(|(i, _)| !self.leaves[*i].is_same(&old.leaves[*i]));
        changes.extend(differ.map(|(i, argument)| {
            let (old, new) = (&old.leaves[i], &self.leaves[i]);
            let only_sizes = match (old, new) {
                (SignatureLeaf::Tensor { spec: a, .. }, SignatureLeaf::Tensor { spec: b, .. }) => {
                    a.dtype == b.dtype && a.shape != b.shape && a.shape.rank() == b.shape.rank()
                }
                _ => false,
            };
            let new = match (old, new) {
                (SignatureLeaf::Variable(old), SignatureLeaf::Variable(new)) => new.describe(old.is_bound),
                _ => new.to_string(),
            };
            SignatureChange { argument, old: old.to_string(), new, only_sizes }
        }));
        changes
    }

    /// The position and path of each leaf.
    pub(crate) fn paths(&self) -> Vec<(usize, String)> {
        let (mut paths, mut at) = (Vec::new(), 0);
        // Once, unless a structure reports fewer parts than it has.
        while at < self.leaves.len() {
            self.name_part(&mut at, "args", &mut paths);
        }
        paths
    }

    fn name_part(&self, at: &mut usize, path: &str, paths: &mut Vec<(usize, String)>) {
        let i = *at;
        *at += 1;
        match self.leaves.get(i) {
            Some(&SignatureLeaf::Parts(count)) => {
                for part in 0..count {
                    if *at >= self.leaves.len() {
                        break;
                    }
                    let name = match self.leaves.get(*at) {
                        Some(SignatureLeaf::Name(name)) => {
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

    /// The paths of the tensors among the arguments, in order.
    pub(crate) fn tensor_paths(&self) -> Vec<String> {
        let is_tensor = |(i, _): &(usize, String)| matches!(self.leaves[*i], SignatureLeaf::Tensor { .. });
        self.paths().into_iter().filter(is_tensor).map(|(_, path)| path).collect()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.paths();
        let parts: Vec<String> = paths.iter().map(|(i, _)| self.leaves[*i].to_string()).collect();
        write!(f, "({})", parts.join(", "))
    }
}
