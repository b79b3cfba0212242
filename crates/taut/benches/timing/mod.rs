//! What the benches share: rivals timed in turns, and how a row is printed.

use std::time::Instant;

/// Seconds per call of each of several rivals: medians over interleaved rounds.
pub fn race<const N: usize>(rivals: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut rounds = rivals.map(|work| move |calls: usize| (0..calls).for_each(|_| work()));
    race_rounds(rounds.each_mut().map(|round| round as &mut dyn FnMut(usize)))
}

/// As [`race`], for rivals that make the number of calls they are told, so that a round can begin and end with
/// something that is not a call.
pub fn race_rounds<const N: usize>(mut rivals: [&mut dyn FnMut(usize); N]) -> [f64; N] {
    let calls = rivals.each_mut().map(|round| {
        round(1);
        let start = Instant::now();
        round(1);
        // Rounds of about ten milliseconds, whatever one call costs.
        (0.01 / start.elapsed().as_secs_f64()).clamp(1.0, 1e6) as usize
    });
    let mut times: [Vec<f64>; N] = [const { Vec::new() }; N];
    for _ in 0..15 {
        for (i, round) in rivals.iter_mut().enumerate() {
            let start = Instant::now();
            round(calls[i]);
            times[i].push(start.elapsed().as_secs_f64() / calls[i] as f64);
        }
    }
    times.map(median)
}

/// The middle one.
pub fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Prints a row.
pub fn row(name: &str, seconds: f64, beside: &str) {
    let time = match seconds {
        s if s < 1e-6 => format!("{:8.1} ns", s * 1e9),
        s if s < 1e-3 => format!("{:8.1} us", s * 1e6),
        s => format!("{:8.2} ms", s * 1e3),
    };
    println!("{name:<34} {time}   {beside}");
}
