//! Options of layers, and how their variables are made.

use super::Activation;
use crate::initializers::Initializer;
use std::fmt;
use taut_autodiff::Variable;
use taut_core::{DType, Error, ErrorKind, Result, Shape, Tensor, with_source_location};
use taut_memory::Location;

/// The options of a layer, before its variables are made: `Dense::new(784, 64).bias(false).build()?`.
///
/// The layer's source location, in errors, plans and profiles, is that of the call to `new`.
#[must_use = "`build` makes the layer"]
pub struct LayerBuilder<L: Build> {
    pub(super) options: L::Options,
    dtype: DType,
    at: Location,
}

/// A layer that a [`LayerBuilder`] makes.
pub trait Build: Sized {
    /// Its name in errors.
    const NAME: &'static str;
    /// Its options.
    type Options: Clone + fmt::Debug;

    /// Makes the layer and its variables.
    fn build(options: &Self::Options, factory: &VariableFactory) -> Result<Self>;
}

/// A layer with a kernel and an optional bias.
pub trait HasWeights: Build {
    /// The options of kernel and bias.
    fn weights(options: &mut Self::Options) -> &mut WeightOptions;
}

/// A layer with an activation function.
pub trait HasActivation: HasWeights {}

/// Makes the variables of a layer.
#[derive(Debug)]
pub struct VariableFactory {
    pub(super) dtype: DType,
    pub(super) at: Location,
}

/// The options that all layers with kernels have.
#[derive(Clone, Debug)]
pub struct WeightOptions {
    pub(super) activation: Activation,
    pub(super) bias: bool,
    pub(super) kernel_initializer: Initializer,
    pub(super) bias_initializer: Initializer,
}

impl Default for WeightOptions {
    fn default() -> WeightOptions {
        WeightOptions {
            activation: Activation::Linear,
            bias: true,
            kernel_initializer: Initializer::GlorotUniform,
            bias_initializer: Initializer::Zeros,
        }
    }
}

impl<L: Build> LayerBuilder<L> {
    pub(super) fn new(options: L::Options, at: Location) -> LayerBuilder<L> {
        LayerBuilder { options, dtype: DType::F32, at }
    }

    /// The dtype of the variables and of the input. Default: float32.
    pub fn dtype(mut self, dtype: DType) -> LayerBuilder<L> {
        self.dtype = dtype;
        self
    }

    /// Makes the layer and its variables.
    pub fn build(self) -> Result<L> {
        let factory = VariableFactory { dtype: self.dtype, at: self.at };
        let build = || {
            if factory.dtype.is_float() {
                return L::build(&self.options, &factory);
            }
            Err(Error::dtype(format!("the dtype of a layer must be floating point, got {}", factory.dtype)))
        };
        with_source_location(None, factory.at, build).map_err(|error| error.in_op(L::NAME, []).at(factory.at))
    }
}

impl<L: Build> Clone for LayerBuilder<L> {
    fn clone(&self) -> LayerBuilder<L> {
        LayerBuilder { options: self.options.clone(), ..*self }
    }
}

impl<L: Build> fmt::Debug for LayerBuilder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {:?}", L::NAME, self.dtype, self.options)
    }
}

impl<L: HasActivation> LayerBuilder<L> {
    /// The activation function. Default: linear; tanh for [`SimpleRNN`](super::SimpleRNN).
    pub fn activation(mut self, activation: Activation) -> LayerBuilder<L> {
        L::weights(&mut self.options).activation = activation;
        self
    }
}

impl<L: HasWeights> LayerBuilder<L> {
    /// Whether the layer has a bias. Default: true.
    pub fn bias(mut self, on: bool) -> LayerBuilder<L> {
        L::weights(&mut self.options).bias = on;
        self
    }

    /// How the kernel is initialised. Default: [`Initializer::GlorotUniform`].
    pub fn kernel_initializer(mut self, initializer: Initializer) -> LayerBuilder<L> {
        L::weights(&mut self.options).kernel_initializer = initializer;
        self
    }

    /// How the bias is initialised. Default: zeros.
    pub fn bias_initializer(mut self, initializer: Initializer) -> LayerBuilder<L> {
        L::weights(&mut self.options).bias_initializer = initializer;
        self
    }
}

impl VariableFactory {
    /// A trainable variable.
    pub(super) fn variable(
        &self,
        name: &str,
        shape: impl Into<Shape>,
        initializer: Initializer,
    ) -> Result<Variable> {
        Variable::builder().name(name).build(initializer.make(shape, self.dtype)?)
    }

    /// A non-trainable variable.
    pub(super) fn state(
        &self,
        name: &str,
        shape: impl Into<Shape>,
        initializer: Initializer,
    ) -> Result<Variable> {
        Variable::builder().name(name).trainable(false).build(initializer.make(shape, self.dtype)?)
    }

    /// A bias of `len` elements, if the layer has one.
    pub(super) fn bias(&self, len: usize, weights: &WeightOptions) -> Result<Option<Variable>> {
        weights.bias.then(|| self.variable("bias", [len], weights.bias_initializer)).transpose()
    }
}

/// Rejects sizes of zero.
pub(super) fn require_nonzero(sizes: &[(&str, usize)]) -> Result<()> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        None => Ok(()),
        Some((name, _)) => Err(Error::value(format!("{name} must be >= 1, got 0"))),
    }
}

/// Rejects a number that is negative or not finite.
pub(super) fn require_non_negative(name: &str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("{name} must be finite and >= 0, got {value}")))
}

/// Runs `work` with errors and allocations attributed to this layer and to its source location.
pub(super) fn in_layer<R>(
    name: &'static str,
    at: Location,
    x: &Tensor,
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    with_source_location(None, at, work).map_err(|error| error.in_op(name, [x.spec()]).at(at))
}

/// Rejects an input whose dtype or shape is not the one that the layer was built for; `expected` describes the shape.
pub(super) fn check_input(
    x: &Tensor,
    dtype: DType,
    fits: bool,
    expected: impl FnOnce() -> String,
) -> Result<()> {
    if fits && x.dtype() == dtype {
        return Ok(());
    }
    let message = format!("expected {dtype}{}, got {}", expected(), x.spec());
    Err(if fits {
        Error::new(ErrorKind::DType, message)
            .help("cast the input, or build the layer with the dtype of the input")
    } else {
        Error::shape(message)
    })
}

/// The tensor in another shape with the same number of elements.
pub(super) fn reshape_to(x: impl Into<Tensor>, shape: &[usize]) -> Result<Tensor> {
    let dims: Vec<isize> = shape.iter().map(|&dim| dim as isize).collect();
    taut_core::ops::shape::reshape(x, &dims)
}
