//! The arctangent of a quotient with the correct quadrant.

use crate::error::Result;
use crate::ops::binary::{add, div, maximum, mul};
use crate::ops::elementwise::binary;
use crate::ops::sample::{dtypes, invalid_binary};
use crate::ops::unary::{abs, neg, square};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::record::detached;
use crate::{Operand, Saves, Tensor};
use taut_kernels::elementwise::Binary;

static ATAN2: Elementwise = Elementwise::binary("atan2", Binary::Atan2, ComputeDType::Float).grad(
    |_| Saves::inputs([0, 1]),
    |call, g, i| {
        // Both are divided by the larger one, so that no square overflows or underflows; the result does not depend on the scale.
        let (y, x) = (call.input(0)?, call.input(1)?);
        let scale = maximum(abs(detached(y))?, abs(detached(x))?)?;
        let (y, x) = (div(y, &scale)?, div(x, &scale)?);
        let length = mul(add(square(&x)?, square(&y)?)?, scale)?;
        if i == 0 { mul(g, div(x, length)?) } else { mul(g, div(neg(y)?, length)?) }
    },
);

/// The angle of the point `(x, y)` in [-pi, pi]: the arctangent of `y / x` in the correct quadrant.
///
/// ```
/// use taut_core::{Tensor, ops::binary::atan2};
/// let y = Tensor::from_slice(&[0.0f32, 0.0], [2])?;
/// let x = Tensor::from_slice(&[1.0f32, -1.0], [2])?;
/// assert_eq!(atan2(&y, &x)?.to_vec::<f32>()?, [0.0, std::f32::consts::PI]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn atan2(y: impl Into<Operand>, x: impl Into<Operand>) -> Result<Tensor> {
    binary(&ATAN2, y.into(), x.into())
}

const YX: &[Param] = &[Param::new("y", ParamKind::Operand), Param::new("x", ParamKind::Operand)];

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "atan2",
    YX,
    |a| one(atan2(a.operand(0)?, a.operand(1)?)),
    Reference::Numpy("np.arctan2(y, x)"),
    Samples::Binary(dtypes::ALL, (-3.0, 3.0), (-2.0, 2.0)),
)
.refuses(|| invalid_binary(&[]))];
