use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::Instant;
use taut_kernels::matmul::{Mat, MatMut, gemm, serial::LIMIT};

fn bare(
    a: &[f32],
    ars: isize,
    acs: isize,
    b: &[f32],
    brs: isize,
    bcs: isize,
    c: &mut [f32],
    m: usize,
    k: usize,
    n: usize,
) {
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            acs,
            ars,
            b.as_ptr(),
            bcs,
            brs,
            0f32,
            1f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        )
    }
}
fn med(v: &mut Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 4]
}
fn main() {
    let shapes = [
        (1, 1, 1),
        (2, 2, 2),
        (4, 4, 4),
        (8, 8, 8),
        (16, 16, 16),
        (24, 24, 24),
        (32, 32, 32),
        (48, 48, 48),
        (64, 64, 64),
        (100, 100, 100),
        (128, 128, 128),
        (256, 256, 256),
        (32, 784, 10),
        (256, 784, 10),
        (10, 784, 32),
        (784, 32, 10),
        (1024, 784, 64),
        (64, 1024, 16),
        (1000, 1000, 2),
        (1000, 1000, 4),
        (1000, 1000, 8),
        (1000, 1000, 16),
        (2, 1000, 1000),
        (4, 1000, 1000),
        (8, 1000, 1000),
        (16, 1000, 1000),
        (32, 1000, 1000),
        (4, 64, 4096),
        (4096, 64, 4),
        (32, 64, 512),
        (512, 8, 512),
        (512, 3, 512),
        (2, 64, 64),
        (64, 64, 2),
        (64, 64, 8),
        (8, 64, 64),
        (2, 2, 4096),
        (1, 1000, 1000),
        (1000, 1000, 1),
        (1, 4000, 4000),
        (4000, 4000, 1),
        (1, 1000000, 1),
        (1, 100, 1),
        (1, 16, 16),
        (16, 16, 1),
        (1, 100, 100),
        (100, 100, 1),
        (1, 784, 10),
        (1, 1, 1000),
    ];
    LIMIT.store(usize::MAX, Ordering::Relaxed);
    for (m, k, n) in shapes {
        print!("{m:5}x{k}x{n:<6}");
        let a = vec![0.5f32; m * k];
        let b = vec![0.25f32; k * n];
        let mut c = vec![0f32; m * n];
        for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
            let (ars, acs) = if ta { (1, m as isize) } else { (k as isize, 1) };
            let (brs, bcs) = if tb { (1, k as isize) } else { (n as isize, 1) };
            let reps = (2_000_000 / (m * n * k + 20000)).max(1);
            let (mut x, mut y) = (vec![], vec![]);
            for _ in 0..41 {
                let t = Instant::now();
                for _ in 0..reps {
                    bare(black_box(&a), ars, acs, black_box(&b), brs, bcs, &mut c, m, k, n);
                    black_box(&c);
                }
                x.push(t.elapsed().as_nanos() as f64 / reps as f64);
                let t = Instant::now();
                for _ in 0..reps {
                    gemm(
                        Mat::new(black_box(&a), 0, m, k, ars, acs),
                        Mat::new(black_box(&b), 0, k, n, brs, bcs),
                        MatMut::row_major(&mut c, m, n),
                        false,
                    );
                    black_box(&c);
                }
                y.push(t.elapsed().as_nanos() as f64 / reps as f64);
            }
            let (x, y) = (med(&mut x), med(&mut y));
            print!(" | {:9.0} {:9.0} {:5.2} {:5.1}GF", x, y, x / y, 2.0 * (m * n * k) as f64 / y);
        }
        println!();
    }
}
