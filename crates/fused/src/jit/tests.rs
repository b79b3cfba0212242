//! Machine code against the kernels, step by step and bit by bit.

mod codes;
mod encoding;
mod programs;

use super::encode::Width;
use super::{MachineCode, compile};
use crate::program::{TileConstant, TileOperand, TileProgram, TileStep};
use bytemuck::{cast_slice, cast_slice_mut};
use taut_kernels::dtype::{bf16, f16};
use taut_kernels::elementwise::{self, Code};
use taut_kernels::{Arg, DType, View, ViewMut};

/// Bytes that any type may be cast from.
#[derive(Clone)]
struct Array {
    words: Vec<u64>,
    bytes: usize,
}

impl Array {
    fn zeros(bytes: usize) -> Array {
        Array { words: vec![0; bytes.div_ceil(8)], bytes }
    }

    fn get(&self) -> &[u8] {
        &cast_slice(&self.words)[..self.bytes]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut cast_slice_mut(&mut self.words)[..self.bytes]
    }

    /// The first `n` elements.
    fn cut(&self, dtype: DType, n: usize) -> Array {
        let mut cut = Array::zeros(n * dtype.size());
        cut.get_mut().copy_from_slice(&self.get()[..n * dtype.size()]);
        cut
    }
}

/// Pseudo-random bits.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = (self.0 ^ self.0 >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x ^ x >> 29
    }

    /// Between -1 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// The bits of a number in a type.
fn encode(dtype: DType, x: f64) -> u64 {
    match dtype {
        DType::F64 => x.to_bits(),
        DType::F32 => (x as f32).to_bits() as u64,
        DType::F16 => f16::from_f64(x).to_bits() as u64,
        DType::BF16 => bf16::from_f64(x).to_bits() as u64,
        DType::Bool => (x != 0.0) as u64,
        _ if dtype.is_unsigned_integer() => x as u64,
        _ => x as i64 as u64,
    }
}

/// Edge cases: of the types, of the functions' domains and of their piecewise definitions.
fn specials(dtype: DType) -> Vec<u64> {
    let bits = 8 * dtype.size() as u32;
    let top = 1u64 << (bits - 1);
    if dtype == DType::Bool {
        return vec![0, 1, 255, 2];
    }
    if !dtype.is_float() {
        return vec![
            0,
            1,
            2,
            3,
            7,
            8,
            15,
            31,
            32,
            63,
            64,
            top - 1,
            top,
            top + 1,
            u64::MAX,
            u64::MAX - 1,
            100,
        ];
    }
    let sizes = [
        0.0, 1.0, 0.5, 1.5, 2.0, 2.5, 3.0, 6.0, 0.75, 10.0, 14.4, 17.5, 20.0, 41.0, 88.9, 104.0, 127.5, 200.0,
    ];
    let sizes = sizes.into_iter().chain([
        255.5,
        720.5,
        746.0,
        800.5,
        32767.9,
        2147483647.0,
        2147483648.0,
        4294967295.5,
    ]);
    let sizes = sizes.chain([1e20, 3.4e38, 1e300, f64::INFINITY, f64::NAN, 1e-3, 1e-8, 1e-30, 1e-40, 1e-310]);
    let mut all: Vec<u64> = sizes.flat_map(|x| [encode(dtype, x), encode(dtype, -x)]).collect();
    // The least and the largest denormal, the least normal and the largest number.
    let exponent = match dtype {
        DType::F64 => 52,
        DType::F32 => 23,
        DType::F16 => 10,
        _ => 7,
    };
    let infinity = encode(dtype, f64::INFINITY);
    for x in [1, (1 << exponent) - 1, 1 << exponent, infinity - 1] {
        all.extend([x, x | top]);
    }
    all
}

/// `n` elements: the edge cases, each `stride` times in a row, then random ones of all magnitudes. With a stride of one for
/// one operand and of their number for the other, the edge cases meet in all pairs.
fn samples(dtype: DType, n: usize, stride: usize, bits: &mut Bits) -> Array {
    let special = specials(dtype);
    let count = special.len() * if stride == 1 { 1 } else { special.len() };
    let mut array = Array::zeros(n * dtype.size());
    for (i, to) in array.get_mut().chunks_mut(dtype.size()).enumerate() {
        let x = match i {
            _ if i < count.min(2 * n / 3) => special[i / stride % special.len()],
            _ if i % 4 == 0 && dtype != DType::Bool => bits.next(),
            _ => {
                let scale = [1.0, 4.0, 90.0, 800.0][i % 3 + (dtype == DType::F64) as usize];
                encode(dtype, scale * bits.unit())
            }
        };
        to.copy_from_slice(&x.to_le_bytes()[..dtype.size()]);
    }
    array
}

/// The result of the kernels, one step after another.
fn reference(program: &TileProgram, inputs: &[Array], n: usize) -> Vec<Array> {
    let mut results: Vec<Array> = Vec::new();
    for (i, step) in program.steps().iter().enumerate() {
        let to = program.step_type(i);
        let operands: Vec<(DType, Array)> = step
            .operands
            .iter()
            .map(|&operand| {
                let dtype = program.dtype(operand).unwrap();
                let array = match operand {
                    TileOperand::Input(input) => inputs[input].clone(),
                    TileOperand::Step(step) => results[step].clone(),
                    TileOperand::Constant(constant) => {
                        let mut array = Array::zeros(n * dtype.size());
                        let bytes = program.constants()[constant].bytes;
                        let size = dtype.size();
                        array.get_mut().chunks_mut(size).for_each(|to| to.copy_from_slice(&bytes[..size]));
                        array
                    }
                };
                (dtype, array)
            })
            .collect();
        let (shape, strides) = ([n], [1]);
        let view = |k: usize| View::new(operands[k].0, operands[k].1.get(), 0, &shape, &strides);
        let mut result = Array::zeros(n * to.size());
        let out = ViewMut::new(to, result.get_mut(), &shape);
        match step.code {
            Code::Unary(code) => elementwise::unary(code, Arg::View(view(0)), out),
            Code::Binary(code) => elementwise::binary(code, Arg::View(view(0)), Arg::View(view(1)), out),
            Code::Select => {
                elementwise::select(Arg::View(view(0)), Arg::View(view(1)), Arg::View(view(2)), out);
            }
            Code::Clip => elementwise::clip(Arg::View(view(0)), view(1), view(2), out),
            Code::Cast(_) => elementwise::cast(view(0), out),
            Code::Copy => elementwise::copy(view(0), out),
        }
        results.push(result);
    }
    program.outputs().iter().map(|&step| results[step].clone()).collect()
}

/// Whether elements have the same bits, or are both NaN, or both true.
fn same(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let nan = |x: &[u8]| match dtype {
        DType::F64 => f64::from_le_bytes(x.try_into().unwrap()).is_nan(),
        DType::F32 => f32::from_le_bytes(x.try_into().unwrap()).is_nan(),
        DType::F16 => f16::from_le_bytes(x.try_into().unwrap()).is_nan(),
        DType::BF16 => bf16::from_le_bytes(x.try_into().unwrap()).is_nan(),
        _ => false,
    };
    a == b || nan(a) && nan(b) || dtype == DType::Bool && (a[0] != 0) == (b[0] != 0)
}

fn assert_same(program: &TileProgram, inputs: &[Array], got: &[Array], want: &[Array]) {
    for (k, dtype) in program.output_types().enumerate() {
        let pairs = got[k].get().chunks(dtype.size()).zip(want[k].get().chunks(dtype.size()));
        for (i, (got, want)) in pairs.enumerate() {
            let operands: Vec<Vec<u8>> = inputs
                .iter()
                .zip(program.inputs())
                .map(|(array, dtype)| array.get().chunks(dtype.size()).nth(i).unwrap().to_vec())
                .collect();
            assert!(
                same(dtype, got, want),
                "{program:?}: element {i} of output {k} is {got:x?}, not {want:x?}, of {operands:x?}"
            );
        }
    }
}

fn run(machine_code: &MachineCode, program: &TileProgram, inputs: &[Array], n: usize) -> Vec<Array> {
    let mut outputs: Vec<Array> =
        program.output_types().map(|dtype| Array::zeros(n * dtype.size())).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Array::get).collect();
    let mut arrays: Vec<&mut [u8]> = outputs.iter_mut().map(Array::get_mut).collect();
    machine_code.run(&inputs, &mut arrays, &vec![None; inputs.len()]);
    outputs
}

/// The code of a program with vectors of every width that the machine and the program support.
fn versions(program: &TileProgram) -> Vec<MachineCode> {
    let Some(widest) = compile(program) else { return Vec::new() };
    let narrow = MachineCode::with_width(program, Width::Avx2);
    [widest].into_iter().chain(narrow).collect()
}

/// Compiles a program of one step that reads its inputs in order.
fn single(code: Code, inputs: &[DType]) -> Option<(TileProgram, Option<MachineCode>)> {
    let operands = (0..inputs.len()).map(TileOperand::Input).collect();
    let program =
        TileProgram::new(inputs.to_vec(), vec![], vec![TileStep { code, operands }], vec![0]).ok()?;
    let machine_code = compile(&program);
    Some((program, machine_code))
}
