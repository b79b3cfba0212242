//! The planned peaks of training steps of whole models, to the byte. A change of an op, a pass or the planner that moves one
//! of them is seen here.

#[path = "../benches/models/adam.rs"]
mod adam;
#[path = "../benches/models/dense.rs"]
mod dense;
#[path = "../benches/models/initial.rs"]
mod initial;
#[path = "../benches/models/resnet.rs"]
#[allow(dead_code)]
mod resnet;
#[path = "../benches/models/transformer.rs"]
#[allow(dead_code)]
mod transformer;

use adam::{adam, minimize};
use std::sync::Arc;
use taut::layers::{Activation, Conv2D, Dense, Dropout, Flatten, MaxPooling2D, Padding, Sequential};
use taut::losses::{SparseCategoricalCrossentropy, linear_cross_entropy};
use taut::metrics::SparseCategoricalAccuracy;
use taut::optimizers::{Adam, Optimizer};
use taut::plan::Program;
use taut::{DType, GradientTape, Layer, Result, Spec, Tensor, Trainer, Variable, function};
use taut_memory::testing::ledger_check;

/// Fails unless the plan's peak is `bytes`, and prints what is live at the peak.
fn assert_peak(plan: &Arc<Program>, bytes: usize) {
    assert_eq!(plan.peak_bytes(), bytes, "the planned peak changed:\n{}", plan.explain_peak());
}

fn placeholder(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::placeholder(Spec::new(dtype, shape))
}

fn normal(shape: &[usize]) -> Result<Tensor> {
    initial::normal(1, shape, 0.02)
}

/// The variables of `workloads.transformer_layout`, with the sizes of `transformer_step`.
fn transformer() -> Result<transformer::Transformer> {
    let (d, vocabulary, length) = (256, 4096, 256);
    let mut shapes = vec![
        ("tok".to_owned(), vec![vocabulary, d]),
        ("pos".to_owned(), vec![length, d]),
        ("lnf.g".to_owned(), vec![d]),
        ("lnf.b".to_owned(), vec![d]),
        ("head.w".to_owned(), vec![d, vocabulary]),
    ];
    for layer in 0..4 {
        for norm in ["ln1", "ln2"] {
            shapes.push((format!("{layer}.{norm}.g"), vec![d]));
            shapes.push((format!("{layer}.{norm}.b"), vec![d]));
        }
        for (name, from, to) in [("qkv", d, 3 * d), ("o", d, d), ("up", d, 4 * d), ("down", 4 * d, d)] {
            shapes.push((format!("{layer}.{name}.w"), vec![from, to]));
            shapes.push((format!("{layer}.{name}.b"), vec![to]));
        }
    }
    let variables = shapes
        .into_iter()
        .map(|(name, shape)| Ok((name, Variable::new(normal(&shape)?)?)))
        .collect::<Result<_>>()?;
    Ok(transformer::Transformer(variables))
}

/// A step with the matrix of all logits, or without it.
fn transformer_plan(all_logits: bool) -> Result<Arc<Program>> {
    let net = transformer()?;
    let optimizer = adam(&net.variables(), 1e-3)?;
    let step = function(move |(words, next): &(Tensor, Tensor)| {
        let tape = GradientTape::new();
        let loss = if all_logits {
            net.loss(words, next)?
        } else {
            let (features, labels) = (net.features(words)?, taut::reshape(next, &[-1])?);
            let losses = linear_cross_entropy(&features, &net.0["head.w"].read(), None, &labels)?;
            taut::mean(losses, None, false)?
        };
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    });
    let words = placeholder(DType::I32, &[8, 256]);
    step.plan(&(words.clone(), words))
}

fn resnet_plan() -> Result<Arc<Program>> {
    let net = resnet::ResNet::new(&|_, shape| normal(shape))?;
    let step = function(move |(x, y): &(Tensor, Tensor)| net.train(x, y));
    step.plan(&(placeholder(DType::F32, &[32, 32, 32, 3]), placeholder(DType::I32, &[32])))
}

/// The network that `taut demo` trains.
fn demo_plan() -> Result<Arc<Program>> {
    let conv =
        |from, to| Conv2D::new(from, to, 3).padding(Padding::Same).activation(Activation::Relu).build();
    let model = Sequential::new()
        .with(conv(1, 16)?)
        .with(conv(16, 32)?)
        .with(MaxPooling2D::new(2).build()?)
        .with(Dropout::new(0.25)?)
        .with(Flatten::new())
        .with(Dense::new(512, 64).activation(Activation::Relu).build()?)
        .with(Dropout::new(0.25)?)
        .with(Dense::new(64, 10).build()?);
    let optimizer = Optimizer::new(Adam::default(), &model.trainable_variables())?;
    let trainer = Trainer::new(model, SparseCategoricalCrossentropy::from_logits(), optimizer)
        .metric_as("accuracy", SparseCategoricalAccuracy::new()?);
    trainer.plan(&placeholder(DType::F32, &[64, 8, 8, 1]), &placeholder(DType::I64, &[64]))
}

fn mlp_plan() -> Result<Arc<Program>> {
    let layers = initial::layers(&[784, 512, 512, 10])?;
    let optimizer = adam(&layers, 1e-3)?;
    let step = function(move |(x, labels): &(Tensor, Tensor)| {
        let tape = GradientTape::new();
        let loss = dense::cross_entropy(labels, dense::forward(&layers, x)?)?;
        minimize(&optimizer, tape, &loss)?;
        Ok(loss)
    });
    step.plan(&(placeholder(DType::F32, &[128, 784]), placeholder(DType::I32, &[128])))
}

#[test]
fn peaks_of_training_steps() -> Result<()> {
    let _ledger = ledger_check();
    // Scratch memory grows with the threads.
    taut::kernels::set_threads(2);
    assert_peak(&transformer_plan(true)?, 151_193_604);
    assert_peak(&transformer_plan(false)?, 121_847_812);
    assert_peak(&resnet_plan()?, 33_494_276);
    assert_peak(&demo_plan()?, 1_026_184);
    assert_peak(&mlp_plan()?, 1_867_844);
    Ok(())
}
