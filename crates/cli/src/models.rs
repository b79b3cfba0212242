//! The models and optimizers of the command line.

use clap::ValueEnum;
use taut::layers::{
    Activation, BatchNorm, Conv2D, Dense, Dropout, Flatten, GlobalAveragePooling2D, MaxPooling2D, Padding,
    Residual, Sequential,
};
use taut::losses::SparseCategoricalCrossentropy;
use taut::metrics::SparseCategoricalAccuracy;
use taut::optimizers::{
    Adafactor, Adagrad, Adam, AdamW, Adamax, LearningRate, Lion, Nadam, Optimizer, RmsProp, Sgd,
};
use taut::{Error, Layer, Result, Shape, Trainer, Variable};

/// A model for images of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// Two hidden layers of 128 units
    Mlp,
    /// Two convolutions, a pooling, two dense layers, with dropout
    Convnet,
    /// Residual blocks with batch normalization, in three widths
    Resnet,
}

impl ModelName {
    /// The model for images `[height, width, channels]`. Its outputs are logits.
    pub fn build(self, [height, width, channels]: [usize; 3], classes: usize) -> Result<Sequential> {
        let relu = Activation::Relu;
        Ok(match self {
            ModelName::Mlp => Sequential::new()
                .with(Flatten::new())
                .with(Dense::new(product([height, width, channels])?, 128).activation(relu).build()?)
                .with(Dense::new(128, 128).activation(relu).build()?)
                .with(Dense::new(128, classes).build()?),
            ModelName::Convnet => {
                let conv =
                    |from, to| Conv2D::new(from, to, 3).padding(Padding::Same).activation(relu).build();
                Sequential::new()
                    .with(conv(channels, 16)?)
                    .with(conv(16, 32)?)
                    .with(MaxPooling2D::new(2).build()?)
                    .with(Dropout::new(0.25)?)
                    .with(Flatten::new())
                    .with(Dense::new(product([height / 2, width / 2, 32])?, 64).activation(relu).build()?)
                    .with(Dropout::new(0.25)?)
                    .with(Dense::new(64, classes).build()?)
            }
            ModelName::Resnet => {
                let mut model = conv_norm(Sequential::new(), (channels, 16), 3, 1)?.with(relu);
                for (from, to) in [(16, 16), (16, 32), (32, 64)] {
                    model = model.with(block(from, to)?).with(relu).with(block(to, to)?).with(relu);
                }
                model.with(GlobalAveragePooling2D::new()).with(Dense::new(64, classes).build()?)
            }
        })
    }
}

/// The number of values of an image of this shape.
fn product(sizes: [usize; 3]) -> Result<usize> {
    let too_many =
        || Error::shape(format!("the size of images of shape {sizes:?} exceeds the address space"));
    Shape::from(sizes).checked_len().ok_or_else(too_many)
}

/// A convolution followed by a batch normalization.
fn conv_norm(before: Sequential, channels: (usize, usize), size: usize, stride: usize) -> Result<Sequential> {
    let conv = Conv2D::new(channels.0, channels.1, size).strides(stride).padding(Padding::Same).bias(false);
    Ok(before.with(conv.build()?).with(BatchNorm::new(channels.1).build()?))
}

/// Two convolutions with a residual connection.
fn block(from: usize, to: usize) -> Result<Residual> {
    let stride = if from == to { 1 } else { 2 };
    let inside = conv_norm(Sequential::new(), (from, to), 3, stride)?.with(Activation::Relu);
    let block = Residual::new(conv_norm(inside, (to, to), 3, 1)?);
    if from == to {
        Ok(block)
    } else {
        Ok(block.projection(conv_norm(Sequential::new(), (from, to), 1, stride)?))
    }
}

/// An optimizer, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OptimizerName {
    Sgd,
    /// SGD with a momentum of 0.9
    Momentum,
    /// SGD with a Nesterov momentum of 0.9
    Nesterov,
    Rmsprop,
    Adagrad,
    Adam,
    Adamw,
    Adamax,
    Nadam,
    Adafactor,
    Lion,
}

impl OptimizerName {
    /// The optimizer of these variables, with this learning rate or its default.
    fn build(self, rate: Option<f64>, variables: &[Variable]) -> Result<Optimizer> {
        macro_rules! with {
            ($rule:expr) => {{
                let mut rule = $rule;
                if let Some(rate) = rate {
                    rule.rate = LearningRate::from(rate);
                }
                Optimizer::new(rule, variables)
            }};
        }
        match self {
            OptimizerName::Sgd => with!(Sgd::default()),
            OptimizerName::Momentum => with!(Sgd { momentum: 0.9, ..Sgd::default() }),
            OptimizerName::Nesterov => with!(Sgd { momentum: 0.9, nesterov: true, ..Sgd::default() }),
            OptimizerName::Rmsprop => with!(RmsProp::default()),
            OptimizerName::Adagrad => with!(Adagrad::default()),
            OptimizerName::Adam => with!(Adam::default()),
            OptimizerName::Adamw => with!(AdamW::default()),
            OptimizerName::Adamax => with!(Adamax::default()),
            OptimizerName::Nadam => with!(Nadam::default()),
            OptimizerName::Adafactor => with!(Adafactor::default()),
            OptimizerName::Lion => with!(Lion::default()),
        }
    }
}

/// A trainer of a classifier.
pub fn trainer(model: impl Layer, rule: OptimizerName, rate: Option<f64>) -> Result<Trainer> {
    let optimizer = rule.build(rate, &model.trainable_variables())?;
    Ok(Trainer::new(model, SparseCategoricalCrossentropy::from_logits(), optimizer)
        .metric_as("accuracy", SparseCategoricalAccuracy::new()?))
}
