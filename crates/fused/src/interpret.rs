//! Programs run step by step, a tile at a time, so that what steps hand on stays in the first-level cache.

use crate::program::{Program, Source};
use crate::scratch::{CACHED, LINE, Line, lines, with_registers};
use crate::tiles::Tiles;
use smallvec::{SmallVec, smallvec};
use taut_kernels::elementwise::{
    Binary, BinaryTile, CastTile, Code, SelectTile, UnaryTile, binary_tile, cast_tile, select_tile,
    unary_tile,
};
use taut_kernels::strided::repeat;

/// The most elements of a tile: more would not make the cost of a step's call any less noticeable.
const MOST: usize = 2048;

/// A program with its tile functions looked up and its values given places.
pub(crate) struct Interpreter {
    ops: Vec<Op>,
    registers: Vec<Register>,
    /// Bytes of all registers, for each element of a tile.
    register_bytes: usize,
    /// The constants' tiles, one after the other.
    constants: Vec<Line>,
    outputs: Vec<Output>,
    /// Which op is the last to read each input, if any does.
    last_reads: Vec<Option<usize>>,
    longest: usize,
}

/// One call of a tile function.
struct Op {
    function: Function,
    operands: SmallVec<[Operand; 3]>,
    to: Place,
    size: usize,
}

#[derive(Clone, Copy)]
enum Function {
    Unary(UnaryTile),
    Binary(BinaryTile),
    Cast(CastTile),
    Select(SelectTile),
    Copy,
}

#[derive(Clone, Copy)]
struct Operand {
    place: Place,
    /// Bytes of an element.
    size: usize,
}

/// Where elements are.
#[derive(Clone, Copy)]
enum Place {
    Input(usize),
    /// This many bytes into the constants.
    Constant(usize),
    Register(usize),
    /// In an output, unless that is late.
    Output(usize),
}

struct Register {
    /// Bytes of the registers before it, and its own, for each element of a tile.
    start: usize,
    size: usize,
}

struct Output {
    /// The op that computes it.
    op: usize,
    size: usize,
    /// Where it waits while an input in its place is still read, if there is an input that can be in its place.
    register: Option<usize>,
}

/// What an op reads before it has a place: the place of an input or constant, or the number of an op.
#[derive(Clone, Copy)]
enum Value {
    At(Place),
    Op(usize),
}

/// An op whose result has no place yet.
struct Loose {
    function: Function,
    operands: SmallVec<[(Value, usize); 3]>,
    size: usize,
    output: Option<usize>,
}

impl Interpreter {
    pub(crate) fn new(program: &Program) -> Interpreter {
        let ops = loosen(program);
        let (mut last_reads, mut last_uses) = (vec![None; program.inputs().len()], vec![0; ops.len()]);
        for (i, op) in ops.iter().enumerate() {
            for &(value, _) in &op.operands {
                match value {
                    Value::At(Place::Input(input)) => last_reads[input] = Some(i),
                    Value::Op(op) => last_uses[op] = i,
                    Value::At(_) => {}
                }
            }
        }

        let types: Vec<_> = program.output_types().collect();
        let mut outputs: Vec<Output> =
            types.iter().map(|dtype| Output { op: 0, size: dtype.size(), register: None }).collect();
        let mut registers = Registers::default();
        let mut places = Vec::with_capacity(ops.len());
        for (i, op) in ops.iter().enumerate() {
            let place = match op.output {
                Some(k) => {
                    let can_be_late = (program.inputs().iter().zip(&last_reads))
                        .any(|(dtype, &last)| *dtype == types[k] && last >= Some(i));
                    outputs[k].op = i;
                    outputs[k].register = can_be_late.then(|| registers.take(op.size));
                    Place::Output(k)
                }
                None => Place::Register(registers.take(op.size)),
            };
            places.push(place);
            // Operands are given back after the result has its place: a tile function does not work in place.
            for (n, &(value, _)) in op.operands.iter().enumerate() {
                let again = op.operands[..n].iter().any(|(other, _)| same_op(*other, value));
                let Value::Op(operand) = value else { continue };
                if let (Place::Register(register), true) =
                    (places[operand], last_uses[operand] == i && !again)
                {
                    registers.free.push(register);
                }
            }
        }

        let registers = registers.lay_out();
        let register_bytes = registers.last().map_or(0, |last| last.start + last.size);
        let constant_bytes: usize = program.constants().iter().map(|constant| constant.dtype.size()).sum();
        let operand_bytes: usize = program.inputs().iter().chain(&types).map(|dtype| dtype.size()).sum();
        let longest = CACHED / (register_bytes + constant_bytes + operand_bytes);
        let longest = (longest / LINE * LINE).clamp(LINE, MOST);

        let mut constants = lines(constant_bytes * longest);
        let mut starts: SmallVec<[usize; 8]> = SmallVec::new();
        let (mut rest, mut start) = (bytemuck::cast_slice_mut::<Line, u8>(&mut constants), 0);
        for constant in program.constants() {
            let size = constant.dtype.size();
            let (tile, others) = rest.split_at_mut(size * longest);
            repeat(&constant.bytes[..size], tile);
            starts.push(start);
            rest = others;
            start += size * longest;
        }
        let placed = |value: Value| match value {
            Value::At(Place::Constant(constant)) => Place::Constant(starts[constant]),
            Value::At(place) => place,
            Value::Op(op) => places[op],
        };
        let ops = ops.into_iter().enumerate().map(|(i, op)| Op {
            function: op.function,
            operands: op
                .operands
                .iter()
                .map(|&(value, size)| Operand { place: placed(value), size })
                .collect(),
            to: places[i],
            size: op.size,
        });
        Interpreter { ops: ops.collect(), registers, register_bytes, constants, outputs, last_reads, longest }
    }
}

fn same_op(a: Value, b: Value) -> bool {
    matches!((a, b), (Value::Op(a), Value::Op(b)) if a == b)
}

/// The program's steps as calls of tile functions: only what an output needs, and nothing for a copy between steps.
fn loosen(program: &Program) -> Vec<Loose> {
    let steps = program.steps();
    let mut needed = vec![false; steps.len()];
    for &output in program.outputs() {
        needed[output] = true;
    }
    for (i, step) in steps.iter().enumerate().rev() {
        for source in &step.sources {
            if let Source::Step(before) = *source {
                needed[before] |= needed[i];
            }
        }
    }

    let mut ops: Vec<Loose> = Vec::with_capacity(steps.len());
    let mut values: Vec<Value> = Vec::with_capacity(steps.len());
    for (i, step) in steps.iter().enumerate() {
        if !needed[i] {
            // Nobody reads it; the entry keeps later numbers right.
            values.push(Value::Op(usize::MAX));
            continue;
        }
        let dtype = |n: usize| program.dtype(step.sources[n]).expect("a program's sources are there");
        let operand = |n: usize| {
            let value = match step.sources[n] {
                Source::Input(input) => Value::At(Place::Input(input)),
                Source::Constant(constant) => Value::At(Place::Constant(constant)),
                Source::Step(before) => values[before],
            };
            (value, dtype(n).size())
        };
        let size = program.step_type(i).size();
        let mut outputs =
            program.outputs().iter().enumerate().filter(|(_, step)| **step == i).map(|(output, _)| output);
        let output = outputs.next();
        let function = match step.code {
            Code::Unary(code) => Function::Unary(unary_tile(code, dtype(0))),
            Code::Binary(code) => Function::Binary(binary_tile(code, dtype(0))),
            Code::Select => Function::Select(select_tile(dtype(1))),
            Code::Clip => {
                let raise = Function::Binary(binary_tile(Binary::Maximum, dtype(0)));
                let operands = smallvec![operand(0), operand(1)];
                ops.push(Loose { function: raise, operands, size, output: None });
                Function::Binary(binary_tile(Binary::Minimum, dtype(0)))
            }
            Code::Cast(to) if to != dtype(0) => Function::Cast(cast_tile(dtype(0), to)),
            Code::Cast(_) | Code::Copy => Function::Copy,
        };
        if matches!(function, Function::Copy) && output.is_none() {
            values.push(operand(0).0);
            continue;
        }
        let operands = match step.code {
            Code::Clip => smallvec![(Value::Op(ops.len() - 1), size), operand(2)],
            code => (0..code.operands()).map(operand).collect(),
        };
        ops.push(Loose { function, operands, size, output });
        let value = Value::Op(ops.len() - 1);
        for another in outputs {
            let operands = smallvec![(value, size)];
            ops.push(Loose { function: Function::Copy, operands, size, output: Some(another) });
        }
        values.push(value);
    }
    ops
}

/// Registers while they are given out: the widest element each has to hold, and which hold nothing now.
#[derive(Default)]
struct Registers {
    sizes: Vec<usize>,
    free: SmallVec<[usize; 16]>,
}

impl Registers {
    /// A register for elements of this size.
    fn take(&mut self, size: usize) -> usize {
        let widest = (0..self.free.len()).max_by_key(|&at| self.sizes[self.free[at]]);
        let register = widest.map_or(self.sizes.len(), |at| self.free.swap_remove(at));
        if register == self.sizes.len() {
            self.sizes.push(0);
        }
        self.sizes[register] = self.sizes[register].max(size);
        register
    }

    fn lay_out(self) -> Vec<Register> {
        let mut start = 0;
        let place = |size| {
            let register = Register { start, size };
            start += size;
            register
        };
        self.sizes.into_iter().map(place).collect()
    }
}

impl Tiles for Interpreter {
    fn longest(&self) -> usize {
        self.longest
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>]) {
        let n = outputs[0].len() / self.outputs[0].size;
        assert!(n <= self.longest, "a piece longer than a tile");
        let late: SmallVec<[bool; 8]> = (self.outputs.iter().enumerate())
            .map(|(k, output)| {
                let reads = in_place.iter().zip(&self.last_reads);
                output.register.is_some()
                    && reads.into_iter().any(|(at, &last)| *at == Some(k) && last >= Some(output.op))
            })
            .collect();
        // Whole lines, so that registers of any element size are aligned.
        let pitch = n.next_multiple_of(LINE);
        with_registers(self.register_bytes * pitch, |registers| {
            let piece = Piece { tiles: self, inputs, in_place, late: &late, n, pitch };
            for op in &self.ops {
                piece.step(op, registers, outputs);
            }
            for (k, output) in self.outputs.iter().enumerate().filter(|(k, _)| late[*k]) {
                let register = output.register.expect("a late output waits in a register");
                let start = self.registers[register].start * pitch;
                outputs[k].copy_from_slice(&registers[start..start + n * output.size]);
            }
        });
    }
}

/// The piece being computed, but for what ops write.
struct Piece<'a> {
    tiles: &'a Interpreter,
    inputs: &'a [&'a [u8]],
    in_place: &'a [Option<usize>],
    late: &'a [bool],
    n: usize,
    pitch: usize,
}

/// Everything but where the result goes: the registers and the outputs before and after it.
struct Others<'a> {
    registers: [&'a [u8]; 2],
    /// Where the registers after the result start.
    resume: usize,
    outputs: [&'a [&'a mut [u8]]; 2],
}

impl Piece<'_> {
    /// Where something is, now that it is known which outputs are late.
    #[inline]
    fn settled(&self, place: Place) -> Place {
        match place {
            Place::Input(i) => self.in_place[i].map_or(place, Place::Output),
            Place::Output(k) if self.late[k] => {
                Place::Register(self.tiles.outputs[k].register.expect("a late output waits in a register"))
            }
            place => place,
        }
    }

    fn step(&self, op: &Op, registers: &mut [u8], outputs: &mut [&mut [u8]]) {
        let len = self.n * op.size;
        match self.settled(op.to) {
            Place::Output(k) => {
                let (before, rest) = outputs.split_at_mut(k);
                let (out, after) = rest.split_first_mut().expect("an output per place");
                let resume = registers.len();
                self.call(op, &Others { registers: [registers, &[]], resume, outputs: [before, after] }, out);
            }
            Place::Register(register) => {
                let register = &self.tiles.registers[register];
                let (low, rest) = registers.split_at_mut(register.start * self.pitch);
                let (out, high) = rest.split_at_mut(register.size * self.pitch);
                let resume = (register.start + register.size) * self.pitch;
                let others = Others { registers: [low, high], resume, outputs: [outputs, &[]] };
                self.call(op, &others, &mut out[..len]);
            }
            Place::Input(_) | Place::Constant(_) => unreachable!("results go to registers and outputs"),
        }
    }

    #[inline]
    fn call(&self, op: &Op, others: &Others<'_>, out: &mut [u8]) {
        let operand = |n: usize| self.read(&op.operands[n], others);
        match &op.function {
            Function::Unary(tile) => tile.call(operand(0), out),
            Function::Binary(tile) => tile.call(operand(0), operand(1), out),
            Function::Cast(tile) => tile.call(operand(0), out),
            Function::Select(tile) => tile.call(operand(0), operand(1), operand(2), out),
            Function::Copy => out.copy_from_slice(operand(0)),
        }
    }

    #[inline]
    fn read<'a>(&'a self, operand: &Operand, others: &Others<'a>) -> &'a [u8] {
        let len = self.n * operand.size;
        match self.settled(operand.place) {
            Place::Input(i) => self.inputs[i],
            Place::Constant(start) => &bytemuck::cast_slice(&self.tiles.constants)[start..start + len],
            Place::Register(register) => {
                let start = self.tiles.registers[register].start * self.pitch;
                let [low, high] = others.registers;
                if start < low.len() {
                    &low[start..start + len]
                } else {
                    &high[start - others.resume..][..len]
                }
            }
            Place::Output(k) => {
                let [before, after] = others.outputs;
                if k < before.len() { before[k] } else { after[k - before.len() - 1] }
            }
        }
    }
}
