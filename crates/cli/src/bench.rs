//! `taut bench`: the speed of the engine, relative to the peak rates of this machine.

use crate::{Outcome, models};
use std::hint::black_box;
use std::time::Instant;
use taut::Layer;
use taut::random::Generator;
use taut::{DType, Result, Tensor, function, memory};
use taut_kernels::{limits, pool, simd};

/// The number of rounds; the median is reported.
const ROUNDS: usize = 15;

pub fn run() -> Outcome {
    println!("measuring for about ten seconds; other processes on this machine disturb the results\n");
    let (flops, bandwidth) = (limits::fma_peak(), limits::copy_bandwidth());
    println!(
        "one core: {:.0} GFLOP/s fused multiply-add, {:.1} GB/s copied; {} threads, {:?}\n",
        flops / 1e9,
        bandwidth / 1e9,
        pool::threads(),
        simd::level()
    );
    let (a, b) = (normal(&[1])?, normal(&[1])?);
    row("one op, eager", median(|| taut::add(&a, &b).map(drop))?, "of two scalars, including allocation");
    let (a, b) = (normal(&[512, 512])?, normal(&[512, 512])?);
    let seconds = median(|| taut::matmul(&a, &b).map(drop))?;
    let rate = 2.0 * 512f64.powi(3) / seconds;
    row("matmul 512 x 512", seconds, &format!("{:.0} GFLOP/s, {:.2} of one core", rate / 1e9, rate / flops));
    let x = normal(&[1 << 22])?;
    let step = function(|x: &Tensor| ((x * 2.0)? * x)? + 1.0);
    let seconds = median(|| step.call(&x).map(drop))?;
    let rate = 2.0 * x.spec().bytes() as f64 / seconds;
    let beside = format!("{:.1} GB/s, {:.2} of one core's copy", rate / 1e9, rate / bandwidth);
    row("2x\u{b2}+1, 16 MiB, fused", seconds, &beside);
    train()?;
    println!("\n`cargo xtask bench` in the repository measures more, and compares with other engines.");
    Ok(())
}

/// A training step of the demo's network.
fn train() -> Result<()> {
    let [width, height, channels] = [8, 8, 1];
    let model = models::ModelName::Convnet.build([height, width, channels], 10)?;
    let parameters: usize = model.named_variables().iter().map(|(_, variable)| variable.shape().len()).sum();
    let trainer = models::trainer(model, models::OptimizerName::Adam, None)?;
    let x = normal(&[64, height, width, channels])?;
    let y = Generator::from_seed(2).integers([64], 0, 10, DType::I64)?;
    let planned = trainer.plan(&x, &y)?.peak_bytes();
    let before = memory::live_bytes();
    memory::reset_peak();
    trainer.train_step(&x, &y)?;
    let measured = memory::peak_bytes() - before;
    let seconds = median(|| trainer.train_step(&x, &y).map(drop))?;
    let beside = format!(
        "batch 64, {parameters} parameters, {:.0} samples/s; planned {planned} bytes, measured {measured}",
        64.0 / seconds
    );
    row("training step, convnet", seconds, &beside);
    Ok(())
}

fn normal(shape: &[usize]) -> Result<Tensor> {
    Generator::from_seed(1).normal(shape, 0.0, 1.0, DType::F32)
}

/// Seconds per call.
fn median(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let clock = Instant::now();
    work()?;
    let calls = (0.01 / clock.elapsed().as_secs_f64()).clamp(1.0, 1e6) as usize;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let clock = Instant::now();
        for _ in 0..calls {
            black_box(work()?);
        }
        times.push(clock.elapsed().as_secs_f64() / calls as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}

fn row(name: &str, seconds: f64, beside: &str) {
    let time = match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} \u{b5}s", s * 1e6),
        s => format!("{:.2} ms", s * 1e3),
    };
    println!("{name:<28} {time:>10}   {beside}");
}
