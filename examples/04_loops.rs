//! Loops whose memory is independent of their length, and whose gradients fit a budget of bytes.

use std::sync::Arc;
use taut::memory::{self, Bytes};
use taut::random::Generator;
use taut::{DType, DenseGradient, GradientTape, LoopReport, Loops, Result, Tensor};

/// The peak in bytes of a computation, and its result.
fn peak<R>(work: impl FnOnce() -> Result<R>) -> Result<(usize, R)> {
    let before = memory::live_bytes();
    memory::reset_peak();
    let result = work()?;
    Ok((memory::peak_bytes() - before, result))
}

fn main() -> Result<()> {
    let w = Generator::from_seed(1).normal([64, 64], 0.0, 0.12, DType::F32)?;
    let step = |x: Tensor| taut::tanh(taut::matmul(x, &w)?);

    println!("forward:");
    let mut peaks = Vec::new();
    for steps in [10, 1000, 10_000] {
        let (bytes, _) = peak(|| taut::fori_loop(0..steps, |_, x| step(x), w.clone()))?;
        println!("  {steps:6} steps   peak {}", Bytes(bytes));
        peaks.push(bytes);
    }
    assert!(peaks.iter().all(|&bytes| bytes == peaks[0]));

    println!("\nwith a gradient, of 1000 steps:");
    let gradient = |loops: Loops| {
        let tape = GradientTape::new();
        tape.watch(&w);
        let y = loops.fori_loop(0..1000, |_, x| step(x), w.clone())?;
        tape.gradient(&taut::sum(y, None, false)?, &w)?.dense()
    };
    let (all, exact) = peak(|| gradient(Loops::new()))?;
    println!("  no budget       peak {}", Bytes(all));
    let report = Arc::new(LoopReport::new());
    let (some, same) = peak(|| gradient(Loops::new().grad_budget(1 << 20).report(&report)))?;
    println!("  1 MiB budget    peak {}\n\n{report}", Bytes(some));
    assert_eq!(exact.to_vec::<f32>()?, same.to_vec::<f32>()?);
    assert!(some * 5 < all);
    println!("Both gradients are bit-equal.");
    Ok(())
}
