//! Normalisation layers.

use super::builder::{
    Build, LayerBuilder, VariableFactory, check_input, in_layer, require_non_negative, require_nonzero,
};
use crate::initializers::Initializer;
use crate::{Layer, Mode, NamedVariables};
use taut_autodiff::Variable;
use taut_core::ops::binary::{mul, sub};
use taut_core::ops::nn::{batch_norm, group_norm, layer_norm, moments, rms_norm};
use taut_core::record::without_recording;
use taut_core::{DType, Error, Result, Shape, Tensor};
use taut_memory::Location;

/// The options of a normalisation layer.
#[derive(Clone, Debug)]
pub struct NormOptions {
    /// The shape of the axes that are normalised together, or the number of channels.
    shape: Shape,
    groups: usize,
    epsilon: f64,
    momentum: f64,
    center: bool,
    scale: bool,
}

impl NormOptions {
    fn new(shape: impl Into<Shape>, epsilon: f64) -> NormOptions {
        NormOptions { shape: shape.into(), groups: 1, epsilon, momentum: 0.99, center: true, scale: true }
    }

    fn check(&self) -> Result<()> {
        require_non_negative("epsilon", self.epsilon)?;
        require_nonzero(&self.shape.iter().map(|&size| ("the normalised size", size)).collect::<Vec<_>>())
    }

    fn gamma(&self, factory: &VariableFactory) -> Result<Option<Variable>> {
        self.scale.then(|| factory.variable("gamma", &self.shape, Initializer::Ones)).transpose()
    }

    fn beta(&self, factory: &VariableFactory) -> Result<Option<Variable>> {
        self.center.then(|| factory.variable("beta", &self.shape, Initializer::Zeros)).transpose()
    }
}

/// A normalisation layer.
pub trait Normalization: Build<Options = NormOptions> {}

/// A normalisation layer with `gamma` and `beta`.
pub trait HasScaleAndOffset: Normalization {}

impl<L: Normalization> LayerBuilder<L> {
    /// The number added to variances, which prevents division by zero.
    pub fn epsilon(mut self, epsilon: f64) -> LayerBuilder<L> {
        self.options.epsilon = epsilon;
        self
    }
}

impl<L: HasScaleAndOffset> LayerBuilder<L> {
    /// Whether `beta` is added. Default: true.
    pub fn center(mut self, on: bool) -> LayerBuilder<L> {
        self.options.center = on;
        self
    }

    /// Whether the result is multiplied by `gamma`. Default: true.
    pub fn scale(mut self, on: bool) -> LayerBuilder<L> {
        self.options.scale = on;
        self
    }
}

fn read(variable: Option<&Variable>) -> Option<Tensor> {
    variable.map(Variable::read)
}

/// Batch normalisation: normalises every channel (the last axis) over the batch and all other axes.
///
/// While training, with the mean and variance of the batch, which update the moving averages:
/// `moving = moving * momentum + batch * (1 - momentum)`. At inference, with the moving averages.
#[derive(Debug)]
pub struct BatchNorm {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    moving_mean: Variable,
    moving_variance: Variable,
    momentum: f64,
    epsilon: f64,
    at: Location,
}

impl BatchNorm {
    /// A layer for inputs of `channels` channels, with epsilon 1e-3.
    #[track_caller]
    pub fn new(channels: usize) -> LayerBuilder<BatchNorm> {
        LayerBuilder::new(NormOptions::new([channels], 1e-3), Location::caller())
    }

    /// Updates a moving average with the statistic of a batch.
    fn update_moving(&self, moving: &Variable, batch: &Tensor) -> Result<()> {
        without_recording(|| moving.assign_sub(mul(sub(moving.value(), batch)?, 1.0 - self.momentum)?))
    }
}

impl LayerBuilder<BatchNorm> {
    /// The momentum of the moving averages. Default: 0.99.
    pub fn momentum(mut self, momentum: f64) -> LayerBuilder<BatchNorm> {
        self.options.momentum = momentum;
        self
    }
}

impl Build for BatchNorm {
    const NAME: &'static str = "BatchNorm";
    type Options = NormOptions;

    fn build(options: &NormOptions, factory: &VariableFactory) -> Result<BatchNorm> {
        options.check()?;
        if !(0.0..=1.0).contains(&options.momentum) {
            return Err(Error::value(format!("momentum must be in [0, 1], got {}", options.momentum)));
        }
        Ok(BatchNorm {
            gamma: options.gamma(factory)?,
            beta: options.beta(factory)?,
            moving_mean: factory.state("moving_mean", &options.shape, Initializer::Zeros)?,
            moving_variance: factory.state("moving_variance", &options.shape, Initializer::Ones)?,
            momentum: options.momentum,
            epsilon: options.epsilon,
            at: factory.at,
        })
    }
}

impl Normalization for BatchNorm {}
impl HasScaleAndOffset for BatchNorm {}

impl Layer for BatchNorm {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        in_layer(BatchNorm::NAME, self.at, x, || {
            let channels = self.moving_mean.shape()[0];
            let fits = x.rank() > 1 && x.shape().last() == Some(&channels);
            check_input(x, self.moving_mean.dtype(), fits, || format!("[batch, .., {channels}]"))?;
            let (mean, variance) = if mode.is_training() {
                if x.is_empty() {
                    return Err(Error::shape(format!(
                        "training needs a batch of at least one element, got {}",
                        x.spec()
                    )));
                }
                let axes: Vec<isize> = (0..x.rank() as isize - 1).collect();
                let (mean, variance) = moments(x, &axes[..], false)?;
                self.update_moving(&self.moving_mean, &mean)?;
                self.update_moving(&self.moving_variance, &variance)?;
                (mean, variance)
            } else {
                (self.moving_mean.read(), self.moving_variance.read())
            };
            let (gamma, beta) = (read(self.gamma.as_ref()), read(self.beta.as_ref()));
            batch_norm(x, mean, variance, beta.as_ref(), gamma.as_ref(), self.epsilon, -1)
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.gamma.iter().for_each(|gamma| names.add("gamma", gamma));
        self.beta.iter().for_each(|beta| names.add("beta", beta));
        names.add("moving_mean", &self.moving_mean);
        names.add("moving_variance", &self.moving_variance);
    }
}

/// Layer normalisation: normalises the last axes of every sample to mean 0 and standard deviation 1, then scales and shifts by element.
#[derive(Debug)]
pub struct LayerNorm {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    shape: Shape,
    epsilon: f64,
    built_for: BuiltFor,
}

/// The dtype that a layer was built for, and its source location.
type BuiltFor = (DType, Location);

impl LayerNorm {
    /// A layer for inputs whose last dimensions are `shape`, with epsilon 1e-3.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>) -> LayerBuilder<LayerNorm> {
        LayerBuilder::new(NormOptions::new(shape, 1e-3), Location::caller())
    }
}

impl Build for LayerNorm {
    const NAME: &'static str = "LayerNorm";
    type Options = NormOptions;

    fn build(options: &NormOptions, factory: &VariableFactory) -> Result<LayerNorm> {
        options.check()?;
        Ok(LayerNorm {
            gamma: options.gamma(factory)?,
            beta: options.beta(factory)?,
            shape: options.shape.clone(),
            epsilon: options.epsilon,
            built_for: (factory.dtype, factory.at),
        })
    }
}

impl Normalization for LayerNorm {}
impl HasScaleAndOffset for LayerNorm {}

/// Rejects an input whose last dimensions are not `shape`.
fn check_last_axes(x: &Tensor, dtype: DType, shape: &Shape) -> Result<()> {
    let fits = x.rank() > shape.rank() && x.shape().ends_with(shape);
    check_input(x, dtype, fits, || format!("[batch, .., {}", shape.to_string().trim_start_matches('[')))
}

impl Layer for LayerNorm {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        let (dtype, at) = self.built_for;
        in_layer(LayerNorm::NAME, at, x, || {
            check_last_axes(x, dtype, &self.shape)?;
            let (gamma, beta) = (read(self.gamma.as_ref()), read(self.beta.as_ref()));
            layer_norm(x, gamma.as_ref(), beta.as_ref(), self.shape.rank(), self.epsilon)
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.gamma.iter().for_each(|gamma| names.add("gamma", gamma));
        self.beta.iter().for_each(|beta| names.add("beta", beta));
    }
}

/// Group normalisation: normalises every group of neighbouring channels (the last axis) of every sample, then scales and shifts by channel.
#[derive(Debug)]
pub struct GroupNorm {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    channels: usize,
    groups: usize,
    epsilon: f64,
    built_for: BuiltFor,
}

impl GroupNorm {
    /// A layer for inputs of `channels` channels in `groups` groups, with epsilon 1e-3.
    #[track_caller]
    pub fn new(channels: usize, groups: usize) -> LayerBuilder<GroupNorm> {
        LayerBuilder::new(NormOptions { groups, ..NormOptions::new([channels], 1e-3) }, Location::caller())
    }
}

impl Build for GroupNorm {
    const NAME: &'static str = "GroupNorm";
    type Options = NormOptions;

    fn build(options: &NormOptions, factory: &VariableFactory) -> Result<GroupNorm> {
        options.check()?;
        let (channels, groups) = (options.shape[0], options.groups);
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(Error::value(format!(
                "groups must divide channels, got groups {groups}, channels {channels}"
            )));
        }
        Ok(GroupNorm {
            gamma: options.gamma(factory)?,
            beta: options.beta(factory)?,
            channels,
            groups,
            epsilon: options.epsilon,
            built_for: (factory.dtype, factory.at),
        })
    }
}

impl Normalization for GroupNorm {}
impl HasScaleAndOffset for GroupNorm {}

impl Layer for GroupNorm {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        let (dtype, at) = self.built_for;
        in_layer(GroupNorm::NAME, at, x, || {
            check_last_axes(x, dtype, &[self.channels].into())?;
            let (gamma, beta) = (read(self.gamma.as_ref()), read(self.beta.as_ref()));
            group_norm(x, gamma.as_ref(), beta.as_ref(), self.groups, -1, self.epsilon)
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.gamma.iter().for_each(|gamma| names.add("gamma", gamma));
        self.beta.iter().for_each(|beta| names.add("beta", beta));
    }
}

/// RMS normalisation: divides the last axes of every sample by the root of their mean square, then scales by element.
#[derive(Debug)]
pub struct RMSNorm {
    scale: Variable,
    epsilon: f64,
    at: Location,
}

impl RMSNorm {
    /// A layer for inputs whose last dimensions are `shape`, with epsilon 1e-6.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>) -> LayerBuilder<RMSNorm> {
        LayerBuilder::new(NormOptions::new(shape, 1e-6), Location::caller())
    }
}

impl Build for RMSNorm {
    const NAME: &'static str = "RMSNorm";
    type Options = NormOptions;

    fn build(options: &NormOptions, factory: &VariableFactory) -> Result<RMSNorm> {
        options.check()?;
        let scale = factory.variable("scale", &options.shape, Initializer::Ones)?;
        Ok(RMSNorm { scale, epsilon: options.epsilon, at: factory.at })
    }
}

impl Normalization for RMSNorm {}

impl Layer for RMSNorm {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        in_layer(RMSNorm::NAME, self.at, x, || {
            check_last_axes(x, self.scale.dtype(), self.scale.shape())?;
            rms_norm(x, Some(&self.scale.read()), self.scale.shape().rank(), self.epsilon)
        })
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("scale", &self.scale);
    }
}
