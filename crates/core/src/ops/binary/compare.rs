//! Elementwise comparisons.

use crate::error::Result;
use crate::ops::elementwise::binary;
use crate::ops::sample::{dtypes, invalid_binary};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Operand, Tensor};
use taut_kernels::elementwise::Binary;

static EQUAL: Elementwise = Elementwise::binary("equal", Binary::Eq, ComputeDType::Same);
static NOT_EQUAL: Elementwise = Elementwise::binary("not_equal", Binary::Ne, ComputeDType::Same);
static LESS: Elementwise = Elementwise::binary("less", Binary::Lt, ComputeDType::Same);
static LESS_EQUAL: Elementwise = Elementwise::binary("less_equal", Binary::Le, ComputeDType::Same);
static GREATER: Elementwise = Elementwise::binary("greater", Binary::Gt, ComputeDType::Same);
static GREATER_EQUAL: Elementwise = Elementwise::binary("greater_equal", Binary::Ge, ComputeDType::Same);

/// Elementwise `x == y`; false where either is NaN.
///
/// ```
/// use taut_core::{Tensor, ops::binary::equal};
/// let x = Tensor::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(equal(&x, 2)?.to_vec::<bool>()?, [false, true, false]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn equal(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&EQUAL, x.into(), y.into())
}

/// Elementwise `x != y`; true where either is NaN.
#[inline]
#[track_caller]
pub fn not_equal(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&NOT_EQUAL, x.into(), y.into())
}

/// Elementwise `x < y`; false where either is NaN.
#[inline]
#[track_caller]
pub fn less(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&LESS, x.into(), y.into())
}

/// Elementwise `x <= y`; false where either is NaN.
#[inline]
#[track_caller]
pub fn less_equal(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&LESS_EQUAL, x.into(), y.into())
}

/// Elementwise `x > y`; false where either is NaN.
#[inline]
#[track_caller]
pub fn greater(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&GREATER, x.into(), y.into())
}

/// Elementwise `x >= y`; false where either is NaN.
#[inline]
#[track_caller]
pub fn greater_equal(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&GREATER_EQUAL, x.into(), y.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "equal",
        Param::XY,
        |a| one(equal(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.equal(x, y)"),
        Samples::Binary(dtypes::EVERY, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
    OpEntry::new(
        "not_equal",
        Param::XY,
        |a| one(not_equal(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.not_equal(x, y)"),
        Samples::Binary(dtypes::EVERY, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
    OpEntry::new(
        "less",
        Param::XY,
        |a| one(less(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.less(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[DType::C64, DType::C128])),
    OpEntry::new(
        "less_equal",
        Param::XY,
        |a| one(less_equal(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.less_equal(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[DType::C64, DType::C128])),
    OpEntry::new(
        "greater",
        Param::XY,
        |a| one(greater(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.greater(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[DType::C64, DType::C128])),
    OpEntry::new(
        "greater_equal",
        Param::XY,
        |a| one(greater_equal(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.greater_equal(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[DType::C64, DType::C128])),
];
