//! Measures the cost of recording: `cargo run --release -p taut-profile --example cost`.

use std::hint::black_box;
use std::time::Instant;
use taut_core::ops::{binary::add, reduce::cumsum};
use taut_core::{Result, Tensor};
use taut_function::function;
use taut_profile::Profiler;

const CALLS: u32 = 20_000;

/// The minimum of several rounds: disturbances only add time.
fn nanos(mut call: impl FnMut()) -> f64 {
    let round = || {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    std::iter::repeat_with(round).take(15).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0f32; 8], [8])?;
    let step = function(|x: &Tensor| (0..10).try_fold(x.clone(), |y, _| cumsum(&y, 0, false, false)));
    let mut eager = || drop(black_box(add(&x, &x)));
    let mut planned = || drop(black_box(step.call(&x)));
    let off = (nanos(&mut eager), nanos(&mut planned));
    // Enough capacity for all events, because dropped ones cost less.
    let profiler = Profiler::with_capacity(20_000_000)?;
    let on = (nanos(&mut eager), nanos(&mut planned));
    drop(profiler);
    println!("{:<34} {:>10} {:>10}", "", "off", "on");
    println!("{:<34} {:>7.0} ns {:>7.0} ns", "add of 8 floats", off.0, on.0);
    println!("{:<34} {:>7.0} ns {:>7.0} ns", "a function of 10 steps on 8 floats", off.1, on.1);
    Ok(())
}
