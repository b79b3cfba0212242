//! Training steps of the sizes in `benches/peers/workloads.py`, and deep ones that show how the search grows.

use crate::adam::{adam, minimize};
use crate::dense::cross_entropy;
use crate::initial::{layers, normal};
use crate::lstm::Lstm;
use crate::resnet::ResNet;
use crate::transformer::Transformer;
use std::collections::BTreeMap;
use std::sync::Arc;
use taut::{DType, DenseGradient, GradientTape, Loops, Result, Tensor, Variable, nn};

/// A training step and its arguments.
pub struct Step {
    pub body: Arc<dyn Fn(&[Tensor]) -> Result<Tensor> + Send + Sync>,
    pub arguments: Vec<Tensor>,
}

impl Step {
    fn new(
        arguments: Vec<Tensor>,
        body: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Step {
        Step { body: Arc::new(body), arguments }
    }
}

type Build = fn() -> Result<Step>;

/// The steps by name.
pub const STEPS: &[(&str, Build)] = &[
    ("mlp 64 x 256", || mlp(64, 256, 16384)),
    ("transformer", || transformer(4)),
    ("resnet-20", resnet),
    ("lstm", lstm),
    ("embedding", embedding),
    ("tied weights", tied),
    ("transformer of 12 layers", || transformer(12)),
    ("mlp 832 x 64", || mlp(832, 64, 256)),
];

fn labels(count: usize, classes: usize) -> Result<Tensor> {
    Tensor::from_vec((0..count).map(|i| (i * 7 % classes) as i32).collect(), [count])
}

fn mlp(depth: usize, width: usize, batch: usize) -> Result<Step> {
    let deviation = 1.1 / (width as f64).sqrt();
    let layers: Vec<Variable> = (0..depth)
        .map(|i| Variable::new(normal(i as u64, &[width, width], deviation)?))
        .collect::<Result<_>>()?;
    Ok(Step::new(vec![normal(99, &[batch, width], 1.0)?], move |arguments| {
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

fn transformer(blocks: usize) -> Result<Step> {
    let (width, length, batch, words) = (256, 256, 8, 4096);
    let mut variables: BTreeMap<String, Variable> = BTreeMap::new();
    let mut add = |name: String, shape: &[usize]| -> Result<()> {
        let value = match name.rsplit('.').next() {
            Some("g") => taut::ones(shape, DType::F32)?,
            Some("b") => taut::zeros(shape, DType::F32)?,
            _ => normal(variables.len() as u64, shape, 0.05)?,
        };
        variables.insert(name, Variable::new(value)?);
        Ok(())
    };
    add("tok".into(), &[words, width])?;
    add("pos".into(), &[length, width])?;
    for block in 0..blocks {
        for (part, from, to) in [
            ("qkv", width, 3 * width),
            ("o", width, width),
            ("up", width, 4 * width),
            ("down", 4 * width, width),
        ] {
            add(format!("{block}.{part}.w"), &[from, to])?;
            add(format!("{block}.{part}.b"), &[to])?;
        }
    }
    let norms = (0..blocks).flat_map(|block| [format!("{block}.ln1"), format!("{block}.ln2")]);
    for norm in norms.chain(["lnf".into()]) {
        add(format!("{norm}.g"), &[width])?;
        add(format!("{norm}.b"), &[width])?;
    }
    add("head.w".into(), &[width, words])?;
    let net = Transformer(variables);
    let optimizer = adam(&net.variables(), 1e-3)?;
    let text = || taut::reshape(labels(batch * length, words)?, &[batch as isize, length as isize]);
    Ok(Step::new(vec![text()?, text()?], move |arguments| {
        let tape = GradientTape::new();
        let loss = net.loss(&arguments[0], &arguments[1])?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    }))
}

fn resnet() -> Result<Step> {
    let net = ResNet::new(&|name, shape| {
        let seed = name.bytes().fold(0u64, |seed, byte| seed * 31 + u64::from(byte));
        normal(seed, shape, 0.1)
    })?;
    let arguments = vec![normal(5, &[32, 32, 32, 3], 1.0)?, labels(32, 10)?];
    Ok(Step::new(arguments, move |arguments| net.train(&arguments[0], &arguments[1])))
}

fn lstm() -> Result<Step> {
    let (steps, batch, inputs, hidden) = (256, 32, 64, 128);
    let variable = |seed: u64, shape: &[usize]| Variable::new(normal(seed, shape, 0.1)?);
    let (wx, wh) = (variable(1, &[inputs, 4 * hidden])?, variable(2, &[hidden, 4 * hidden])?);
    let b = Variable::new(taut::zeros([4 * hidden], DType::F32)?)?;
    let lstm = Lstm { wx, wh, b, rate: 1e-3, loops: Loops::new(), at_once: false };
    Ok(Step::new(vec![normal(3, &[steps, batch, inputs], 1.0)?], move |arguments| lstm.train(&arguments[0])))
}

/// A table of which a batch uses few rows, with a dense head.
fn embedding() -> Result<Step> {
    let (rows, width, batch, ids) = (100_000, 64, 4096, 16);
    let table = Variable::new(normal(1, &[rows, width], 0.2)?)?;
    let dense = layers(&[width, 256, 256, 256, 1])?;
    let mut variables = vec![table.clone()];
    variables.extend(dense.iter().cloned());
    let optimizer = adam(&variables, 0.02)?;
    let words = taut::reshape(labels(batch * ids, rows)?, &[batch as isize, ids as isize])?;
    let targets = taut::cast(labels(batch, 2)?, DType::F32)?;
    Ok(Step::new(vec![words, targets], move |arguments| {
        let tape = GradientTape::new();
        let seen = taut::mean(nn::embedding_lookup(&table, &arguments[0])?, 1, false)?;
        let logits = taut::reshape(crate::dense::forward(&dense, &seen)?, &[-1])?;
        let loss = taut::mean(nn::sigmoid_cross_entropy_with_logits(&arguments[1], logits)?, None, false)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    }))
}

/// A table that is also the matrix of the last product.
fn tied() -> Result<Step> {
    let (words, width, batch) = (4096, 128, 4096);
    let table = Variable::new(normal(1, &[words, width], 0.2)?)?;
    let dense = layers(&[width, 512, 512, 512, width])?;
    let mut variables = vec![table.clone()];
    variables.extend(dense.iter().cloned());
    let optimizer = adam(&variables, 1e-2)?;
    Ok(Step::new(vec![labels(batch, words)?, labels(batch, words)?], move |arguments| {
        let tape = GradientTape::new();
        let seen = nn::embedding_lookup(&table, &arguments[0])?;
        let h = crate::dense::forward(&dense, &seen)?;
        let logits = taut::matmul_with(h, &table, false, true)?;
        let loss = cross_entropy(&arguments[1], logits)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    }))
}
