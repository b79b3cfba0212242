//! The larger and the smaller of two.

use crate::error::Result;
use crate::ops::binary::equal;
use crate::ops::elementwise::binary;
use crate::ops::index::{keep_bits, pack_bits};
use crate::ops::sample::{bad_binary, dtypes};
use crate::ops::{Elementwise, OpEntry, Param, Reference, Samples, Types, one};
use crate::{Operand, Saves, Tensor, VjpCall};
use taut_kernels::elementwise::Binary;

static MAXIMUM: Elementwise = Elementwise::binary("maximum", Binary::Maximum, Types::Same).grad_with(
    |_| Saves::residual_of([0]),
    chosen,
    |call, g, i| keep_bits(g, call.residual()?, i == 1),
);
static MINIMUM: Elementwise = Elementwise::binary("minimum", Binary::Minimum, Types::Same).grad_with(
    |_| Saves::residual_of([0]),
    chosen,
    |call, g, i| keep_bits(g, call.residual()?, i == 1),
);

/// Where x is the result: equals are x.
fn chosen(call: &VjpCall<'_>) -> Result<Tensor> {
    pack_bits(equal(call.output(0)?, call.input(0)?)?)
}

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

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "maximum",
        Param::XY,
        |a| one(maximum(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.maximum(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| bad_binary(&[])),
    OpEntry::new(
        "minimum",
        Param::XY,
        |a| one(minimum(a.operand(0)?, a.operand(1)?)),
        Reference::Numpy("np.minimum(x, y)"),
        Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
    )
    .refuses(|| bad_binary(&[])),
];
