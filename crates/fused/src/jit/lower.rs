//! From a program's steps to vector code.
//!
//! A *group* has as many elements as a vector has 32-bit lanes, or 64-bit lanes if the program has 64-bit types only. With 32-bit lanes
//! a group is one vector, with 64-bit lanes one or two. Programs with types of one size only have code for vectors of 512 bits. Small integers are in 32-bit lanes, half floats are `f32` that are rounded
//! after every step, and a boolean is a mask as wide as the lanes of the comparison that computed it.

use super::block::{Arg, Block, MemoryOperand};
use super::encode::{self as x86, Width};
use super::vector::Vector;
use crate::program::{TileOperand, TileProgram};
use smallvec::SmallVec;
use std::cell::RefCell;
use taut_kernels::DType;
use taut_kernels::dtype::{bf16, f16};
use taut_kernels::elementwise::{Binary, Code, Unary};

mod cast;

/// The elements of one operand that are computed together.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneGroup {
    dtype: DType,
    /// Lanes of 64 bits instead of 32.
    wide: bool,
    /// The second repeats the first if one vector holds all elements.
    vectors: [Arg; 2],
}

/// The body of the loop, and the number of elements it computes.
pub(super) struct Lowered {
    pub block: Block,
    pub elements: usize,
}

/// Programs up to this many instructions compute two groups per iteration.
const MAX_UNROLLED: usize = 32;
/// Compiling a program of more instructions would take longer than it saves.
const MAX_INSTRUCTIONS: usize = 20_000;

/// The code of a program, or `None` if a step has no code for vectors of this width.
pub(super) fn lower(program: &TileProgram, width: Width) -> Option<Lowered> {
    let mut lowering = Lowering::new(program, width);
    lowering.emit_group(0)?;
    if !lowering.block.get_mut().instructions.iter().all(|instruction| instruction.op().exists(width)) {
        return None;
    }
    let mut elements = lowering.lanes;
    if lowering.block.get_mut().instructions.len() <= MAX_UNROLLED {
        lowering.emit_group(elements)?;
        elements *= 2;
    }
    Some(Lowered { block: lowering.block.into_inner(), elements })
}

fn is_wide(dtype: DType) -> bool {
    dtype.size() == 8
}

struct Lowering<'a> {
    program: &'a TileProgram,
    width: Width,
    /// Whether all types have 64 bits.
    wide_only: bool,
    block: RefCell<Block>,
    /// Elements in a group.
    lanes: usize,
    /// Whether an output depends on the step.
    needed: Vec<bool>,
    /// Whether a needed step reads the input.
    read: Vec<bool>,
    inputs: Vec<Option<LaneGroup>>,
    steps: Vec<Option<LaneGroup>>,
}

impl<'a> Lowering<'a> {
    fn new(program: &'a TileProgram, width: Width) -> Lowering<'a> {
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
            for &operand in &program.steps()[i].operands {
                program.dtype(operand).into_iter().for_each(&mut seen);
                match operand {
                    TileOperand::Step(step) => needed[step] = true,
                    TileOperand::Input(input) => read[input] = true,
                    TileOperand::Constant(_) => {}
                }
            }
        }
        let wide_only = wide && !narrow;
        Lowering {
            program,
            width,
            wide_only,
            block: RefCell::default(),
            lanes: width.bytes() / if wide_only { 8 } else { 4 },
            needed,
            read,
            inputs: vec![None; inputs],
            steps: vec![None; steps],
        }
    }

    /// Emits the code for the group that starts at the element `first`.
    fn emit_group(&mut self, first: usize) -> Option<()> {
        self.inputs.fill(None);
        self.steps.fill(None);
        let program = self.program;
        let mut pending: Vec<(usize, usize)> = Vec::new();
        for (i, step) in program.steps().iter().enumerate() {
            if !self.needed[i] {
                continue;
            }
            let mut args: SmallVec<[LaneGroup; 3]> = SmallVec::new();
            for &operand in &step.operands {
                args.push(self.operand(operand, first));
            }
            let result = self.step(step.code, &args, program.step_type(i))?;
            self.steps[i] = Some(result);
            let outputs = program.outputs().iter().enumerate();
            pending.extend(outputs.filter(|(_, output)| **output == i).map(|(k, _)| (k, i)));
            // An output may overwrite an input in place: no store comes before the last load.
            let loaded = self.inputs.iter().zip(&self.read).all(|(input, read)| input.is_some() || !read);
            if loaded {
                for (output, step) in pending.drain(..) {
                    self.store(output, self.steps[step].expect("the step is computed"), first);
                }
            }
            if self.block.get_mut().instructions.len() > MAX_INSTRUCTIONS {
                return None;
            }
        }
        Some(())
    }

    fn vector(&self, wide: bool) -> Vector<'_> {
        Vector { block: &self.block, wide }
    }

    /// The number of vectors of a group.
    fn count(&self, wide: bool) -> usize {
        if wide && !self.wide_only { 2 } else { 1 }
    }

    /// Applies `f` to the groups vector by vector; all have lanes of one width.
    fn map<const N: usize>(
        &self,
        dtype: DType,
        args: [LaneGroup; N],
        f: impl Fn(Vector<'_>, [Arg; N]) -> Option<Arg>,
    ) -> Option<LaneGroup> {
        let wide = args[0].wide;
        let first = f(self.vector(wide), args.map(|arg| arg.vectors[0]))?;
        let second =
            if self.count(wide) == 2 { f(self.vector(wide), args.map(|arg| arg.vectors[1]))? } else { first };
        Some(LaneGroup { dtype, wide, vectors: [first, second] })
    }

    fn operand(&mut self, operand: TileOperand, first: usize) -> LaneGroup {
        match operand {
            TileOperand::Step(step) => self.steps[step].expect("a step comes after its operands"),
            TileOperand::Constant(constant) => self.constant(constant),
            TileOperand::Input(input) => match self.inputs[input] {
                Some(group) => group,
                None => {
                    let group = self.load(input, first);
                    self.inputs[input] = Some(group);
                    group
                }
            },
        }
    }

    fn constant(&mut self, constant: usize) -> LaneGroup {
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
        let wide = is_wide(dtype) || self.wide_only;
        let vector = self.vector(wide).bits(bits);
        LaneGroup { dtype, wide, vectors: [vector; 2] }
    }

    /// The `vector`-th vector of a group in memory, or all of it if it is smaller.
    fn memory(&self, dtype: DType, array: usize, first: usize, vector: usize) -> MemoryOperand {
        let offset = (first * dtype.size() + self.width.bytes() * vector) as i32;
        MemoryOperand { array: array as u32, scale: dtype.size().trailing_zeros() as u8, offset }
    }

    fn load(&mut self, input: usize, first: usize) -> LaneGroup {
        let dtype = self.program.inputs()[input];
        let wide = is_wide(dtype) || self.wide_only;
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
            *vector = self.block.borrow_mut().load(op, self.memory(dtype, input, first, i));
        }
        let lanes = self.vector(wide);
        match dtype {
            DType::Bool => vectors[0] = lanes.int_gt(vectors[0], lanes.integer(0)),
            DType::BF16 => vectors[0] = lanes.shift_left(vectors[0], 16),
            _ => {}
        }
        LaneGroup { dtype, wide, vectors }
    }

    fn store(&mut self, output: usize, group: LaneGroup, first: usize) {
        let array = self.program.inputs().len() + output;
        let [memory, second] = [0, 1].map(|i| self.memory(group.dtype, array, first, i));
        let [x, _] = group.vectors;
        match group.dtype {
            DType::Bool => {
                let group = if self.wide_only { group } else { self.mask(group, false) };
                let words = self.low_words(group.vectors[0], x86::PACK_SIGNED_32, group.wide);
                let bytes = self.block.get_mut().two(x86::PACK_SIGNED_16, words, words);
                let one = self.block.get_mut().constant(0x0101_0101_0101_0101);
                let bytes = self.block.get_mut().two(x86::AND, bytes, one);
                let op = if group.wide { x86::STORE_32 } else { x86::STORE_64 };
                self.block.get_mut().store(op, memory, bytes);
            }
            DType::U8 | DType::I8 => {
                let low = self.vector(false).round_to_type(DType::U8, x);
                let words = self.low_words(low, x86::PACK_32, false);
                let bytes = self.block.get_mut().two(x86::PACK_16, words, words);
                self.block.get_mut().store(x86::STORE_64, memory, bytes);
            }
            DType::U16 | DType::I16 => {
                let low = self.vector(false).round_to_type(DType::U16, x);
                let words = self.low_words(low, x86::PACK_32, false);
                self.block.get_mut().store(x86::STORE.short(), memory, words);
            }
            DType::BF16 => {
                let high = self.vector(false).shift_right(x, 16);
                let words = self.low_words(high, x86::PACK_32, false);
                self.block.get_mut().store(x86::STORE.short(), memory, words);
            }
            DType::F16 => {
                let half = self.block.get_mut().one_with(x86::F32_TO_F16, x, 0);
                self.block.get_mut().store(x86::STORE.short(), memory, half);
            }
            _ => {
                for (memory, vector) in
                    [memory, second].into_iter().zip(group.vectors).take(self.count(group.wide))
                {
                    self.block.get_mut().store(x86::STORE, memory, vector);
                }
            }
        }
    }

    /// The lanes of one vector as 16-bit words, in the low half of a vector.
    fn low_words(&mut self, x: Arg, pack: x86::Op, wide: bool) -> Arg {
        let high = self.block.get_mut().one_with(x86::HIGH_HALF, x, 1);
        if wide {
            let words = self.block.get_mut().two_with(x86::SHUFFLE.short(), x, high, 0x88);
            return self.block.get_mut().two(pack, words, words);
        }
        self.block.get_mut().two(pack, x, high)
    }

    fn step(&mut self, code: Code, args: &[LaneGroup], result: DType) -> Option<LaneGroup> {
        let group = match (code, args) {
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
        self.round_to_type(group)
    }

    /// The group, rounded or wrapped to its type.
    fn round_to_type(&self, group: LaneGroup) -> Option<LaneGroup> {
        if group.wide {
            return Some(group);
        }
        self.map(group.dtype, [group], |lanes, [x]| Some(lanes.round_to_type(group.dtype, x)))
    }

    fn unary(&mut self, code: Unary, x: LaneGroup, result: DType) -> Option<LaneGroup> {
        self.map(result, [x], |lanes, [v]| match x.dtype {
            DType::Bool => Some(match code {
                Unary::IsNan | Unary::IsInf => lanes.bits(0),
                Unary::IsFinite => lanes.bits(u64::MAX),
                Unary::LogicalNot | Unary::BitwiseNot => lanes.not(v),
                _ => return None,
            }),
            dtype if dtype.is_float() => lanes.float_unary(code, v),
            dtype => lanes.int_unary(code, dtype, v),
        })
    }

    fn binary(&mut self, code: Binary, a: LaneGroup, b: LaneGroup, result: DType) -> Option<LaneGroup> {
        match a.dtype {
            DType::Bool => {
                let wide = a.wide && b.wide;
                let args = [self.mask(a, wide), self.mask(b, wide)];
                self.map(result, args, |lanes, [a, b]| lanes.truth(code, a, b))
            }
            dtype if code == Binary::Pow && dtype.is_float() && !a.wide => {
                let args = [self.cast(a, DType::F64)?, self.cast(b, DType::F64)?];
                let power = self.map(DType::F64, args, |lanes, [a, b]| Some(lanes.pow_single(a, b)))?;
                let power = self.cast(power, DType::F32)?;
                Some(LaneGroup { dtype: result, ..power })
            }
            dtype if dtype.is_float() => {
                self.map(result, [a, b], |lanes, [a, b]| lanes.float_binary(code, a, b))
            }
            dtype => self.map(result, [a, b], |lanes, [a, b]| lanes.int_binary(code, dtype, a, b)),
        }
    }
}
