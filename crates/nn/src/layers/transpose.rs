//! Transposed convolutions.

use super::Activation;
use super::builder::{
    Build, HasActivation, HasWeights, LayerBuilder, VariableFactory, WeightOptions, in_layer,
};
use super::conv::{
    ConvLayerOptions, HasDilation, HasWindow, SpatialSize, add_bias_and_activate, check_image, of_rank,
};
use crate::{Layer, Mode, NamedVariables};
use taut_autodiff::Variable;
use taut_core::ops::Padding;
use taut_core::ops::contract::{ConvOptions, conv_transpose};
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// A transposed convolution over `N` spatial dimensions, one to three: the gradient of a convolution with respect to its input.
///
/// A dimension of size `n` becomes `n * stride`; with valid padding, `n * stride + max(window - stride, 0)`.
/// The kernel is `[window.., filters, inputs]`.
///
/// ```
/// use taut_core::{DType, ops::creation::ones};
/// use taut_nn::{Layer, Mode, layers::{Conv2DTranspose, Padding}};
/// let layer = Conv2DTranspose::new(8, 3, 3).strides(2).padding(Padding::Same).build()?;
/// assert_eq!(layer.call(&ones([1, 4, 4, 8], DType::F32)?, Mode::Infer)?.shape()[..], [1, 8, 8, 3]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ConvTranspose<const N: usize> {
    kernel: Variable,
    bias: Option<Variable>,
    activation: Activation,
    options: ConvOptions,
    at: Location,
}

/// A transposed convolution over sequences.
pub type Conv1DTranspose = ConvTranspose<1>;
/// A transposed convolution over images.
pub type Conv2DTranspose = ConvTranspose<2>;
/// A transposed convolution over volumes.
pub type Conv3DTranspose = ConvTranspose<3>;

impl<const N: usize> ConvTranspose<N> {
    /// A layer for inputs of `inputs` channels, with `filters` filters of this size.
    #[track_caller]
    pub fn new(
        inputs: usize,
        filters: usize,
        window: impl Into<SpatialSize<N>>,
    ) -> LayerBuilder<ConvTranspose<N>> {
        LayerBuilder::new(ConvLayerOptions::new(inputs, filters, window.into()), Location::caller())
    }

    /// The shape of the output.
    fn output_shape(&self, x: &Tensor) -> Result<Vec<usize>> {
        let kernel = self.kernel.shape();
        let at = |list: &[usize], i: usize| list.get(i).copied().unwrap_or(1);
        let size = |i: usize| {
            let (stride, dilation) = (at(&self.options.strides, i), at(&self.options.dilations, i));
            let more = match self.options.padding {
                Padding::Valid => {
                    (kernel[i] - 1).checked_mul(dilation)?.checked_add(1)?.saturating_sub(stride)
                }
                _ => 0,
            };
            x.shape()[i + 1].checked_mul(stride).and_then(|size| size.checked_add(more))
        };
        let sizes = (0..N).map(size).collect::<Option<Vec<_>>>();
        let sizes = sizes
            .ok_or_else(|| Error::shape("the number of elements of the output exceeds the address space"))?;
        Ok([x.shape()[0]].into_iter().chain(sizes).chain([kernel[N]]).collect())
    }
}

impl<const N: usize> Build for ConvTranspose<N> {
    const NAME: &'static str = of_rank(N, ["Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"]);
    type Options = ConvLayerOptions<N>;

    fn build(options: &ConvLayerOptions<N>, factory: &VariableFactory) -> Result<ConvTranspose<N>> {
        let (conv_options, weights) = (options.conv_options()?, &options.weights);
        if let Padding::Explicit(_) = conv_options.padding {
            return Err(Error::value(
                "padding of a transposed convolution must be valid or same, got explicit amounts",
            ));
        }
        let shape: Vec<usize> = options.window.into_iter().chain([options.filters, options.inputs]).collect();
        Ok(ConvTranspose {
            kernel: factory.variable("kernel", shape, weights.kernel_initializer)?,
            bias: factory.bias(options.filters, weights)?,
            activation: weights.activation,
            options: conv_options,
            at: factory.at,
        })
    }
}

impl<const N: usize> HasWeights for ConvTranspose<N> {
    fn weights(options: &mut ConvLayerOptions<N>) -> &mut WeightOptions {
        &mut options.weights
    }
}

impl<const N: usize> HasActivation for ConvTranspose<N> {}

impl<const N: usize> HasWindow for ConvTranspose<N> {
    type Size = SpatialSize<N>;

    fn strides(options: &mut ConvLayerOptions<N>) -> &mut Vec<usize> {
        &mut options.conv_options.strides
    }

    fn padding(options: &mut ConvLayerOptions<N>) -> &mut Padding {
        &mut options.conv_options.padding
    }
}

impl<const N: usize> HasDilation for ConvTranspose<N> {
    fn dilations(options: &mut ConvLayerOptions<N>) -> &mut Vec<usize> {
        &mut options.conv_options.dilations
    }
}

impl<const N: usize> Layer for ConvTranspose<N> {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer(Self::NAME, self.at, x, || {
            check_image::<N>(x, &self.kernel, self.kernel.shape()[N + 1])?;
            let y = conv_transpose(x, &self.kernel, Some(&self.output_shape(x)?), &self.options)?;
            add_bias_and_activate(y, self.bias.as_ref(), self.activation)
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("kernel", &self.kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}
