//! Programs, data in any layout, and a reference that runs the steps one by one.
#![allow(dead_code)]

use smallvec::SmallVec;
use taut_fused::{TileConstant, TileOperand, TileProgram, TileStep};
use taut_kernels::elementwise::{self, Binary, Code, Unary};
use taut_kernels::{Arg, DType, Element, View, ViewMut, dispatch};

/// Random choices that a failing case can be shrunk by.
pub struct Choices {
    all: Vec<u32>,
    next: usize,
}

impl Choices {
    pub fn new(all: Vec<u32>) -> Choices {
        Choices { all, next: 0 }
    }

    /// A number below `n`; 0 once the choices are used up.
    pub fn below(&mut self, n: usize) -> usize {
        self.next += 1;
        self.all.get(self.next - 1).map_or(0, |&choice| choice as usize % n)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A reproducible stream of bits for data.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in [-1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// The bytes of an element: for floats mostly moderate numbers and some special ones, for others any bits.
    pub fn element(&mut self, dtype: DType) -> [u8; 8] {
        const SPECIAL: [f64; 8] = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e30, 1e-40, -1e-7];
        let mut bytes = self.next().to_ne_bytes();
        if dtype.is_float() {
            let any = self.next() as usize;
            let value = if any % 16 < 2 { SPECIAL[any / 16 % 8] } else { self.unit() * 4.0 };
            dispatch!(dtype, T in floats => {
                bytes[..dtype.size()].copy_from_slice(bytemuck::bytes_of(&<T as Element>::from_f64(value)));
            });
        } else if dtype == DType::Bool {
            bytes[0] = [0, 0, 1, 2][self.next() as usize % 4];
        } else if self.next().is_multiple_of(2) {
            // Small ones too: powers and quotients of large ones mostly wrap or vanish.
            dispatch!(dtype, T in integers => {
                let value = <T as Element>::from_f64((self.unit() * 6.0).round());
                bytes[..dtype.size()].copy_from_slice(bytemuck::bytes_of(&value));
            });
        }
        bytes
    }
}

/// A buffer of elements and its layout.
#[derive(Clone)]
pub struct Data {
    pub dtype: DType,
    pub words: Vec<u64>,
    pub offset: usize,
    pub shape: Vec<usize>,
    pub strides: Vec<isize>,
}

pub fn contiguous(shape: &[usize]) -> Vec<isize> {
    (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>() as isize).collect()
}

impl Data {
    pub fn zeros(dtype: DType, shape: &[usize]) -> Data {
        let words = vec![0; (shape.iter().product::<usize>() * dtype.size()).div_ceil(8)];
        Data { dtype, words, offset: 0, shape: shape.to_vec(), strides: contiguous(shape) }
    }

    /// Contiguous elements.
    pub fn from<T: Element>(values: &[T], shape: &[usize]) -> Data {
        let mut data = Data::zeros(T::DTYPE, shape);
        data.slice_mut::<T>().copy_from_slice(values);
        data
    }

    /// Random elements in a layout that the choices select: contiguous, or permuted, strided, reversed and broadcast.
    pub fn random(choices: &mut Choices, random: &mut Random, dtype: DType, shape: &[usize]) -> Data {
        let (mut strides, mut span, mut offset) = (contiguous(shape), 1, 0);
        if choices.below(3) == 0 {
            span = shape.iter().product();
        } else {
            let mut order: Vec<usize> = (0..shape.len()).collect();
            if choices.below(2) == 0 {
                order.reverse();
            }
            offset = choices.below(3);
            for &d in order.iter().rev() {
                strides[d] = 0;
                if choices.below(3) == 0 {
                    continue;
                }
                let step = 1 + choices.below(8) / 7;
                strides[d] = (span * step) as isize;
                if choices.below(5) == 0 {
                    offset += shape[d].saturating_sub(1) * span * step;
                    strides[d] = -strides[d];
                }
                span *= shape[d].max(1) * step;
            }
        }
        let mut words = vec![0; ((span + offset) * dtype.size()).div_ceil(8)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        for element in bytes.chunks_exact_mut(dtype.size()) {
            element.copy_from_slice(&random.element(dtype)[..dtype.size()]);
        }
        Data { dtype, words, offset, shape: shape.to_vec(), strides }
    }

    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn view(&self) -> View<'_> {
        View::new(self.dtype, bytemuck::cast_slice(&self.words), self.offset, &self.shape, &self.strides)
    }

    /// As an output; the layout must be contiguous.
    pub fn out(&mut self) -> ViewMut<'_> {
        ViewMut::new(self.dtype, bytemuck::cast_slice_mut(&mut self.words), &self.shape)
    }

    pub fn slice<T: Element>(&self) -> &[T] {
        &bytemuck::cast_slice(&self.words)[..self.len()]
    }

    pub fn slice_mut<T: Element>(&mut self) -> &mut [T] {
        let len = self.len();
        &mut bytemuck::cast_slice_mut(&mut self.words)[..len]
    }

    /// The same elements, contiguous, copied one by one.
    pub fn materialised(&self) -> Data {
        let mut result = Data::zeros(self.dtype, &self.shape);
        let size = self.dtype.size();
        let (from, to): (&[u8], &mut [u8]) =
            (bytemuck::cast_slice(&self.words), bytemuck::cast_slice_mut(&mut result.words));
        for i in 0..self.len() {
            let (mut rest, mut at) = (i, self.offset as isize);
            for (&dim, &stride) in self.shape.iter().zip(&self.strides).rev() {
                at += (rest % dim) as isize * stride;
                rest /= dim;
            }
            to[i * size..(i + 1) * size].copy_from_slice(&from[at as usize * size..][..size]);
        }
        result
    }

    /// Whether two contiguous tensors have the same bits, except the payload of a NaN.
    pub fn same(&self, other: &Data) -> bool {
        let pair = |size: usize, i: usize| {
            let part =
                |data: &Data| bytemuck::cast_slice::<u64, u8>(&data.words)[i * size..(i + 1) * size].to_vec();
            (part(self), part(other))
        };
        assert_eq!((self.dtype, &self.shape), (other.dtype, &other.shape));
        (0..self.len()).all(|i| {
            let (a, b) = pair(self.dtype.size(), i);
            let both_nan = self.dtype.is_float()
                && dispatch!(self.dtype, T in floats => {
                    self.slice::<T>()[i].to_f64().is_nan() && other.slice::<T>()[i].to_f64().is_nan()
                });
            // Every nonzero byte is true.
            let both_true = self.dtype == DType::Bool && a[0] != 0 && b[0] != 0;
            a == b || both_nan || both_true
        })
    }
}

pub fn step(code: Code, operands: &[TileOperand]) -> TileStep {
    TileStep { code, operands: SmallVec::from_slice(operands) }
}

pub fn constant<T: Element>(value: T) -> TileConstant {
    let mut bytes = [0; 8];
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    TileConstant { dtype: T::DTYPE, bytes }
}

/// A program that the choices select, with at most `outputs` outputs.
pub fn random_program(choices: &mut Choices, random: &mut Random, outputs: usize) -> TileProgram {
    let floats = [DType::F32, DType::F64, DType::F16, DType::BF16];
    let some: Vec<DType> = if choices.below(2) == 0 { floats.to_vec() } else { DType::REAL.to_vec() };
    let inputs: Vec<DType> = (0..=choices.below(4)).map(|_| choices.pick(&some)).collect();
    let constants: Vec<TileConstant> = (0..choices.below(4))
        .map(|_| {
            let dtype = choices.pick(&inputs);
            let mut bytes = [0; 8];
            bytes[..dtype.size()].copy_from_slice(&random.element(dtype)[..dtype.size()]);
            TileConstant { dtype, bytes }
        })
        .collect();
    let mut values: Vec<(TileOperand, DType)> =
        inputs.iter().enumerate().map(|(i, dtype)| (TileOperand::Input(i), *dtype)).collect();
    values
        .extend(constants.iter().enumerate().map(|(i, constant)| (TileOperand::Constant(i), constant.dtype)));
    let mut steps = Vec::new();
    for i in 0..=choices.below(12) {
        let (x, dtype) = choices.pick(&values);
        let like: Vec<TileOperand> =
            values.iter().filter(|(_, other)| *other == dtype).map(|(v, _)| *v).collect();
        let truths: Vec<TileOperand> =
            values.iter().filter(|(_, other)| *other == DType::Bool).map(|(v, _)| *v).collect();
        let made = match choices.below(10) {
            0..=3 => {
                let codes: Vec<Unary> =
                    Unary::ALL.into_iter().filter(|code| code.result(dtype).is_some()).collect();
                step(Code::Unary(choices.pick(&codes)), &[x])
            }
            4..=6 => {
                let codes: Vec<Binary> = Binary::ALL
                    .into_iter()
                    .filter(|code| code.result(dtype).is_some_and(|made| !made.is_complex()))
                    .collect();
                step(Code::Binary(choices.pick(&codes)), &[x, choices.pick(&like)])
            }
            7 if !truths.is_empty() => step(Code::Select, &[choices.pick(&truths), x, choices.pick(&like)]),
            8 if dtype != DType::Bool => step(Code::Clip, &[x, choices.pick(&like), choices.pick(&like)]),
            9 if choices.below(2) == 0 => step(Code::Copy, &[x]),
            _ => step(Code::Cast(choices.pick(&DType::REAL)), &[x]),
        };
        let types: SmallVec<[DType; 3]> = made
            .operands
            .iter()
            .map(|operand| values.iter().find(|(v, _)| v == operand).unwrap().1)
            .collect();
        values
            .push((TileOperand::Step(i), made.code.result(&types).expect("codes are picked by their types")));
        steps.push(made);
    }
    let mut results = vec![steps.len() - 1];
    for _ in 1..=choices.below(outputs) {
        results.push(choices.below(steps.len()));
    }
    TileProgram::new(inputs, constants, steps, results).expect("a valid program")
}

/// A shape that the choices select: of rank 0 to 4, sometimes empty, sometimes large enough for threads.
pub fn random_shape(choices: &mut Choices) -> Vec<usize> {
    if choices.below(6) == 0 {
        return choices
            .pick(&[&[40000][..], &[200, 300], &[70, 2, 260], &[20, 1100], &[3, 90, 100]])
            .to_vec();
    }
    let dims = [1, 2, 3, 5, 17, 70, 300, 0];
    let mut left = 8000;
    let shape = (0..choices.below(5)).map(|_| {
        let dim = choices.pick(&dims).min(left);
        left /= dim.max(1);
        dim
    });
    shape.collect()
}

/// Every output of the program for contiguous inputs, by one kernel per step.
pub fn step_by_step(program: &TileProgram, inputs: &[Data], shape: &[usize]) -> Vec<Data> {
    let constants: Vec<Data> = program
        .constants()
        .iter()
        .map(|constant| {
            let mut data = Data::zeros(constant.dtype, shape);
            elementwise::fill(data.out(), &constant.bytes[..constant.dtype.size()]);
            data
        })
        .collect();
    let mut results: Vec<Data> = Vec::new();
    for (i, step) in program.steps().iter().enumerate() {
        let mut result = Data::zeros(program.step_type(i), shape);
        let view = |n: usize| match step.operands[n] {
            TileOperand::Input(input) => inputs[input].view(),
            TileOperand::Constant(constant) => constants[constant].view(),
            TileOperand::Step(before) => results[before].view(),
        };
        let arg = |n: usize| Arg::View(view(n));
        match step.code {
            Code::Unary(code) => elementwise::unary(code, arg(0), result.out()),
            Code::Binary(code) => elementwise::binary(code, arg(0), arg(1), result.out()),
            Code::Select => elementwise::select(arg(0), arg(1), arg(2), result.out()),
            Code::Clip => elementwise::clip(arg(0), view(1), view(2), result.out()),
            Code::Cast(_) => elementwise::cast(view(0), result.out()),
            Code::Copy => elementwise::copy(view(0), result.out()),
        }
        results.push(result);
    }
    program.outputs().iter().map(|&output| results[output].clone()).collect()
}
