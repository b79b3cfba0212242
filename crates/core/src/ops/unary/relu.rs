//! The rectifier and its relatives.

use crate::error::Result;
use crate::ops::binary::{
    add, clip_by_value, greater, greater_equal, less, logical_and, minimum, mul, where_,
};
use crate::ops::elementwise::unary;
use crate::ops::index::{keep_bits, pack_bits, unpack_bits};
use crate::ops::sample::{bad_unary, dtypes, unary as samples};
use crate::ops::unary::exp;
use crate::ops::{
    ArgValue, Derivative, Elementwise, OpEntry, Param, ParamKind, Partial, Reference, Samples, Types, one,
};
use crate::{DType, Saves, Tensor};
use taut_kernels::elementwise::Unary;

static RELU: Elementwise = Elementwise::unary("relu", Unary::Relu, Types::Same).grad_with(
    |_| Saves::residual_of([]),
    |call| pack_bits(call.output(0)?),
    |call, g, _| keep_bits(g, call.residual()?, false),
);
static RELU6: Elementwise = Elementwise::unary("relu6", Unary::Relu6, Types::Same).grad_with(
    |_| Saves::residual_of([]),
    |call| pack_bits(logical_and(greater(call.output(0)?, 0)?, less(call.output(0)?, 6)?)?),
    |call, g, _| keep_bits(g, call.residual()?, false),
);
static SELU: Elementwise = Elementwise::unary("selu", Unary::Selu, Types::Float).grad(
    |_| Saves::OUTPUT,
    |call, g, _| {
        let (y, scale) = (call.output(0)?, 1.0507009873554805);
        // At zero it is the slope of the right side.
        mul(g, where_(greater_equal(y, 0)?, scale, add(y, scale * 1.6732632423543772)?)?)
    },
);

/// Of an output `x` above zero and `alpha * (exp(x) - 1)` below.
fn elu_slope(y: &Tensor, alpha: f64) -> Result<Tensor> {
    where_(greater(y, 0)?, 1.0, add(y, alpha)?)
}

const LEAKY: Partial = Partial::Alpha(|call, g, alpha| {
    let above = unpack_bits(call.residual()?, call.output_shape(0).clone())?;
    where_(above, &g, mul(&g, alpha)?)
});
/// The output has the input's sign.
static LEAKY_RELU: Derivative = Derivative {
    saves: |_| Saves::residual_of([]),
    residual: Some(|call| pack_bits(call.output(0)?)),
    partial: LEAKY,
};
/// With a negative alpha it has not.
static FOLDING_RELU: Derivative = Derivative {
    saves: |_| Saves::residual_of([0]),
    residual: Some(|call| pack_bits(call.input(0)?)),
    partial: LEAKY,
};
static ELU: Derivative = Derivative {
    saves: |_| Saves::OUTPUT,
    residual: None,
    partial: Partial::Alpha(|call, g, alpha| mul(g, elu_slope(call.output(0)?, alpha)?)),
};
/// With a negative alpha the output does not say which side of zero the input is on.
static FOLDING_ELU: Derivative = Derivative {
    saves: |_| Saves::INPUT,
    residual: None,
    partial: Partial::Alpha(|call, g, alpha| {
        let x = call.input(0)?;
        let below = mul(exp(minimum(x, 0)?)?, alpha)?;
        mul(g, where_(greater(x, 0)?, 1.0, below)?)
    }),
};

fn with_derivative(name: &'static str, code: Unary, derivative: Derivative) -> Elementwise {
    Elementwise { derivative: Some(derivative), ..Elementwise::unary(name, code, Types::Float) }
}

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
    let derivative = if alpha >= 0.0 { LEAKY_RELU } else { FOLDING_RELU };
    unary(&with_derivative("leaky_relu", Unary::LeakyRelu(alpha), derivative), features.into())
}

/// Each element, or `alpha * (exp(features) - 1)` where it is negative.
#[inline]
#[track_caller]
pub fn elu(features: impl Into<Tensor>, alpha: f64) -> Result<Tensor> {
    let derivative = if alpha >= 0.0 { ELU } else { FOLDING_ELU };
    unary(&with_derivative("elu", Unary::Elu(alpha), derivative), features.into())
}

/// [`elu`] scaled so that layers keep mean zero and variance one.
#[inline]
#[track_caller]
pub fn selu(features: impl Into<Tensor>) -> Result<Tensor> {
    unary(&SELU, features.into())
}

fn with_alpha() -> Vec<Vec<ArgValue>> {
    let alphas = [ArgValue::None, ArgValue::Float(0.3), ArgValue::Float(1.5)];
    let calls = samples(dtypes::ALL, -4.0, 4.0).into_iter().zip(alphas.into_iter().cycle());
    calls.map(|(args, alpha)| [args, vec![alpha]].concat()).collect()
}

const FEATURES: &[Param] = &[Param::tensor("features")];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "relu",
        FEATURES,
        |a| one(relu(a.tensor(0)?)),
        Reference::Numpy("np.maximum(features, 0)"),
        Samples::Unary(dtypes::NUMBERS, -4.0, 4.0),
    )
    .refuses(|| bad_unary(&[DType::Bool])),
    OpEntry::new(
        "relu6",
        FEATURES,
        |a| one(relu6(a.tensor(0)?)),
        Reference::Numpy("np.minimum(np.maximum(features, 0), 6)"),
        Samples::Unary(dtypes::NUMBERS, -4.0, 12.0),
    )
    .refuses(|| bad_unary(&[DType::Bool])),
    OpEntry::new(
        "leaky_relu",
        &[Param::tensor("features"), Param::optional("alpha", ParamKind::Float, "0.2")],
        |a| one(leaky_relu(a.tensor(0)?, a.float_or(1)?.unwrap_or(0.2))),
        Reference::Numpy(
            "(lambda v, c: np.where(v > 0, v, c * v))(features.astype(float), 0.2 if alpha is None else alpha)\
             .astype(np.exp(features).dtype)",
        ),
        Samples::List(with_alpha),
    ),
    OpEntry::new(
        "elu",
        &[Param::tensor("features"), Param::optional("alpha", ParamKind::Float, "1.0")],
        |a| one(elu(a.tensor(0)?, a.float_or(1)?.unwrap_or(1.0))),
        Reference::Numpy(
            "(lambda v, c: np.where(v > 0, v, c * np.expm1(v)))(features.astype(float), 1 if alpha is None else alpha)\
             .astype(np.exp(features).dtype)",
        ),
        Samples::List(with_alpha),
    ),
    OpEntry::new(
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
