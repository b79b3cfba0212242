//! The logarithm of a sum of exponentials.

use crate::error::Result;
use crate::ops::binary::{mul, sub};
use crate::ops::reduction::{
    ReduceAxes, ReductionCode, ReductionGradient, clamp_to_finite_min, reduce_float,
};
use crate::ops::sample::{dtypes, invalid_axes, reductions};
use crate::ops::unary::exp;
use crate::ops::{OpEntry, Param, Reference, Samples, one};
use crate::{Saves, Tensor};
use taut_kernels::reduce::Reduce;

static LOGSUMEXP: ReductionGradient = ReductionGradient {
    saves: |_| Saves::INPUT.and(Saves::OUTPUT),
    residual: None,
    partial: |op, call, g| {
        let x = call.input(0)?;
        let y = clamp_to_finite_min(call.output(0)?)?;
        mul(exp(sub(x, op.keep_dims(y, x.shape())?)?)?, g)
    },
};

/// `log(sum(exp(x)))` over axes, computed without overflow; over all axes if `axes` is `None`.
///
/// ```
/// use taut_core::{Tensor, ops::reduce::logsumexp};
/// let x = Tensor::from_slice(&[1000.0f64, 1000.0], [2])?;
/// assert_eq!(logsumexp(&x, None, false)?.item::<f64>()?, 1000.0 + 2.0f64.ln());
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn logsumexp(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce_float(
        "logsumexp",
        ReductionCode::Reduce(Reduce::LogSumExp),
        x.into(),
        axes.into(),
        keepdims,
        Some(&LOGSUMEXP),
    )
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "logsumexp",
    Param::REDUCTION,
    |a| one(logsumexp(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
    Reference::Numpy(
        "np.log(np.sum(np.exp(x.astype(np.float64)), axis=axes, keepdims=keepdims)).astype(x.dtype if x.dtype.kind == 'f' \
         else np.float64)",
    ),
    Samples::List(|| reductions(dtypes::ALL, -3.0, 3.0)),
)
.refuses(invalid_axes)];
