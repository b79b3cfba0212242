//! A residual net of twenty layers for small images: convolutions, batch norms and ReLUs, SGD with momentum.

use crate::dense;
use taut::ops::Padding;
use taut::{ConvOptions, DType, DenseGradient, GradientTape, Result, Tensor, Variable, nn};

const WIDTHS: [usize; 3] = [16, 32, 64];
const BLOCKS: usize = 3;
const CLASSES: usize = 10;
const RATE: f64 = 0.05;
const MOMENTUM: f64 = 0.9;

/// A convolution and the batch norm behind it.
struct Layer {
    filters: Variable,
    scale: Variable,
    offset: Variable,
    /// Moving mean and variance.
    statistics: [Variable; 2],
    stride: usize,
}

struct Block {
    first: Layer,
    second: Layer,
    /// Brings what goes past the block to its size, where that changes.
    around: Option<Layer>,
}

/// The net, and the state of its optimizer.
pub struct ResNet {
    stem: Layer,
    blocks: Vec<Block>,
    last: [Variable; 2],
    momenta: Vec<Variable>,
}

/// The first value of the variable of this name and shape.
pub type Initial<'a> = dyn Fn(&str, &[usize]) -> Result<Tensor> + 'a;

fn filled(width: usize, value: f64) -> Result<Tensor> {
    taut::full([width], value, DType::F32)
}

fn state(value: Tensor) -> Result<Variable> {
    Variable::builder().trainable(false).build(value)
}

impl Layer {
    fn new(
        initial: &Initial<'_>,
        name: &str,
        size: usize,
        (from, to): (usize, usize),
        stride: usize,
    ) -> Result<Layer> {
        Ok(Layer {
            filters: Variable::new(initial(&format!("{name}.w"), &[size, size, from, to])?)?,
            scale: Variable::new(filled(to, 1.0)?)?,
            offset: Variable::new(filled(to, 0.0)?)?,
            statistics: [state(filled(to, 0.0)?)?, state(filled(to, 1.0)?)?],
            stride,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // The same on both sides, whatever the stride.
        let around = self.filters.shape()[0] / 2;
        let options = ConvOptions {
            strides: vec![self.stride],
            padding: Padding::Explicit(vec![(around, around); 2]),
            ..ConvOptions::default()
        };
        let h = taut::conv(x, &self.filters, &options)?;
        let (mean, variance) = nn::moments(&h, [0, 1, 2], false)?;
        for (moving, now) in self.statistics.iter().zip([&mean, &variance]) {
            moving.assign((taut::mul(moving, 0.9)? + (now * 0.1)?)?)?;
        }
        let (scale, offset) = (self.scale.read(), self.offset.read());
        nn::batch_norm(h, mean, variance, Some(&offset), Some(&scale), 1e-5, -1)
    }

    fn variables(&self) -> [Variable; 3] {
        [self.filters.clone(), self.scale.clone(), self.offset.clone()]
    }
}

impl Block {
    fn new(initial: &Initial<'_>, name: &str, (from, to): (usize, usize)) -> Result<Block> {
        let stride = if from == to { 1 } else { 2 };
        let layer = |part: &str, size, channels, stride| {
            Layer::new(initial, &format!("{name}.{part}"), size, channels, stride)
        };
        Ok(Block {
            first: layer("1", 3, (from, to), stride)?,
            second: layer("2", 3, (to, to), 1)?,
            around: if from == to { None } else { Some(layer("p", 1, (from, to), stride)?) },
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.second.forward(&taut::relu(self.first.forward(x)?)?)?;
        let past = self.around.as_ref().map_or_else(|| Ok(x.clone()), |layer| layer.forward(x))?;
        taut::relu((h + past)?)
    }
}

impl ResNet {
    /// The net, with matrices and filters to begin with as `initial` gives them.
    pub fn new(initial: &Initial<'_>) -> Result<ResNet> {
        let stem = Layer::new(initial, "stem", 3, (3, WIDTHS[0]), 1)?;
        let (mut blocks, mut from) = (Vec::new(), WIDTHS[0]);
        for (stage, to) in WIDTHS.into_iter().enumerate() {
            for block in 0..BLOCKS {
                blocks.push(Block::new(initial, &format!("s{stage}b{block}"), (from, to))?);
                from = to;
            }
        }
        let matrix = initial("fc.w", &[from, CLASSES])?;
        let last = [Variable::new(matrix)?, Variable::new(filled(CLASSES, 0.0)?)?];
        let mut net = ResNet { stem, blocks, last, momenta: Vec::new() };
        let zeros = |variable: &Variable| state(taut::zeros(variable.shape(), DType::F32)?);
        net.momenta = net.variables().iter().map(zeros).collect::<Result<_>>()?;
        Ok(net)
    }

    /// What is trained.
    pub fn variables(&self) -> Vec<Variable> {
        let layers = self
            .blocks
            .iter()
            .flat_map(|block| [&block.first, &block.second].into_iter().chain(block.around.as_ref()));
        let mut variables: Vec<Variable> =
            std::iter::once(&self.stem).chain(layers).flat_map(Layer::variables).collect();
        variables.extend(self.last.iter().cloned());
        variables
    }

    /// One step: forward, loss, gradients, updates.
    pub fn train(&self, images: &Tensor, labels: &Tensor) -> Result<Tensor> {
        let tape = GradientTape::new();
        let mut h = taut::relu(self.stem.forward(images)?)?;
        for block in &self.blocks {
            h = block.forward(&h)?;
        }
        let logits = dense::forward(&self.last, &taut::mean(h, [1, 2], false)?)?;
        let loss = dense::cross_entropy(labels, logits)?;
        let variables = self.variables();
        let gradients = tape.gradient(&loss, &variables)?;
        for ((variable, momentum), gradient) in variables.iter().zip(&self.momenta).zip(gradients) {
            momentum.assign((taut::mul(momentum, MOMENTUM)? + gradient.dense()?)?)?;
            variable.assign_sub(taut::mul(momentum, RATE)?)?;
        }
        Ok(loss)
    }
}
