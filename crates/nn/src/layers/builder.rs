//! What a layer is like, before its variables are made.

use super::Activation;
use crate::initializers::Initializer;
use std::fmt;
use taut_autodiff::Variable;
use taut_core::{DType, Error, ErrorKind, Result, Shape, Tensor, with_source_location};
use taut_memory::Location;

/// Says what a layer is like before its variables are made: `Dense::new(784, 64).bias(false).build()?`.
///
/// The layer's line, in errors, plans and profiles, is the one that began this.
#[must_use = "`build` makes the layer"]
pub struct Builder<L: Build> {
    pub(super) options: L::Options,
    dtype: DType,
    at: Location,
}

/// A layer that is built.
pub trait Build: Sized {
    /// Its name in errors.
    const NAME: &'static str;
    /// What can be said about it.
    type Options: Clone + fmt::Debug;

    /// The layer with its variables.
    fn build(options: &Self::Options, make: &Make) -> Result<Self>;
}

/// A layer of a kernel and perhaps a bias.
pub trait Weighted: Build {
    /// What can be said about them.
    fn weights(options: &mut Self::Options) -> &mut Weights;
}

/// A layer whose sums go through a function of choice.
pub trait Activated: Weighted {}

/// Makes the variables of a layer.
#[derive(Debug)]
pub struct Make {
    pub(super) dtype: DType,
    pub(super) at: Location,
}

/// What layers with kernels have in common.
#[derive(Clone, Debug)]
pub struct Weights {
    pub(super) activation: Activation,
    pub(super) bias: bool,
    pub(super) kernel_initializer: Initializer,
    pub(super) bias_initializer: Initializer,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            activation: Activation::Linear,
            bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            bias_initializer: Initializer::Zeros,
        }
    }
}

impl<L: Build> Builder<L> {
    pub(super) fn new(options: L::Options, at: Location) -> Builder<L> {
        Builder { options, dtype: DType::F32, at }
    }

    /// The element type of its variables, and of the input it takes. Float32, unless it is said here.
    pub fn dtype(mut self, dtype: DType) -> Builder<L> {
        self.dtype = dtype;
        self
    }

    /// The layer, with its variables.
    pub fn build(self) -> Result<L> {
        let make = Make { dtype: self.dtype, at: self.at };
        let build = || {
            if make.dtype.is_float() {
                return L::build(&self.options, &make);
            }
            Err(Error::dtype(format!("a layer of type {} cannot be trained", make.dtype)).help("floats can"))
        };
        with_source_location(None, make.at, build).map_err(|error| error.in_op(L::NAME, []).at(make.at))
    }
}

impl<L: Build> Clone for Builder<L> {
    fn clone(&self) -> Builder<L> {
        Builder { options: self.options.clone(), ..*self }
    }
}

impl<L: Build> fmt::Debug for Builder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {:?}", L::NAME, self.dtype, self.options)
    }
}

impl<L: Activated> Builder<L> {
    /// The function that follows the sums. None, unless it is said here; tanh for [`SimpleRNN`](super::SimpleRNN).
    pub fn activation(mut self, activation: Activation) -> Builder<L> {
        L::weights(&mut self.options).activation = activation;
        self
    }
}

impl<L: Weighted> Builder<L> {
    /// Whether something is added that does not depend on the input. It is, unless it is said here.
    pub fn bias(mut self, on: bool) -> Builder<L> {
        L::weights(&mut self.options).bias = on;
        self
    }

    /// What the kernel is to begin with: [`Initializer::GlorotUniform`], unless it is said here.
    pub fn kernel_initializer(mut self, initializer: Initializer) -> Builder<L> {
        L::weights(&mut self.options).kernel_initializer = initializer;
        self
    }

    /// What the bias is to begin with: zeros, unless it is said here.
    pub fn bias_initializer(mut self, initializer: Initializer) -> Builder<L> {
        L::weights(&mut self.options).bias_initializer = initializer;
        self
    }
}

impl Make {
    /// A trainable variable.
    pub(super) fn variable(
        &self,
        name: &str,
        shape: impl Into<Shape>,
        initializer: Initializer,
    ) -> Result<Variable> {
        Variable::builder().name(name).build(initializer.make(shape, self.dtype)?)
    }

    /// A variable that is not trained.
    pub(super) fn state(
        &self,
        name: &str,
        shape: impl Into<Shape>,
        initializer: Initializer,
    ) -> Result<Variable> {
        Variable::builder().name(name).trainable(false).build(initializer.make(shape, self.dtype)?)
    }

    /// A bias of this many elements, if there is one.
    pub(super) fn bias(&self, len: usize, weights: &Weights) -> Result<Option<Variable>> {
        weights.bias.then(|| self.variable("bias", [len], weights.bias_initializer)).transpose()
    }
}

/// Refuses sizes of zero.
pub(super) fn some(sizes: &[(&str, usize)]) -> Result<()> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        None => Ok(()),
        Some((what, _)) => {
            Err(Error::value(format!("{what} must not be 0: {}", said(sizes))).help("give every size"))
        }
    }
}

/// Refuses epsilons and the like that are not finite, or negative.
pub(super) fn not_negative(what: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("{what} of {value} makes no sense")).help("it is finite, and not below 0"))
}

fn said(sizes: &[(&str, usize)]) -> String {
    let all: Vec<String> = sizes.iter().map(|(what, size)| format!("{what} {size}")).collect();
    all.join(", ")
}

/// Does a layer's work in its name and for its line.
pub(super) fn work<R>(
    name: &'static str,
    at: Location,
    x: &Tensor,
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    with_source_location(None, at, work).map_err(|error| error.in_op(name, [x.spec()]).at(at))
}

/// Refuses an input that is not what the layer was built for, which `wanted` says in words.
pub(super) fn expect(x: &Tensor, dtype: DType, fits: bool, wanted: impl FnOnce() -> String) -> Result<()> {
    if fits && x.dtype() == dtype {
        return Ok(());
    }
    let message = format!("built for {dtype}{}, and got {}", wanted(), x.spec());
    Err(if fits {
        Error::new(ErrorKind::DType, message).help("cast the input, or build the layer with another dtype")
    } else {
        Error::shape(message)
    })
}

/// The tensor in another shape of as many elements.
pub(super) fn shaped(x: impl Into<Tensor>, shape: &[usize]) -> Result<Tensor> {
    let dims: Vec<isize> = shape.iter().map(|&dim| dim as isize).collect();
    taut_core::ops::shape::reshape(x, &dims)
}
