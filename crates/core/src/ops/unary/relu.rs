//! Rectified linear units: relu, leaky relu, elu, selu.

use crate::error::Result;
use crate::ops::binary::{add, clip_by_value, greater, less, less_equal, logical_and, minimum, mul, where_};
use crate::ops::elementwise::unary;
use crate::ops::index::{keep_bits, pack_bits, unpack_bits};
use crate::ops::sample::{dtypes, invalid_unary, unary as samples};
use crate::ops::unary::{abs, exp};
use crate::ops::{
    ArgValue, ComputeDType, Elementwise, ElementwiseGradient, ElementwiseVjp, OpEntry, Param, ParamKind,
    Reference, Samples, one,
};
use crate::record::has_single_use_recorder;
use crate::{DType, Saves, Tensor};
use taut_kernels::elementwise::Unary;

static RELU: Elementwise = Elementwise::unary("relu", Unary::Relu, ComputeDType::Same).grad_with(
    |_| mask_or_output(Saves::residual_of([])),
    |call| pack_bits(call.output(0)?),
    |call, g, _| match call.output(0) {
        Ok(y) => where_(greater(y, 0)?, g, zero_of(y)?),
        Err(_) => keep_bits(g, call.residual()?, false),
    },
);
static RELU6: Elementwise = Elementwise::unary("relu6", Unary::Relu6, ComputeDType::Same).grad_with(
    |_| mask_or_output(Saves::residual_of([])),
    |call| pack_bits(between_0_and_6(call.output(0)?)?),
    |call, g, _| match call.output(0) {
        Ok(y) => where_(between_0_and_6(y)?, g, zero_of(y)?),
        Err(_) => keep_bits(g, call.residual()?, false),
    },
);

fn between_0_and_6(y: &Tensor) -> Result<Tensor> {
    logical_and(greater(y, 0)?, less(y, 6)?)
}

/// The mask of a function that is linear on both sides of a bend; the output if the gradient may be differentiated itself. That
/// derivative is zero, and a mask would not tell that it exists.
fn mask_or_output(mask: Saves) -> Saves {
    if has_single_use_recorder() { mask } else { Saves::OUTPUT }
}

/// Zeros that are a function of `x`, so that their derivative is zeros and not missing. Zero for NaN, too, where the comparison
/// of a mask is false.
pub(crate) fn zero_of(x: &Tensor) -> Result<Tensor> {
    where_(less(abs(x)?, 0)?, x, 0)
}
static SELU: Elementwise = Elementwise::unary("selu", Unary::Selu, ComputeDType::Float).grad(
    |_| Saves::OUTPUT,
    |call, g, _| {
        let (y, scale) = (call.output(0)?, 1.0507009873554805);
        // At zero and at NaN the derivative is that of the positive side.
        mul(g, where_(less(y, 0)?, add(y, scale * 1.6732632423543772)?, scale)?)
    },
);

/// The derivative of elu as a function of its output `y`: `y + alpha` up to zero, else 1, also at NaN.
fn elu_derivative(y: &Tensor, alpha: f64) -> Result<Tensor> {
    // With an alpha of 1 both sides agree at zero; TensorFlow's second derivative there is 0.
    let is_below = if alpha == 1.0 { less(y, 0)? } else { less_equal(y, 0)? };
    where_(is_below, add(y, alpha)?, 1.0)
}

const LEAKY: ElementwiseVjp = ElementwiseVjp::WithAlpha(|call, g, alpha| {
    if let Ok(y) = call.output(0) {
        return where_(greater(y, 0)?, &g, add(mul(&g, alpha)?, zero_of(y)?)?);
    }
    let above = unpack_bits(call.residual()?, call.output_shape(0).clone())?;
    where_(above, &g, mul(&g, alpha)?)
});
/// The sign mask comes from the output, which has the input's sign.
static LEAKY_RELU: ElementwiseGradient = ElementwiseGradient {
    saves: |_| mask_or_output(Saves::residual_of([])),
    residual: Some(|call| pack_bits(call.output(0)?)),
    partial: LEAKY,
};
/// With a negative alpha the output does not have the input's sign: the mask comes from the input.
static LEAKY_RELU_NEGATIVE_ALPHA: ElementwiseGradient = ElementwiseGradient {
    saves: |_| Saves::residual_of([0]),
    residual: Some(|call| pack_bits(call.input(0)?)),
    partial: LEAKY,
};
static ELU: ElementwiseGradient = ElementwiseGradient {
    saves: |_| Saves::OUTPUT,
    residual: None,
    partial: ElementwiseVjp::WithAlpha(|call, g, alpha| mul(g, elu_derivative(call.output(0)?, alpha)?)),
};
/// With a negative alpha the output does not determine the input's sign: the input is saved.
static ELU_NEGATIVE_ALPHA: ElementwiseGradient = ElementwiseGradient {
    saves: |_| Saves::INPUT,
    residual: None,
    partial: ElementwiseVjp::WithAlpha(|call, g, alpha| {
        let x = call.input(0)?;
        let below = mul(exp(minimum(x, 0)?)?, alpha)?;
        mul(g, where_(less_equal(x, 0)?, below, 1.0)?)
    }),
};

fn with_gradient(name: &'static str, code: Unary, gradient: ElementwiseGradient) -> Elementwise {
    Elementwise { gradient: Some(gradient), ..Elementwise::unary(name, code, ComputeDType::Float) }
}

/// Rectified linear unit: `max(features, 0)`.
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

/// Rectified linear unit with an upper bound: `min(max(features, 0), 6)`.
#[inline]
#[track_caller]
pub fn relu6(features: impl Into<Tensor>) -> Result<Tensor> {
    let features = features.into();
    if features.dtype().is_integer() { clip_by_value(features, 0, 6) } else { unary(&RELU6, features) }
}

/// Leaky rectified linear unit: `features` where positive, else `alpha * features`.
#[inline]
#[track_caller]
pub fn leaky_relu(features: impl Into<Tensor>, alpha: f64) -> Result<Tensor> {
    let gradient = if alpha >= 0.0 { LEAKY_RELU } else { LEAKY_RELU_NEGATIVE_ALPHA };
    unary(&with_gradient("leaky_relu", Unary::LeakyRelu(alpha), gradient), features.into())
}

/// Exponential linear unit: `features` where positive, else `alpha * (exp(features) - 1)`.
#[inline]
#[track_caller]
pub fn elu(features: impl Into<Tensor>, alpha: f64) -> Result<Tensor> {
    let gradient = if alpha >= 0.0 { ELU } else { ELU_NEGATIVE_ALPHA };
    unary(&with_gradient("elu", Unary::Elu(alpha), gradient), features.into())
}

/// Scaled exponential linear unit: [`elu`] with constants that preserve mean 0 and variance 1 across layers.
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
    .refuses(|| invalid_unary(&[DType::Bool])),
    OpEntry::new(
        "relu6",
        FEATURES,
        |a| one(relu6(a.tensor(0)?)),
        Reference::Numpy("np.minimum(np.maximum(features, 0), 6)"),
        Samples::Unary(dtypes::NUMBERS, -4.0, 12.0),
    )
    .refuses(|| invalid_unary(&[DType::Bool])),
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
