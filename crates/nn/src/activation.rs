//! Activation functions.

use crate::{Layer, Mode};
use taut_core::ops::binary::{add, clip_by_value, div, mul};
use taut_core::ops::nn::{log_softmax, softmax};
use taut_core::ops::unary::{
    abs, elu, exp, gelu, leaky_relu, relu, relu6, selu, sigmoid, silu, softplus, tanh,
};
use taut_core::{Result, Tensor, with_source_location};
use taut_memory::Location;

/// An activation function: an option of other layers, and a layer by itself.
///
/// ```
/// use taut_core::Tensor;
/// use taut_nn::layers::Activation;
/// let x = Tensor::new([-1.0f32, 2.0])?;
/// assert_eq!(Activation::Relu.apply(&x)?.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// `x`.
    #[default]
    Linear,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x` above zero, `slope * x` below.
    LeakyRelu {
        /// The slope below zero.
        slope: f64,
    },
    /// `x` above zero, `alpha * (exp(x) - 1)` below.
    Elu {
        /// Minus the limit as `x` goes to minus infinity.
        alpha: f64,
    },
    /// The scaled `Elu` whose constants preserve mean 0 and standard deviation 1 from layer to layer.
    Selu,
    /// `x` times the standard normal cumulative distribution function at `x`.
    Gelu,
    /// The tanh approximation of `Gelu`.
    GeluTanh,
    /// `x * sigmoid(x)`, also called swish.
    Silu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x / 6 + 0.5`, clipped to [0, 1].
    HardSigmoid,
    /// `x * HardSigmoid(x)`.
    HardSilu,
    /// The hyperbolic tangent.
    Tanh,
    /// `exp(x)`.
    Exponential,
    /// `log(1 + exp(x))`.
    Softplus,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x * tanh(softplus(x))`.
    Mish,
    /// Softmax over the last axis.
    Softmax,
    /// The logarithm of softmax over the last axis.
    LogSoftmax,
}

impl Activation {
    /// Applies the function elementwise; softmax and log-softmax along the last axis.
    #[track_caller]
    pub fn apply(self, x: impl Into<Tensor>) -> Result<Tensor> {
        let x = x.into();
        with_source_location(None, Location::caller(), || self.evaluate(x))
    }

    fn evaluate(self, x: Tensor) -> Result<Tensor> {
        match self {
            Activation::Linear => Ok(x),
            Activation::Relu => relu(x),
            Activation::Relu6 => relu6(x),
            Activation::LeakyRelu { slope } => leaky_relu(x, slope),
            Activation::Elu { alpha } => elu(x, alpha),
            Activation::Selu => selu(x),
            Activation::Gelu => gelu(x, false),
            Activation::GeluTanh => gelu(x, true),
            Activation::Silu => silu(x, 1.0),
            Activation::Sigmoid => sigmoid(x),
            Activation::HardSigmoid => hard_sigmoid(x),
            Activation::HardSilu => mul(hard_sigmoid(x.clone())?, x),
            Activation::Tanh => tanh(x),
            Activation::Exponential => exp(x),
            Activation::Softplus => softplus(x),
            Activation::Softsign => div(&x, add(abs(&x)?, 1.0)?),
            Activation::Mish => mul(tanh(softplus(&x)?)?, x),
            Activation::Softmax => softmax(x, -1),
            Activation::LogSoftmax => log_softmax(x, -1),
        }
    }
}

fn hard_sigmoid(x: Tensor) -> Result<Tensor> {
    clip_by_value(add(mul(x, 1.0 / 6.0)?, 0.5)?, 0.0, 1.0)
}

impl Layer for Activation {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        self.apply(x)
    }
}
