//! `cargo xtask bench control`: what a step of a loop costs beyond its work, what a branch costs that is not taken, and what the
//! gradient of a loop costs that may not keep everything.
//!
//! Every row is a median over rounds that are interleaved with its rivals', so that a noisy moment hits all.

#[path = "models/power.rs"]
mod power;
mod timing;

use power::{gradient, power, power_while};
use std::hint::black_box;
use std::sync::Arc;
use taut::memory::Bytes;
use taut::random::Generator;
use taut::{DType, LoopReport, Loops, Result, Tensor, cond, fori_loop, function, while_loop};
use taut_kernels::{pool, simd};
use timing::{race, row};

fn main() -> Result<()> {
    // `cargo bench` passes `--bench`.
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("{} threads, {:?}\n", pool::threads(), simd::level());
    let rows: [(&str, fn() -> Result<()>); 4] =
        [("loop", loops), ("cond", branches), ("map", maps), ("budget", budgets)];
    for (_, measure) in rows.iter().filter(|(name, _)| name.contains(&filter)) {
        measure()?;
    }
    Ok(())
}

fn normal(shape: &[usize], deviation: f64) -> Result<Tensor> {
    Generator::from_seed(1).normal(shape, 0.0, deviation, DType::F32)
}

/// So many additions of single numbers, as a loop of the host's.
fn by_hand(x: &Tensor, steps: i64) -> Result<Tensor> {
    let mut sum = x.clone();
    for _ in 0..steps {
        sum = taut::add(sum, x)?;
    }
    Ok(sum)
}

/// The same as a loop whose length is known.
fn known(x: &Tensor, steps: i64) -> Result<Tensor> {
    fori_loop(0..steps, |_, sum| sum + x, x.clone())
}

/// The same as a loop that looks before each step whether to go on.
fn tested(x: &Tensor, steps: i64) -> Result<Tensor> {
    let begin = (Tensor::scalar(0i64)?, x.clone());
    Ok(while_loop(|(i, _)| taut::less(i, steps), |(i, sum)| Ok(((i + 1i64)?, (sum + x)?)), begin)?.1)
}

/// What a loop costs beyond its kernels: here they have one element to work on.
fn loops() -> Result<()> {
    let x = normal(&[], 1.0)?;
    for steps in [10, 100, 1000, 10_000, 100_000] {
        let known_traced = function(move |x: &Tensor| known(x, steps));
        let tested_traced = function(move |x: &Tensor| tested(x, steps));
        let idle = function(move |x: &Tensor| fori_loop(0..steps, |_, x| Ok(x), x.clone()));
        let times = race([
            &mut || drop(black_box(by_hand(&x, steps))),
            &mut || drop(black_box(idle.call(&x))),
            &mut || drop(black_box(known(&x, steps))),
            &mut || drop(black_box(tested(&x, steps))),
            &mut || drop(black_box(known_traced.call(&x))),
            &mut || drop(black_box(tested_traced.call(&x))),
        ]);
        let names = [
            "eager ops",
            "without work",
            "fori_loop",
            "while_loop",
            "fori_loop, traced",
            "while_loop, traced",
        ];
        for (name, seconds) in names.into_iter().zip(times) {
            let per_step = format!("{:8.1} ns per step", seconds * 1e9 / steps as f64);
            row(&format!("loop {steps}: {name}"), seconds, &per_step);
        }
        let peaks = [known_traced.plan(&x)?, tested_traced.plan(&x)?].map(|plan| Bytes(plan.peak_bytes()));
        println!("    peak {} and {}", peaks[0], peaks[1]);
    }
    Ok(())
}

fn cheap(x: &Tensor) -> Result<Tensor> {
    x + 1.0
}

fn expensive(x: &Tensor) -> Result<Tensor> {
    taut::matmul(taut::matmul(x, x)?, x)
}

/// What the branch costs that is not taken.
fn branches() -> Result<()> {
    let x = normal(&[256, 256], 0.05)?;
    let (no, yes) = (Tensor::scalar(false)?, Tensor::scalar(true)?);
    let alone = [function(cheap), function(expensive)];
    let choice = function(|(which, x): &(Tensor, Tensor)| cond(which, || expensive(x), || cheap(x)));
    let [cheap_alone, cheap_taken, expensive_alone, expensive_taken] = race([
        &mut || drop(black_box(alone[0].call(&x))),
        &mut || drop(black_box(choice.call((&no, &x)))),
        &mut || drop(black_box(alone[1].call(&x))),
        &mut || drop(black_box(choice.call((&yes, &x)))),
    ]);
    let beside = |taken: f64, alone: f64| format!("{:.2} x that", taken / alone);
    row("cond: x + 1, 256x256, no choice", cheap_alone, "");
    row("cond: x + 1 taken", cheap_taken, &beside(cheap_taken, cheap_alone));
    row("cond: x @ x @ x, no choice", expensive_alone, "");
    row("cond: x @ x @ x taken", expensive_taken, &beside(expensive_taken, expensive_alone));
    let [small, large] = [alone[0].plan(&x)?, alone[1].plan(&x)?].map(|plan| plan.arena_bytes());
    let both = choice.plan((&no, &x))?.arena_bytes();
    println!("    arena {}; alone, {} and {}", Bytes(both), Bytes(small), Bytes(large));
    Ok(())
}

/// A map whose body makes 10,000 numbers of one, and running sums of those, which have to lie somewhere: one by one, all at once,
/// and in chunks.
fn maps() -> Result<()> {
    let grid = normal(&[10_000], 1.0)?;
    let many = grid.clone();
    let all_at_once = function(move |e: &Tensor| {
        let walks = taut::cumsum((taut::expand_dims(e, -1)? * &many)?, 1, false, false)?;
        taut::max(walks, 1, false)
    });
    let one = move |e: Tensor| taut::max(taut::cumsum((e * &grid)?, 0, false, false)?, None, false);
    let alone = function({
        let one = one.clone();
        move |e: &Tensor| one(e.clone())
    });
    let map = function(move |e: &Tensor| taut::map_fn(&one, e.clone()));
    for count in [10, 100, 1000] {
        let elements = normal(&[count], 1.0)?;
        let apart = taut::unstack(&elements, 0)?;
        let [by_hand, at_once, mapped] = race([
            &mut || apart.iter().for_each(|e| drop(black_box(alone.call(e)))),
            &mut || drop(black_box(all_at_once.call(&elements))),
            &mut || drop(black_box(map.call(&elements))),
        ]);
        let peaks = [all_at_once.plan(&elements)?, map.plan(&elements)?].map(|plan| Bytes(plan.peak_bytes()));
        row(&format!("map {count}: one by one"), by_hand, "a call of a function each");
        row(&format!("map {count}: all at once"), at_once, &format!("written by hand; peak {}", peaks[0]));
        let beside = format!("{:.2} x that; peak {}", mapped / at_once, peaks[1]);
        row(&format!("map {count}: map_fn"), mapped, &beside);
    }
    Ok(())
}

/// The gradient of a loop of 1000 products that may keep all states, or some.
fn budgets() -> Result<()> {
    let (n, steps) = (128, 1000);
    // An orthogonal matrix, so that its powers neither grow nor vanish.
    let a = taut::linalg::qr(normal(&[n, n], 1.0)?, false)?.0;
    let limit = Tensor::scalar(steps)?;
    let all = steps as usize * n * n * 4;
    let stored = function(move |a: &Tensor| gradient(a, |a| power(&Loops::new(), a, steps)));
    let mut base = 0.0;
    for share in [100, 25, 10, 3] {
        let reports = [Arc::new(LoopReport::new()), Arc::new(LoopReport::new())];
        let [first, second] = reports.each_ref().map(|report| {
            // A state of a loop that counts its steps holds the count too.
            Loops::new().grad_budget(all * share / 100 + (16 << 10)).report(report)
        });
        let known = function(move |a: &Tensor| gradient(a, |a| power(&first, a, steps)));
        let tested =
            function(move |(a, steps): &(Tensor, Tensor)| gradient(a, |a| power_while(&second, a, steps)));
        let [whole, known_time, tested_time] = race([
            &mut || drop(black_box(stored.call(&a))),
            &mut || drop(black_box(known.call(&a))),
            &mut || drop(black_box(tested.call((&a, &limit)))),
        ]);
        if base == 0.0 {
            base = whole;
            let peak = Bytes(stored.plan(&a)?.peak_bytes());
            row("budget: all is kept", whole, &format!("{} of states, peak {peak}", Bytes(all)));
        }
        let lengths =
            [("known", known_time, known.plan(&a)?), ("unknown", tested_time, tested.plan((&a, &limit))?)];
        for ((name, seconds, plan), report) in lengths.into_iter().zip(&reports) {
            // A step forward is one product, a step back two.
            let least = 1.0 + report.predicted() as f64 / (3 * steps) as f64;
            let beside = format!(
                "{:.2} x all kept, {least:.2} by the formula; peak {}; {} steps again, {} at the least; {} states",
                seconds / whole,
                Bytes(plan.peak_bytes()),
                report.recomputed(),
                report.predicted(),
                report.slots(),
            );
            row(&format!("budget: {share:3} %, length {name}"), seconds, &beside);
        }
    }
    Ok(())
}
