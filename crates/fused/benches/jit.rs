//! Machine code against the kernels, on one thread: `cargo bench -p taut-fused --bench jit`.
//!
//! Passes: one kernel after another over whole arrays that are allocated before. Tiles: the same, 2,048 elements at a time.

use bytemuck::{cast_slice, cast_slice_mut};
use std::hint::black_box;
use std::time::Instant;
use taut_fused::{TileConstant, TileOperand, TileProgram, TileStep, compile};
use taut_kernels::elementwise::{self, Binary, Code, Unary};
use taut_kernels::{Arg, DType, View, ViewMut, pool};

fn step(code: Code, operands: &[TileOperand]) -> TileStep {
    TileStep { code, operands: operands.iter().copied().collect() }
}

fn program(inputs: usize, constants: &[f32], steps: Vec<TileStep>, outputs: &[usize]) -> TileProgram {
    let constant = |x: &f32| TileConstant { dtype: DType::F32, bytes: (x.to_bits() as u64).to_le_bytes() };
    let constants = constants.iter().map(constant).collect();
    TileProgram::new(vec![DType::F32; inputs], constants, steps, outputs.to_vec()).expect("a valid program")
}

const MUL: Code = Code::Binary(Binary::Mul);
const ADD: Code = Code::Binary(Binary::Add);

/// `2 x² + 1`.
fn polynomial() -> TileProgram {
    use TileOperand::{Constant, Input, Step as S};
    let steps = vec![
        step(Code::Unary(Unary::Square), &[Input(0)]),
        step(MUL, &[S(0), Constant(0)]),
        step(ADD, &[S(1), Constant(1)]),
    ];
    program(1, &[2.0, 1.0], steps, &[2])
}

/// `x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³)))`.
fn gelu() -> TileProgram {
    use TileOperand::{Constant, Input, Step as S};
    let steps = vec![
        step(Code::Unary(Unary::Square), &[Input(0)]),
        step(MUL, &[S(0), Input(0)]),
        step(MUL, &[S(1), Constant(0)]),
        step(ADD, &[S(2), Input(0)]),
        step(MUL, &[S(3), Constant(1)]),
        step(Code::Unary(Unary::Tanh), &[S(4)]),
        step(ADD, &[S(5), Constant(2)]),
        step(MUL, &[Input(0), Constant(3)]),
        step(MUL, &[S(7), S(6)]),
    ];
    program(1, &[0.044715, 0.7978846, 1.0, 0.5], steps, &[8])
}

/// Of the gradient, the moments and the parameter; the last three are overwritten.
fn adam() -> TileProgram {
    use TileOperand::{Constant, Input, Step as S};
    let steps = vec![
        step(MUL, &[Input(1), Constant(0)]),
        step(MUL, &[Input(0), Constant(1)]),
        step(ADD, &[S(0), S(1)]),
        step(MUL, &[Input(2), Constant(2)]),
        step(Code::Unary(Unary::Square), &[Input(0)]),
        step(MUL, &[S(4), Constant(3)]),
        step(ADD, &[S(3), S(5)]),
        step(Code::Unary(Unary::Sqrt), &[S(6)]),
        step(ADD, &[S(7), Constant(4)]),
        step(Code::Binary(Binary::Div), &[S(2), S(8)]),
        step(MUL, &[S(9), Constant(5)]),
        step(Code::Binary(Binary::Sub), &[Input(3), S(10)]),
    ];
    program(4, &[0.9, 0.1, 0.999, 0.001, 1e-8, 0.01], steps, &[2, 6, 11])
}

/// Runs the steps by kernels, `tile` elements at a time, each into its own array; outputs go to `outputs`.
fn kernels(
    program: &TileProgram,
    inputs: &[Vec<f32>],
    buffers: &mut [Vec<f32>],
    outputs: &mut [Vec<f32>],
    tile: usize,
) {
    let n = outputs[0].len();
    let number = |constant: &TileConstant| f32::from_le_bytes([0, 1, 2, 3].map(|i| constant.bytes[i]));
    let constants: Vec<f32> = program.constants().iter().map(number).collect();
    for first in (0..n).step_by(tile) {
        let shape = [tile.min(n - first)];
        for (i, step) in program.steps().iter().enumerate() {
            let (before, after) = buffers.split_at_mut(i);
            let output = program.outputs().iter().position(|&output| output == i);
            let view = |k: usize| {
                let (data, strides): (_, &[isize]) = match step.operands[k] {
                    TileOperand::Input(input) => (&inputs[input][first..], &[1]),
                    TileOperand::Step(step) => (&before[step][..], &[1]),
                    TileOperand::Constant(constant) => (&constants[constant..], &[0]),
                };
                Arg::View(View::new(DType::F32, cast_slice(data), 0, &shape, strides))
            };
            let buffer = &mut after[0][..shape[0]];
            let out = ViewMut::new(DType::F32, cast_slice_mut(buffer), &shape);
            match step.code {
                Code::Unary(code) => elementwise::unary(code, view(0), out),
                Code::Binary(code) => elementwise::binary(code, view(0), view(1), out),
                _ => unreachable!("the programs here have no other codes"),
            }
            // Whole arrays need no copy: the buffer of an output's step is the output.
            if let Some(output) = output.filter(|_| tile < n) {
                outputs[output][first..first + shape[0]].copy_from_slice(&after[0][..shape[0]]);
            }
        }
    }
}

fn best(repeats: usize, mut f: impl FnMut()) -> f64 {
    let time = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    };
    (0..repeats).map(|_| time(&mut f)).fold(f64::INFINITY, f64::min)
}

fn measure(name: &str, program: &TileProgram, n: usize, in_place: &[Option<usize>]) {
    let compiling = best(2000, || drop(black_box(compile(program))));
    let Some(code) = compile(program) else { return println!("{name}: no machine code here") };
    let inputs: Vec<Vec<f32>> = (1..=program.inputs().len())
        .map(|k| (0..n).map(|i| ((i * k) % 100) as f32 * 0.03).collect())
        .collect();
    let mut outputs = vec![vec![0f32; n + 16]; program.outputs().len()];
    let repeats = (200_000_000 / n / program.steps().len()).clamp(5, 200);
    let machine = best(repeats, || {
        let whole = |i: usize| if in_place[i].is_some() { &[][..] } else { cast_slice(&inputs[i][..]) };
        let inputs: Vec<&[u8]> = (0..inputs.len()).map(whole).collect();
        let mut arrays: Vec<&mut [u8]> = Vec::new();
        for output in &mut outputs {
            let bytes: &mut [u8] = cast_slice_mut(output);
            let start = bytes.as_ptr().align_offset(32);
            arrays.push(&mut bytes[start..start + 4 * n]);
        }
        code.run(&inputs, &mut arrays, in_place);
    });
    outputs.iter_mut().for_each(|output| output.truncate(n));
    let mut buffers = vec![vec![0f32; n]; program.steps().len()];
    let mut by_kernels =
        |tile: usize| best(repeats, || kernels(program, &inputs, &mut buffers, &mut outputs, tile));
    let (passes, tiles) = (by_kernels(n), by_kernels(2048));
    println!(
        "{name:12} {n:9}: {compiling:6.1} us to compile, {machine:8.3} ms, tiles {tiles:8.3} ({:.2}x), passes {passes:8.3} ({:.2}x)",
        tiles / machine,
        passes / machine,
        compiling = compiling * 1e6,
        machine = machine * 1e3,
        tiles = tiles * 1e3,
        passes = passes * 1e3,
    );
}

fn main() {
    pool::set_threads(1);
    for n in [4 << 10, 1 << 20, 16 << 20] {
        measure("2x²+1", &polynomial(), n, &[None]);
        measure("gelu", &gelu(), n, &[None]);
        measure("adam", &adam(), n, &[None, Some(0), Some(1), Some(2)]);
    }
}
