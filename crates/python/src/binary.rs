//! Functions of two operands: the code behind `a + b` and behind `tf.add(a, b)`.

use crate::array::{Array, wrap};
use crate::call::call;
use crate::convert;
use crate::line;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use taut::graph::suspend_tracing;
use taut::{DType, Operand, Tensor};

/// A function of two operands.
pub type BinaryFunction = fn(Operand, Operand) -> taut::Result<Tensor>;

macro_rules! binary_functions {
    ($($name:literal: $function:path;)*) => {
        /// The function of an op of the op table, if it is one of two operands.
        pub fn function(op: &str) -> Option<BinaryFunction> {
            match op {
                $($name => Some(|x, y| $function(x, y)),)*
                _ => None,
            }
        }
    };
}

binary_functions! {
    "add": taut::add;
    "sub": taut::sub;
    "mul": taut::mul;
    "div": taut::div;
    "floor_div": floor_div;
    "mod": mod_;
    "truncate_mod": truncate_mod;
    "pow": pow;
    "maximum": taut::maximum;
    "minimum": taut::minimum;
    "equal": taut::equal;
    "not_equal": taut::not_equal;
    "less": taut::less;
    "less_equal": taut::less_equal;
    "greater": taut::greater;
    "greater_equal": taut::greater_equal;
    "logical_and": taut::logical_and;
    "logical_or": taut::logical_or;
    "logical_xor": taut::logical_xor;
    "bitwise_and": taut::bitwise_and;
    "bitwise_or": taut::bitwise_or;
    "bitwise_xor": taut::bitwise_xor;
    "left_shift": taut::left_shift;
    "right_shift": taut::right_shift;
}

macro_rules! logical_or_bitwise {
    ($($name:ident: $logical:path, $bitwise:path;)*) => {$(
        /// The logical function of booleans, the bitwise function of integers.
        pub fn $name(x: Operand, y: Operand) -> taut::Result<Tensor> {
            if is_bool(&x) && is_bool(&y) { $logical(x, y) } else { $bitwise(x, y) }
        }
    )*};
}

logical_or_bitwise! {
    and: taut::logical_and, taut::bitwise_and;
    or: taut::logical_or, taut::bitwise_or;
    xor: taut::logical_xor, taut::bitwise_xor;
}

macro_rules! checked_division {
    ($($name:ident: $function:path;)*) => {$(
        /// The function of floats; of integers, an error if a divisor is 0, as in TensorFlow.
        pub fn $name(x: Operand, y: Operand) -> taut::Result<Tensor> {
            check_divisor(&x, &y)?;
            $function(x, y)
        }
    )*};
}

checked_division! {
    floor_div: taut::floor_div;
    mod_: taut::mod_;
    truncate_mod: taut::truncate_mod;
}

/// Refuses an integer divisor of 0. A divisor that is traced is checked whenever the function runs.
fn check_divisor(x: &Operand, y: &Operand) -> taut::Result<()> {
    let is_empty = |operand: &Operand| matches!(operand, Operand::Tensor(tensor) if tensor.is_empty());
    if is_float(x) || is_float(y) || is_empty(x) {
        return Ok(());
    }
    match y {
        Operand::Scalar(scalar) if scalar.to_f64() != 0.0 => Ok(()),
        Operand::Scalar(_) => Err(taut::Error::value(DIVISION_BY_ZERO)),
        Operand::Tensor(divisor) => {
            taut::ensure(taut::all(divisor.clone(), None, false)?, DIVISION_BY_ZERO).map(drop)
        }
    }
}

/// The power of floats; of integers, an error if an exponent is negative, as in TensorFlow.
pub fn pow(x: Operand, y: Operand) -> taut::Result<Tensor> {
    check_exponent(&x, &y)?;
    taut::pow(x, y)
}

/// `x == y`: false if the shapes cannot be broadcast, as in TensorFlow.
pub fn equal(x: Operand, y: Operand) -> taut::Result<Tensor> {
    if can_broadcast(&x, &y) { taut::equal(x, y) } else { Tensor::scalar(false) }
}

/// `x != y`: true if the shapes cannot be broadcast, as in TensorFlow.
pub fn not_equal(x: Operand, y: Operand) -> taut::Result<Tensor> {
    if can_broadcast(&x, &y) { taut::not_equal(x, y) } else { Tensor::scalar(true) }
}

fn can_broadcast(x: &Operand, y: &Operand) -> bool {
    match (x, y) {
        (Operand::Tensor(x), Operand::Tensor(y)) => x.shape().broadcast(y.shape()).is_ok(),
        _ => true,
    }
}

/// Refuses a negative integer power of an integer. An exponent that is traced is checked whenever the function runs.
fn check_exponent(x: &Operand, y: &Operand) -> taut::Result<()> {
    if is_float(x) || is_float(y) {
        return Ok(());
    }
    match y {
        Operand::Scalar(scalar) if scalar.to_f64() >= 0.0 => Ok(()),
        Operand::Scalar(_) => Err(taut::Error::value(NEGATIVE_POWER)),
        Operand::Tensor(power) if is_unsigned(power.dtype()) || power.is_empty() => Ok(()),
        Operand::Tensor(power) => {
            let usable = taut::all(taut::greater_equal(power.clone(), 0)?, None, false)?;
            taut::ensure(usable, NEGATIVE_POWER).map(drop)
        }
    }
}

fn is_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64)
}

const NEGATIVE_POWER: &str = "negative power of an integer: the exponents must be >= 0";

const DIVISION_BY_ZERO: &str = "integer division by zero: the divisor must not be 0";

fn is_float(operand: &Operand) -> bool {
    match operand {
        Operand::Tensor(tensor) => tensor.dtype().is_inexact(),
        Operand::Scalar(scalar) => matches!(scalar, taut::Scalar::Float(_) | taut::Scalar::Complex(_)),
    }
}

fn is_bool(operand: &Operand) -> bool {
    match operand {
        Operand::Tensor(tensor) => tensor.dtype() == DType::Bool,
        Operand::Scalar(scalar) => matches!(scalar, taut::Scalar::Bool(_)),
    }
}

fn bytes(operand: &Operand) -> usize {
    match operand {
        Operand::Tensor(tensor) => tensor.spec().bytes(),
        Operand::Scalar(_) => 0,
    }
}

/// Whether the result of a call can be computed while tracing, as that of an arithmetic with sizes.
fn is_static(x: &Operand, y: &Operand) -> bool {
    let is_known = |operand: &Operand| match operand {
        Operand::Tensor(tensor) => convert::is_static(tensor),
        Operand::Scalar(_) => true,
    };
    let is_float = |operand: &Operand| {
        matches!(operand, Operand::Scalar(taut::Scalar::Float(_) | taut::Scalar::Complex(_)))
    };
    let is_scalar = |operand: &Operand| match operand {
        Operand::Tensor(tensor) => tensor.rank() == 0,
        Operand::Scalar(_) => true,
    };
    let is_small = !(is_float(x) || is_float(y)) || is_scalar(x) && is_scalar(y);
    is_known(x) && is_known(y) && is_small
}

/// Calls a function of two operands. Python numbers and lists take the element type of the tensor beside them.
#[inline]
pub fn apply(py: Python<'_>, x: Operand, y: Operand, function: BinaryFunction) -> PyResult<Bound<'_, PyAny>> {
    let total = bytes(&x) + bytes(&y);
    let is_static = taut_core::is_tracing() && is_static(&x, &y);
    wrap(py, call(py, total, || if is_static { suspend_tracing(|| function(x, y)) } else { function(x, y) })?)
}

/// The operator of an array: `array + other`, or `other + array` if `swapped`.
#[inline]
pub fn operator<'py>(
    array: &Bound<'py, Array>,
    other: &Bound<'py, PyAny>,
    swapped: bool,
    function: BinaryFunction,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let Some(other) = convert::operand(other, Some(array.get().spec().dtype))? else {
        return Ok(py.NotImplemented().into_bound(py));
    };
    let own = Operand::Tensor(array.get().read()?);
    let (x, y) = if swapped { (other, own) } else { (own, other) };
    apply(py, x, y, function)
}

/// The function of an op: `op(x, y)`. `name` and `param` give the names of function and parameters in errors.
#[inline]
pub fn op<'py>(
    x: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    function: BinaryFunction,
    name: &str,
    param: impl Fn(usize) -> String,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = [x, y].into_iter().find_map(|one| one.cast::<Array>().ok().map(|one| one.get().spec().dtype));
    let operand = |object: &Bound<'py, PyAny>, place: usize| match convert::operand(object, dtype) {
        Ok(Some(operand)) => Ok(operand),
        Ok(None) => Err(not_an_operand(object, name, &param(place))),
        Err(error) => Err(crate::error::in_argument(object.py(), name, &param(place), &error)),
    };
    apply(x.py(), operand(x, 0)?, operand(y, 1)?, function)
}

#[cold]
fn not_an_operand(object: &Bound<'_, PyAny>, name: &str, param: &str) -> PyErr {
    let given = convert::described(object);
    let at = line::here(object.py());
    PyTypeError::new_err(format!(
        "{name}: {param} must be a tensor, an array or a number, got {given}\n  at {at}"
    ))
}
