//! A whole training step as one traced function, whose peak memory is known before it runs.

use taut::random::Generator;
use taut::{DType, DenseGradient, GradientTape, Result, Tensor, Variable, function, memory};

fn main() -> Result<()> {
    let random = Generator::from_seed(1);
    let x = random.normal([512, 64], 0.0, 1.0, DType::F32)?;
    let y = taut::sin(taut::sum(&x, 1, true)?)?;
    let weights: Vec<Variable> = [[64, 128], [128, 128], [128, 1]]
        .iter()
        .map(|shape| Variable::new(random.normal(shape, 0.0, (shape[0] as f64).powf(-0.5), DType::F32)?))
        .collect::<Result<_>>()?;

    let layers = weights.clone();
    let step = function(move |(x, y): &(Tensor, Tensor)| {
        let tape = GradientTape::new();
        let mut h = x.clone();
        for layer in &layers[..layers.len() - 1] {
            h = taut::tanh(taut::matmul(h, layer)?)?;
        }
        let out = taut::matmul(h, &layers[layers.len() - 1])?;
        let loss = taut::mean(taut::squared_difference(out, y)?, None, false)?;
        for (layer, gradient) in layers.iter().zip(tape.gradient(&loss, &layers)?) {
            layer.assign_sub((gradient.dense()? * 0.05)?)?;
        }
        Ok(loss)
    });

    // The plan is made from shapes alone: nothing has run yet.
    let plan = step.plan((&x, &y))?;
    println!("{}", plan.explain_peak());

    let (addresses, before) =
        (weights.iter().map(Variable::address).collect::<Vec<_>>(), memory::live_bytes());
    memory::reset_peak();
    let first = step.call((&x, &y))?.item::<f32>()?;
    let measured = memory::peak_bytes() - before;
    println!("planned {} bytes, measured {measured}", plan.peak_bytes());
    assert_eq!(plan.peak_bytes(), measured);

    let mut last = first;
    for _ in 0..200 {
        last = step.call((&x, &y))?.item::<f32>()?;
    }
    println!("the loss went from {first:.3} to {last:.3}; traced {} time", step.trace_count());
    assert!(last < first);
    assert_eq!(
        addresses,
        weights.iter().map(Variable::address).collect::<Vec<_>>(),
        "updates happen in place"
    );
    Ok(())
}
