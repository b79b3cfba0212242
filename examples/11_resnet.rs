//! A residual network: planned memory per batch size, and training on digits.

use taut::data::{self, Dataset};
use taut::layers::{
    Activation, BatchNorm, Conv2D, Dense, GlobalAveragePooling2D, Padding, Residual, Sequential,
};
use taut::losses::SparseCategoricalCrossentropy;
use taut::memory::Bytes;
use taut::metrics::SparseCategoricalAccuracy;
use taut::optimizers::{Optimizer, Sgd};
use taut::{DType, Layer, Result, Spec, Tensor, Trainer, random};
use taut_examples::is_quick;

/// A convolution without a bias, followed by batch normalisation.
fn conv(before: Sequential, from: usize, to: usize, size: usize, stride: usize) -> Result<Sequential> {
    let conv = Conv2D::new(from, to, size).strides(stride).padding(Padding::Same).bias(false).build()?;
    Ok(before.with(conv).with(BatchNorm::new(to).momentum(0.9).build()?))
}

fn block(from: usize, to: usize) -> Result<Residual> {
    let stride = if from == to { 1 } else { 2 };
    let inside = conv(Sequential::new(), from, to, 3, stride)?.with(Activation::Relu);
    let block = Residual::new(conv(inside, to, to, 3, 1)?);
    if from == to { Ok(block) } else { Ok(block.projection(conv(Sequential::new(), from, to, 1, stride)?)) }
}

fn resnet(channels: usize, blocks: usize) -> Result<Sequential> {
    let mut model = conv(Sequential::new(), channels, 16, 3, 1)?.with(Activation::Relu);
    let mut from = 16;
    for to in [16, 32, 64] {
        for _ in 0..blocks {
            model = model.with(block(from, to)?).with(Activation::Relu);
            from = to;
        }
    }
    Ok(model.with(GlobalAveragePooling2D::new()).with(Dense::new(64, 10).build()?))
}

fn trainer(model: Sequential) -> Result<Trainer> {
    let sgd = Sgd { rate: 0.05.into(), momentum: 0.9, ..Sgd::default() };
    let optimizer = Optimizer::new(sgd, &model.trainable_variables())?;
    let loss = SparseCategoricalCrossentropy::from_logits();
    Ok(Trainer::new(model, loss, optimizer).metric_as("accuracy", SparseCategoricalAccuracy::new()?))
}

fn main() -> Result<()> {
    random::set_seed(1);
    // ResNet-20 for 32x32 images: only planned, nothing is computed.
    let net = trainer(resnet(3, 3)?)?;
    for batch in if is_quick() { vec![1, 8] } else { vec![1, 8, 32, 128] } {
        let x = Tensor::placeholder(Spec::new(DType::F32, [batch, 32, 32, 3]));
        let y = Tensor::placeholder(Spec::new(DType::I64, [batch]));
        println!("ResNet-20, batch {batch:3}: a step needs {}", Bytes(net.plan(&x, &y)?.peak_bytes()));
    }

    let digits = data::digits()?;
    let train = Dataset::from_tensor_slices(digits.train)?.shuffle(2000)?.batch(64)?;
    let train = if is_quick() { train.take(4) } else { train };
    let test = Dataset::from_tensor_slices(digits.test)?.batch(64)?;
    let mut net = trainer(resnet(1, 1)?)?.validate(&test);
    let history = net.fit(&train, if is_quick() { 1 } else { 8 })?;
    println!("\non digits:\n{history}");
    let accuracy = history.last("val_accuracy");
    assert!(is_quick() || accuracy > Some(0.95));
    Ok(())
}
