//! Convolutions.

use super::Activation;
use super::builder::{
    Build, HasActivation, HasWeights, LayerBuilder, VariableFactory, WeightOptions, check_input, in_layer,
    require_nonzero,
};
use crate::{Layer, Mode, NamedVariables};
use taut_autodiff::Variable;
use taut_core::ops::Padding;
use taut_core::ops::binary::add;
use taut_core::ops::contract::{ConvOptions, conv};
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// A size per spatial dimension; one number stands for all dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpatialSize<const N: usize>(pub [usize; N]);

impl<const N: usize> From<usize> for SpatialSize<N> {
    fn from(size: usize) -> SpatialSize<N> {
        SpatialSize([size; N])
    }
}

impl<const N: usize> From<[usize; N]> for SpatialSize<N> {
    fn from(sizes: [usize; N]) -> SpatialSize<N> {
        SpatialSize(sizes)
    }
}

impl<const N: usize> From<SpatialSize<N>> for Vec<usize> {
    fn from(size: SpatialSize<N>) -> Vec<usize> {
        size.0.into()
    }
}

/// A convolution over `N` spatial dimensions of `[batch, spatial.., channels]`, one to three.
///
/// The kernel is `[window.., inputs / groups, filters]`.
///
/// ```
/// use taut_core::{DType, ops::{Padding, creation::ones}};
/// use taut_nn::{Layer, Mode, layers::{Activation, Conv2D}};
/// let layer = Conv2D::new(3, 8, 3).strides(2).padding(Padding::Same).activation(Activation::Relu).build()?;
/// assert_eq!(layer.call(&ones([1, 9, 9, 3], DType::F32)?, Mode::Infer)?.shape()[..], [1, 5, 5, 8]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Conv<const N: usize> {
    kernel: Variable,
    bias: Option<Variable>,
    activation: Activation,
    options: ConvOptions,
    at: Location,
}

/// A convolution over sequences.
pub type Conv1D = Conv<1>;
/// A convolution over images.
pub type Conv2D = Conv<2>;
/// A convolution over volumes.
pub type Conv3D = Conv<3>;

/// The options of a [`Conv`] and of the other convolution layers.
#[derive(Clone, Debug)]
pub struct ConvLayerOptions<const N: usize> {
    pub(super) inputs: usize,
    pub(super) filters: usize,
    pub(super) window: [usize; N],
    pub(super) causal: bool,
    pub(super) conv_options: ConvOptions,
    pub(super) weights: WeightOptions,
}

impl<const N: usize> ConvLayerOptions<N> {
    pub(super) fn new(inputs: usize, filters: usize, window: SpatialSize<N>) -> ConvLayerOptions<N> {
        ConvLayerOptions {
            inputs,
            filters,
            window: window.0,
            causal: false,
            conv_options: ConvOptions::default(),
            weights: WeightOptions::default(),
        }
    }

    /// The checked options of the convolution op.
    pub(super) fn conv_options(&self) -> Result<ConvOptions> {
        let sizes = [("inputs", self.inputs), ("filters", self.filters)];
        let window = self.window.iter().map(|&size| ("window", size));
        let steps = self.conv_options.strides.iter().map(|&step| ("strides", step));
        let taps = self.conv_options.dilations.iter().map(|&step| ("dilations", step));
        require_nonzero(&sizes.into_iter().chain(window).chain(steps).chain(taps).collect::<Vec<_>>())?;
        if !(1..=3).contains(&N) {
            return Err(Error::value(format!("the number of spatial dimensions must be 1, 2 or 3, got {N}")));
        }
        let mut conv_options = self.conv_options.clone();
        if self.causal {
            if conv_options.padding != Padding::Valid {
                return Err(Error::value(format!(
                    "padding of a causal convolution must be valid, got {:?}",
                    conv_options.padding
                ))
                .help("leave padding out: causal sets it"));
            }
            let dilation = conv_options.dilations.first().copied().unwrap_or(1);
            conv_options.padding =
                Padding::Explicit(vec![((self.window[0] - 1).saturating_mul(dilation), 0)]);
        }
        Ok(conv_options)
    }
}

/// A layer that slides a window over its input.
pub trait HasWindow: Build {
    /// A stride per dimension.
    type Size: Into<Vec<usize>>;

    /// The distance between neighbouring windows.
    fn strides(options: &mut Self::Options) -> &mut Vec<usize>;
    /// The padding of the input.
    fn padding(options: &mut Self::Options) -> &mut Padding;
}

/// A layer whose window can be dilated.
pub trait HasDilation: HasWindow {
    /// The distance between neighbouring elements of the window.
    fn dilations(options: &mut Self::Options) -> &mut Vec<usize>;
}

impl<L: HasWindow> LayerBuilder<L> {
    /// The distance between neighbouring windows. Default: 1 for convolutions, the window's size for pooling.
    pub fn strides(mut self, strides: impl Into<L::Size>) -> LayerBuilder<L> {
        *L::strides(&mut self.options) = strides.into().into();
        self
    }

    /// The padding of the input. Default: valid (none).
    pub fn padding(mut self, padding: Padding) -> LayerBuilder<L> {
        *L::padding(&mut self.options) = padding;
        self
    }
}

impl<L: HasDilation> LayerBuilder<L> {
    /// The distance between neighbouring elements of the window. Default: 1.
    pub fn dilation(mut self, dilation: impl Into<L::Size>) -> LayerBuilder<L> {
        *L::dilations(&mut self.options) = dilation.into().into();
        self
    }
}

/// The name for a number of spatial dimensions.
pub(super) const fn of_rank(rank: usize, names: [&'static str; 3]) -> &'static str {
    match rank {
        1 => names[0],
        2 => names[1],
        _ => names[2],
    }
}

impl<const N: usize> Conv<N> {
    /// A layer for inputs of `inputs` channels, with `filters` filters of this size.
    #[track_caller]
    pub fn new(inputs: usize, filters: usize, window: impl Into<SpatialSize<N>>) -> LayerBuilder<Conv<N>> {
        LayerBuilder::new(ConvLayerOptions::new(inputs, filters, window.into()), Location::caller())
    }
}

impl<const N: usize> LayerBuilder<Conv<N>> {
    /// The number of groups: the channels and filters of a group depend only on each other. Default: 1.
    pub fn groups(mut self, groups: usize) -> LayerBuilder<Conv<N>> {
        self.options.conv_options.groups = groups;
        self
    }
}

impl LayerBuilder<Conv1D> {
    /// Causal padding: pads only at the start, so that no output depends on later inputs.
    pub fn causal(mut self) -> LayerBuilder<Conv1D> {
        self.options.causal = true;
        self
    }
}

impl<const N: usize> Build for Conv<N> {
    const NAME: &'static str = of_rank(N, ["Conv1D", "Conv2D", "Conv3D"]);
    type Options = ConvLayerOptions<N>;

    fn build(options: &ConvLayerOptions<N>, factory: &VariableFactory) -> Result<Conv<N>> {
        let (conv_options, weights) = (options.conv_options()?, &options.weights);
        let ConvLayerOptions { inputs, filters, .. } = *options;
        let groups = conv_options.groups;
        if groups == 0 || !inputs.is_multiple_of(groups) || !filters.is_multiple_of(groups) {
            let message = format!(
                "groups must divide inputs and filters, got groups {groups}, inputs {inputs}, filters {filters}"
            );
            return Err(Error::value(message));
        }
        let shape: Vec<usize> = options.window.into_iter().chain([inputs / groups, filters]).collect();
        Ok(Conv {
            kernel: factory.variable("kernel", shape, weights.kernel_initializer)?,
            bias: factory.bias(filters, weights)?,
            activation: weights.activation,
            options: conv_options,
            at: factory.at,
        })
    }
}

impl<const N: usize> HasWeights for Conv<N> {
    fn weights(options: &mut ConvLayerOptions<N>) -> &mut WeightOptions {
        &mut options.weights
    }
}

impl<const N: usize> HasActivation for Conv<N> {}

impl<const N: usize> HasWindow for Conv<N> {
    type Size = SpatialSize<N>;

    fn strides(options: &mut ConvLayerOptions<N>) -> &mut Vec<usize> {
        &mut options.conv_options.strides
    }

    fn padding(options: &mut ConvLayerOptions<N>) -> &mut Padding {
        &mut options.conv_options.padding
    }
}

impl<const N: usize> HasDilation for Conv<N> {
    fn dilations(options: &mut ConvLayerOptions<N>) -> &mut Vec<usize> {
        &mut options.conv_options.dilations
    }
}

/// Rejects an input with another rank or another number of channels.
pub(super) fn check_image<const N: usize>(x: &Tensor, like: &Variable, channels: usize) -> Result<()> {
    let fits = x.rank() == N + 2 && x.shape()[N + 1] == channels;
    let spatial = of_rank(N, ["steps", "height, width", "depth, height, width"]);
    check_input(x, like.dtype(), fits, || format!("[batch, {spatial}, {channels}]"))
}

/// Adds the bias, if there is one, and applies the activation.
pub(super) fn add_bias_and_activate(
    y: Tensor,
    bias: Option<&Variable>,
    activation: Activation,
) -> Result<Tensor> {
    let y = match bias {
        None => y,
        Some(bias) => add(y, bias)?,
    };
    activation.apply(y)
}

impl<const N: usize> Layer for Conv<N> {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer(Self::NAME, self.at, x, || {
            check_image::<N>(x, &self.kernel, self.kernel.shape()[N] * self.options.groups)?;
            add_bias_and_activate(conv(x, &self.kernel, &self.options)?, self.bias.as_ref(), self.activation)
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("kernel", &self.kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}
