//! Functions that follow a layer's sums.

use crate::{Layer, Mode};
use taut_core::ops::binary::{add, clip_by_value, div, mul};
use taut_core::ops::nn::{log_softmax, softmax};
use taut_core::ops::unary::{
    abs, elu, exp, gelu, leaky_relu, relu, relu6, selu, sigmoid, silu, softplus, tanh,
};
use taut_core::{Result, Tensor, with_source_location};
use taut_memory::Location;

/// A function that is applied to what a layer computes; also a layer of its own.
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
    /// `x` above zero, zero below.
    Relu,
    /// As `Relu`, and never above 6.
    Relu6,
    /// `x` above zero, `slope * x` below.
    LeakyRelu {
        /// The slope below zero.
        slope: f64,
    },
    /// `x` above zero, `alpha * (exp(x) - 1)` below.
    Elu {
        /// Minus the limit far below zero.
        alpha: f64,
    },
    /// `Elu` with the scales that keep mean 0 and deviation 1 from layer to layer.
    Selu,
    /// `x` times the normal distribution up to `x`.
    Gelu,
    /// `Gelu` approximated by a hyperbolic tangent.
    GeluTanh,
    /// `x * sigmoid(x)`, also called swish.
    Silu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x / 6 + 0.5` between 0 and 1.
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
    /// Probabilities along the last axis.
    Softmax,
    /// Their logarithms.
    LogSoftmax,
}

impl Activation {
    /// The function's value, element by element, or along the last axis for the two that normalise.
    #[track_caller]
    pub fn apply(self, x: impl Into<Tensor>) -> Result<Tensor> {
        let x = x.into();
        with_source_location(None, Location::caller(), || self.of(x))
    }

    fn of(self, x: Tensor) -> Result<Tensor> {
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
