//! A residual net of twenty layers for small images: convolutions, batch norms and ReLUs, SGD with momentum.

use crate::dense;
use crate::initial::normal;
use taut::{DType, Dense, GradientTape, Result, Tensor, Variable, nn};

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

fn filled(width: usize, value: f64) -> Result<Tensor> {
    taut::full([width], value, DType::F32)
}

fn state(value: Tensor) -> Result<Variable> {
    Variable::builder().trainable(false).build(value)
}

impl Layer {
    fn new(size: usize, from: usize, to: usize, stride: usize) -> Result<Layer> {
        let shape = [size, size, from, to];
        let deviation = (2.0 / (size * size * from) as f64).sqrt();
        Ok(Layer {
            filters: Variable::new(normal(to as u64, &shape, deviation)?)?,
            scale: Variable::new(filled(to, 1.0)?)?,
            offset: Variable::new(filled(to, 0.0)?)?,
            statistics: [state(filled(to, 0.0)?)?, state(filled(to, 1.0)?)?],
            stride,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = taut::conv2d(x, &self.filters, &[self.stride; 2], "SAME")?;
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
    fn new(from: usize, to: usize) -> Result<Block> {
        let stride = if from == to { 1 } else { 2 };
        let around = if from == to { None } else { Some(Layer::new(1, from, to, stride)?) };
        Ok(Block { first: Layer::new(3, from, to, stride)?, second: Layer::new(3, to, to, 1)?, around })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = self.second.forward(&taut::relu(self.first.forward(x)?)?)?;
        let past = self.around.as_ref().map_or_else(|| Ok(x.clone()), |layer| layer.forward(x))?;
        taut::relu((h + past)?)
    }
}

impl ResNet {
    pub fn new() -> Result<ResNet> {
        let stem = Layer::new(3, 3, WIDTHS[0], 1)?;
        let (mut blocks, mut from) = (Vec::new(), WIDTHS[0]);
        for to in WIDTHS {
            for _ in 0..BLOCKS {
                blocks.push(Block::new(from, to)?);
                from = to;
            }
        }
        let matrix = normal(1, &[from, CLASSES], 1.0 / (from as f64).sqrt())?;
        let last = [Variable::new(matrix)?, Variable::new(filled(CLASSES, 0.0)?)?];
        let mut net = ResNet { stem, blocks, last, momenta: Vec::new() };
        let zeros = |variable: &Variable| state(taut::zeros(variable.shape(), DType::F32)?);
        net.momenta = net.variables().iter().map(zeros).collect::<Result<_>>()?;
        Ok(net)
    }

    /// What is trained.
    fn variables(&self) -> Vec<Variable> {
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
