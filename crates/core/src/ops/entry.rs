//! The entry of an op in the table: all that is needed to call, document, bind and test it generically.

use super::sample;
use crate::error::{Error, ErrorKind, Result};
use crate::scalar::{Operand, Scalar};
use crate::tensor::Tensor;
use std::borrow::Cow;
use std::cell::RefCell;
use taut_kernels::DType;
use taut_kernels::dtype::Complex;
use taut_memory::Location;

/// An entry of the op table.
#[derive(Clone, Copy)]
pub struct OpEntry {
    /// The function's name.
    pub name: &'static str,
    /// Its parameters, in positional order.
    pub params: &'static [Param],
    /// Calls the function; use [`OpEntry::invoke`], which adds the op's name to errors.
    pub call: fn(&Args<'_>) -> Result<Vec<Tensor>>,
    /// The reference that tests compare the result with.
    pub reference: Reference,
    /// Valid arguments for tests.
    pub samples: Samples,
    /// Arguments that the op must reject, with the expected errors.
    pub invalid_args: fn() -> Vec<InvalidArgs>,
    /// Whether the result's shape depends on the values of an input, so that the op cannot be traced.
    pub has_data_dependent_shape: bool,
}

impl OpEntry {
    /// An entry without invalid arguments.
    pub const fn new(
        name: &'static str,
        params: &'static [Param],
        call: fn(&Args<'_>) -> Result<Vec<Tensor>>,
        reference: Reference,
        samples: Samples,
    ) -> OpEntry {
        OpEntry {
            name,
            params,
            call,
            reference,
            samples,
            invalid_args: Vec::new,
            has_data_dependent_shape: false,
        }
    }

    /// The entry with arguments that the op must reject.
    #[must_use]
    pub const fn refuses(mut self, invalid_args: fn() -> Vec<InvalidArgs>) -> OpEntry {
        self.invalid_args = invalid_args;
        self
    }

    /// The entry of an op whose result's shape depends on the values of an input.
    #[must_use]
    pub const fn with_data_dependent_shape(mut self) -> OpEntry {
        self.has_data_dependent_shape = true;
        self
    }
}

/// The source of an entry's test arguments.
#[derive(Clone, Copy)]
pub enum Samples {
    /// One tensor of each of these dtypes, with elements in this range.
    Unary(&'static [DType], f64, f64),
    /// Two tensors with broadcastable shapes, of each of these dtypes, with elements in these ranges.
    Binary(&'static [DType], (f64, f64), (f64, f64)),
    /// An explicit list of argument lists.
    List(fn() -> Vec<Vec<ArgValue>>),
}

impl Samples {
    /// The argument lists, one per call.
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
    /// The kind of argument it accepts.
    pub kind: ParamKind,
    /// Its default as a Python expression; `None` if the argument is required.
    pub default: Option<&'static str>,
}

impl Param {
    /// A required parameter.
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

    /// A required tensor.
    pub const fn tensor(name: &'static str) -> Param {
        Param::new(name, ParamKind::Tensor)
    }

    /// An optional parameter.
    pub const fn optional(name: &'static str, kind: ParamKind, default: &'static str) -> Param {
        Param { name, kind, default: Some(default) }
    }
}

/// The kind of argument that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor.
    Tensor,
    /// A tensor or a scalar.
    Operand,
    /// A list of tensors.
    Tensors,
    /// An integer.
    Int,
    /// A list of integers: a shape, axes, …
    Ints,
    /// Pairs of integers: (before, after) per axis.
    Pairs,
    /// A floating-point number.
    Float,
    /// A scalar of any kind (bool, integer, float, complex), not converted.
    Scalar,
    /// A boolean.
    Bool,
    /// An element type.
    DType,
    /// A string.
    Str,
}

/// The reference for a result: a Python expression over the parameters' names, `np` (NumPy) and `sp` (`scipy.special`).
#[derive(Clone, Copy, Debug)]
pub enum Reference {
    /// The expected result, or a tuple of the expected results.
    Numpy(&'static str),
    /// A condition on the result `out` (a list if there are several) that must be true.
    Property(&'static str),
}

/// Arguments that an op must reject, and the expected error.
pub struct InvalidArgs {
    /// The arguments.
    pub args: Vec<ArgValue>,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// A substring of its message.
    pub message: &'static str,
}

impl InvalidArgs {
    /// Arguments that must be rejected with an error of this kind whose message contains `message`.
    pub fn new(args: Vec<ArgValue>, kind: ErrorKind, message: &'static str) -> InvalidArgs {
        InvalidArgs { args, kind, message }
    }
}

/// The value of an argument.
#[derive(Clone, Debug)]
pub enum ArgValue {
    /// Not given: the default applies.
    None,
    /// A tensor.
    Tensor(Tensor),
    /// A donated tensor: the call gets the only handle and may reuse its buffer.
    Donated(RefCell<Option<Tensor>>),
    /// A list of tensors.
    Tensors(Vec<Tensor>),
    /// An integer.
    Int(i64),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A floating-point number.
    Float(f64),
    /// A complex number.
    Complex(Complex<f64>),
    /// A boolean.
    Bool(bool),
    /// An element type.
    DType(DType),
    /// A string.
    Str(Cow<'static, str>),
}

impl ArgValue {
    /// The arguments with every tensor among them replaced by `change(tensor)`.
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

/// The arguments of a call, by position. A getter of the wrong kind is an error that names the position.
pub struct Args<'a>(pub &'a [ArgValue]);

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident / $optional:ident -> $ty:ty : $pattern:pat => $value:expr, $what:literal;)*) => {$(
        $(#[$doc])*
        pub fn $name(&self, position: usize) -> Result<$ty> {
            self.$optional(position)?.ok_or_else(|| wrong_kind(position, $what))
        }

        $(#[$doc])*
        ///
        /// `None` if it was not given.
        pub fn $optional(&self, position: usize) -> Result<Option<$ty>> {
            match self.0.get(position) {
                None | Some(ArgValue::None) => Ok(None),
                Some($pattern) => Ok(Some($value)),
                Some(_) => Err(wrong_kind(position, $what)),
            }
        }
    )*};
}

impl Args<'_> {
    getters! {
        /// A list of tensors.
        tensors / tensors_or -> Vec<Tensor>: ArgValue::Tensors(t) => t.clone(), "a list of tensors";
        /// An integer.
        int / int_or -> i64: ArgValue::Int(v) => *v, "an integer";
        /// A list of integers.
        ints / ints_or -> Vec<i64>: ArgValue::Ints(v) => v.clone(), "a list of integers";
        /// A boolean.
        bool / bool_or -> bool: ArgValue::Bool(v) => *v, "a boolean";
        /// An element type.
        dtype / dtype_or -> DType: ArgValue::DType(v) => *v, "a dtype";
        /// A string.
        str / str_or -> &str: ArgValue::Str(v) => v, "a string";
    }

    /// A tensor.
    pub fn tensor(&self, position: usize) -> Result<Tensor> {
        self.tensor_or(position)?.ok_or_else(|| wrong_kind(position, "a tensor"))
    }

    /// A tensor. `None` if it was not given.
    pub fn tensor_or(&self, position: usize) -> Result<Option<Tensor>> {
        match self.0.get(position) {
            None | Some(ArgValue::None) => Ok(None),
            Some(ArgValue::Tensor(tensor)) => Ok(Some(tensor.clone())),
            Some(ArgValue::Donated(tensor)) => Ok(tensor.borrow_mut().take()),
            Some(_) => Err(wrong_kind(position, "a tensor")),
        }
    }

    /// A floating-point number; an integer is converted.
    pub fn float(&self, position: usize) -> Result<f64> {
        self.float_or(position)?.ok_or_else(|| wrong_kind(position, "a number"))
    }

    /// A floating-point number; an integer is converted. `None` if it was not given.
    pub fn float_or(&self, position: usize) -> Result<Option<f64>> {
        match self.0.get(position) {
            None | Some(ArgValue::None) => Ok(None),
            Some(ArgValue::Float(v)) => Ok(Some(*v)),
            Some(ArgValue::Int(v)) => Ok(Some(*v as f64)),
            Some(_) => Err(wrong_kind(position, "a number")),
        }
    }

    /// A tensor or a scalar.
    pub fn operand(&self, position: usize) -> Result<Operand> {
        match self.0.get(position) {
            Some(ArgValue::Tensor(_) | ArgValue::Donated(_)) => Ok(self.tensor(position)?.into()),
            Some(ArgValue::Int(v)) => Ok((*v).into()),
            Some(ArgValue::Float(v)) => Ok((*v).into()),
            Some(ArgValue::Complex(v)) => Ok((*v).into()),
            Some(ArgValue::Bool(v)) => Ok((*v).into()),
            _ => Err(wrong_kind(position, "a tensor or a number")),
        }
    }

    /// A scalar of any kind.
    pub fn scalar(&self, position: usize) -> Result<Scalar> {
        self.scalar_or(position)?.ok_or_else(|| wrong_kind(position, "a number"))
    }

    /// A scalar of any kind. `None` if it was not given.
    pub fn scalar_or(&self, position: usize) -> Result<Option<Scalar>> {
        match self.0.get(position) {
            None | Some(ArgValue::None) => Ok(None),
            Some(ArgValue::Int(v)) => Ok(Some((*v).into())),
            Some(ArgValue::Float(v)) => Ok(Some((*v).into())),
            Some(ArgValue::Complex(v)) => Ok(Some((*v).into())),
            Some(ArgValue::Bool(v)) => Ok(Some((*v).into())),
            Some(_) => Err(wrong_kind(position, "a number")),
        }
    }

    /// Axes: one integer or a list; `None` if not given.
    pub fn axes(&self, position: usize) -> Result<Option<Vec<isize>>> {
        match self.0.get(position) {
            Some(ArgValue::Int(v)) => Ok(Some(vec![*v as isize])),
            _ => Ok(self.ints_or(position)?.map(|v| v.into_iter().map(|v| v as isize).collect())),
        }
    }

    /// A shape: a list of integers >= 0.
    pub fn shape(&self, position: usize) -> Result<Vec<usize>> {
        self.ints(position)?.into_iter().map(dimension).collect()
    }

    /// The size of a dimension: an integer >= 0.
    pub fn size(&self, position: usize) -> Result<usize> {
        dimension(self.int(position)?)
    }

    /// Counts: one integer or a list, all >= 0.
    pub fn counts(&self, position: usize) -> Result<Vec<usize>> {
        let given = match self.0.get(position) {
            Some(ArgValue::Int(v)) => vec![*v],
            _ => self.ints(position)?,
        };
        let negative = |v| Error::value(format!("argument {position} must be >= 0, got {v}"));
        given.into_iter().map(|v| usize::try_from(v).map_err(|_| negative(v))).collect()
    }

    /// Pairs of counts, from a flat list `[before_0, after_0, before_1, after_1, …]`.
    pub fn pairs(&self, position: usize) -> Result<Vec<[usize; 2]>> {
        let flat = self.counts(position)?;
        let (pairs, rest) = flat.as_chunks();
        if rest.is_empty() { Ok(pairs.to_vec()) } else { Err(wrong_kind(position, "a list of pairs")) }
    }
}

fn dimension(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::shape(format!("dimension must be >= 0, got {value}")))
}

/// The result of a function with one output, as [`OpEntry::call`] returns it.
pub fn one(result: Result<Tensor>) -> Result<Vec<Tensor>> {
    Ok(vec![result?])
}

#[cold]
fn wrong_kind(position: usize, what: &str) -> Error {
    Error::value(format!("argument {position} must be {what}"))
}

impl OpEntry {
    /// Calls the op with these arguments. Every error names the op, also that of an argument of the wrong kind.
    #[track_caller]
    pub fn invoke(&self, args: &[ArgValue]) -> Result<Vec<Tensor>> {
        let at = Location::caller();
        (self.call)(&Args(args)).map_err(|error| error.in_op(self.name, []).at(at))
    }

    /// Its group: the folder of its file.
    pub fn group(&self) -> &'static str {
        super::home(self).map_or("", |(group, _)| group)
    }

    /// The function's documentation, read from its doc comment in the source.
    pub fn doc(&self) -> String {
        let Some((_, source)) = super::home(self) else { return String::new() };
        // A name that is a Rust keyword has a trailing underscore.
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
