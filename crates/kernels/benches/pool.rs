//! What a job costs the pool: `cargo bench -p taut-kernels --bench pool`.

use std::hint::black_box;
use std::time::{Duration, Instant};
use taut_kernels::pool;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Median nanoseconds of `f`, which is repeated `repeats` times a sample.
fn nanoseconds(samples: usize, repeats: usize, mut f: impl FnMut()) -> f64 {
    let sample = || {
        let start = Instant::now();
        (0..repeats).for_each(|_| f());
        start.elapsed().as_nanos() as f64 / repeats as f64
    };
    median(std::iter::repeat_with(sample).take(samples).collect())
}

fn main() {
    println!("{} threads", pool::threads());
    let empty = |chunks| move || pool::for_each(chunks, 1, |i| _ = black_box(i));
    println!("one chunk, inline        {:9.1} ns", nanoseconds(100, 1000, empty(1)));
    println!("two chunks, warm         {:9.1} ns", nanoseconds(1000, 100, empty(2)));
    println!("sixteen chunks, warm     {:9.1} ns", nanoseconds(1000, 100, empty(16)));
    let cold = (0..200).map(|_| {
        std::thread::sleep(Duration::from_millis(1));
        nanoseconds(1, 1, empty(2))
    });
    println!("two chunks, cold         {:9.1} ns", median(cold.collect()));

    for len in [4 << 10, 16 << 10, 64 << 10, 1 << 20] {
        let (x, mut y) = (vec![1f32; len], vec![2f32; len]);
        let mut add = |chunk| {
            pool::for_each_mut(&mut y, chunk, |first, y| {
                for (y, x) in y.iter_mut().zip(&x[first..]) {
                    *y += x;
                }
            });
        };
        let (mut serial, mut parallel) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            serial.push(nanoseconds(1, 20, || add(len)));
            parallel.push(nanoseconds(1, 20, || add((len / 8).max(2048))));
        }
        let (serial, parallel) = (median(serial), median(parallel));
        println!(
            "add {len:8}: serial {serial:9.0} ns, parallel {parallel:9.0} ns, {:.2}x",
            serial / parallel
        );
    }
}
