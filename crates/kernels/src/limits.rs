//! The limits of this machine, with which measurements are compared.

use crate::lanes::{LaneElement, Lanes, MOST_ELEMENTS, VectorWork};
use crate::matmul::{Mat, MatMut, packed};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Vectors that are multiplied and added to at a time: enough to hide the latency, and few enough for the registers.
const CHAINS: usize = 12;

/// Independent chains of fused multiply-adds that touch no memory.
struct Chains<'a> {
    rounds: usize,
    factor: f32,
    /// Set to what the chains have added up to, and the elements of all of them.
    result: &'a mut (f32, usize),
}

impl VectorWork<f32> for Chains<'_> {
    #[inline(always)]
    fn run<A: Lanes<f32>>(self, simd: A) {
        let (factor, half) = (simd.splat(self.factor), simd.splat(0.5));
        let mut chains = [simd.splat(1.0); CHAINS];
        for _ in 0..self.rounds {
            for chain in &mut chains {
                *chain = simd.fused(*chain, factor, half);
            }
        }
        let mut elements = [0f32; MOST_ELEMENTS];
        let mut sum = 0.0;
        for chain in black_box(chains) {
            simd.write(&[chain], &mut elements[..A::COUNT]);
            sum += elements[..A::COUNT].iter().sum::<f32>();
        }
        *self.result = (sum, CHAINS * A::COUNT);
    }
}

/// Single-precision operations per second that one thread reaches in registers, with the widest vectors; a fused
/// multiply-add counts as two.
pub fn fma_peak() -> f64 {
    let (rounds, mut result) = (2_000_000, (0.0, 0));
    let best = best_of(5, || {
        f32::vectorize(Chains { rounds, factor: black_box(0.5), result: &mut result });
        black_box(result.0);
    });
    (rounds * result.1 * 2) as f64 / best.as_secs_f64()
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
        let mut result = (0.0, 0);
        f32::vectorize(Chains { rounds: 3, factor: 0.5, result: &mut result });
        assert!(result.1.is_multiple_of(CHAINS) && result.1 > 0);
        assert_eq!(result.0, result.1 as f32);
        f32::vectorize(Chains { rounds: 1, factor: 0.25, result: &mut result });
        assert_eq!(result.0, 0.75 * result.1 as f32);
    }

    #[test]
    fn the_bare_gemm_is_a_matrix_product() {
        let mut c = [0.0; 4];
        bare_gemm(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], &mut c, 2);
        assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
    }
}
