//! Convolution and pooling beside the bare matrix product, in one run: `cargo bench --bench conv`.

use std::time::Instant;
use taut_kernels::conv::{
    ConvParams, Layout, forward, forward_scratch, input_gradient, input_gradient_scratch, weight_gradient,
    weight_gradient_scratch,
};
use taut_kernels::pooling::{PoolParams, average, average_gradient, max, max_gradient, max_gradient_scratch};
use taut_kernels::{DType, View, ViewMut, limits, pool};

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// Floats on cache lines of their own.
struct Buffer(Vec<Line>);

impl Buffer {
    fn new(len: usize) -> Buffer {
        let mut buffer = Buffer(vec![Line([0.0; 16]); len.div_ceil(16)]);
        for (i, v) in bytemuck::cast_slice_mut::<Line, f32>(&mut buffer.0).iter_mut().enumerate() {
            *v = (i % 17) as f32 / 16.0 - 0.5;
        }
        buffer
    }

    fn scratch(bytes: usize) -> Buffer {
        Buffer::new(bytes.div_ceil(4))
    }

    fn floats(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }

    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// A row-major tensor.
struct Tensor {
    data: Buffer,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl Tensor {
    fn new(shape: &[usize]) -> Tensor {
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i] as isize;
        }
        Tensor { data: Buffer::new(shape.iter().product()), shape: shape.to_vec(), strides }
    }

    fn view(&self) -> View<'_> {
        View::new(DType::F32, bytemuck::cast_slice(&self.data.0), 0, &self.shape, &self.strides)
    }

    fn output(&mut self) -> ViewMut<'_> {
        ViewMut::new(DType::F32, bytemuck::cast_slice_mut(&mut self.data.0), &self.shape)
    }
}

/// Seconds of the fastest of several calls.
fn time(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < 0.4 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// GFLOP/s of the bare kernel on one thread, for a square product.
fn bare_gemm(n: usize) -> f64 {
    let (a, b, mut c) = (Buffer::new(n * n), Buffer::new(n * n), Buffer::new(n * n));
    let seconds = time(|| {
        let c: &mut [f32] = bytemuck::cast_slice_mut(&mut c.0);
        limits::bare_gemm(&a.floats()[..n * n], &b.floats()[..n * n], &mut c[..n * n], n);
    });
    2.0 * (n * n * n) as f64 / seconds / 1e9
}

/// Prints GFLOP/s of the three kernels.
fn conv(
    name: &str,
    layout: Layout,
    [n, size, window, stride]: [usize; 4],
    [c_in, c_out, groups]: [usize; 3],
) {
    let pad = window / 2;
    let p = ConvParams {
        layout,
        rank: 2,
        strides: [stride; 3],
        dilations: [1; 3],
        padding: [(pad, pad); 3],
        groups,
    };
    let out = (size + 2 * pad - window) / stride + 1;
    let image = |size: usize, c: usize| match layout {
        Layout::ChannelsLast => [n, size, size, c],
        Layout::ChannelsFirst => [n, c, size, size],
    };
    let (mut x, mut y) = (Tensor::new(&image(size, c_in)), Tensor::new(&image(out, c_out)));
    let mut w = Tensor::new(&[window, window, c_in / groups, c_out]);
    let flops = 2.0 * (n * out * out * window * window * c_in / groups * c_out) as f64 / 1e9;
    let mut scratch = Buffer::scratch(forward_scratch(&p, &x.shape, &w.shape, DType::F32));
    let f = time(|| forward(&p, x.view(), w.view(), y.output(), scratch.bytes()));
    let kilobytes = scratch.0.len() / 16;
    let mut scratch = Buffer::scratch(input_gradient_scratch(&p, &x.shape, &w.shape, DType::F32));
    let dx = time(|| input_gradient(&p, y.view(), w.view(), x.output(), scratch.bytes()));
    let mut scratch = Buffer::scratch(weight_gradient_scratch(&p, &x.shape, &w.shape, DType::F32));
    let dw = time(|| weight_gradient(&p, x.view(), y.view(), w.output(), scratch.bytes()));
    println!(
        "{name:42} {:7.1} {:7.1} {:7.1} GF/s   {kilobytes} KiB of scratch forward",
        flops / f,
        flops / dx,
        flops / dw
    );
}

/// Prints billions of input elements per second.
fn pooling(name: &str, layout: Layout, window: usize, stride: usize) {
    let (n, size, c) = (8, 56, 64);
    let p = PoolParams {
        layout,
        rank: 2,
        window: [window; 3],
        strides: [stride; 3],
        dilations: [1; 3],
        padding: [(0, 0); 3],
    };
    let out = (size - window) / stride + 1;
    let image = |size: usize| match layout {
        Layout::ChannelsLast => [n, size, size, c],
        Layout::ChannelsFirst => [n, c, size, size],
    };
    let (x, mut y, mut dx) = (Tensor::new(&image(size)), Tensor::new(&image(out)), Tensor::new(&image(size)));
    let mut scratch = Buffer::scratch(max_gradient_scratch(&p, &y.shape));
    let giga = (n * size * size * c) as f64 / 1e9;
    let forward = time(|| max(&p, x.view(), y.output()));
    let backward = time(|| max_gradient(&p, x.view(), y.view(), dx.output(), scratch.bytes()));
    let average_forward = time(|| average(&p, false, x.view(), y.output()));
    let average_backward = time(|| average_gradient(&p, false, y.view(), dx.output()));
    println!(
        "{name:42} {:6.2} {:6.2} {:6.2} {:6.2} G inputs/s",
        giga / forward,
        giga / backward,
        giga / average_forward,
        giga / average_backward
    );
}

fn main() {
    use Layout::{ChannelsFirst as First, ChannelsLast as Last};
    for threads in [1, pool::set_threads(0)] {
        pool::set_threads(threads);
        println!("{threads} thread(s); the bare kernel on one, 512^3: {:.1} GF/s", bare_gemm(512));
        println!("{:42} {:>7} {:>7} {:>7}", "", "forward", "dx", "dw");
        conv("32x32x16 3x3, batch 32", Last, [32, 32, 3, 1], [16, 16, 1]);
        conv("16x16x32 3x3, batch 32", Last, [32, 16, 3, 1], [32, 32, 1]);
        conv("8x8x64 3x3, batch 32", Last, [32, 8, 3, 1], [64, 64, 1]);
        conv("56x56x64 3x3, batch 8", Last, [8, 56, 3, 1], [64, 64, 1]);
        conv("56x56x64 3x3, batch 8, channels first", First, [8, 56, 3, 1], [64, 64, 1]);
        conv("14x14x256 3x3, batch 8", Last, [8, 14, 3, 1], [256, 256, 1]);
        conv("7x7x512 3x3, batch 1", Last, [1, 7, 3, 1], [512, 512, 1]);
        conv("56x56x64 -> 256 1x1, batch 8", Last, [8, 56, 1, 1], [64, 256, 1]);
        conv("56x56x128 3x3 / 2, batch 8", Last, [8, 56, 3, 2], [128, 128, 1]);
        conv("224x224x3 7x7 / 2 -> 64, batch 1", Last, [1, 224, 7, 2], [3, 64, 1]);
        conv("28x28x1 3x3 -> 32, batch 32", Last, [32, 28, 3, 1], [1, 32, 1]);
        conv("56x56x128 3x3 depthwise, batch 8", Last, [8, 56, 3, 1], [128, 128, 128]);
        conv("56x56x128 3x3 depthwise, channels first", First, [8, 56, 3, 1], [128, 128, 128]);
        println!("{:42} {:>6} {:>6} {:>6} {:>6}", "", "max", "dx", "mean", "dx");
        pooling("2x2 / 2", Last, 2, 2);
        pooling("2x2 / 2, channels first", First, 2, 2);
        pooling("3x3 / 2", Last, 3, 2);
        pooling("3x3 / 2, channels first", First, 3, 2);
    }
}
