//! What the table knows of an op: enough to call, document, bind and test it without knowing it.

use super::sample;
use crate::error::{Error, ErrorKind, Result};
use crate::scalar::{Operand, Scalar};
use crate::tensor::Tensor;
use std::cell::RefCell;
use taut_kernels::DType;
use taut_memory::Location;

/// A row of the table.
#[derive(Clone, Copy)]
pub struct OpEntry {
    /// The function's name.
    pub name: &'static str,
    /// Its parameters, in order.
    pub params: &'static [Param],
    /// How to call it; [`OpEntry::invoke`] does.
    pub call: fn(&Args<'_>) -> Result<Vec<Tensor>>,
    /// What the result is checked against.
    pub reference: Reference,
    /// Arguments that tests call it with.
    pub samples: Samples,
    /// Arguments that it must refuse.
    pub bad: fn() -> Vec<Bad>,
    /// Whether the result's shape depends on data, so that it cannot be traced.
    pub reads_data: bool,
}

impl OpEntry {
    /// A row.
    pub const fn new(
        name: &'static str,
        params: &'static [Param],
        call: fn(&Args<'_>) -> Result<Vec<Tensor>>,
        reference: Reference,
        samples: Samples,
    ) -> OpEntry {
        OpEntry { name, params, call, reference, samples, bad: Vec::new, reads_data: false }
    }

    /// The row with arguments that the op must refuse.
    #[must_use]
    pub const fn refuses(mut self, bad: fn() -> Vec<Bad>) -> OpEntry {
        self.bad = bad;
        self
    }

    /// The row of an op whose result's shape depends on data.
    #[must_use]
    pub const fn reading_data(mut self) -> OpEntry {
        self.reads_data = true;
        self
    }
}

/// Where a row's test arguments come from.
#[derive(Clone, Copy)]
pub enum Samples {
    /// One tensor, of each of these types, with elements in this range.
    Unary(&'static [DType], f64, f64),
    /// Two tensors that broadcast, of each of these types, with elements in these ranges.
    Binary(&'static [DType], (f64, f64), (f64, f64)),
    /// A list.
    List(fn() -> Vec<Vec<ArgValue>>),
}

impl Samples {
    /// The arguments, a list per call.
    pub fn list(&self) -> Vec<Vec<ArgValue>> {
        match *self {
            Samples::Unary(dtypes, low, high) => sample::unary(dtypes, low, high),
            Samples::Binary(dtypes, a, b) => sample::binary(dtypes, a, b),
            Samples::List(list) => list(),
        }
    }
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParamKind,
    /// What it is when left out, as Python writes it.
    pub default: Option<&'static str>,
}

impl Param {
    /// A parameter that must be given.
    pub const fn new(name: &'static str, kind: ParamKind) -> Param {
        Param { name, kind, default: None }
    }

    /// The parameter of a function of one tensor.
    pub const X: &'static [Param] = &[Param::tensor("x")];

    /// The parameters of a function of two operands.
    pub const XY: &'static [Param] =
        &[Param::new("x", ParamKind::Operand), Param::new("y", ParamKind::Operand)];

    /// The parameters of a reduction.
    pub const REDUCTION: &'static [Param] = &[
        Param::tensor("x"),
        Param::optional("axes", ParamKind::Ints, "None"),
        Param::optional("keepdims", ParamKind::Bool, "False"),
    ];

    /// A tensor that must be given.
    pub const fn tensor(name: &'static str) -> Param {
        Param::new(name, ParamKind::Tensor)
    }

    /// A parameter that may be left out.
    pub const fn optional(name: &'static str, kind: ParamKind, default: &'static str) -> Param {
        Param { name, kind, default: Some(default) }
    }
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor.
    Tensor,
    /// A tensor or a plain number.
    Operand,
    /// Several tensors.
    Tensors,
    /// An integer.
    Int,
    /// Several integers: a shape, axes, …
    Ints,
    /// Pairs of integers: before and after, per axis.
    Pairs,
    /// A floating-point number.
    Float,
    /// A plain number of any kind, kept as it is.
    Scalar,
    /// True or false.
    Bool,
    /// An element type.
    DType,
    /// A word.
    Str,
}

/// What a result is checked against: a Python expression over the parameters' names, `np` (NumPy) and `sp`
/// (`scipy.special`).
#[derive(Clone, Copy, Debug)]
pub enum Reference {
    /// The expected result, or a tuple of them.
    Numpy(&'static str),
    /// A statement about the result `out` (a list if there are several) that must be true.
    Property(&'static str),
}

/// Arguments that an op must refuse, and how.
pub struct Bad {
    /// The arguments.
    pub args: Vec<ArgValue>,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// A part of its message.
    pub message: &'static str,
}

impl Bad {
    /// Arguments that must be refused with this kind of error, whose message contains `message`.
    pub fn new(args: Vec<ArgValue>, kind: ErrorKind, message: &'static str) -> Bad {
        Bad { args, kind, message }
    }
}

/// An argument.
#[derive(Clone, Debug)]
pub enum ArgValue {
    /// Left out.
    None,
    /// A tensor.
    Tensor(Tensor),
    /// A tensor given away: the call gets the only handle, and may compute in its memory.
    Donated(RefCell<Option<Tensor>>),
    /// Several tensors.
    Tensors(Vec<Tensor>),
    /// An integer.
    Int(i64),
    /// Several integers.
    Ints(Vec<i64>),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// An element type.
    DType(DType),
    /// A word.
    Str(&'static str),
}

impl ArgValue {
    /// Arguments with every tensor among them replaced.
    pub fn with_tensors(args: &[ArgValue], change: &mut impl FnMut(&Tensor) -> Tensor) -> Vec<ArgValue> {
        args.iter()
            .map(|arg| match arg {
                ArgValue::Tensor(tensor) => ArgValue::Tensor(change(tensor)),
                ArgValue::Tensors(tensors) => ArgValue::Tensors(tensors.iter().map(&mut *change).collect()),
                other => other.clone(),
            })
            .collect()
    }
}

/// The arguments of a call, by position. Asking for one as what it is not is an error that names the position.
pub struct Args<'a>(pub &'a [ArgValue]);

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident / $optional:ident -> $ty:ty : $pattern:pat => $value:expr, $what:literal;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self, position: usize) -> Result<$ty> {
            self.$optional(position)?.ok_or_else(|| wrong(position, $what))
        }

        $(#[$doc])*
        ///
        /// `None` if it was left out.
        pub fn $optional(&self, position: usize) -> Result<Option<$ty>> {
            match self.0.get(position) {
                None | Some(ArgValue::None) => Ok(None),
                Some($pattern) => Ok(Some($value)),
                Some(_) => Err(wrong(position, $what)),
            }
        }
    )*};
}

impl Args<'_> {
    getters! {
        /// Several tensors.
        tensors / tensors_or -> Vec<Tensor>: ArgValue::Tensors(t) => t.clone(), "a list of tensors";
        /// An integer.
        int / int_or -> i64: ArgValue::Int(v) => *v, "an integer";
        /// Several integers.
        ints / ints_or -> Vec<i64>: ArgValue::Ints(v) => v.clone(), "a list of integers";
        /// True or false.
        bool / bool_or -> bool: ArgValue::Bool(v) => *v, "a boolean";
        /// An element type.
        dtype / dtype_or -> DType: ArgValue::DType(v) => *v, "a dtype";
        /// A word.
        str / str_or -> &'static str: ArgValue::Str(v) => *v, "a string";
    }

    /// A tensor.
    pub fn tensor(&self, position: usize) -> Result<Tensor> {
        self.tensor_or(position)?.ok_or_else(|| wrong(position, "a tensor"))
    }

    /// A tensor. `None` if it was left out.
    pub fn tensor_or(&self, position: usize) -> Result<Option<Tensor>> {
        match self.0.get(position) {
            None | Some(ArgValue::None) => Ok(None),
            Some(ArgValue::Tensor(tensor)) => Ok(Some(tensor.clone())),
            Some(ArgValue::Donated(tensor)) => Ok(tensor.borrow_mut().take()),
            Some(_) => Err(wrong(position, "a tensor")),
        }
    }

    /// A floating-point number; an integer will do.
    pub fn float(&self, position: usize) -> Result<f64> {
        self.float_or(position)?.ok_or_else(|| wrong(position, "a number"))
    }

    /// A floating-point number; an integer will do. `None` if it was left out.
    pub fn float_or(&self, position: usize) -> Result<Option<f64>> {
        match self.0.get(position) {
            None | Some(ArgValue::None) => Ok(None),
            Some(ArgValue::Float(v)) => Ok(Some(*v)),
            Some(ArgValue::Int(v)) => Ok(Some(*v as f64)),
            Some(_) => Err(wrong(position, "a number")),
        }
    }

    /// A tensor or a plain number.
    pub fn operand(&self, position: usize) -> Result<Operand> {
        match self.0.get(position) {
            Some(ArgValue::Tensor(_) | ArgValue::Donated(_)) => Ok(self.tensor(position)?.into()),
            Some(ArgValue::Int(v)) => Ok((*v).into()),
            Some(ArgValue::Float(v)) => Ok((*v).into()),
            Some(ArgValue::Bool(v)) => Ok((*v).into()),
            _ => Err(wrong(position, "a tensor or a number")),
        }
    }

    /// A plain number of any kind.
    pub fn scalar(&self, position: usize) -> Result<Scalar> {
        self.scalar_or(position)?.ok_or_else(|| wrong(position, "a number"))
    }

    /// A plain number of any kind. `None` if it was left out.
    pub fn scalar_or(&self, position: usize) -> Result<Option<Scalar>> {
        match self.0.get(position) {
            None | Some(ArgValue::None) => Ok(None),
            Some(ArgValue::Int(v)) => Ok(Some((*v).into())),
            Some(ArgValue::Float(v)) => Ok(Some((*v).into())),
            Some(ArgValue::Bool(v)) => Ok(Some((*v).into())),
            Some(_) => Err(wrong(position, "a number")),
        }
    }

    /// Axes: one integer, several, or left out.
    pub fn axes(&self, position: usize) -> Result<Option<Vec<isize>>> {
        match self.0.get(position) {
            Some(ArgValue::Int(v)) => Ok(Some(vec![*v as isize])),
            _ => Ok(self.ints_or(position)?.map(|v| v.into_iter().map(|v| v as isize).collect())),
        }
    }

    /// A shape: integers, none of them negative.
    pub fn shape(&self, position: usize) -> Result<Vec<usize>> {
        self.ints(position)?.into_iter().map(dimension).collect()
    }

    /// The size of a dimension: an integer that is not negative.
    pub fn size(&self, position: usize) -> Result<usize> {
        dimension(self.int(position)?)
    }

    /// How many of something: one integer or several, none of them negative.
    pub fn counts(&self, position: usize) -> Result<Vec<usize>> {
        let given = match self.0.get(position) {
            Some(ArgValue::Int(v)) => vec![*v],
            _ => self.ints(position)?,
        };
        let negative = |v| Error::value(format!("{v} is negative and counts nothing"));
        given.into_iter().map(|v| usize::try_from(v).map_err(|_| negative(v))).collect()
    }

    /// Pairs of counts, one pair after the other.
    pub fn pairs(&self, position: usize) -> Result<Vec<[usize; 2]>> {
        let flat = self.counts(position)?;
        let (pairs, rest) = flat.as_chunks();
        if rest.is_empty() { Ok(pairs.to_vec()) } else { Err(wrong(position, "a list of pairs")) }
    }
}

fn dimension(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::shape(format!("a dimension of {value} does not exist")))
}

/// The result of a function with one output, as [`OpEntry::call`] returns it.
pub fn one(result: Result<Tensor>) -> Result<Vec<Tensor>> {
    Ok(vec![result?])
}

#[cold]
fn wrong(position: usize, what: &str) -> Error {
    Error::value(format!("argument {position} must be {what}"))
}

impl OpEntry {
    /// Calls the op with these arguments. What goes wrong names the op, even if it is an argument of the wrong kind.
    #[track_caller]
    pub fn invoke(&self, args: &[ArgValue]) -> Result<Vec<Tensor>> {
        let at = Location::caller();
        (self.call)(&Args(args)).map_err(|error| error.in_op(self.name, []).at(at))
    }

    /// The group it belongs to: the folder its file is in.
    pub fn group(&self) -> &'static str {
        super::home(self).map_or("", |(group, _)| group)
    }

    /// The function's documentation, read from the comment above it so that there is only one.
    pub fn doc(&self) -> String {
        let Some((_, source)) = super::home(self) else { return String::new() };
        // A name that is a word of Rust's own has an underscore in Rust.
        let mut heads = ["(", "<", "_(", "_<"].iter().map(|end| format!("\npub fn {}{end}", self.name));
        let Some(at) = heads.find_map(|head| source.find(&head)) else { return String::new() };
        let mut lines: Vec<&str> = source[..at]
            .lines()
            .rev()
            .take_while(|line| line.starts_with("///") || line.starts_with("#["))
            .filter_map(|line| line.strip_prefix("///"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        lines.reverse();
        lines.join("\n")
    }
}
