//! Layers that keep numbers in range.

use super::builder::{Build, Builder, Make, expect, not_negative, some, work};
use crate::initializers::Initializer;
use crate::{Layer, Mode, Names};
use taut_autodiff::Variable;
use taut_core::ops::binary::{mul, sub};
use taut_core::ops::nn::{batch_norm, group_norm, layer_norm, moments, rms_norm};
use taut_core::record::without_recording;
use taut_core::{DType, Error, Result, Shape, Tensor};
use taut_memory::Location;

/// What can be said about a layer that normalises.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is normalised together, or the channels.
    shape: Shape,
    groups: usize,
    epsilon: f64,
    momentum: f64,
    center: bool,
    scale: bool,
}

impl Options {
    fn new(shape: impl Into<Shape>, epsilon: f64) -> Options {
        Options { shape: shape.into(), groups: 1, epsilon, momentum: 0.99, center: true, scale: true }
    }

    fn check(&self) -> Result<()> {
        not_negative("an epsilon", self.epsilon)?;
        some(&self.shape.iter().map(|&size| ("a size", size)).collect::<Vec<_>>())
    }

    fn gamma(&self, make: &Make) -> Result<Option<Variable>> {
        self.scale.then(|| make.variable("gamma", &self.shape, Initializer::Ones)).transpose()
    }

    fn beta(&self, make: &Make) -> Result<Option<Variable>> {
        self.center.then(|| make.variable("beta", &self.shape, Initializer::Zeros)).transpose()
    }
}

/// A layer that normalises.
pub trait Normalizes: Build<Options = Options> {}

/// A layer that also shifts.
pub trait Shifts: Normalizes {}

impl<L: Normalizes> Builder<L> {
    /// What is added to variances, so that nothing is divided by zero.
    pub fn epsilon(mut self, epsilon: f64) -> Builder<L> {
        self.options.epsilon = epsilon;
        self
    }
}

impl<L: Shifts> Builder<L> {
    /// Whether `beta` is added. It is, unless it is said here.
    pub fn center(mut self, on: bool) -> Builder<L> {
        self.options.center = on;
        self
    }

    /// Whether the result is multiplied by `gamma`. It is, unless it is said here.
    pub fn scale(mut self, on: bool) -> Builder<L> {
        self.options.scale = on;
        self
    }
}

fn read(variable: Option<&Variable>) -> Option<Tensor> {
    variable.map(Variable::read)
}

/// Normalises every channel (the last axis) over the batch and all other axes.
///
/// While training, by the mean and the variance of the batch, and remembers them:
/// `moving = moving * momentum + batch * (1 - momentum)`. Otherwise by those it remembers.
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
    /// A layer for inputs of this many channels. Epsilon is 1e-3.
    #[track_caller]
    pub fn new(channels: usize) -> Builder<BatchNorm> {
        Builder::new(Options::new([channels], 1e-3), Location::caller())
    }

    /// Moves the statistics that are remembered towards those of a batch.
    fn remember(&self, moving: &Variable, batch: &Tensor) -> Result<()> {
        without_recording(|| moving.assign_sub(mul(sub(moving.value(), batch)?, 1.0 - self.momentum)?))
    }
}

impl Builder<BatchNorm> {
    /// How much of what it remembers stays in each training step: 0.99, unless it is said here.
    pub fn momentum(mut self, momentum: f64) -> Builder<BatchNorm> {
        self.options.momentum = momentum;
        self
    }
}

impl Build for BatchNorm {
    const NAME: &'static str = "BatchNorm";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<BatchNorm> {
        options.check()?;
        if !(0.0..=1.0).contains(&options.momentum) {
            return Err(Error::value(format!("a momentum of {} is not from 0 to 1", options.momentum)));
        }
        Ok(BatchNorm {
            gamma: options.gamma(make)?,
            beta: options.beta(make)?,
            moving_mean: make.state("moving_mean", &options.shape, Initializer::Zeros)?,
            moving_variance: make.state("moving_variance", &options.shape, Initializer::Ones)?,
            momentum: options.momentum,
            epsilon: options.epsilon,
            at: make.at,
        })
    }
}

impl Normalizes for BatchNorm {}
impl Shifts for BatchNorm {}

impl Layer for BatchNorm {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        work(BatchNorm::NAME, self.at, x, || {
            let channels = self.moving_mean.shape()[0];
            let fits = x.rank() > 1 && x.shape().last() == Some(&channels);
            expect(x, self.moving_mean.dtype(), fits, || format!("[batch, .., {channels}]"))?;
            let (mean, variance) = if mode.is_training() {
                if x.is_empty() {
                    return Err(Error::shape("a batch of nothing has no mean to train with"));
                }
                let axes: Vec<isize> = (0..x.rank() as isize - 1).collect();
                let (mean, variance) = moments(x, &axes[..], false)?;
                self.remember(&self.moving_mean, &mean)?;
                self.remember(&self.moving_variance, &variance)?;
                (mean, variance)
            } else {
                (self.moving_mean.read(), self.moving_variance.read())
            };
            let (gamma, beta) = (read(self.gamma.as_ref()), read(self.beta.as_ref()));
            batch_norm(x, mean, variance, beta.as_ref(), gamma.as_ref(), self.epsilon, -1)
        })
    }

    fn variables(&self, names: &mut Names) {
        self.gamma.iter().for_each(|gamma| names.add("gamma", gamma));
        self.beta.iter().for_each(|beta| names.add("beta", beta));
        names.add("moving_mean", &self.moving_mean);
        names.add("moving_variance", &self.moving_variance);
    }
}

/// Normalises the last axes of every sample together to mean 0 and deviation 1, then scales and shifts by element.
#[derive(Debug)]
pub struct LayerNorm {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    shape: Shape,
    epsilon: f64,
    like: Like,
}

/// The type a layer is built for, and its line.
type Like = (DType, Location);

impl LayerNorm {
    /// A layer for inputs whose last dimensions are these. Epsilon is 1e-3.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>) -> Builder<LayerNorm> {
        Builder::new(Options::new(shape, 1e-3), Location::caller())
    }
}

impl Build for LayerNorm {
    const NAME: &'static str = "LayerNorm";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<LayerNorm> {
        options.check()?;
        Ok(LayerNorm {
            gamma: options.gamma(make)?,
            beta: options.beta(make)?,
            shape: options.shape.clone(),
            epsilon: options.epsilon,
            like: (make.dtype, make.at),
        })
    }
}

impl Normalizes for LayerNorm {}
impl Shifts for LayerNorm {}

/// Refuses an input whose last dimensions are others.
fn expect_last(x: &Tensor, dtype: DType, shape: &Shape) -> Result<()> {
    let fits = x.rank() > shape.rank() && x.shape().ends_with(shape);
    expect(x, dtype, fits, || format!("[batch, .., {}", shape.to_string().trim_start_matches('[')))
}

impl Layer for LayerNorm {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        let (dtype, at) = self.like;
        work(LayerNorm::NAME, at, x, || {
            expect_last(x, dtype, &self.shape)?;
            let (gamma, beta) = (read(self.gamma.as_ref()), read(self.beta.as_ref()));
            layer_norm(x, gamma.as_ref(), beta.as_ref(), self.shape.rank(), self.epsilon)
        })
    }

    fn variables(&self, names: &mut Names) {
        self.gamma.iter().for_each(|gamma| names.add("gamma", gamma));
        self.beta.iter().for_each(|beta| names.add("beta", beta));
    }
}

/// Normalises every group of neighbouring channels (the last axis) of every sample, then scales and shifts by channel.
#[derive(Debug)]
pub struct GroupNorm {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    channels: usize,
    groups: usize,
    epsilon: f64,
    like: Like,
}

impl GroupNorm {
    /// A layer for inputs of this many channels, in this many groups. Epsilon is 1e-3.
    #[track_caller]
    pub fn new(channels: usize, groups: usize) -> Builder<GroupNorm> {
        Builder::new(Options { groups, ..Options::new([channels], 1e-3) }, Location::caller())
    }
}

impl Build for GroupNorm {
    const NAME: &'static str = "GroupNorm";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<GroupNorm> {
        options.check()?;
        let (channels, groups) = (options.shape[0], options.groups);
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(Error::value(format!("{channels} channels do not fall into {groups} groups")));
        }
        Ok(GroupNorm {
            gamma: options.gamma(make)?,
            beta: options.beta(make)?,
            channels,
            groups,
            epsilon: options.epsilon,
            like: (make.dtype, make.at),
        })
    }
}

impl Normalizes for GroupNorm {}
impl Shifts for GroupNorm {}

impl Layer for GroupNorm {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        let (dtype, at) = self.like;
        work(GroupNorm::NAME, at, x, || {
            expect_last(x, dtype, &[self.channels].into())?;
            let (gamma, beta) = (read(self.gamma.as_ref()), read(self.beta.as_ref()));
            group_norm(x, gamma.as_ref(), beta.as_ref(), self.groups, -1, self.epsilon)
        })
    }

    fn variables(&self, names: &mut Names) {
        self.gamma.iter().for_each(|gamma| names.add("gamma", gamma));
        self.beta.iter().for_each(|beta| names.add("beta", beta));
    }
}

/// Divides the last axes of every sample by the root of their mean square, then scales by element.
#[derive(Debug)]
pub struct RMSNorm {
    scale: Variable,
    epsilon: f64,
    at: Location,
}

impl RMSNorm {
    /// A layer for inputs whose last dimensions are these. Epsilon is 1e-6.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>) -> Builder<RMSNorm> {
        Builder::new(Options::new(shape, 1e-6), Location::caller())
    }
}

impl Build for RMSNorm {
    const NAME: &'static str = "RMSNorm";
    type Options = Options;

    fn build(options: &Options, make: &Make) -> Result<RMSNorm> {
        options.check()?;
        let scale = make.variable("scale", &options.shape, Initializer::Ones)?;
        Ok(RMSNorm { scale, epsilon: options.epsilon, at: make.at })
    }
}

impl Normalizes for RMSNorm {}

impl Layer for RMSNorm {
    fn call(&self, x: &Tensor, _mode: Mode) -> Result<Tensor> {
        work(RMSNorm::NAME, self.at, x, || {
            expect_last(x, self.scale.dtype(), self.scale.shape())?;
            rms_norm(x, Some(&self.scale.read()), self.scale.shape().rank(), self.epsilon)
        })
    }

    fn variables(&self, names: &mut Names) {
        names.add("scale", &self.scale);
    }
}
