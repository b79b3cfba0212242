//! Convolutions that take channels one by one.

use super::Activation;
use super::builder::{Activated, Build, Builder, Make, Weighted, Weights, shaped, some, work};
use super::conv::{Dilates, Options as Conv, Size, Slides, expect_image, finish, of_rank};
use crate::initializers::Initializer;
use crate::{Layer, Mode, Names};
use taut_autodiff::Variable;
use taut_core::ops::Padding;
use taut_core::ops::contract::{ConvOptions, conv};
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// What can be said about these layers.
#[derive(Clone, Debug)]
pub struct Options<const N: usize> {
    conv: Conv<N>,
    multiplier: usize,
    depthwise_initializer: Initializer,
}

impl<const N: usize> Options<N> {
    fn new(inputs: usize, filters: usize, window: Size<N>) -> Options<N> {
        let depthwise_initializer = Initializer::GlorotUniform;
        Options { conv: Conv::new(inputs, filters, window), multiplier: 1, depthwise_initializer }
    }

    /// The kernel `[window.., inputs, multiplier]`, and how it slides.
    fn depthwise(&self, name: &str, make: &Make) -> Result<(Variable, ConvOptions)> {
        let inputs = self.conv.inputs;
        let slide = ConvOptions { groups: inputs, ..self.conv.slide()? };
        some(&[("the multiplier", self.multiplier)])?;
        let shape: Vec<usize> = self.conv.window.into_iter().chain([inputs, self.multiplier]).collect();
        Ok((make.variable(name, shape, self.depthwise_initializer)?, slide))
    }
}

/// Every channel convolved by itself, with the kernel `[window.., inputs, multiplier]`.
fn apart<const N: usize>(x: &Tensor, kernel: &Variable, slide: &ConvOptions) -> Result<Tensor> {
    let shape = kernel.shape();
    let grouped: Vec<usize> = shape[..N].iter().copied().chain([1, shape[N] * shape[N + 1]]).collect();
    conv(x, shaped(kernel, &grouped)?, slide)
}

/// A layer that takes channels one by one.
pub trait Depthwise: Build {
    /// What can be said about that.
    fn depthwise(options: &mut Self::Options) -> (&mut usize, &mut Initializer);
}

impl<L: Depthwise> Builder<L> {
    /// How many results each input channel has. One, unless it is said here.
    pub fn depth_multiplier(mut self, multiplier: usize) -> Builder<L> {
        *L::depthwise(&mut self.options).0 = multiplier;
        self
    }

    /// What the kernel for single channels is to begin with: [`Initializer::GlorotUniform`], unless it is said here.
    pub fn depthwise_initializer(mut self, initializer: Initializer) -> Builder<L> {
        *L::depthwise(&mut self.options).1 = initializer;
        self
    }
}

/// A convolution of every channel by itself: `inputs * multiplier` channels come out.
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

/// A convolution of every channel of sequences by itself.
pub type DepthwiseConv1D = DepthwiseConv<1>;
/// A convolution of every channel of images by itself.
pub type DepthwiseConv2D = DepthwiseConv<2>;

impl<const N: usize> DepthwiseConv<N> {
    /// A layer for images of this many channels, with windows of this size.
    #[track_caller]
    pub fn new(inputs: usize, window: impl Into<Size<N>>) -> Builder<DepthwiseConv<N>> {
        Builder::new(Options::new(inputs, inputs, window.into()), Location::caller())
    }
}

impl<const N: usize> Build for DepthwiseConv<N> {
    const NAME: &'static str = of_rank(N, ["DepthwiseConv1D", "DepthwiseConv2D", "DepthwiseConv3D"]);
    type Options = Options<N>;

    fn build(options: &Options<N>, make: &Make) -> Result<DepthwiseConv<N>> {
        let (kernel, slide) = options.depthwise("kernel", make)?;
        let weights = &options.conv.weights;
        Ok(DepthwiseConv {
            kernel,
            bias: make.bias(options.conv.inputs * options.multiplier, weights)?,
            activation: weights.activation,
            options: slide,
            at: make.at,
        })
    }
}

impl<const N: usize> Layer for DepthwiseConv<N> {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work(Self::NAME, self.at, x, || {
            expect_image::<N>(x, &self.kernel, self.options.groups)?;
            finish(apart::<N>(x, &self.kernel, &self.options)?, self.bias.as_ref(), self.activation)
        })
    }

    fn variables(&self, names: &mut Names) {
        names.add("kernel", &self.kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}

/// A convolution of every channel by itself, and then one over channels alone: far fewer products than a full one.
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
    /// A layer for images of this many channels, with this many filters of this size.
    #[track_caller]
    pub fn new(inputs: usize, filters: usize, window: impl Into<Size<N>>) -> Builder<SeparableConv<N>> {
        Builder::new(Options::new(inputs, filters, window.into()), Location::caller())
    }
}

impl<const N: usize> Build for SeparableConv<N> {
    const NAME: &'static str = of_rank(N, ["SeparableConv1D", "SeparableConv2D", "SeparableConv3D"]);
    type Options = Options<N>;

    fn build(options: &Options<N>, make: &Make) -> Result<SeparableConv<N>> {
        let (depthwise, slide) = options.depthwise("depthwise_kernel", make)?;
        let Conv { inputs, filters, weights, .. } = &options.conv;
        let shape: Vec<usize> = [1; N].into_iter().chain([inputs * options.multiplier, *filters]).collect();
        Ok(SeparableConv {
            depthwise,
            pointwise: make.variable("pointwise_kernel", shape, weights.kernel_initializer)?,
            bias: make.bias(*filters, weights)?,
            activation: weights.activation,
            options: slide,
            at: make.at,
        })
    }
}

impl<const N: usize> Layer for SeparableConv<N> {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work(Self::NAME, self.at, x, || {
            expect_image::<N>(x, &self.depthwise, self.options.groups)?;
            let apart = apart::<N>(x, &self.depthwise, &self.options)?;
            let y = conv(apart, &self.pointwise, &ConvOptions::default())?;
            finish(y, self.bias.as_ref(), self.activation)
        })
    }

    fn variables(&self, names: &mut Names) {
        names.add("depthwise_kernel", &self.depthwise);
        names.add("pointwise_kernel", &self.pointwise);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}

macro_rules! options {
    ($($layer:ident)*) => {$(
        impl<const N: usize> Weighted for $layer<N> {
            fn weights(options: &mut Options<N>) -> &mut Weights {
                &mut options.conv.weights
            }
        }

        impl<const N: usize> Activated for $layer<N> {}

        impl<const N: usize> Slides for $layer<N> {
            type Size = Size<N>;

            fn strides(options: &mut Options<N>) -> &mut Vec<usize> {
                &mut options.conv.slide.strides
            }

            fn padding(options: &mut Options<N>) -> &mut Padding {
                &mut options.conv.slide.padding
            }
        }

        impl<const N: usize> Dilates for $layer<N> {
            fn dilations(options: &mut Options<N>) -> &mut Vec<usize> {
                &mut options.conv.slide.dilations
            }
        }

        impl<const N: usize> Depthwise for $layer<N> {
            fn depthwise(options: &mut Options<N>) -> (&mut usize, &mut Initializer) {
                (&mut options.multiplier, &mut options.depthwise_initializer)
            }
        }
    )*};
}

options!(DepthwiseConv SeparableConv);
