//! A training step that runs in a third of its memory: values are dropped and computed again, and the results are the same bits.

use taut::memory::{self, Bytes};
use taut::random::Generator;
use taut::{DType, DenseGradient, Function, GradientTape, MemoryBudget, Result, Tensor, Variable, function};

/// A step of gradient descent on a deep network.
fn step(layers: &[Variable], x: &Tensor) -> Result<Tensor> {
    let tape = GradientTape::new();
    let mut h = x.clone();
    for layer in layers {
        h = taut::tanh(taut::matmul(h, layer)?)?;
    }
    let loss = taut::mean(taut::square(h)?, None, false)?;
    for (layer, gradient) in layers.iter().zip(tape.gradient(&loss, &layers.to_vec())?) {
        layer.assign_sub((gradient.dense()? * 0.05)?)?;
    }
    Ok(loss)
}

/// The peak and the losses of three steps.
fn train(compiled: &Function<Tensor, Tensor>, x: &Tensor) -> Result<(usize, Vec<f32>)> {
    compiled.plan(x)?;
    let before = memory::live_bytes();
    memory::reset_peak();
    let losses = (0..3).map(|_| compiled.call(x)?.item::<f32>()).collect::<Result<_>>()?;
    Ok((memory::peak_bytes() - before, losses))
}

fn network(quick: bool) -> Result<(Vec<Variable>, Tensor)> {
    let (depth, width, batch) = if quick { (32, 64, 256) } else { (64, 256, 2048) };
    let random = Generator::from_seed(1);
    let layers = (0..depth)
        .map(|_| Variable::new(random.normal([width, width], 0.0, (width as f64).powf(-0.5), DType::F32)?));
    Ok((layers.collect::<Result<_>>()?, random.normal([batch, width], 0.0, 1.0, DType::F32)?))
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick");

    let (layers, x) = network(quick)?;
    let plain = function(move |x: &Tensor| step(&layers, x)).named("train step");
    let frontier = plain.frontier(&x)?;
    println!("The plans of this step, before anything runs:\n{frontier}\n");
    let (peak, losses) = train(&plain, &x)?;
    println!("without a budget: {} bytes, losses {losses:?}", Bytes(peak));

    let (layers, x) = network(quick)?;
    let third = MemoryBudget::from(peak / 3).bit_equal();
    let small = function(move |x: &Tensor| step(&layers, x)).named("train step").memory_budget(third);
    let repeated = small.plan(&x)?.repeated_steps().count();
    let (within, same) = train(&small, &x)?;
    println!("with a third of it: {} bytes, {repeated} steps repeated, losses {same:?}", Bytes(within));
    assert!(within <= peak / 3, "the budget is kept");
    assert_eq!(losses, same, "the same bits");

    let (layers, x) = network(quick)?;
    let too_small = function(move |x: &Tensor| step(&layers, x)).named("train step").memory_budget(10_000);
    println!(
        "\nA budget that no plan keeps is an error before the first kernel runs:\n{}",
        too_small.call(&x).unwrap_err()
    );
    Ok(())
}
