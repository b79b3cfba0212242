//! How long a step takes: medians over rounds in which the engines take turns.

use rivals::{ENGINES, Outcome, Step, wanted};
use std::time::Instant;

fn main() -> Outcome {
    for workload in wanted() {
        let times = race(&mut workload.steps()?)?;
        for (engine, time) in ENGINES.iter().zip(&times) {
            let shown = if *time < 1e-3 {
                format!("{:8.1} us", time * 1e6)
            } else {
                format!("{:8.2} ms", time * 1e3)
            };
            println!("    {:<16} {shown}   {:.2} x Taut's time", engine.name, time / times[0]);
        }
    }
    Ok(())
}

/// Seconds per step of each.
fn race(steps: &mut [Step]) -> Outcome<Vec<f64>> {
    let mut calls = Vec::new();
    for step in steps.iter_mut() {
        let start = Instant::now();
        step()?;
        // Rounds of about fifty milliseconds, whatever one step costs.
        calls.push((0.05 / start.elapsed().as_secs_f64()).clamp(1.0, 1e5) as usize);
    }
    let mut times = vec![Vec::new(); steps.len()];
    for _ in 0..15 {
        for (i, step) in steps.iter_mut().enumerate() {
            let start = Instant::now();
            for _ in 0..calls[i] {
                step()?;
            }
            times[i].push(start.elapsed().as_secs_f64() / calls[i] as f64);
        }
    }
    let median = |mut samples: Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        samples[samples.len() / 2]
    };
    Ok(times.into_iter().map(median).collect())
}
