//! One pass against a kernel per step: `cargo bench -p taut-fused --bench fused`.

use std::hint::black_box;
use std::time::Instant;
use taut_fused::TileOperand::{Constant as C, Input as I, Step as S};
use taut_fused::{FusedKernel, TileConstant, TileOperand, TileProgram, TileStep};
use taut_kernels::elementwise::{self, Binary, Code, Unary};
use taut_kernels::reduce::{Reduce, reduce, reduce_scratch};
use taut_kernels::{Arg, DType, View, ViewMut, pool};

const ADD: Code = Code::Binary(Binary::Add);
const SUB: Code = Code::Binary(Binary::Sub);
const MUL: Code = Code::Binary(Binary::Mul);
const DIV: Code = Code::Binary(Binary::Div);
const SQUARE: Code = Code::Unary(Unary::Square);

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Median nanoseconds of two alternatives, measured in turns so that the machine's load affects both.
fn compare(samples: usize, mut a: impl FnMut(), mut b: impl FnMut()) -> (f64, f64) {
    let time = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed().as_nanos() as f64
    };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        first.push(time(&mut a));
        second.push(time(&mut b));
    }
    (median(first), median(second))
}

fn step(code: Code, operands: &[TileOperand]) -> TileStep {
    TileStep { code, operands: operands.iter().copied().collect() }
}

fn constant(value: f32) -> TileConstant {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&value.to_ne_bytes());
    TileConstant { dtype: DType::F32, bytes }
}

fn program(inputs: usize, constants: &[f32], steps: Vec<TileStep>, outputs: &[usize]) -> TileProgram {
    let constants = constants.iter().map(|value| constant(*value)).collect();
    TileProgram::new(vec![DType::F32; inputs], constants, steps, outputs.to_vec()).expect("a valid program")
}

fn view<'a>(data: &'a [f32], shape: &'a [usize], strides: &'a [isize]) -> View<'a> {
    View::new(DType::F32, bytemuck::cast_slice(data), 0, shape, strides)
}

fn out<'a>(data: &'a mut [f32], shape: &'a [usize]) -> ViewMut<'a> {
    ViewMut::new(DType::F32, bytemuck::cast_slice_mut(data), shape)
}

/// Every step by a kernel of its own, into buffers that are allocated before.
fn step_by_step(program: &TileProgram, inputs: &[View<'_>], results: &mut [Vec<f32>], shape: &[usize]) {
    let strides: Vec<isize> =
        (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>() as isize).collect();
    let zeros = vec![0; shape.len()];
    let constants: Vec<f32> = program
        .constants()
        .iter()
        .map(|constant| bytemuck::pod_read_unaligned(&constant.bytes[..4]))
        .collect();
    for (i, step) in program.steps().iter().enumerate() {
        let (before, rest) = results.split_at_mut(i);
        let arg = |n: usize| {
            Arg::View(match step.operands[n] {
                TileOperand::Input(input) => inputs[input],
                TileOperand::Constant(constant) => view(&constants[constant..=constant], shape, &zeros),
                TileOperand::Step(step) => view(&before[step], shape, &strides),
            })
        };
        let out = out(&mut rest[0], shape);
        match step.code {
            Code::Unary(code) => elementwise::unary(code, arg(0), out),
            Code::Binary(code) => elementwise::binary(code, arg(0), arg(1), out),
            code => panic!("no bench has {code:?}"),
        }
    }
}

fn report(name: &str, n: usize, (fused, separate): (f64, f64)) {
    let n = n as f64;
    println!(
        "{name:26} fused {:7.3} ns/element, separate {:7.3}, {:5.2}x",
        fused / n,
        separate / n,
        separate / fused
    );
}

fn chain(name: &str, program: TileProgram, n: usize) {
    let (shape, strides) = ([n], [1]);
    let data: Vec<Vec<f32>> = (0..program.inputs().len())
        .map(|i| (0..n).map(|j| ((i + 1) * j % 1000) as f32 / 500.0 - 1.0).collect())
        .collect();
    let views: Vec<View<'_>> = data.iter().map(|data| view(data, &shape, &strides)).collect();
    let args: Vec<Arg<'_>> = views.iter().map(|view| Arg::View(*view)).collect();
    let kernel = FusedKernel::new(program.clone());
    let mut results = vec![vec![0f32; n]; program.steps().len()];
    let mut result = vec![0f32; n];
    let times = compare(
        (200_000_000 / n / program.steps().len()).clamp(9, 301),
        || kernel.run(&args, &mut [out(&mut result, &shape)]),
        || step_by_step(&program, &views, &mut results, &shape),
    );
    report(name, n, times);
}

fn gelu() -> TileProgram {
    let steps = vec![
        step(SQUARE, &[I(0)]),
        step(MUL, &[S(0), I(0)]),
        step(MUL, &[S(1), C(0)]),
        step(ADD, &[S(2), I(0)]),
        step(MUL, &[S(3), C(1)]),
        step(Code::Unary(Unary::Tanh), &[S(4)]),
        step(ADD, &[S(5), C(2)]),
        step(MUL, &[S(6), I(0)]),
        step(MUL, &[S(7), C(3)]),
    ];
    program(1, &[0.044715, 0.797_884_6, 1.0, 0.5], steps, &[8])
}

fn adam(n: usize) {
    let steps = vec![
        step(MUL, &[I(2), C(0)]),
        step(MUL, &[I(1), C(1)]),
        step(ADD, &[S(0), S(1)]),
        step(MUL, &[I(3), C(2)]),
        step(SQUARE, &[I(1)]),
        step(MUL, &[S(4), C(3)]),
        step(ADD, &[S(3), S(5)]),
        step(Code::Unary(Unary::Sqrt), &[S(6)]),
        step(ADD, &[S(7), C(4)]),
        step(DIV, &[S(2), S(8)]),
        step(MUL, &[S(9), C(5)]),
        step(SUB, &[I(0), S(10)]),
    ];
    let program = program(4, &[0.9, 0.1, 0.999, 0.001, 1e-8, 0.01], steps, &[11, 2, 6]);
    let kernel = FusedKernel::new(program.clone());
    let (shape, strides) = ([n], [1]);
    let values = |by: usize| (0..n).map(|i| (i * by % 1000) as f32 / 1000.0).collect::<Vec<f32>>();
    let (mut weight, gradient, mut m, mut v) = (values(1), values(3), values(7), values(11));
    let mut results = vec![vec![0f32; n]; program.steps().len()];
    let inputs = [values(1), values(3), values(7), values(11)];
    let views = inputs.each_ref().map(|data| view(data, &shape, &strides));
    let times = compare(
        (20_000_000 / n).clamp(9, 301),
        || {
            let args = [
                Arg::InPlace(0),
                Arg::View(view(&gradient, &shape, &strides)),
                Arg::InPlace(1),
                Arg::InPlace(2),
            ];
            let outputs = &mut [out(&mut weight, &shape), out(&mut m, &shape), out(&mut v, &shape)];
            kernel.run(&args, outputs);
        },
        || step_by_step(&program, &views, &mut results, &shape),
    );
    report(&format!("adam {n}"), n, times);
}

/// `sum((x - y)²)` over the marked dimensions, where `y` repeats along the first if `bias`.
fn sum(name: &str, shape: [usize; 2], axes: [bool; 2], bias: bool) {
    let n = shape[0] * shape[1];
    let steps = vec![step(SUB, &[I(0), I(1)]), step(SQUARE, &[S(0)])];
    let program = program(2, &[], steps, &[1]);
    let kernel = FusedKernel::new(program.clone());
    let values = |by: usize| (0..n).map(|i| (i * by % 1000) as f32 / 1000.0).collect::<Vec<f32>>();
    let (x, y) = (values(3), values(7));
    let strides = [shape[1] as isize, 1];
    let y_strides = if bias { [0, 1] } else { strides };
    let views = [view(&x, &shape, &strides), view(&y, &shape, &y_strides)];
    let kept: Vec<usize> = (0..2).filter(|d| !axes[*d]).map(|d| shape[d]).collect();
    let mut sums = [0, 1].map(|_| vec![0f32; kept.iter().product()]);
    let [a, b] = &mut sums;
    let mut results = vec![vec![0f32; n]; 2];
    let scratch = || vec![0u64; reduce_scratch(&shape, &axes).div_ceil(8)];
    let (mut scratch_a, mut scratch_b) = (scratch(), scratch());
    let times = compare(
        (100_000_000 / n).clamp(9, 301),
        || {
            let scratch = bytemuck::cast_slice_mut(&mut scratch_a);
            kernel.reduce(&views.map(Arg::View), &shape, Reduce::Sum, &axes, out(a, &kept), scratch);
        },
        || {
            step_by_step(&program, &views, &mut results, &shape);
            let squares = view(&results[1], &shape, &strides);
            let scratch = bytemuck::cast_slice_mut(&mut scratch_b);
            reduce(Reduce::Sum, squares, &axes, out(b, &kept), scratch);
        },
    );
    assert_eq!(sums[0], sums[1], "the fused reduction must equal the separate one");
    report(name, n, times);
}

fn main() {
    let (ready, copied) =
        compare(1001, || drop(black_box(FusedKernel::new(gelu()))), || drop(black_box(gelu())));
    println!("making gelu ready: {:.2} us", (ready - copied) / 1000.0);
    for threads in [1, 0] {
        println!("{} threads", pool::set_threads(threads));
        let parabola = || {
            let steps = vec![step(SQUARE, &[I(0)]), step(MUL, &[S(0), C(0)]), step(ADD, &[S(1), C(1)])];
            program(1, &[2.0, 1.0], steps, &[2])
        };
        for n in [1000, 10_000, 1 << 20, 1 << 24] {
            chain(&format!("2x^2+1 {n}"), parabola(), n);
        }
        for n in [10_000, 1 << 20, 1 << 24] {
            chain(&format!("gelu {n}"), gelu(), n);
        }
        adam(1 << 20);
        sum("sum((x-y)^2) 1M", [1, 1 << 20], [true, true], false);
        sum("sum((x-y)^2) 16M", [1, 1 << 24], [true, true], false);
        sum("columns of [128, 512]", [128, 512], [true, false], true);
        sum("columns of [32768, 512]", [1 << 15, 512], [true, false], true);
        sum("rows of [32768, 512]", [1 << 15, 512], [false, true], true);
        sum("rows of [100000, 10]", [100_000, 10], [false, true], true);
    }
}
