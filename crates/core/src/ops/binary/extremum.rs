//! Elementwise maximum and minimum.

use crate::error::Result;
use crate::ops::binary::equal;
use crate::ops::elementwise::binary;
use crate::ops::index::{keep_bits, pack_bits};
use crate::ops::sample::{dtypes, invalid_binary};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{Operand, Saves, Tensor, VjpCall};
use taut_kernels::elementwise::Binary;

static MAXIMUM: Elementwise = Elementwise::binary("maximum", Binary::Maximum, ComputeDType::Same).grad_with(
    |_| Saves::residual_of([0]),
    x_is_result,
    |call, g, i| keep_bits(g, call.residual()?, i == 1),
);
static MINIMUM: Elementwise = Elementwise::binary("minimum", Binary::Minimum, ComputeDType::Same).grad_with(
    |_| Saves::residual_of([0]),
    x_is_result,
    |call, g, i| keep_bits(g, call.residual()?, i == 1),
);

/// The mask of elements where x is the result; ties count as x.
fn x_is_result(call: &VjpCall<'_>) -> Result<Tensor> {
    pack_bits(equal(call.output(0)?, call.input(0)?)?)
}

/// Elementwise maximum of x and y; NaN if either is NaN.
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

/// Elementwise minimum of x and y; NaN if either is NaN.
#[inline]
#[track_caller]
pub fn minimum(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    binary(&MINIMUM, x.into(), y.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "maximum",
        Param::XY,
        |a| one(maximum(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.maximum(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
    OpEntry::new(
        "minimum",
        Param::XY,
        |a| one(minimum(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.minimum(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| invalid_binary(&[])),
];
