//! The rectifier and its relatives.

use crate::error::Result;
use crate::ops::binary::clip_by_value;
use crate::ops::elementwise::unary;
use crate::ops::index::{keep_bits, pack_bits};
use crate::ops::sample::{bad_unary, dtypes, unary as samples};
use crate::ops::{Elementwise, Entry, Kind, Param, Reference, Samples, Types, Value, one};
use crate::{DType, Saves, Tensor};
use taut_kernels::elementwise::Unary;

static RELU: Elementwise = Elementwise::unary("relu", Unary::Relu, Types::Same).grad_with(
    |_| Saves::residual_of([]),
    |call| pack_bits(call.output(0)?),
    |call, g, _| keep_bits(g, call.residual()?, false),
);
static RELU6: Elementwise = Elementwise::unary("relu6", Unary::Relu6, Types::Same);
static SELU: Elementwise = Elementwise::unary("selu", Unary::Selu, Types::Float);

/// Each element, or zero where it is negative.
///
/// ```
/// use taut_core::{Tensor, ops::unary::relu};
/// let x = Tensor::from_slice(&[1.5f32, -1.5], [2])?;
/// assert_eq!(relu(&x)?.to_vec::<f32>()?, [1.5, 0.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn relu(features: impl Into<Tensor>) -> Result<Tensor> {
    unary(&RELU, features.into())
}

/// Each element, kept between 0 and 6.
#[inline]
#[track_caller]
pub fn relu6(features: impl Into<Tensor>) -> Result<Tensor> {
    let features = features.into();
    if features.dtype().is_integer() { clip_by_value(features, 0, 6) } else { unary(&RELU6, features) }
}

/// Each element, or `alpha` times it where it is negative.
#[inline]
#[track_caller]
pub fn leaky_relu(features: impl Into<Tensor>, alpha: f64) -> Result<Tensor> {
    unary(&Elementwise::unary("leaky_relu", Unary::LeakyRelu(alpha), Types::Float), features.into())
}

/// Each element, or `alpha * (exp(features) - 1)` where it is negative.
#[inline]
#[track_caller]
pub fn elu(features: impl Into<Tensor>, alpha: f64) -> Result<Tensor> {
    unary(&Elementwise::unary("elu", Unary::Elu(alpha), Types::Float), features.into())
}

/// [`elu`] scaled so that layers keep mean zero and variance one.
#[inline]
#[track_caller]
pub fn selu(features: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SELU, features.into())
}

fn with_alpha() -> Vec<Vec<Value>> {
    let alphas = [Value::None, Value::Float(0.3), Value::Float(1.5)];
    let calls = samples(dtypes::ALL, -4.0, 4.0).into_iter().zip(alphas.into_iter().cycle());
    calls.map(|(args, alpha)| [args, vec![alpha]].concat()).collect()
}

const FEATURES: &[Param] = &[Param::tensor("features")];

pub(crate) const ENTRIES: &[Entry] = &[
    Entry::new(
        "relu",
        FEATURES,
        |a| one(relu(a.tensor(0)?)),
        Reference::Numpy("np.maximum(features, 0)"),
        Samples::Unary(dtypes::NUMBERS, -4.0, 4.0),
    )
    .refuses(|| bad_unary(&[DType::Bool])),
    Entry::new(
        "relu6",
        FEATURES,
        |a| one(relu6(a.tensor(0)?)),
        Reference::Numpy("np.minimum(np.maximum(features, 0), 6)"),
        Samples::Unary(dtypes::NUMBERS, -4.0, 12.0),
    )
    .refuses(|| bad_unary(&[DType::Bool])),
    Entry::new(
        "leaky_relu",
        &[Param::tensor("features"), Param::optional("alpha", Kind::Float, "0.2")],
        |a| one(leaky_relu(a.tensor(0)?, a.float_or(1)?.unwrap_or(0.2))),
        Reference::Numpy(
            "(lambda v, c: np.where(v > 0, v, c * v))(features.astype(float), 0.2 if alpha is None else alpha)\
             .astype(np.exp(features).dtype)",
        ),
        Samples::List(with_alpha),
    ),
    Entry::new(
        "elu",
        &[Param::tensor("features"), Param::optional("alpha", Kind::Float, "1.0")],
        |a| one(elu(a.tensor(0)?, a.float_or(1)?.unwrap_or(1.0))),
        Reference::Numpy(
            "(lambda v, c: np.where(v > 0, v, c * np.expm1(v)))(features.astype(float), 1 if alpha is None else alpha)\
             .astype(np.exp(features).dtype)",
        ),
        Samples::List(with_alpha),
    ),
    Entry::new(
        "selu",
        FEATURES,
        |a| one(selu(a.tensor(0)?)),
        Reference::Numpy(
            "(lambda v: 1.0507009873554805 * np.where(v > 0, v, 1.6732632423543772 * np.expm1(v)))\
             (features.astype(float)).astype(np.exp(features).dtype)",
        ),
        Samples::Unary(dtypes::ALL, -4.0, 4.0),
    ),
];
