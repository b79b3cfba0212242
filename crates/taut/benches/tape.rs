//! `cargo xtask bench tape`: what following gradients costs, in time and in bytes.
//!
//! Every row is a median over rounds that are interleaved with its rival's, so that a noisy moment hits both.

#[path = "models/classic.rs"]
mod classic;
#[path = "models/dense.rs"]
mod dense;
#[path = "models/initial.rs"]
mod initial;
mod timing;

use classic::{POWERS, power};
use initial::{layers, normal};

use std::hint::black_box;
use std::time::Instant;
use taut::memory::{Buffer, Bytes, Category, live_bytes, peak_bytes, reset_peak};
use taut::random::Generator;
use taut::{DType, DenseGradient, GradientTape, Result, Tensor, Variable};
use taut_kernels::{ViewMut, matmul, pool, simd};
use timing::{median, race, race_rounds, row};

fn main() -> Result<()> {
    // `cargo bench` passes `--bench`.
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("{} threads, {:?}\n", pool::threads(), simd::level());
    let rows: [(&str, fn() -> Result<()>); 5] = [
        ("per op: add and mul", per_op),
        ("classic step", classic_step),
        ("mlp step", mlp_step),
        ("power loop", power_loop),
        ("deep mlp", deep_mlp),
    ];
    for (_, measure) in rows.iter().filter(|(name, _)| name.contains(&filter)) {
        measure()?;
    }
    Ok(())
}

type Call = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// The same machine code for every rival: only the tapes around it differ.
#[inline(never)]
fn repeat(calls: usize, op: Call, x: &Tensor, y: &Tensor) {
    for _ in 0..calls {
        drop(black_box(op(x, y)));
    }
}

/// What an op costs that a tape sees. The result is dropped, so its entry goes too and nothing grows.
fn per_op() -> Result<()> {
    let ops: [(&str, Call); 2] = [("add", |x, y| taut::add(x, y)), ("mul", |x, y| taut::mul(x, y))];
    for (name, op) in ops {
        let (x, y, watched) = (normal(1, &[1], 1.0)?, normal(2, &[1], 1.0)?, normal(3, &[1], 1.0)?);
        let (idle, watching) = (GradientTape::new(), GradientTape::new());
        watching.watch(&watched);
        idle.stop();
        watching.stop();
        let under = |tape: &GradientTape, calls, x| {
            tape.resume();
            repeat(calls, op, x, &y);
            tape.stop();
        };
        let [bare, unwatched, followed] = race_rounds([
            &mut |calls| repeat(calls, op, &x, &y),
            &mut |calls| under(&idle, calls, &x),
            &mut |calls| under(&watching, calls, &watched),
        ]);
        let times = |seconds: f64| format!("{:.2} x no tape", seconds / bare);
        row(&format!("per op: {name}, no tape"), bare, "");
        row(&format!("per op: {name}, watching neither"), unwatched, &times(unwatched));
        let entries = format!("{}; {} entries left", times(followed), watching.num_entries());
        row(&format!("per op: {name}, watching one"), followed, &entries);
    }
    Ok(())
}

/// The smallest training step there is: what it costs beyond its products is the engine's own.
fn classic_step() -> Result<()> {
    let (x, y) = (normal(1, &[32, 784], 1.0)?, normal(2, &[32, 10], 1.0)?);
    let w = Variable::new(normal(3, &[784, 10], 0.03)?)?;
    let step = || {
        let tape = GradientTape::new();
        let loss = classic::loss(&x, &w, &y)?;
        tape.gradient(&loss, &w)?.dense()
    };
    step()?;

    // The same two products into memory that is there already.
    let (value, across) = (w.value(), taut::transpose(&x, None)?);
    let mut h = Buffer::new(32 * 10 * 4, Category::Tensor)?;
    let mut dw = Buffer::new(784 * 10 * 4, Category::Tensor)?;
    let (left, right, left_t, g) = (x.view()?, value.view()?, across.view()?, y.view()?);
    let [both, forward, product, product_t] = race([
        &mut || drop(black_box(step())),
        &mut || drop(black_box(classic::loss(&x, &w, &y))),
        &mut || matmul::matmul(left, right, ViewMut::new(DType::F32, h.as_mut_slice(), &[32, 10])),
        &mut || matmul::matmul(left_t, g, ViewMut::new(DType::F32, dw.as_mut_slice(), &[784, 10])),
    ]);
    let share = |seconds: f64| format!("{:.2} of it", seconds / both);
    row("classic step: forward + backward", both, "relu(x[32,784] @ w[784,10]), mean of squares");
    row("classic step: forward, no tape", forward, &share(forward));
    row("classic step: x @ w, bare kernel", product, &share(product));
    row("classic step: x.T @ g, bare kernel", product_t, &share(product_t));
    let rest = both - product - product_t;
    row("classic step: everything else", rest, &share(rest));
    Ok(())
}

/// A training step as people write it: forward, loss, gradients, an update in the variables' own memory.
fn train(x: &Tensor, labels: &Tensor, variables: &[Variable]) -> Result<Tensor> {
    let tape = GradientTape::new();
    let loss = dense::cross_entropy(labels, dense::forward(variables, x)?)?;
    for (variable, gradient) in variables.iter().zip(tape.gradient(&loss, variables)?) {
        variable.assign_sub((gradient.dense()? * 0.01)?)?;
    }
    Ok(loss)
}

fn mlp_step() -> Result<()> {
    let (batch, sizes) = (128, [784, 512, 512, 10]);
    let x = normal(1, &[batch, sizes[0]], 1.0)?;
    let labels = Generator::from_seed(2).integers([batch], 0, 10, DType::I32)?;
    let variables = layers(&sizes)?;
    let held = variables.iter().map(|v| v.shape().len() * 4).sum::<usize>();
    let before = live_bytes();
    reset_peak();
    train(&x, &labels, &variables)?;
    let peak = peak_bytes() - before;
    let [step] = race([&mut || drop(black_box(train(&x, &labels, &variables)))]);
    // Forward and the gradients of all matrices; the gradients of the inputs of all layers but the first.
    let products: Vec<usize> = sizes.windows(2).map(|pair| pair[0] * pair[1]).collect();
    let flops = (2 * batch * (3 * products.iter().sum::<usize>() - products[0])) as f64;
    row("mlp step: 784-512-512-10, SGD", step, &format!("batch {batch}; {:.1} GFLOP/s", flops / step / 1e9));
    println!("    peak {} over the variables' {}", Bytes(peak), Bytes(held));
    Ok(())
}

/// A long loop: what is kept for it, and that all of it goes back.
fn power_loop() -> Result<()> {
    let n = 256;
    // An orthogonal matrix, so that its powers neither grow nor vanish.
    let a = taut::linalg::qr(normal(1, &[n, n], 1.0)?, false)?.0;
    let before = live_bytes();
    let (mut alone, mut forward, mut backward, mut drops) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut held, mut asked) = (0, 0);
    for _ in 0..3 {
        let start = Instant::now();
        drop(power(&a)?);
        alone.push(start.elapsed().as_secs_f64());

        let tape = GradientTape::new();
        tape.watch(&a);
        let start = Instant::now();
        let total = power(&a)?;
        forward.push(start.elapsed().as_secs_f64());
        held = tape.bytes_held();
        let start = Instant::now();
        drop(tape.gradient(&total, &a)?.dense()?);
        backward.push(start.elapsed().as_secs_f64());
        drop((total, tape));
        asked = live_bytes();

        let tape = GradientTape::new();
        tape.watch(&a);
        let total = power(&a)?;
        let start = Instant::now();
        drop((total, tape));
        drops.push(start.elapsed().as_secs_f64());
    }
    let unasked = live_bytes();
    let (alone, forward, backward) = (median(alone), median(forward), median(backward));
    let beside = format!("{POWERS} products of {n}x{n}; {:.2} x without a tape", forward / alone);
    row("power loop: forward", forward, &beside);
    row("power loop: backward", backward, &format!("{:.2} x forward", backward / forward));
    row("power loop: dropped unasked", median(drops), "the tape and the result, no gradient");
    println!("    {held} bytes held; {POWERS} x {} = {}", n * n * 4, POWERS * n * n * 4);
    println!("    live: {before} bytes before, {asked} after a gradient, {unasked} after a drop unasked");
    Ok(())
}

fn deep_loss(x: &Tensor, matrices: &[Variable]) -> Result<Tensor> {
    let mut h = x.clone();
    for w in matrices {
        h = taut::relu(taut::matmul(h, w)?)?;
    }
    taut::mean(taut::square(h)?, None, false)
}

/// Many layers: the most that is alive at any moment of a step.
fn deep_mlp() -> Result<()> {
    let (depth, batch, width) = (64, 1024, 256);
    let x = normal(1, &[batch, width], 1.0)?;
    let deviation = (2.0 / width as f64).sqrt();
    let matrices = (0..depth)
        .map(|i| Variable::new(normal(10 + i, &[width, width], deviation)?))
        .collect::<Result<Vec<_>>>()?;
    let step = || {
        let tape = GradientTape::new();
        let loss = deep_loss(&x, &matrices)?;
        tape.gradient(&loss, &matrices)
    };
    let before = live_bytes();
    reset_peak();
    let gradients = step()?;
    let peak = peak_bytes() - before;
    let left = live_bytes() - before;
    drop(gradients);
    let [time] = race([&mut || drop(black_box(step()))]);
    let activation = batch * width * 4;
    row("deep mlp: forward + backward", time, &format!("{depth} layers {width} wide, batch {batch}"));
    println!(
        "    peak {}: {:.3} x the {depth} activations; the gradients alone are {}",
        Bytes(peak),
        peak as f64 / (depth as usize * activation) as f64,
        Bytes(left)
    );
    Ok(())
}
