//! The limits of this machine, with which measurements are compared.

use crate::matmul::{Mat, MatMut, packed};
use crate::multiversion;
use std::hint::black_box;
use std::time::{Duration, Instant};

multiversion! {
    /// Independent chains of fused multiply-adds that touch no memory: twelve vectors of `LANES` floats, which hide the
    /// latency and fit the registers.
    fn multiply_add_chains[const LANES: usize](chains: [[f32; LANES]; 12], rounds: usize, factor: f32) -> f32 {
        let mut chains = chains;
        for _ in 0..rounds {
            for chain in &mut chains {
                for lane in chain {
                    *lane = lane.mul_add(factor, 0.5);
                }
            }
        }
        chains.iter().flatten().sum()
    }
}

/// Single-precision operations per second that one thread reaches in registers, of whichever width is best; a fused
/// multiply-add counts as two.
pub fn fma_peak() -> f64 {
    fn rate<const LANES: usize>() -> f64 {
        let rounds = 2_000_000;
        let best = best_of(5, || {
            black_box(multiply_add_chains([[1.0; LANES]; 12], rounds, black_box(0.5)));
        });
        (rounds * 12 * LANES * 2) as f64 / best.as_secs_f64()
    }
    rate::<8>().max(rate::<16>())
}

/// The product of two square row-major matrices by the kernels of the `gemm` crates alone, on one thread: what
/// [`matmul`](crate::matmul::matmul) is measured against.
///
/// # Panics
/// If a slice does not hold n x n elements.
pub fn bare_gemm(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    assert!(n.checked_mul(n).is_some_and(|len| a.len() == len && b.len() == len && c.len() == len));
    packed::gemm(Mat::row_major(a, n, n), Mat::row_major(b, n, n), MatMut::row_major(c, n, n), false);
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
    fn multiply_add_chains_have_the_expected_value() {
        // x -> x / 2 + 1 / 2 stays at one.
        assert_eq!(multiply_add_chains([[1.0; 8]; 12], 3, 0.5), 96.0);
    }

    #[test]
    fn the_bare_gemm_is_a_matrix_product() {
        let mut c = [0.0; 4];
        bare_gemm(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], &mut c, 2);
        assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
    }
}
