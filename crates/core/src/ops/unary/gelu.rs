//! Smooth gated activations: GELU and SiLU.

use crate::error::Result;
use crate::ops::binary::{add, clip_by_value, mul, sub};
use crate::ops::elementwise::unary;
use crate::ops::sample::{dtypes, unary as samples};
use crate::ops::unary::{cast, erfc, exp, sigmoid, square};
use crate::ops::{ArgValue, ComputeDType, Elementwise, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::float_of;
use crate::{Saves, Tensor};
use std::f64::consts::{FRAC_1_SQRT_2, PI};
use taut_kernels::elementwise::Unary;

static GELU: Elementwise = Elementwise::unary("gelu", Unary::Gelu, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, gelu_derivative(call.input(0)?)?));
static GELU_TANH: Elementwise = Elementwise::unary("gelu_tanh", Unary::GeluTanh, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, gelu_tanh_derivative(call.input(0)?)?));
static SILU: Elementwise = Elementwise::unary("silu", Unary::Silu, ComputeDType::Float)
    .grad(|_| Saves::INPUT, |call, g, _| mul(g, silu_derivative(call.input(0)?)?));

/// x clipped to `[-size, size]`, beyond which the derivatives below are constant: avoids infinity times zero, NaN.
fn bounded(x: &Tensor, size: f64) -> Result<Tensor> {
    clip_by_value(x, -size, size)
}

/// `cdf(x) + x pdf(x)` of the standard normal distribution.
fn gelu_derivative(x: &Tensor) -> Result<Tensor> {
    let x = bounded(x, 100.0)?;
    let below = mul(erfc(mul(&x, -FRAC_1_SQRT_2)?)?, 0.5)?;
    let density = mul(exp(mul(square(&x)?, -0.5)?)?, 1.0 / (2.0 * PI).sqrt())?;
    add(below, mul(density, x)?)
}

/// The function is `x sigmoid(u)` with `u = x (a + b x^2)`; its derivative is `sigmoid(u) (1 + (1 - sigmoid(u)) x u')`.
fn gelu_tanh_derivative(x: &Tensor) -> Result<Tensor> {
    let a = 2.0 * (2.0 / PI).sqrt();
    let b = 0.044715 * a;
    let x = bounded(x, 100.0)?;
    let x2 = square(&x)?;
    let s = sigmoid(mul(add(mul(&x2, b)?, a)?, &x)?)?;
    let rest = mul(mul(sub(1.0, &s)?, x)?, add(mul(x2, 3.0 * b)?, a)?)?;
    mul(add(rest, 1.0)?, s)
}

/// `sigmoid(x) (1 + x (1 - sigmoid(x)))`.
fn silu_derivative(x: &Tensor) -> Result<Tensor> {
    let x = bounded(x, 1000.0)?;
    let s = sigmoid(&x)?;
    mul(add(mul(sub(1.0, &s)?, x)?, 1.0)?, s)
}

/// Gaussian error linear unit: `x * cdf(x)` of the standard normal distribution; with `approximate`, the tanh
/// approximation.
///
/// ```
/// use taut_core::{Tensor, ops::unary::gelu};
/// let x = Tensor::from_slice(&[0.0f32, 100.0, -100.0], [3])?;
/// assert_eq!(gelu(&x, false)?.to_vec::<f32>()?, [0.0, 100.0, 0.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn gelu(features: impl Into<Tensor>, approximate: bool) -> Result<Tensor> {
    unary(if approximate { &GELU_TANH } else { &GELU }, features.into())
}

/// Sigmoid linear unit, or swish: `features * sigmoid(beta * features)`. `beta` is usually 1.
#[inline]
#[track_caller]
pub fn silu(features: impl Into<Tensor>, beta: f64) -> Result<Tensor> {
    let features = features.into();
    if beta == 1.0 {
        return unary(&SILU, features);
    }
    let dtype = float_of(features.dtype());
    let features = cast(features, dtype)?;
    mul(sigmoid(mul(&features, beta)?)?, features)
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "gelu",
        &[Param::tensor("features"), Param::optional("approximate", ParamKind::Bool, "False")],
        |a| one(gelu(a.tensor(0)?, a.bool_or(1)?.unwrap_or(false))),
        Reference::Numpy(
            "(lambda v: np.where(v == -np.inf, 0, \
             v / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))) if approximate \
             else v / 2 * sp.erfc(-v / np.sqrt(2))))(features.astype(float)).astype(np.exp(features).dtype)",
        ),
        Samples::List(|| {
            let modes = [ArgValue::None, ArgValue::Bool(false), ArgValue::Bool(true)];
            let calls = samples(dtypes::ALL, -4.0, 4.0).into_iter().zip(modes.into_iter().cycle());
            calls.map(|(args, mode)| [args, vec![mode]].concat()).collect()
        }),
    ),
    OpEntry::new(
        "silu",
        &[Param::tensor("features"), Param::optional("beta", ParamKind::Float, "1.0")],
        |a| one(silu(a.tensor(0)?, a.float_or(1)?.unwrap_or(1.0))),
        // With beta 1, minus infinity gives the limit, 0.
        Reference::Numpy(
            "(lambda v, b: np.where((v == -np.inf) & (b == 1), 0, v * sp.expit(b * v)))\
             (features.astype(float), 1 if beta is None else beta).astype(np.exp(features).dtype)",
        ),
        Samples::List(|| {
            let betas = [ArgValue::None, ArgValue::Float(1.0), ArgValue::Float(1.5)];
            let calls = samples(dtypes::ALL, -6.0, 6.0).into_iter().zip(betas.into_iter().cycle());
            calls.map(|(args, beta)| [args, vec![beta]].concat()).collect()
        }),
    ),
];
