//! Depthwise and separable convolutions.

use super::Activation;
use super::builder::{
    Build, HasActivation, HasWeights, LayerBuilder, VariableFactory, WeightOptions, in_layer,
    require_nonzero, reshape_to,
};
use super::conv::{
    ConvLayerOptions, HasDilation, HasWindow, SpatialSize, add_bias_and_activate, check_image, of_rank,
};
use crate::initializers::Initializer;
use crate::{Layer, Mode, NamedVariables};
use taut_autodiff::Variable;
use taut_core::ops::Padding;
use taut_core::ops::contract::{ConvOptions, conv};
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// The options of a [`DepthwiseConv`] or [`SeparableConv`].
#[derive(Clone, Debug)]
pub struct DepthwiseOptions<const N: usize> {
    conv: ConvLayerOptions<N>,
    multiplier: usize,
    depthwise_initializer: Initializer,
}

impl<const N: usize> DepthwiseOptions<N> {
    fn new(inputs: usize, filters: usize, window: SpatialSize<N>) -> DepthwiseOptions<N> {
        let depthwise_initializer = Initializer::GlorotUniform;
        DepthwiseOptions {
            conv: ConvLayerOptions::new(inputs, filters, window),
            multiplier: 1,
            depthwise_initializer,
        }
    }

    /// The kernel `[window.., inputs, multiplier]` and the options of its convolution.
    fn depthwise(&self, name: &str, factory: &VariableFactory) -> Result<(Variable, ConvOptions)> {
        let inputs = self.conv.inputs;
        let conv_options = ConvOptions { groups: inputs, ..self.conv.conv_options()? };
        require_nonzero(&[("depth_multiplier", self.multiplier)])?;
        let shape: Vec<usize> = self.conv.window.into_iter().chain([inputs, self.multiplier]).collect();
        Ok((factory.variable(name, shape, self.depthwise_initializer)?, conv_options))
    }
}

/// A depthwise convolution with the kernel `[window.., inputs, multiplier]`.
fn depthwise_conv<const N: usize>(
    x: &Tensor,
    kernel: &Variable,
    conv_options: &ConvOptions,
) -> Result<Tensor> {
    let shape = kernel.shape();
    let grouped: Vec<usize> = shape[..N].iter().copied().chain([1, shape[N] * shape[N + 1]]).collect();
    conv(x, reshape_to(kernel, &grouped)?, conv_options)
}

/// A layer with a depthwise kernel.
pub trait HasDepthwiseKernel: Build {
    /// The depth multiplier and the initialiser of the depthwise kernel.
    fn depthwise(options: &mut Self::Options) -> (&mut usize, &mut Initializer);
}

impl<L: HasDepthwiseKernel> LayerBuilder<L> {
    /// The number of output channels per input channel. Default: 1.
    pub fn depth_multiplier(mut self, multiplier: usize) -> LayerBuilder<L> {
        *L::depthwise(&mut self.options).0 = multiplier;
        self
    }

    /// How the depthwise kernel is initialised. Default: [`Initializer::GlorotUniform`].
    pub fn depthwise_initializer(mut self, initializer: Initializer) -> LayerBuilder<L> {
        *L::depthwise(&mut self.options).1 = initializer;
        self
    }
}

/// A depthwise convolution: each channel is convolved separately, with `inputs * multiplier` output channels.
///
/// The kernel is `[window.., inputs, multiplier]`.
#[derive(Debug)]
pub struct DepthwiseConv<const N: usize> {
    kernel: Variable,
    bias: Option<Variable>,
    activation: Activation,
    options: ConvOptions,
    at: Location,
}

/// A depthwise convolution over sequences.
pub type DepthwiseConv1D = DepthwiseConv<1>;
/// A depthwise convolution over images.
pub type DepthwiseConv2D = DepthwiseConv<2>;

impl<const N: usize> DepthwiseConv<N> {
    /// A layer for inputs of `inputs` channels, with windows of this size.
    #[track_caller]
    pub fn new(inputs: usize, window: impl Into<SpatialSize<N>>) -> LayerBuilder<DepthwiseConv<N>> {
        LayerBuilder::new(DepthwiseOptions::new(inputs, inputs, window.into()), Location::caller())
    }
}

impl<const N: usize> Build for DepthwiseConv<N> {
    const NAME: &'static str = of_rank(N, ["DepthwiseConv1D", "DepthwiseConv2D", "DepthwiseConv3D"]);
    type Options = DepthwiseOptions<N>;

    fn build(options: &DepthwiseOptions<N>, factory: &VariableFactory) -> Result<DepthwiseConv<N>> {
        let (kernel, conv_options) = options.depthwise("kernel", factory)?;
        let weights = &options.conv.weights;
        Ok(DepthwiseConv {
            kernel,
            bias: factory.bias(options.conv.inputs * options.multiplier, weights)?,
            activation: weights.activation,
            options: conv_options,
            at: factory.at,
        })
    }
}

impl<const N: usize> Layer for DepthwiseConv<N> {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer(Self::NAME, self.at, x, || {
            check_image::<N>(x, &self.kernel, self.options.groups)?;
            add_bias_and_activate(
                depthwise_conv::<N>(x, &self.kernel, &self.options)?,
                self.bias.as_ref(),
                self.activation,
            )
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("kernel", &self.kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}

/// A depthwise convolution followed by a pointwise (1 x 1) one: fewer multiplications than a full convolution.
#[derive(Debug)]
pub struct SeparableConv<const N: usize> {
    depthwise: Variable,
    pointwise: Variable,
    bias: Option<Variable>,
    activation: Activation,
    options: ConvOptions,
    at: Location,
}

/// A separable convolution over sequences.
pub type SeparableConv1D = SeparableConv<1>;
/// A separable convolution over images.
pub type SeparableConv2D = SeparableConv<2>;

impl<const N: usize> SeparableConv<N> {
    /// A layer for inputs of `inputs` channels, with `filters` filters of this size.
    #[track_caller]
    pub fn new(
        inputs: usize,
        filters: usize,
        window: impl Into<SpatialSize<N>>,
    ) -> LayerBuilder<SeparableConv<N>> {
        LayerBuilder::new(DepthwiseOptions::new(inputs, filters, window.into()), Location::caller())
    }
}

impl<const N: usize> Build for SeparableConv<N> {
    const NAME: &'static str = of_rank(N, ["SeparableConv1D", "SeparableConv2D", "SeparableConv3D"]);
    type Options = DepthwiseOptions<N>;

    fn build(options: &DepthwiseOptions<N>, factory: &VariableFactory) -> Result<SeparableConv<N>> {
        let (depthwise, conv_options) = options.depthwise("depthwise_kernel", factory)?;
        let ConvLayerOptions { inputs, filters, weights, .. } = &options.conv;
        let shape: Vec<usize> = [1; N].into_iter().chain([inputs * options.multiplier, *filters]).collect();
        Ok(SeparableConv {
            depthwise,
            pointwise: factory.variable("pointwise_kernel", shape, weights.kernel_initializer)?,
            bias: factory.bias(*filters, weights)?,
            activation: weights.activation,
            options: conv_options,
            at: factory.at,
        })
    }
}

impl<const N: usize> Layer for SeparableConv<N> {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer(Self::NAME, self.at, x, || {
            check_image::<N>(x, &self.depthwise, self.options.groups)?;
            let channels = depthwise_conv::<N>(x, &self.depthwise, &self.options)?;
            let y = conv(channels, &self.pointwise, &ConvOptions::default())?;
            add_bias_and_activate(y, self.bias.as_ref(), self.activation)
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("depthwise_kernel", &self.depthwise);
        names.add("pointwise_kernel", &self.pointwise);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}

macro_rules! options {
    ($($layer:ident)*) => {$(
        impl<const N: usize> HasWeights for $layer<N> {
            fn weights(options: &mut DepthwiseOptions<N>) -> &mut WeightOptions {
                &mut options.conv.weights
            }
        }

        impl<const N: usize> HasActivation for $layer<N> {}

        impl<const N: usize> HasWindow for $layer<N> {
            type Size = SpatialSize<N>;

            fn strides(options: &mut DepthwiseOptions<N>) -> &mut Vec<usize> {
                &mut options.conv.conv_options.strides
            }

            fn padding(options: &mut DepthwiseOptions<N>) -> &mut Padding {
                &mut options.conv.conv_options.padding
            }
        }

        impl<const N: usize> HasDilation for $layer<N> {
            fn dilations(options: &mut DepthwiseOptions<N>) -> &mut Vec<usize> {
                &mut options.conv.conv_options.dilations
            }
        }

        impl<const N: usize> HasDepthwiseKernel for $layer<N> {
            fn depthwise(options: &mut DepthwiseOptions<N>) -> (&mut usize, &mut Initializer) {
                (&mut options.multiplier, &mut options.depthwise_initializer)
            }
        }
    )*};
}

options!(DepthwiseConv SeparableConv);
