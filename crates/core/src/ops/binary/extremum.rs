//! The larger and the smaller of two.

use crate::error::{ErrorKind, Result};
use crate::ops::elementwise::binary;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{Bad, Elementwise, Entry, Param, Reference, Samples, Types, one};
use crate::{DType, Operand, Tensor};
use taut_kernels::elementwise::Binary;

static MAXIMUM: Elementwise = Elementwise::binary("maximum", Binary::Maximum, Types::Same);
static MINIMUM: Elementwise = Elementwise::binary("minimum", Binary::Minimum, Types::Same);

/// The larger of x and y; NaN if either is.
///
/// ```
/// use taut_core::{Tensor, ops::binary::maximum};
/// let x = Tensor::from_slice(&[1, -1], [2])?;
/// assert_eq!(maximum(&x, 0)?.to_vec::<i32>()?, [1, 0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn maximum(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&MAXIMUM, x.into(), y.into())
}

/// The smaller of x and y; NaN if either is.
#[inline]
#[track_caller]
pub fn minimum(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&MINIMUM, x.into(), y.into())
}

fn bad() -> Vec<Bad> {
    let bad = |a, x: &[usize], b, y: &[usize], kind, message| {
        Bad::new(vec![ramp(a, x, 0.0, 1.0), ramp(b, y, 0.0, 1.0)], kind, message)
    };
    vec![bad(
        DType::F32,
        &[2, 3],
        DType::F32,
        &[2],
        ErrorKind::Shape,
        "shapes [2, 3] and [2] do not broadcast",
    )]
}

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::new(
        "maximum",
        Param::XY,
        |a| one(maximum(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.maximum(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(bad),
    Entry::new(
        "minimum",
        Param::XY,
        |a| one(minimum(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.minimum(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(bad),
];
