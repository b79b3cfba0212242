//! What this machine can do at best: the numbers that every measurement is put beside.

use crate::multiversion;
use std::hint::black_box;
use std::time::{Duration, Instant};

multiversion! {
    /// Chains of fused multiply-adds that fill the vector registers and touch no memory.
    fn multiply_add_chains(rounds: usize, factor: f32) -> f32 {
        let mut lanes = [[1.0f32; 16]; 10];
        for _ in 0..rounds {
            for chain in &mut lanes {
                for lane in chain {
                    *lane = lane.mul_add(factor, 0.5);
                }
            }
        }
        lanes.iter().flatten().sum()
    }
}

/// Single-precision operations per second that one thread reaches in registers; a fused multiply-add counts as two.
pub fn fma_peak() -> f64 {
    let rounds = 2_000_000;
    let best = best_of(5, || {
        black_box(multiply_add_chains(rounds, black_box(0.5)));
    });
    (rounds * 10 * 16 * 2) as f64 / best.as_secs_f64()
}

/// Bytes per second (read plus written) of one thread's copy between two buffers far larger than the caches.
pub fn copy_bandwidth() -> f64 {
    let from = vec![1u8; 128 << 20];
    let mut to = vec![0u8; from.len()];
    let best = best_of(5, || black_box(&mut to).copy_from_slice(black_box(&from)));
    2.0 * from.len() as f64 / best.as_secs_f64()
}

fn best_of(tries: usize, mut work: impl FnMut()) -> Duration {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    work();
    (0..tries).map(|_| time(&mut work)).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chains_compute() {
        // x -> x / 2 + 1 / 2 stays at one.
        assert_eq!(multiply_add_chains(3, 0.5), 160.0);
    }
}
