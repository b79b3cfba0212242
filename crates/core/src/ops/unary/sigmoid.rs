//! The logistic function and softplus, its integral.

use crate::error::Result;
use crate::ops::binary::{mul, sub};
use crate::ops::elementwise::unary;
use crate::ops::sample::dtypes;
use crate::ops::{ComputeDType, Elementwise, OpEntry, Param, Reference, Samples, one};
use crate::{Saves, Tensor};
use taut_kernels::elementwise::Unary;

static SIGMOID: Elementwise = Elementwise::unary("sigmoid", Unary::Sigmoid, ComputeDType::Float).grad(
    |_| Saves::OUTPUT,
    |call, g, _| {
        let y = call.output(0)?;
        mul(mul(g, y)?, sub(1.0, y)?)
    },
);
static SOFTPLUS: Elementwise = Elementwise::unary("softplus", Unary::Softplus, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, sigmoid(call.input(0)?)?));

/// The logistic function, `1 / (1 + exp(-x))`.
///
/// ```
/// use taut_core::{Tensor, ops::unary::sigmoid};
/// let x = Tensor::from_slice(&[0.0f32, f32::INFINITY], [2])?;
/// assert_eq!(sigmoid(&x)?.to_vec::<f32>()?, [0.5, 1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn sigmoid(x: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SIGMOID, x.into())
}

/// Softplus, `log(1 + exp(features))`, a smooth [`relu`](super::relu()), computed without overflow.
#[inline]
#[track_caller]
pub fn softplus(features: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SOFTPLUS, features.into())
}

const FEATURES: &[Param] = &[Param::tensor("features")];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "sigmoid",
        Param::X,
        |a| one(sigmoid(a.tensor(0)?)),
        Reference::Numpy(
            "1 / (1 + np.exp(-x)) if x.dtype.kind == 'c' else sp.expit(x).astype(np.exp(x).dtype)",
        ),
        Samples::Unary(dtypes::EVERY, -8.0, 8.0),
    ),
    OpEntry::new(
        "softplus",
        FEATURES,
        |a| one(softplus(a.tensor(0)?)),
        Reference::Numpy("np.logaddexp(features, 0).astype(np.exp(features).dtype)"),
        Samples::Unary(dtypes::ALL, -8.0, 8.0),
    ),
];
