//! From a program's steps to vector code.
//!
//! A *part* is eight elements, or four if the program has 64-bit types only. Of 32-bit lanes a part is one vector, of
//! 64-bit lanes one per four elements. Small integers are in 32-bit lanes, half floats are `f32` that are rounded
//! after every step, and a boolean is a mask as wide as the lanes of the comparison it came from.

use super::block::{Arg, Block, Place};
use super::encode as x86;
use super::vector::Vector;
use crate::program::{Program, Source};
use smallvec::SmallVec;
use taut_kernels::DType;
use taut_kernels::dtype::{bf16, f16};
use taut_kernels::elementwise::{Binary, Code, Unary};

mod cast;

/// A part of what a source holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    dtype: DType,
    /// In lanes of 64 bits.
    wide: bool,
    /// The second is there if one vector is too narrow, else it repeats the first.
    vectors: [Arg; 2],
}

/// The code of one turn of the loop, and for how many elements it is.
pub(super) struct Lowered {
    pub block: Block,
    pub elements: usize,
}

/// Programs up to this many instructions do two parts a turn.
const SHORT: usize = 32;
/// A program of more instructions would take longer to write than it saves.
const LONGEST: usize = 20_000;

/// The code of a program, or `None` if a step has none.
pub(super) fn lower(program: &Program) -> Option<Lowered> {
    let mut lowering = Lowering::new(program);
    lowering.part(0)?;
    let mut elements = lowering.lanes;
    if lowering.block.instructions.len() <= SHORT {
        lowering.part(elements)?;
        elements *= 2;
    }
    Some(Lowered { block: lowering.block, elements })
}

fn is_wide(dtype: DType) -> bool {
    dtype.size() == 8
}

struct Lowering<'a> {
    program: &'a Program,
    block: Block,
    /// Elements in a part.
    lanes: usize,
    /// Whether an output depends on the step.
    needed: Vec<bool>,
    /// Whether a needed step reads the input.
    read: Vec<bool>,
    inputs: Vec<Option<Part>>,
    steps: Vec<Option<Part>>,
}

impl<'a> Lowering<'a> {
    fn new(program: &'a Program) -> Lowering<'a> {
        let (steps, inputs) = (program.steps().len(), program.inputs().len());
        let (mut needed, mut read) = (vec![false; steps], vec![false; inputs]);
        let (mut narrow, mut wide) = (false, false);
        let mut seen = |dtype: DType| match dtype {
            DType::Bool => {}
            _ if is_wide(dtype) => wide = true,
            _ => narrow = true,
        };
        for &output in program.outputs() {
            needed[output] = true;
        }
        for i in (0..steps).rev() {
            if !needed[i] {
                continue;
            }
            seen(program.step_type(i));
            for &source in &program.steps()[i].sources {
                program.dtype(source).into_iter().for_each(&mut seen);
                match source {
                    Source::Step(step) => needed[step] = true,
                    Source::Input(input) => read[input] = true,
                    Source::Constant(_) => {}
                }
            }
        }
        Lowering {
            program,
            block: Block::default(),
            lanes: if wide && !narrow { 4 } else { 8 },
            needed,
            read,
            inputs: vec![None; inputs],
            steps: vec![None; steps],
        }
    }

    /// The code for the part that starts at the element `first`.
    fn part(&mut self, first: usize) -> Option<()> {
        self.inputs.fill(None);
        self.steps.fill(None);
        let program = self.program;
        let mut waiting: Vec<(usize, usize)> = Vec::new();
        for (i, step) in program.steps().iter().enumerate() {
            if !self.needed[i] {
                continue;
            }
            let mut args: SmallVec<[Part; 3]> = SmallVec::new();
            for &source in &step.sources {
                args.push(self.source(source, first));
            }
            let result = self.step(step.code, &args, program.step_type(i))?;
            self.steps[i] = Some(result);
            let outputs = program.outputs().iter().enumerate();
            waiting.extend(outputs.filter(|(_, output)| **output == i).map(|(k, _)| (k, i)));
            // An output may lie where an input is: nothing is stored before everything is loaded.
            let loaded = self.inputs.iter().zip(&self.read).all(|(input, read)| input.is_some() || !read);
            if loaded {
                for (output, step) in waiting.drain(..) {
                    self.store(output, self.steps[step].expect("it was just computed"), first);
                }
            }
            if self.block.instructions.len() > LONGEST {
                return None;
            }
        }
        Some(())
    }

    fn vector(&mut self, wide: bool) -> Vector<'_> {
        Vector { block: &mut self.block, wide }
    }

    /// How many vectors a part is.
    fn count(&self, wide: bool) -> usize {
        if wide { self.lanes / 4 } else { 1 }
    }

    /// A part made of the parts' vectors one by one; all have lanes of one width.
    fn map<const N: usize>(
        &mut self,
        dtype: DType,
        args: [Part; N],
        mut f: impl FnMut(&mut Vector<'_>, [Arg; N]) -> Option<Arg>,
    ) -> Option<Part> {
        let wide = args[0].wide;
        let first = f(&mut self.vector(wide), args.map(|arg| arg.vectors[0]))?;
        let second = if self.count(wide) == 2 {
            f(&mut self.vector(wide), args.map(|arg| arg.vectors[1]))?
        } else {
            first
        };
        Some(Part { dtype, wide, vectors: [first, second] })
    }

    fn source(&mut self, source: Source, first: usize) -> Part {
        match source {
            Source::Step(step) => self.steps[step].expect("steps come after what they read"),
            Source::Constant(constant) => self.constant(constant),
            Source::Input(input) => match self.inputs[input] {
                Some(part) => part,
                None => {
                    let part = self.load(input, first);
                    self.inputs[input] = Some(part);
                    part
                }
            },
        }
    }

    fn constant(&mut self, constant: usize) -> Part {
        let constant = self.program.constants()[constant];
        let (dtype, bits) = (constant.dtype, u64::from_le_bytes(constant.bytes));
        let bits = match dtype {
            DType::Bool => u64::MAX * (constant.bytes[0] != 0) as u64,
            DType::I8 => bits as i8 as u64,
            DType::I16 => bits as i16 as u64,
            DType::U8 => bits as u8 as u64,
            DType::U16 => bits as u16 as u64,
            DType::F16 => f16::from_bits(bits as u16).to_f32().to_bits() as u64,
            DType::BF16 => bf16::from_bits(bits as u16).to_f32().to_bits() as u64,
            _ => bits,
        };
        let wide = is_wide(dtype) || self.lanes == 4;
        let vector = self.vector(wide).bits(bits);
        Part { dtype, wide, vectors: [vector; 2] }
    }

    /// Where the `vector`-th 32 bytes of a part are, or all of it if it is smaller.
    fn place(dtype: DType, piece: usize, first: usize, vector: usize) -> Place {
        let offset = (first * dtype.size() + 32 * vector) as i32;
        Place { piece: piece as u32, scale: dtype.size().trailing_zeros() as u8, offset }
    }

    fn load(&mut self, input: usize, first: usize) -> Part {
        let dtype = self.program.inputs()[input];
        let wide = is_wide(dtype) || self.lanes == 4;
        let op = match dtype {
            DType::Bool if wide => x86::U8_TO_64,
            DType::Bool | DType::U8 => x86::U8_TO_32,
            DType::I8 => x86::I8_TO_32,
            DType::U16 | DType::BF16 => x86::U16_TO_32,
            DType::I16 => x86::I16_TO_32,
            DType::F16 => x86::F16_TO_F32,
            _ => x86::LOAD,
        };
        let mut vectors = [Arg::Constant(0); 2];
        for (i, vector) in vectors.iter_mut().enumerate().take(self.count(wide)) {
            *vector = self.block.load(op, Self::place(dtype, input, first, i));
        }
        let mut lanes = self.vector(wide);
        match dtype {
            DType::Bool => {
                let zero = lanes.integer(0);
                vectors[0] = lanes.int_gt(vectors[0], zero);
            }
            DType::BF16 => vectors[0] = lanes.shift_left(vectors[0], 16),
            _ => {}
        }
        Part { dtype, wide, vectors }
    }

    fn store(&mut self, output: usize, part: Part, first: usize) {
        let piece = self.program.inputs().len() + output;
        let place = |i| Self::place(part.dtype, piece, first, i);
        let [x, _] = part.vectors;
        match part.dtype {
            DType::Bool => {
                let part = if self.lanes == 8 { self.mask(part, false) } else { part };
                let words = self.low_words(part.vectors[0], x86::PACK_SIGNED_32, part.wide);
                let bytes = self.block.two(x86::PACK_SIGNED_16, words, words);
                let one = self.block.constant(0x0101_0101_0101_0101);
                let bytes = self.block.two(x86::AND, bytes, one);
                let op = if part.wide { x86::STORE_32 } else { x86::STORE_64 };
                self.block.store(op, place(0), bytes);
            }
            DType::U8 | DType::I8 => {
                let low = self.vector(false).settle(DType::U8, x);
                let words = self.low_words(low, x86::PACK_32, false);
                let bytes = self.block.two(x86::PACK_16, words, words);
                self.block.store(x86::STORE_64, place(0), bytes);
            }
            DType::U16 | DType::I16 => {
                let low = self.vector(false).settle(DType::U16, x);
                let words = self.low_words(low, x86::PACK_32, false);
                self.block.store(x86::STORE.short(), place(0), words);
            }
            DType::BF16 => {
                let high = self.vector(false).shift_right(x, 16);
                let words = self.low_words(high, x86::PACK_32, false);
                self.block.store(x86::STORE.short(), place(0), words);
            }
            DType::F16 => {
                let half = self.block.one_with(x86::F32_TO_F16, x, 0);
                self.block.store(x86::STORE.short(), place(0), half);
            }
            _ => {
                for i in 0..self.count(part.wide) {
                    self.block.store(x86::STORE, place(i), part.vectors[i]);
                }
            }
        }
    }

    /// The lanes of one vector as 16-bit words, in the low half of a vector.
    fn low_words(&mut self, x: Arg, pack: x86::Op, wide: bool) -> Arg {
        let high = self.block.one_with(x86::HIGH_HALF, x, 1);
        if wide {
            let words = self.block.two_with(x86::SHUFFLE.short(), x, high, 0x88);
            return self.block.two(pack, words, words);
        }
        self.block.two(pack, x, high)
    }

    fn step(&mut self, code: Code, args: &[Part], result: DType) -> Option<Part> {
        let part = match (code, args) {
            (Code::Copy, [x]) => return Some(*x),
            (Code::Cast(to), [x]) => return self.cast(*x, to),
            (Code::Select, [condition, a, b]) => {
                let wide = if result == DType::Bool { condition.wide } else { a.wide };
                let args = [self.mask(*condition, wide), self.mask(*a, wide), self.mask(*b, wide)];
                return self.map(result, args, |lanes, [mask, a, b]| Some(lanes.select(mask, a, b)));
            }
            (Code::Clip, [x, low, high]) => {
                let raised = self.binary(Binary::Maximum, *x, *low, result)?;
                self.binary(Binary::Minimum, raised, *high, result)?
            }
            (Code::Unary(code), [x]) => self.unary(code, *x, result)?,
            (Code::Binary(code), [a, b]) => self.binary(code, *a, *b, result)?,
            _ => return None,
        };
        self.settle(part)
    }

    /// The part as its type keeps it.
    fn settle(&mut self, part: Part) -> Option<Part> {
        if part.wide {
            return Some(part);
        }
        self.map(part.dtype, [part], |lanes, [x]| Some(lanes.settle(part.dtype, x)))
    }

    fn unary(&mut self, code: Unary, x: Part, result: DType) -> Option<Part> {
        self.map(result, [x], |lanes, [v]| match x.dtype {
            DType::Bool => Some(match code {
                Unary::IsNan | Unary::IsInf => lanes.bits(0),
                Unary::IsFinite => lanes.bits(u64::MAX),
                Unary::LogicalNot | Unary::BitwiseNot => lanes.not(v),
                _ => return None,
            }),
            dtype if dtype.is_float() => lanes.unary(code, v),
            dtype => lanes.int_unary(code, dtype, v),
        })
    }

    fn binary(&mut self, code: Binary, a: Part, b: Part, result: DType) -> Option<Part> {
        match a.dtype {
            DType::Bool => {
                let wide = a.wide && b.wide;
                let args = [self.mask(a, wide), self.mask(b, wide)];
                self.map(result, args, |lanes, [a, b]| lanes.truth(code, a, b))
            }
            dtype if code == Binary::Pow && dtype.is_float() && !a.wide => {
                let args = [self.cast(a, DType::F64)?, self.cast(b, DType::F64)?];
                let power = self.map(DType::F64, args, |lanes, [a, b]| Some(lanes.pow_short(a, b)))?;
                let power = self.cast(power, DType::F32)?;
                Some(Part { dtype: result, ..power })
            }
            dtype if dtype.is_float() => self.map(result, [a, b], |lanes, [a, b]| lanes.binary(code, a, b)),
            dtype => self.map(result, [a, b], |lanes, [a, b]| lanes.int_binary(code, dtype, a, b)),
        }
    }
}
