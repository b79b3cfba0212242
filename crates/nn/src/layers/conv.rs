//! Convolutions.

use super::Activation;
use super::builder::{Activated, Build, Builder, Make, Weighted, Weights, expect, some, work};
use crate::{Layer, Mode, Names};
use taut_autodiff::Variable;
use taut_core::ops::Padding;
use taut_core::ops::binary::add;
use taut_core::ops::contract::{ConvOptions, conv};
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// A size per spatial dimension; one number is the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size<const N: usize>(pub [usize; N]);

impl<const N: usize> From<usize> for Size<N> {
    fn from(size: usize) -> Size<N> {
        Size([size; N])
    }
}

impl<const N: usize> From<[usize; N]> for Size<N> {
    fn from(sizes: [usize; N]) -> Size<N> {
        Size(sizes)
    }
}

impl<const N: usize> From<Size<N>> for Vec<usize> {
    fn from(size: Size<N>) -> Vec<usize> {
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

/// What can be said about a [`Conv`].
#[derive(Clone, Debug)]
pub struct Options<const N: usize> {
    pub(super) inputs: usize,
    pub(super) filters: usize,
    pub(super) window: [usize; N],
    pub(super) causal: bool,
    pub(super) slide: ConvOptions,
    pub(super) weights: Weights,
}

impl<const N: usize> Options<N> {
    pub(super) fn new(inputs: usize, filters: usize, window: Size<N>) -> Options<N> {
        Options {
            inputs,
            filters,
            window: window.0,
            causal: false,
            slide: ConvOptions::default(),
            weights: Weights::default(),
        }
    }

    /// How the window slides, once all was said.
    pub(super) fn slide(&self) -> Result<ConvOptions> {
        let sizes = [("inputs", self.inputs), ("filters", self.filters)];
        let window = self.window.iter().map(|&size| ("the window", size));
        let steps = self.slide.strides.iter().map(|&step| ("strides", step));
        let taps = self.slide.dilations.iter().map(|&step| ("dilations", step));
        some(&sizes.into_iter().chain(window).chain(steps).chain(taps).collect::<Vec<_>>())?;
        if !(1..=3).contains(&N) {
            return Err(
                Error::value(format!("{N} spatial dimensions are not supported")).help("1, 2 and 3 are")
            );
        }
        let mut slide = self.slide.clone();
        if self.causal {
            if slide.padding != Padding::Valid {
                return Err(
                    Error::value("a causal convolution has its own padding").help("leave padding out")
                );
            }
            let dilation = slide.dilations.first().copied().unwrap_or(1);
            slide.padding = Padding::Explicit(vec![((self.window[0] - 1).saturating_mul(dilation), 0)]);
        }
        Ok(slide)
    }
}

/// A layer whose window slides.
pub trait Slides: Build {
    /// A step per dimension.
    type Size: Into<Vec<usize>>;

    /// The steps from one window to the next.
    fn strides(options: &mut Self::Options) -> &mut Vec<usize>;
    /// What is added around the input.
    fn padding(options: &mut Self::Options) -> &mut Padding;
}

/// A layer whose window can have gaps.
pub trait Dilates: Slides {
    /// The steps from one tap of the window to the next.
    fn dilations(options: &mut Self::Options) -> &mut Vec<usize>;
}

impl<L: Slides> Builder<L> {
    /// The steps from one window to the next. Unless it is said here, 1 for convolutions, and the window's size for pooling.
    pub fn strides(mut self, strides: impl Into<L::Size>) -> Builder<L> {
        *L::strides(&mut self.options) = strides.into().into();
        self
    }

    /// What is added around the input. Nothing, unless it is said here.
    pub fn padding(mut self, padding: Padding) -> Builder<L> {
        *L::padding(&mut self.options) = padding;
        self
    }
}

impl<L: Dilates> Builder<L> {
    /// The steps from one tap of the window to the next. 1, unless it is said here.
    pub fn dilation(mut self, dilation: impl Into<L::Size>) -> Builder<L> {
        *L::dilations(&mut self.options) = dilation.into().into();
        self
    }
}

/// The name that goes with a number of dimensions.
pub(super) const fn of_rank(rank: usize, names: [&'static str; 3]) -> &'static str {
    match rank {
        1 => names[0],
        2 => names[1],
        _ => names[2],
    }
}

impl<const N: usize> Conv<N> {
    /// A layer for images of this many channels, with this many filters of this size.
    #[track_caller]
    pub fn new(inputs: usize, filters: usize, window: impl Into<Size<N>>) -> Builder<Conv<N>> {
        Builder::new(Options::new(inputs, filters, window.into()), Location::caller())
    }
}

impl<const N: usize> Builder<Conv<N>> {
    /// Input and filters fall into this many groups that do not see each other. One, unless it is said here.
    pub fn groups(mut self, groups: usize) -> Builder<Conv<N>> {
        self.options.slide.groups = groups;
        self
    }
}

impl Builder<Conv1D> {
    /// Pads in front only, so that no output depends on later inputs.
    pub fn causal(mut self) -> Builder<Conv1D> {
        self.options.causal = true;
        self
    }
}

impl<const N: usize> Build for Conv<N> {
    const NAME: &'static str = of_rank(N, ["Conv1D", "Conv2D", "Conv3D"]);
    type Options = Options<N>;

    fn build(options: &Options<N>, make: &Make) -> Result<Conv<N>> {
        let (slide, weights) = (options.slide()?, &options.weights);
        let Options { inputs, filters, .. } = *options;
        let groups = slide.groups;
        if groups == 0 || !inputs.is_multiple_of(groups) || !filters.is_multiple_of(groups) {
            let message = format!("{inputs} inputs and {filters} filters do not fall into {groups} groups");
            return Err(Error::value(message));
        }
        let shape: Vec<usize> = options.window.into_iter().chain([inputs / groups, filters]).collect();
        Ok(Conv {
            kernel: make.variable("kernel", shape, weights.kernel_initializer)?,
            bias: make.bias(filters, weights)?,
            activation: weights.activation,
            options: slide,
            at: make.at,
        })
    }
}

impl<const N: usize> Weighted for Conv<N> {
    fn weights(options: &mut Options<N>) -> &mut Weights {
        &mut options.weights
    }
}

impl<const N: usize> Activated for Conv<N> {}

impl<const N: usize> Slides for Conv<N> {
    type Size = Size<N>;

    fn strides(options: &mut Options<N>) -> &mut Vec<usize> {
        &mut options.slide.strides
    }

    fn padding(options: &mut Options<N>) -> &mut Padding {
        &mut options.slide.padding
    }
}

impl<const N: usize> Dilates for Conv<N> {
    fn dilations(options: &mut Options<N>) -> &mut Vec<usize> {
        &mut options.slide.dilations
    }
}

/// Refuses an image that has other channels, or other dimensions.
pub(super) fn expect_image<const N: usize>(x: &Tensor, like: &Variable, channels: usize) -> Result<()> {
    let fits = x.rank() == N + 2 && x.shape()[N + 1] == channels;
    let spatial = of_rank(N, ["steps", "height, width", "depth, height, width"]);
    expect(x, like.dtype(), fits, || format!("[batch, {spatial}, {channels}]"))
}

/// What follows the sums.
pub(super) fn finish(y: Tensor, bias: Option<&Variable>, activation: Activation) -> Result<Tensor> {
    let y = match bias {
        None => y,
        Some(bias) => add(y, bias)?,
    };
    activation.apply(y)
}

impl<const N: usize> Layer for Conv<N> {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work(Self::NAME, self.at, x, || {
            expect_image::<N>(x, &self.kernel, self.kernel.shape()[N] * self.options.groups)?;
            finish(conv(x, &self.kernel, &self.options)?, self.bias.as_ref(), self.activation)
        })
    }

    fn variables(&self, names: &mut Names) {
        names.add("kernel", &self.kernel);
        self.bias.iter().for_each(|bias| names.add("bias", bias));
    }
}
