//! The models that the command can train, for images of any size.

use clap::ValueEnum;
use taut::layers::{
    Activation, BatchNorm, Conv2D, Dense, Dropout, Flatten, GlobalAveragePooling2D, MaxPooling2D, Padding,
    Residual, Sequential,
};
use taut::losses::SparseCategoricalCrossentropy;
use taut::metrics::SparseCategoricalAccuracy;
use taut::optimizers::{Adafactor, Adagrad, Adam, AdamW, Adamax, Lion, Nadam, Optimizer, Rate, RmsProp, Sgd};
use taut::{Error, Layer, Result, Shape, Trainer, Variable};

/// A model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Two hidden layers of 128 units
    Mlp,
    /// Two convolutions, a pooling, two dense layers, with dropout
    Convnet,
    /// Residual blocks with batch norms, in three widths
    Resnet,
}

impl Kind {
    /// The model for images `[height, width, channels]`. Its results are logits.
    pub fn build(self, [height, width, channels]: [usize; 3], classes: usize) -> Result<Sequential> {
        let relu = Activation::Relu;
        Ok(match self {
            Kind::Mlp => Sequential::new()
                .with(Flatten::new())
                .with(Dense::new(product([height, width, channels])?, 128).activation(relu).build()?)
                .with(Dense::new(128, 128).activation(relu).build()?)
                .with(Dense::new(128, classes).build()?),
            Kind::Convnet => {
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
            Kind::Resnet => {
                let mut model = conv_norm(Sequential::new(), (channels, 16), 3, 1)?.with(relu);
                for (from, to) in [(16, 16), (16, 32), (32, 64)] {
                    model = model.with(block(from, to)?).with(relu).with(block(to, to)?).with(relu);
                }
                model.with(GlobalAveragePooling2D::new()).with(Dense::new(64, classes).build()?)
            }
        })
    }
}

/// How many values an image of these sizes has.
fn product(sizes: [usize; 3]) -> Result<usize> {
    let too_many = || Error::shape(format!("images of {sizes:?} values do not fit into memory"));
    Shape::from(sizes).checked_len().ok_or_else(too_many)
}

/// A convolution, and the norm behind it.
fn conv_norm(before: Sequential, channels: (usize, usize), size: usize, stride: usize) -> Result<Sequential> {
    let conv = Conv2D::new(channels.0, channels.1, size).strides(stride).padding(Padding::Same).bias(false);
    Ok(before.with(conv.build()?).with(BatchNorm::new(channels.1).build()?))
}

/// Two convolutions, and a way past them.
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
pub enum Rule {
    Sgd,
    /// SGD with a momentum of 0.9
    Momentum,
    /// SGD with Nesterov's momentum of 0.9
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

impl Rule {
    /// The optimizer of these variables, at this learning rate or its own.
    fn build(self, rate: Option<f64>, variables: &[Variable]) -> Result<Optimizer> {
        macro_rules! with {
            ($rule:expr) => {{
                let mut rule = $rule;
                if let Some(rate) = rate {
                    rule.rate = Rate::from(rate);
                }
                Optimizer::new(rule, variables)
            }};
        }
        match self {
            Rule::Sgd => with!(Sgd::default()),
            Rule::Momentum => with!(Sgd { momentum: 0.9, ..Sgd::default() }),
            Rule::Nesterov => with!(Sgd { momentum: 0.9, nesterov: true, ..Sgd::default() }),
            Rule::Rmsprop => with!(RmsProp::default()),
            Rule::Adagrad => with!(Adagrad::default()),
            Rule::Adam => with!(Adam::default()),
            Rule::Adamw => with!(AdamW::default()),
            Rule::Adamax => with!(Adamax::default()),
            Rule::Nadam => with!(Nadam::default()),
            Rule::Adafactor => with!(Adafactor::default()),
            Rule::Lion => with!(Lion::default()),
        }
    }
}

/// A trainer of a classifier.
pub fn trainer(model: impl Layer, rule: Rule, rate: Option<f64>) -> Result<Trainer> {
    let optimizer = rule.build(rate, &model.trainable())?;
    Ok(Trainer::new(model, SparseCategoricalCrossentropy::from_logits(), optimizer)
        .metric_as("accuracy", SparseCategoricalAccuracy::new()?))
}
