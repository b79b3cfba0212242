//! The `taut` command: for now, a short guided tour.

use std::time::Instant;
use taut::memory::Bytes;
use taut::random::Generator;
use taut::{DType, Dense, GradientTape, Result, Tensor, Variable, function, memory};

const POINTS: usize = 3000;
const CLASSES: usize = 3;
const STEPS: usize = 200;

fn main() -> Result<()> {
    println!("Taut: a tensor engine whose memory is known, kept and explained.\n");
    println!("1. Something real: a softmax classifier for three noisy spirals of {POINTS} points\n");
    let start = memory::live_bytes();
    let (points, labels) = spirals()?;
    let (centres, weights) = train(&points, &labels)?;
    picture(&centres, &weights)?;
    tape(&points, &labels, &centres, &weights)?;
    planned(&points, &labels, &centres, &weights)?;
    ledger(&points, &labels, &centres, &weights)?;
    limit(&points);
    mistake(&points, &weights);
    overhead()?;

    drop((points, labels, centres, weights));
    println!(
        "8. At the end every tensor is gone: {} bytes live, as at the start.",
        memory::live_bytes() - start
    );
    assert_eq!(memory::live_bytes(), start, "every byte comes back");
    println!("\nNext: the book (docs/src/first-steps.md), `cargo xtask bench`, `cargo xtask test`.");
    Ok(())
}

/// Points of three interleaved spirals, and which spiral each belongs to.
fn spirals() -> Result<(Tensor, Tensor)> {
    let random = Generator::from_seed(7);
    let labels = random.integers([POINTS], 0, CLASSES as i64, DType::I64)?;
    let along = random.uniform([POINTS], 0.15, 1.0, DType::F32)?;
    let noise = random.normal([POINTS, 2], 0.0, 0.02, DType::F32)?;
    let turn = std::f64::consts::TAU / CLASSES as f64;
    let angle = ((&along * 4.0)? + taut::cast((&labels * turn)?, DType::F32)?)?;
    let x = (taut::cos(&angle)? * &along)?;
    let y = (taut::sin(angle)? * along)?;
    Ok(((taut::stack(&[x, y], 1)? + noise)?, labels))
}

/// How near each point is to each of the centres: what the classifier looks at.
fn features(points: &Tensor, centres: &Tensor) -> Result<Tensor> {
    let from = taut::expand_dims(points, 1)?;
    let distance = taut::sum(taut::squared_difference(from, centres)?, -1, false)?;
    taut::exp((distance * -30.0)?)
}

/// Gradient descent on the cross-entropy.
fn train(points: &Tensor, labels: &Tensor) -> Result<(Tensor, Variable)> {
    let centres = Generator::from_seed(1).uniform([100, 2], -1.1, 1.1, DType::F32)?;
    let weights = Variable::new(taut::zeros([100, CLASSES], DType::F32)?)?;
    let (x, address) = (features(points, &centres)?, weights.address());
    let clock = Instant::now();
    for step in 1..=STEPS {
        let tape = GradientTape::new();
        let scores = taut::matmul(&x, &weights)?;
        let loss = loss(labels, &scores)?;
        if step % 40 == 0 || step == 1 {
            let accuracy = accuracy(&scores, labels)?;
            println!("   step {step:4}   loss {:.4}   accuracy {accuracy:.3}", loss.item::<f32>()?);
        }
        let gradient = tape.gradient(&loss, &weights)?.dense()?;
        weights.assign_sub(taut::mul(gradient, 20.0)?)?;
    }
    println!("   {STEPS} steps in {:.0} ms\n", clock.elapsed().as_secs_f64() * 1e3);
    assert_eq!(weights.address(), address, "updates happen in place");
    Ok((centres, weights))
}

fn loss(labels: &Tensor, scores: &Tensor) -> Result<Tensor> {
    taut::mean(taut::nn::sparse_softmax_cross_entropy_with_logits(labels, scores)?, None, false)
}

fn accuracy(scores: &Tensor, labels: &Tensor) -> Result<f64> {
    let right = taut::equal(taut::argmax(scores, -1)?, labels)?;
    taut::mean(right, None, false)?.item::<f64>()
}

/// The classes of a grid of points, as a person would rather see them.
fn picture(centres: &Tensor, weights: &Variable) -> Result<()> {
    let (rows, columns) = (18, 46);
    let y = taut::linspace(1.1, -1.1, rows, true, DType::F32)?;
    let x = taut::linspace(-1.1, 1.1, columns, true, DType::F32)?;
    let grid = taut::meshgrid(&[x, y], "xy")?;
    let points = taut::reshape(taut::stack(&grid, -1)?, &[-1, 2])?;
    let classes = taut::argmax(taut::matmul(features(&points, centres)?, weights)?, -1)?.to_vec::<i64>()?;
    println!("   what it learned:\n");
    for row in classes.chunks(columns) {
        let line: String = row.iter().map(|&class| ['.', 'o', '#'][class as usize]).collect();
        println!("   {line}");
    }
    println!();
    Ok(())
}

/// One step that could train the centres too: what its gradients need, line by line.
fn tape(points: &Tensor, labels: &Tensor, centres: &Tensor, weights: &Variable) -> Result<()> {
    println!("2. The tape: what it keeps for the gradients of weights and centres, and for which\n");
    let tape = GradientTape::new();
    tape.watch(centres);
    let loss = loss(labels, &taut::matmul(features(points, centres)?, weights)?)?;
    println!("{}", indent(&tape.explain().to_string()));
    let before = memory::live_bytes();
    let gradients = tape.gradient(&loss, &(weights, centres))?;
    let freed = before - memory::live_bytes();
    println!("   Walking back gave {} back on the way, with both gradients there.\n", Bytes(freed));
    drop(gradients);
    Ok(())
}

/// A whole step of training as one function: its peak is known before it runs.
fn planned(points: &Tensor, labels: &Tensor, centres: &Tensor, weights: &Variable) -> Result<()> {
    println!("3. The plan: such a step as one function, forward, backward and update\n");
    let (inside, fixed) = (weights.clone(), centres.clone());
    let step = function(move |(points, labels): &(Tensor, Tensor)| {
        let tape = GradientTape::new();
        let loss = loss(labels, &taut::matmul(features(points, &fixed)?, &inside)?)?;
        let gradient = tape.gradient(&loss, &inside)?.dense()?;
        inside.assign_sub(taut::mul(gradient, 20.0)?)?;
        Ok(loss)
    });
    let plan = step.plan((points, labels))?;
    println!("{}", indent(&plan.explain_peak().to_string()));
    let (address, before) = (weights.address(), memory::live_bytes());
    memory::reset_peak();
    let loss = step.call((points, labels))?.item::<f32>()?;
    let measured = memory::peak_bytes() - before;
    println!("   planned {} bytes, measured {measured}; the loss is {loss:.4}\n", plan.peak_bytes());
    assert_eq!((measured, weights.address()), (plan.peak_bytes(), address), "as planned, and in place");
    Ok(())
}

fn ledger(points: &Tensor, labels: &Tensor, centres: &Tensor, weights: &Variable) -> Result<()> {
    println!("4. The ledger: one step again, with source lines recorded\n");
    memory::record(true);
    memory::reset_peak();
    let x = features(points, centres)?;
    let scores = taut::nn::log_softmax(taut::matmul(&x, weights)?, -1)?;
    println!("{}", memory::report());
    memory::record(false);
    println!("   live     what tensors hold now: the exact sum of what was asked for");
    println!(
        "   peak     the most at any moment of this step: here the distances, [3000, 100, 2] before they are summed"
    );
    println!(
        "   idle     freed blocks kept for reuse, since fresh pages cost several times a pass over them"
    );
    println!(
        "   by line  who holds it: log_softmax ran in the product's own buffer, so one line stands for both\n"
    );
    assert_eq!(scores.shape()[0], labels.len());
    Ok(())
}

fn limit(points: &Tensor) {
    let allowed = memory::live_bytes() + (1 << 20);
    println!("5. A limit: {} more than what is live, and a request for 400 MB\n", Bytes(1 << 20));
    let previous = memory::limit(allowed);
    let refused = taut::ones([100_000_000], DType::F32);
    memory::limit(previous);
    match refused {
        Err(error) => println!("{}\n", indent(&error.to_string())),
        Ok(_) => unreachable!("the limit was just set"),
    }
    println!("   An error, not a crash; the {} points are as they were.\n", points.shape()[0]);
}

fn mistake(points: &Tensor, weights: &Variable) {
    println!("6. A mistake: points times weights, without the features\n");
    match taut::matmul(points, weights) {
        Err(error) => println!("{}\n", indent(&error.to_string())),
        Ok(_) => unreachable!("2 columns do not meet 100 rows"),
    }
}

fn overhead() -> Result<()> {
    let (x, y) = (Tensor::scalar(1.0f32)?, Tensor::scalar(2.0f32)?);
    let calls = 200_000;
    let clock = Instant::now();
    for _ in 0..calls {
        taut::add(&x, &y)?;
    }
    let each = clock.elapsed().as_secs_f64() * 1e9 / f64::from(calls);
    println!(
        "7. Overhead: an eager add of two numbers takes {each:.0} ns, allocation and ledger included.\n"
    );
    Ok(())
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("   {line}")).collect::<Vec<_>>().join("\n")
}
