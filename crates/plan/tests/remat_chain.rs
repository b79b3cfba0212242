//! Chains against the optimum of Revolve.

mod remat_models;

use remat_models::{chain, own_order};
use taut_plan::remat::{RematEffort, frontier, peak};

/// The fewest forward steps that reverse a chain with so many checkpoints, the first state included (Griewank and
/// Walther).
fn revolve(length: u64, checkpoints: u64) -> u64 {
    let choose = |n: u64, k: u64| (0..k.min(n - k)).fold(1u64, |product, i| product * (n - i) / (i + 1));
    let sweeps = (1..=length).find(|&r| choose(checkpoints + r, r) >= length).unwrap();
    sweeps * length - choose(checkpoints + sweeps, sweeps - 1)
}

#[test]
fn revolve_of_published_cases() {
    assert_eq!(revolve(10, 3), 15);
    assert_eq!(revolve(1000, 10), 3_636);
    assert_eq!(revolve(1000, 20), 2_747);
    assert_eq!(revolve(1000, 50), 1_948);
}

/// States that fit, forward steps found and those of Revolve, for every point.
fn compared(length: usize, exact_values: usize) -> Vec<(usize, u64, u64)> {
    let problem = chain(length);
    let effort = RematEffort { exact_values, ..RematEffort::for_problem(&problem) };
    let front = frontier(&problem, &[own_order(&problem)], effort, &mut |s| peak(&problem, s).bytes).unwrap();
    let mut rows = Vec::new();
    for point in front.points() {
        let forward = point.sequence.iter().filter(|&&step| (step as usize) < length - 1).count() as u64;
        rows.push((point.bytes, forward, revolve(length as u64, point.bytes as u64)));
    }
    rows
}

#[test]
fn the_exact_search_gives_the_optimum() {
    for (states, forward, least) in compared(16, 24) {
        assert_eq!(forward, least, "{states} states");
    }
}

#[test]
fn the_search_is_close_to_the_optimum() {
    for length in [16, 32, 64, 128] {
        for (states, forward, least) in compared(length, 0) {
            println!("{length} steps, {states} states: {forward} forward steps, Revolve {least}");
            assert!(forward >= least, "{length}, {states}: better than the optimum");
            // Little work is spent on goals that take several times as long.
            let most = if least <= 3 * length as u64 { 1.05 } else { 1.2 };
            assert!(forward as f64 <= most * least as f64, "{length}, {states}: {forward} of {least}");
        }
    }
}
