//! Rounding to integers. Integer tensors are returned unchanged.

use crate::Tensor;
use crate::error::Result;
use crate::ops::elementwise::unary;
use crate::ops::sample::{dtypes, of, unary as samples};
use crate::ops::{ArgValue, ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use taut_kernels::elementwise::Unary;

static FLOOR: Elementwise = Elementwise::unary("floor", Unary::Floor, ComputeDType::Same);
static CEIL: Elementwise = Elementwise::unary("ceil", Unary::Ceil, ComputeDType::Same);
static TRUNC: Elementwise = Elementwise::unary("trunc", Unary::Trunc, ComputeDType::Same);
static ROUND: Elementwise = Elementwise::unary("round", Unary::Round, ComputeDType::Float);

/// Rounds down: the largest integer <= each element.
#[inline]
#[track_caller]
pub fn floor(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    if x.dtype().is_inexact() { unary(&FLOOR, x) } else { Ok(x) }
}

/// Rounds up: the smallest integer >= each element.
#[inline]
#[track_caller]
pub fn ceil(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    if x.dtype().is_inexact() { unary(&CEIL, x) } else { Ok(x) }
}

/// Rounds toward zero.
#[inline]
#[track_caller]
pub fn trunc(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    if x.dtype().is_inexact() { unary(&TRUNC, x) } else { Ok(x) }
}

/// Rounds to the nearest integer; ties go to the even one.
///
/// ```
/// use taut_core::{Tensor, ops::unary::round};
/// let x = Tensor::from_slice(&[0.5f32, 1.5, 2.5, -0.6], [4])?;
/// assert_eq!(round(&x)?.to_vec::<f32>()?, [0.0, 2.0, 2.0, -1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn round(x: impl Into<Tensor>) -> Result<Tensor> {
    let x = x.into();
    if x.dtype().is_integer() { Ok(x) } else { unary(&ROUND, x) }
}

/// Every dtype, and ties of floats.
fn with_ties() -> Vec<Vec<ArgValue>> {
    let mut list = samples(dtypes::ALL, -3.0, 3.0);
    let ties = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5];
    list.extend(dtypes::FLOATS.iter().map(|&dtype| vec![of(dtype, &[7], &ties)]));
    list
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "floor",
        Param::X,
        |a| one(floor(a.tensor(0)?)),
        Reference::Numpy("np.floor(x)"),
        Samples::List(with_ties),
    ),
    OpEntry::new(
        "ceil",
        Param::X,
        |a| one(ceil(a.tensor(0)?)),
        Reference::Numpy("np.ceil(x)"),
        Samples::List(with_ties),
    ),
    OpEntry::new(
        "trunc",
        Param::X,
        |a| one(trunc(a.tensor(0)?)),
        Reference::Numpy("np.trunc(x)"),
        Samples::List(with_ties),
    ),
    OpEntry::new(
        "round",
        Param::X,
        |a| one(round(a.tensor(0)?)),
        Reference::Numpy("np.round(x)"),
        Samples::List(with_ties),
    ),
];
