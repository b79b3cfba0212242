//! Transposed convolutions.

use super::Activation;
use super::builder::{Activated, Build, Builder, Make, Weighted, Weights, work};
use super::conv::{Dilates, Options, Size, Slides, expect_image, finish, of_rank};
use crate::{Layer, Mode, Names};
use taut_autodiff::Variable;
use taut_core::ops::Padding;
use taut_core::ops::contract::{ConvOptions, conv_transpose};
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// The way back from a convolution over `N` spatial dimensions, one to three: images that grow.
///
/// A dimension of `n` becomes one of `n * stride`, and without padding, of as much more as the window is longer than the stride.
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
    /// A layer for images of this many channels, with this many filters of this size.
    #[track_caller]
    pub fn new(inputs: usize, filters: usize, window: impl Into<Size<N>>) -> Builder<ConvTranspose<N>> {
        Builder::new(Options::new(inputs, filters, window.into()), Location::caller())
    }

    /// The shape of the result.
    fn grown(&self, x: &Tensor) -> Result<Vec<usize>> {
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
        let sizes =
            sizes.ok_or_else(|| Error::shape("the result has more elements than memory has addresses"))?;
        Ok([x.shape()[0]].into_iter().chain(sizes).chain([kernel[N]]).collect())
    }
}

impl<const N: usize> Build for ConvTranspose<N> {
    const NAME: &'static str = of_rank(N, ["Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"]);
    type Options = Options<N>;

    fn build(options: &Options<N>, make: &Make) -> Result<ConvTranspose<N>> {
        let (slide, weights) = (options.slide()?, &options.weights);
        if let Padding::Explicit(_) = slide.padding {
            return Err(Error::value("amounts of padding are not supported here").help("valid and same are"));
        }
        let shape: Vec<usize> = options.window.into_iter().chain([options.filters, options.inputs]).collect();
        Ok(ConvTranspose {
            kernel: make.variable("kernel", shape, weights.kernel_initializer)?,
            bias: make.bias(options.filters, weights)?,
            activation: weights.activation,
            options: slide,
            at: make.at,
        })
    }
}

impl<const N: usize> Weighted for ConvTranspose<N> {
    fn weights(options: &mut Options<N>) -> &mut Weights {
        &mut options.weights
    }
}

impl<const N: usize> Activated for ConvTranspose<N> {}

impl<const N: usize> Slides for ConvTranspose<N> {
    type Size = Size<N>;

    fn strides(options: &mut Options<N>) -> &mut Vec<usize> {
        &mut options.slide.strides
    }

    fn padding(options: &mut Options<N>) -> &mut Padding {
        &mut options.slide.padding
    }
}

impl<const N: usize> Dilates for ConvTranspose<N> {
    fn dilations(options: &mut Options<N>) -> &mut Vec<usize> {
        &mut options.slide.dilations
    }
}

impl<const N: usize> Layer for ConvTranspose<N> {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work(Self::NAME, self.at, x, || {
            expect_image::<N>(x, &self.kernel, self.kernel.shape()[N + 1])?;
            let y = conv_transpose(x, &self.kernel, Some(&self.grown(x)?), &self.options)?;
            finish(y, self.bias.as_ref(), self.activation)
        })
    }

    fn variables(&self, names: &mut Names) {
        names.add("kernel", &self.kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}
