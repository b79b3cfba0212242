//! `cargo xtask bench`: the engine beside the machine's own limits, measured in the same run.
//!
//! Every row is a median over rounds that are interleaved with its rival's, so that a noisy moment hits both.

mod timing;

use std::hint::black_box;
use taut::{DType, Result, Tensor, memory};
use taut_kernels::{limits, pool, simd};
use timing::{race, row};

struct Machine {
    flops: f64,
    bandwidth: f64,
}

struct Bench {
    filter: String,
    machine: Machine,
}

impl Bench {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// A row of something limited by arithmetic.
    fn compute(&self, name: &str, seconds: f64, flops: f64, more: &str) {
        let (rate, share) = (flops / seconds / 1e9, flops / seconds / self.machine.flops);
        row(name, seconds, &format!("{rate:6.1} GFLOP/s, {share:4.2} of one core's peak{more}"));
    }

    /// A row of something limited by memory.
    fn stream(&self, name: &str, seconds: f64, bytes: f64, more: &str) {
        let (rate, share) = (bytes / seconds / 1e9, bytes / seconds / self.machine.bandwidth);
        row(name, seconds, &format!("{rate:6.1} GB/s, {share:4.2} of one core's copy{more}"));
    }
}

fn main() -> Result<()> {
    // `cargo bench` passes `--bench`.
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let machine = Machine { flops: limits::fma_peak(), bandwidth: limits::copy_bandwidth() };
    println!(
        "{} threads, {:?}; one core: {:.0} GFLOP/s fused multiply-add, {:.1} GB/s copy (read + write)\n",
        pool::threads(),
        simd::level(),
        machine.flops / 1e9,
        machine.bandwidth / 1e9
    );
    let bench = Bench { filter, machine };
    dispatch(&bench)?;
    gemm(&bench)?;
    elementwise(&bench)?;
    reductions(&bench)?;
    convolution(&bench)?;
    random(&bench);
    Ok(())
}

fn normal(shape: &[usize]) -> Result<Tensor> {
    taut::random::Generator::from_seed(1).normal(shape, 0.0, 1.0, DType::F32)
}

fn dispatch(bench: &Bench) -> Result<()> {
    if bench.wants("dispatch") {
        let (x, y) = (normal(&[1])?, normal(&[1])?);
        let [add] = race([&mut || drop(black_box(taut::add(&x, &y)))]);
        row("dispatch: add, 1 element", add, "aim: below 200 ns");

        let mut held = Some(normal(&[1])?);
        let [in_place] = race([&mut || held = taut::add(held.take().expect("put back"), &y).ok()]);
        row("dispatch: add in place, 1 element", in_place, "");

        memory::record(true);
        let [recorded] = race([&mut || drop(black_box(taut::add(&x, &y)))]);
        memory::record(false);
        row("dispatch: add, recording lines", recorded, "");

        let [view] = race([&mut || drop(black_box(taut::transpose(&x, None)))]);
        row("dispatch: transpose (a view)", view, "");
    }
    Ok(())
}

fn gemm(bench: &Bench) -> Result<()> {
    for n in [100, 512, 1024, 2048] {
        let name = format!("matmul {n}x{n}");
        if !bench.wants(&name) {
            continue;
        }
        let (a, b) = (normal(&[n, n])?, normal(&[n, n])?);
        let (left, right) = (a.to_vec::<f32>()?, b.to_vec::<f32>()?);
        let mut product = vec![0.0f32; n * n];
        let flops = 2.0 * (n as f64).powi(3);
        let threads = pool::threads();
        pool::set_threads(1);
        let [ours, bare] = race([&mut || drop(black_box(taut::matmul(&a, &b))), &mut || {
            limits::bare_gemm(&left, &right, black_box(&mut product), n);
        }]);
        pool::set_threads(threads);
        let [all] = race([&mut || drop(black_box(taut::matmul(&a, &b)))]);
        bench.compute(&name, ours, flops, &format!("; {:.2} x the bare gemm crate's speed", bare / ours));
        bench.compute(&format!("{name}, all threads"), all, flops, "");
    }
    Ok(())
}

fn elementwise(bench: &Bench) -> Result<()> {
    let n = 16 << 20;
    if bench.wants("elementwise 16M") {
        let (x, y) = (normal(&[n])?, normal(&[n])?);
        let (left, right) = (x.to_vec::<f32>()?, y.to_vec::<f32>()?);
        let mut out = vec![0.0f32; n];
        let threads = pool::threads();
        pool::set_threads(1);
        let [ours, by_hand] = race([&mut || drop(black_box(taut::add(&x, &y))), &mut || {
            for ((o, a), b) in black_box(&mut out).iter_mut().zip(&left).zip(&right) {
                *o = a + b;
            }
        }]);
        let bytes = 12.0 * n as f64;
        let ratio = format!("; {:.2} x a hand-written loop's speed", by_hand / ours);
        bench.stream("elementwise 16M: add", ours, bytes, &ratio);
        let [ours, by_hand] = race([&mut || drop(black_box(taut::square(&x))), &mut || {
            for (o, a) in black_box(&mut out).iter_mut().zip(&left) {
                *o = a * a;
            }
        }]);
        let ratio = format!("; {:.2} x a hand-written loop's speed", by_hand / ours);
        bench.stream("elementwise 16M: square", ours, 8.0 * n as f64, &ratio);
        pool::set_threads(threads);
        let [all] = race([&mut || drop(black_box(taut::add(&x, &y)))]);
        bench.stream("elementwise 16M: add, all threads", all, bytes, "");
    }
    for (name, n) in [("gelu 1M", 1 << 20), ("gelu 16M", 16 << 20)] {
        if bench.wants(name) {
            let x = normal(&[n])?;
            let [gelu] = race([&mut || drop(black_box(taut::gelu(&x, true)))]);
            bench.stream(
                name,
                gelu,
                8.0 * n as f64,
                &format!("; {:.2} ns per element", gelu * 1e9 / n as f64),
            );
        }
    }
    Ok(())
}

fn reductions(bench: &Bench) -> Result<()> {
    if bench.wants("sum 16M") {
        let n = 16 << 20;
        let x = normal(&[n])?;
        let [sum] = race([&mut || drop(black_box(taut::sum(&x, None, false)))]);
        bench.stream("sum 16M", sum, 4.0 * n as f64, "");
    }
    if bench.wants("softmax 1024x1024") {
        let x = normal(&[1024, 1024])?;
        let [softmax] = race([&mut || drop(black_box(taut::nn::softmax(&x, -1)))]);
        bench.stream("softmax 1024x1024", softmax, 8.0 * 1024.0 * 1024.0, "");
    }
    Ok(())
}

fn convolution(bench: &Bench) -> Result<()> {
    if !bench.wants("conv 3x3") {
        return Ok(());
    }
    let (x, w) = (normal(&[8, 56, 56, 64])?, normal(&[3, 3, 64, 64])?);
    let forward_flops = 2.0 * (8 * 56 * 56 * 64 * 64 * 9) as f64;
    let y = taut::conv2d(&x, &w, &[1, 1], "SAME")?;
    let [forward, dx, dw] = race([
        &mut || drop(black_box(taut::conv2d(&x, &w, &[1, 1], "SAME"))),
        &mut || drop(black_box(taut::conv2d_input_gradient(x.shape(), &w, &y, &[1, 1], "SAME"))),
        &mut || drop(black_box(taut::conv2d_filter_gradient(&x, w.shape(), &y, &[1, 1], "SAME"))),
    ]);
    bench.compute("conv 3x3 8x56x56x64: forward", forward, forward_flops, "");
    bench.compute("conv 3x3: input gradient", dx, forward_flops, "");
    bench.compute("conv 3x3: filter gradient", dw, forward_flops, "");
    Ok(())
}

fn random(bench: &Bench) {
    if bench.wants("random 100M normals") {
        let n = 100_000_000;
        let generator = taut::random::Generator::from_seed(1);
        let [normals] = race([&mut || drop(black_box(generator.normal([n], 0.0, 1.0, DType::F32)))]);
        let each = format!("; {:.2} ns each", normals * 1e9 / n as f64);
        bench.stream("random 100M normals", normals, 4.0 * n as f64, &each);
    }
}
