//! Matrix products beside the bare `gemm` crate, both on one thread, and on all: `cargo bench -p taut-kernels
//! --bench matmul`.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;
use taut_kernels::{DType, View, ViewMut, matmul::matmul, pool};

struct Problem {
    m: usize,
    k: usize,
    n: usize,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    a_strides: [isize; 2],
    b_strides: [isize; 2],
}

impl Problem {
    fn new((m, k, n): (usize, usize, usize), a_transposed: bool, b_transposed: bool) -> Problem {
        let strides =
            |transposed, rows, cols| if transposed { [1, rows as isize] } else { [cols as isize, 1] };
        Problem {
            m,
            k,
            n,
            a: (0..m * k).map(|i| (i % 7) as f32 - 3.0).collect(),
            b: (0..k * n).map(|i| (i % 5) as f32 - 2.0).collect(),
            c: vec![0.0; m * n],
            a_strides: strides(a_transposed, m, k),
            b_strides: strides(b_transposed, k, n),
        }
    }

    fn taut(&mut self) {
        let view =
            |data, shape, strides| View::new(DType::F32, bytemuck::cast_slice(data), 0, shape, strides);
        matmul(
            view(&self.a, &[self.m, self.k], &self.a_strides),
            view(&self.b, &[self.k, self.n], &self.b_strides),
            ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut self.c), &[self.m, self.n]),
        );
        black_box(&mut self.c);
    }

    fn bare(&mut self) {
        let ([a_rs, a_cs], [b_rs, b_cs]) = (self.a_strides, self.b_strides);
        // SAFETY: the three vectors have as many elements as the shapes and strides say.
        unsafe {
            // The kernels are made for a column-major result: c is row-major, so this computes its transpose.
            gemm_f32::gemm::f32::get_gemm_fn()(
                self.n,
                self.m,
                self.k,
                self.c.as_mut_ptr(),
                self.n as isize,
                1,
                false,
                self.b.as_ptr(),
                b_rs,
                b_cs,
                self.a.as_ptr(),
                a_rs,
                a_cs,
                0.0f32,
                1.0f32,
                false,
                false,
                false,
                gemm_common::Parallelism::None,
            );
        }
        black_box(&mut self.c);
    }

    /// Median nanoseconds of the bare crate, of ours on one thread, and of ours on all, taken in turns.
    fn measure(&mut self) -> [f64; 3] {
        let flops = 2 * self.m * self.n * self.k;
        let repeats = (1_000_000 / (flops + 20_000)).max(1);
        let samples = (2_000_000_000 / (flops + 20_000_000)).clamp(5, 51);
        let mut times = [const { Vec::new() }; 3];
        let mut time = |threads: usize, run: fn(&mut Problem)| {
            pool::set_threads(threads);
            let start = Instant::now();
            (0..repeats).for_each(|_| run(self));
            start.elapsed().as_nanos() as f64 / repeats as f64
        };
        for _ in 0..samples {
            times[0].push(time(1, Problem::bare));
            times[1].push(time(1, Problem::taut));
            times[2].push(time(0, Problem::taut));
        }
        times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
    }
}

fn main() {
    let threads = pool::set_threads(0);
    println!("f32; GFLOP/s of the bare crate, ours as a ratio to it on one thread / on {threads}");
    println!("{:>16} {:>20} {:>20} {:>20} {:>20}", "m x k x n", "A B", "A' B", "A B'", "A' B'");
    let shapes = [
        (1, 1, 1),
        (4, 4, 4),
        (8, 8, 8),
        (16, 16, 16),
        (32, 32, 32),
        (100, 100, 100),
        (512, 512, 512),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (32, 784, 10),
        (10, 784, 32),
        (784, 32, 10),
        (1024, 784, 64),
        (1000, 1000, 4),
        (4, 1000, 1000),
        (1, 784, 10),
        (1, 1000, 1000),
        (1000, 1000, 1),
        (1, 4000, 4000),
        (1, 1_000_000, 1),
        // A step of an LSTM: forward, and both gradients.
        (32, 128, 512),
        (32, 512, 128),
        (128, 32, 512),
    ];
    for shape in shapes {
        let (m, k, n) = shape;
        print!("{:>16}", format!("{m}x{k}x{n}"));
        for (a_transposed, b_transposed) in [(false, false), (true, false), (false, true), (true, true)] {
            let [bare, one, all] = Problem::new(shape, a_transposed, b_transposed).measure();
            let rate = (2 * m * k * n) as f64 / bare;
            print!(" {rate:8.1} {:5.2}/{:<5.2}", bare / one, bare / all);
        }
        println!();
    }
}
