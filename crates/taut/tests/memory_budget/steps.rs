//! Training steps of models of any size, for tests and for the bench of the search. Built twice, a step computes the same.

use crate::adam::{adam, minimize};
use crate::dense::cross_entropy;
use crate::initial::{layers, normal};
use crate::lstm::Lstm;
use crate::resnet::ResNet;
use std::sync::Arc;
use taut::{DType, DenseGradient, GradientTape, Loops, Result, Tensor, Variable, nn, random};

/// The seed of dropout.
pub const SEED: u64 = 7;

/// A training step.
pub struct Step {
    pub name: &'static str,
    pub body: Arc<dyn Fn(&[Tensor]) -> Result<Tensor> + Send + Sync>,
    pub arguments: Vec<Tensor>,
    /// What it updates.
    pub variables: Vec<Variable>,
}

impl Step {
    pub fn new(
        name: &'static str,
        arguments: Vec<Tensor>,
        variables: Vec<Variable>,
        body: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Step {
        // Dropout draws the same numbers whenever a step is built.
        random::set_seed(SEED);
        Step { name, body: Arc::new(body), arguments, variables }
    }
}

pub fn labels(count: usize, classes: usize) -> Result<Tensor> {
    Tensor::from_vec((0..count).map(|i| (i * 7 % classes) as i64).collect(), [count])
}

/// A deep network of `tanh` layers, with gradient descent.
pub fn mlp(depth: usize, width: usize, batch: usize) -> Result<Step> {
    let layers: Vec<Variable> = (0..depth)
        .map(|i| Variable::new(normal(i as u64, &[width, width], 1.0 / (width as f64).sqrt())?))
        .collect::<Result<_>>()?;
    let variables = layers.clone();
    Ok(Step::new("mlp", vec![normal(99, &[batch, width], 1.0)?], variables, move |arguments| {
        let tape = GradientTape::new();
        let mut h = arguments[0].clone();
        for layer in &layers {
            h = taut::tanh(taut::matmul(h, layer)?)?;
        }
        let loss = taut::mean(taut::square(h)?, None, false)?;
        for (layer, gradient) in layers.iter().zip(tape.gradient(&loss, &layers)?) {
            layer.assign_sub((gradient.dense()? * 0.05)?)?;
        }
        Ok(loss)
    }))
}

/// Two blocks of attention and two products, with dropout and Adam.
pub fn transformer() -> Result<Step> {
    let (batch, length, width, heads, words, blocks) = (4, 16, 32, 4, 50, 3);
    let variable = |seed: u64, shape: &[usize]| Variable::new(normal(seed, shape, 0.2)?);
    let table = variable(1, &[words, width])?;
    let head = variable(2, &[width, words])?;
    let mut inner = Vec::new();
    for block in 0..blocks {
        let seed = 10 * (block + 1);
        inner.push(variable(seed, &[width, 3 * width])?);
        inner.push(variable(seed + 1, &[width, width])?);
        inner.push(variable(seed + 2, &[width, 4 * width])?);
        inner.push(variable(seed + 3, &[4 * width, width])?);
    }
    let mut variables = vec![table.clone(), head.clone()];
    variables.extend(inner.iter().cloned());
    let optimizer = adam(&variables, 1e-3)?;
    let text = || taut::reshape(labels(batch * length, words)?, &[batch as isize, length as isize]);
    let arguments = vec![text()?, text()?];
    Ok(Step::new("transformer", arguments, variables, move |arguments| {
        let tape = GradientTape::new();
        let mut h = taut::reshape(nn::embedding_lookup(&table, &arguments[0])?, &[-1, width as isize])?;
        for block in inner.chunks(4) {
            let all = taut::matmul(nn::layer_norm(&h, None, None, 1, 1e-5)?, &block[0])?;
            let shape = [-1, length as isize, 3, heads as isize, (width / heads) as isize];
            let parts = taut::transpose(taut::reshape(all, &shape)?, &[2, 0, 3, 1, 4][..])?;
            let [q, k, v] = [0, 1, 2].map(|part| taut::slice(&parts, &taut::s![part]));
            let seen = taut::transpose(nn::attention(q?, k?, v?, None, true, None)?, &[0, 2, 1, 3][..])?;
            let seen = taut::matmul(taut::reshape(seen, &[-1, width as isize])?, &block[1])?;
            h = (h + nn::dropout(seen, 0.1, random::next_key()?)?)?;
            let up = taut::gelu(taut::matmul(nn::layer_norm(&h, None, None, 1, 1e-5)?, &block[2])?, true)?;
            h = (h + nn::dropout(taut::matmul(up, &block[3])?, 0.1, random::next_key()?)?)?;
        }
        let loss = cross_entropy(&taut::reshape(&arguments[1], &[-1])?, taut::matmul(h, &head)?)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    }))
}

/// A residual network of twenty layers with batch norms and momentum, on square images.
pub fn resnet(batch: usize, size: usize) -> Result<Step> {
    let net = ResNet::new(&|name, shape| {
        let seed = name.bytes().fold(0u64, |seed, byte| seed * 31 + u64::from(byte));
        normal(seed, shape, 0.1)
    })?;
    let variables = net.variables();
    let arguments = vec![normal(5, &[batch, size, size, 3], 1.0)?, labels(batch, 10)?];
    Ok(Step::new("resnet", arguments, variables, move |arguments| net.train(&arguments[0], &arguments[1])))
}

/// A recurrent network.
pub fn lstm(steps: usize, batch: usize, inputs: usize, hidden: usize) -> Result<Step> {
    let variable = |seed: u64, shape: &[usize]| Variable::new(normal(seed, shape, 0.2)?);
    let (wx, wh) = (variable(1, &[inputs, 4 * hidden])?, variable(2, &[hidden, 4 * hidden])?);
    let b = Variable::new(taut::zeros([4 * hidden], DType::F32)?)?;
    let variables = vec![wx.clone(), wh.clone(), b.clone()];
    let lstm = Lstm { wx, wh, b, rate: 1e-3, loops: Loops::new(), at_once: false };
    let arguments = vec![normal(3, &[steps, batch, inputs], 1.0)?];
    Ok(Step::new("lstm", arguments, variables, move |arguments| lstm.train(&arguments[0])))
}

/// A table of which a batch uses few rows, with a dense head.
pub fn embedding(rows: usize, width: usize, batch: usize, hidden: usize) -> Result<Step> {
    let table = Variable::new(normal(1, &[rows, width], 0.2)?)?;
    let dense = layers(&[width, hidden, hidden, 1])?;
    let mut variables = vec![table.clone()];
    variables.extend(dense.iter().cloned());
    let optimizer = adam(&variables, 0.02)?;
    let ids = taut::reshape(labels(4 * batch, rows)?, &[batch as isize, 4])?;
    let targets = taut::cast(labels(batch, 2)?, DType::F32)?;
    Ok(Step::new("embedding", vec![ids, targets], variables, move |arguments| {
        let tape = GradientTape::new();
        let seen = taut::mean(nn::embedding_lookup(&table, &arguments[0])?, 1, false)?;
        let logits = taut::reshape(crate::dense::forward(&dense, &seen)?, &[-1])?;
        let loss = taut::mean(nn::sigmoid_cross_entropy_with_logits(&arguments[1], logits)?, None, false)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    }))
}

/// A table that is also the matrix of the last product.
pub fn tied(words: usize, width: usize, batch: usize) -> Result<Step> {
    let table = Variable::new(normal(1, &[words, width], 0.2)?)?;
    let dense = layers(&[width, 2 * width, 2 * width, 2 * width, width])?;
    let mut variables = vec![table.clone()];
    variables.extend(dense.iter().cloned());
    let optimizer = adam(&variables, 1e-2)?;
    let arguments = vec![labels(batch, words)?, labels(batch, words)?];
    Ok(Step::new("tied weights", arguments, variables, move |arguments| {
        let tape = GradientTape::new();
        let seen = nn::embedding_lookup(&table, &arguments[0])?;
        let h = crate::dense::forward(&dense, &seen)?;
        let logits = taut::matmul_with(h, &table, false, true)?;
        let loss = cross_entropy(&arguments[1], logits)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    }))
}

/// A loop over parts of a batch that adds up their gradients, written by hand: its body is a whole backward pass.
pub fn accumulation() -> Result<Step> {
    let (parts, rows, width, depth) = (3, 64, 16, 12);
    let layers: Vec<Variable> =
        (0..depth).map(|i| Variable::new(normal(i, &[width, width], 0.3)?)).collect::<Result<_>>()?;
    let variables = layers.clone();
    let arguments = vec![normal(99, &[parts, rows, width], 1.0)?];
    Ok(Step::new("accumulation", arguments, variables, move |arguments| {
        let zeros: Vec<Tensor> =
            layers.iter().map(|_| taut::zeros([width, width], DType::F32)).collect::<Result<_>>()?;
        let add_part = |(sums, total): (Vec<Tensor>, Tensor), x: Tensor| {
            let tape = GradientTape::new();
            let mut h = x;
            for layer in &layers {
                h = taut::tanh(taut::matmul(h, layer)?)?;
            }
            let loss = taut::sum(taut::square(h)?, None, false)?;
            let gradients = tape.gradient(&loss, &layers)?;
            let sums = sums.into_iter().zip(gradients).map(|(sum, gradient)| sum + gradient.dense()?);
            Ok(((sums.collect::<Result<Vec<_>>>()?, (total + loss)?), ()))
        };
        let begin = (zeros, taut::zeros([], DType::F32)?);
        let ((sums, total), ()) = Loops::new().scan(add_part, begin, arguments[0].clone())?;
        for (layer, sum) in layers.iter().zip(sums) {
            layer.assign_sub((sum * 1e-3)?)?;
        }
        Ok(total)
    }))
}
