//! The three products of a dense layer's training step beside the registers' rate, on one thread: `cargo bench -p taut-kernels
//! --bench gradients`. Operands take turns, so that they come from memory as in a step.

use std::time::Instant;
use taut_kernels::{DType, View, ViewMut, limits, matmul::matmul, pool};

/// Seconds of processor time of this thread, where the system counts it: other jobs on the machine do not lengthen it.
fn seconds(since: Instant) -> f64 {
    // The count is brought up to date when a thread gives its turn away.
    std::thread::yield_now();
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = counted.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| since.elapsed().as_secs_f64(), |n| n / 1e9)
}

/// Pairs of operands.
const TURNS: usize = 4;

/// GFLOP/s of the fastest of several products: `m` x `k` times `k` x `n`.
fn rate([m, k, n]: [usize; 3], a_transposed: bool, b_transposed: bool) -> f64 {
    let strides = |transposed, rows, cols| if transposed { [1, rows as isize] } else { [cols as isize, 1] };
    let (a_strides, b_strides) = (strides(a_transposed, m, k), strides(b_transposed, k, n));
    let filled = |len: usize| (0..len).map(|i| (i % 7) as f32 - 3.0).collect::<Vec<f32>>();
    let operands: Vec<_> = (0..TURNS).map(|_| (filled(m * k), filled(k * n))).collect();
    let mut c = vec![0f32; m * n];
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    let mut turns = operands.iter().cycle();
    for i in 0.. {
        if i >= 3 * TURNS && begin.elapsed().as_secs_f64() > 1.0 {
            break;
        }
        let (a, b) = turns.next().expect("an endless cycle");
        let start = seconds(begin);
        matmul(
            View::new(DType::F32, bytemuck::cast_slice(a), 0, &[m, k], &a_strides),
            View::new(DType::F32, bytemuck::cast_slice(b), 0, &[k, n], &b_strides),
            ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut c), &[m, n]),
        );
        best = best.min(seconds(begin) - start);
    }
    (2 * m * k * n) as f64 / best / 1e9
}

fn main() {
    pool::set_threads(1);
    let peak = limits::fma_peak() / 1e9;
    println!("f32, one thread; {peak:.0} GFLOP/s in registers; GFLOP/s and share of it");
    println!("{:>24} {:>14} {:>14} {:>14}", "rows x inputs x outputs", "X W", "dY W'", "X' dY");
    let layers = [
        [32, 256, 512],
        [128, 784, 512],
        [128, 512, 512],
        [1024, 256, 256],
        [2048, 256, 256],
        [2048, 256, 1024],
        [2048, 1024, 256],
        [2048, 256, 4096],
        [16384, 256, 256],
        [4096, 1024, 1024],
        [4096, 1000, 1000],
    ];
    for [rows, inputs, outputs] in layers {
        print!("{:>24}", format!("{rows}x{inputs}x{outputs}"));
        for rate in [
            rate([rows, inputs, outputs], false, false),
            rate([rows, outputs, inputs], false, true),
            rate([inputs, rows, outputs], true, false),
        ] {
            print!(" {rate:8.1} {:4.0}%", 100.0 * rate / peak);
        }
        println!();
    }
}
