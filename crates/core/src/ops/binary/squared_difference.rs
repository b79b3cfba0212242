//! The squared difference.

use crate::error::Result;
use crate::ops::binary::{mul, sub};
use crate::ops::elementwise::binary;
use crate::ops::sample::{dtypes, invalid_binary};
use crate::ops::unary::conj;
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Operand, Saves, Scalar, Tensor};
use taut_kernels::elementwise::Binary;

static SQUARED_DIFFERENCE: Elementwise =
    Elementwise::binary("squared_difference", Binary::SquaredDifference, ComputeDType::Same).grad(
        |_| Saves::inputs([0, 1]),
        |call, g, i| mul(mul(g, 2)?, sub(call.input(i)?, call.input(1 - i)?)?),
    );

/// Elementwise squared difference, `(x - y)^2`; integers wrap.
///
/// ```
/// use taut_core::{Tensor, ops::binary::squared_difference};
/// let x = Tensor::from_slice(&[1.0f32, 5.0], [2])?;
/// assert_eq!(squared_difference(&x, 2.0)?.to_vec::<f32>()?, [1.0, 9.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn squared_difference(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    let (x, y) = (x.into(), y.into());
    let is_complex = |operand: &Operand| match operand {
        Operand::Tensor(tensor) => tensor.dtype().is_complex(),
        Operand::Scalar(scalar) => matches!(scalar, Scalar::Complex(_)),
    };
    if is_complex(&x) || is_complex(&y) {
        let difference = sub(x, y)?;
        return mul(conj(&difference)?, difference);
    }
    binary(&SQUARED_DIFFERENCE, x, y)
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "squared_difference",
    Param::XY,
    |a| one(squared_difference(a.operand(0)?, a.operand(1)?)),
    Reference::Numpy("np.conj(x - y) * (x - y)"),
    Samples::Binary(dtypes::ARITHMETIC, (-3.0, 3.0), (-2.0, 2.0)),
)
.refuses(|| invalid_binary(&[DType::Bool]))];
