//! Logical and bitwise negation.

use crate::error::Result;
use crate::ops::elementwise::unary;
use crate::ops::sample::{dtypes, invalid_unary};
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Tensor};
use taut_kernels::elementwise::Unary;

static LOGICAL_NOT: Elementwise = Elementwise::unary("logical_not", Unary::LogicalNot, ComputeDType::Same);
static BITWISE_NOT: Elementwise = Elementwise::unary("bitwise_not", Unary::BitwiseNot, ComputeDType::Same);

/// Logical negation: true where an element is zero or false.
///
/// ```
/// use taut_core::{Tensor, ops::unary::logical_not};
/// let x = Tensor::from_slice(&[true, false], [2])?;
/// assert_eq!(logical_not(&x)?.to_vec::<bool>()?, [false, true]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn logical_not(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&LOGICAL_NOT, x.into())
}

/// Bitwise complement; of bools, [`logical_not`]. Also `!x` on tensors.
#[inline]
#[track_caller]
pub fn bitwise_not(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&BITWISE_NOT, x.into())
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "logical_not",
        Param::X,
        |a| one(logical_not(a.tensor(0)?)),
        Reference::Numpy("np.logical_not(x)"),
        Samples::Unary(dtypes::ALL, -2.0, 2.0),
    ),
    OpEntry::new(
        "bitwise_not",
        Param::X,
        |a| one(bitwise_not(a.tensor(0)?)),
        Reference::Numpy("np.invert(x)"),
        Samples::Unary(dtypes::BITS, -100.0, 100.0),
    )
    .refuses(|| invalid_unary(&[DType::F32])),
];
