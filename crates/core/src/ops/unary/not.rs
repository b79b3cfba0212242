//! Negation of truth and of bits.

use crate::error::Result;
use crate::ops::elementwise::unary;
use crate::ops::sample::{bad_unary, dtypes};
use crate::ops::{Elementwise, OpEntry, Param, Reference, Samples, Types, one};
use crate::{DType, Tensor};
use taut_kernels::elementwise::Unary;

static LOGICAL_NOT: Elementwise = Elementwise::unary("logical_not", Unary::LogicalNot, Types::Same);
static BITWISE_NOT: Elementwise = Elementwise::unary("bitwise_not", Unary::BitwiseNot, Types::Same);

/// True where an element is zero or false.
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

/// Every bit of each element the other way round; of bools, [`logical_not`]. Also `!x` on tensors.
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
    .refuses(|| bad_unary(&[DType::F32])),
];
