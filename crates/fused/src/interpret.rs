//! Programs run step by step, a tile at a time, so that what steps hand on stays in the first-level cache.

mod lower;

use crate::program::Program;
use crate::scratch::{CACHED, LINE, Line, lines, with_registers};
use crate::tiles::Tiles;
use lower::{Value, assign, calls};
use smallvec::SmallVec;
use taut_kernels::elementwise::{BinaryTile, CastTile, SelectTile, UnaryTile};
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

/// A tile for what steps hand on.
struct Register {
    /// Bytes of the registers before it, for each element of a tile.
    start: usize,
    /// Its own bytes, for each element of a tile.
    size: usize,
}

struct Output {
    /// The op that computes it.
    op: usize,
    size: usize,
    /// Where it waits while an input in its place is still read, if there is an input that can be in its place.
    register: Option<usize>,
}

impl Interpreter {
    pub(crate) fn new(program: &Program) -> Interpreter {
        let calls = calls(program);
        let mut last_reads = vec![None; program.inputs().len()];
        for (i, call) in calls.iter().enumerate() {
            for &(value, _) in &call.operands {
                if let Value::Input(input) = value {
                    last_reads[input] = Some(i);
                }
            }
        }
        let types: SmallVec<[_; 8]> = program.output_types().collect();
        let may_wait = |call: usize| {
            let mut inputs = program.inputs().iter().zip(&last_reads);
            let dtype = calls[call].output.map(|k| types[k]);
            inputs.any(|(input, last)| Some(*input) == dtype && *last >= Some(call))
        };
        let assignment = assign(&calls, may_wait);

        let mut outputs: Vec<Output> =
            types.iter().map(|dtype| Output { op: 0, size: dtype.size(), register: None }).collect();
        for (op, call) in calls.iter().enumerate() {
            if let Some(k) = call.output {
                (outputs[k].op, outputs[k].register) = (op, assignment.registers[op]);
            }
        }
        let mut register_bytes = 0;
        let mut register = |&size: &usize| {
            register_bytes += size;
            Register { start: register_bytes - size, size }
        };
        let registers: Vec<Register> = assignment.sizes.iter().map(&mut register).collect();

        let constant_bytes: usize = program.constants().iter().map(|constant| constant.dtype.size()).sum();
        let operand_bytes: usize = program.inputs().iter().chain(&types).map(|dtype| dtype.size()).sum();
        let longest = CACHED / (register_bytes + constant_bytes + operand_bytes);
        let longest = (longest / LINE * LINE).clamp(LINE, MOST);
        let (constants, starts) = constant_tiles(program, longest);

        let result = |call: usize| match calls[call].output {
            Some(k) => Place::Output(k),
            None => Place::Register(assignment.registers[call].expect("what is no output is in a register")),
        };
        let operand = |&(value, size): &(Value, usize)| {
            let place = match value {
                Value::Input(input) => Place::Input(input),
                Value::Constant(constant) => Place::Constant(starts[constant]),
                Value::Call(call) => result(call),
            };
            Operand { place, size }
        };
        let ops = calls.iter().enumerate().map(|(i, call)| Op {
            function: call.function,
            operands: call.operands.iter().map(operand).collect(),
            to: result(i),
            size: call.size,
        });
        let ops = ops.collect();
        Interpreter { ops, registers, register_bytes, constants, outputs, last_reads, longest }
    }

    /// Which outputs have to wait in a register because an input in their place is read when they are computed, or
    /// later: those marked.
    #[inline]
    fn late(&self, in_place: &[Option<usize>]) -> SmallVec<[bool; 8]> {
        if in_place.iter().all(Option::is_none) {
            return SmallVec::new();
        }
        let waits = |(k, output): (usize, &Output)| {
            let mut reads = in_place.iter().zip(&self.last_reads);
            reads.any(|(at, last)| *at == Some(k) && *last >= Some(output.op))
        };
        self.outputs.iter().enumerate().map(waits).collect()
    }
}

/// Whether output `k` is late.
#[inline]
fn is_late(late: &[bool], k: usize) -> bool {
    late.get(k).is_some_and(|late| *late)
}

/// A tile full of each constant, and where each starts.
fn constant_tiles(program: &Program, len: usize) -> (Vec<Line>, SmallVec<[usize; 8]>) {
    let mut starts = SmallVec::new();
    let mut bytes = 0;
    for constant in program.constants() {
        starts.push(bytes);
        bytes += constant.dtype.size() * len;
    }
    let mut tiles = lines(bytes);
    for (constant, &start) in program.constants().iter().zip(&starts) {
        let size = constant.dtype.size();
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut tiles);
        repeat(&constant.bytes[..size], &mut all[start..start + size * len]);
    }
    (tiles, starts)
}

impl Tiles for Interpreter {
    fn longest(&self) -> usize {
        self.longest
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>], _stream: bool) {
        let n = outputs[0].len() / self.outputs[0].size;
        assert!(n <= self.longest, "a piece longer than a tile");
        let late = self.late(in_place);
        // Whole lines, so that registers of any element size are aligned.
        let pitch = n.next_multiple_of(LINE);
        with_registers(self.register_bytes * pitch, |registers| {
            let piece = Piece { tiles: self, inputs, in_place, late: &late, n, pitch };
            for op in &self.ops {
                piece.step(op, registers, outputs);
            }
            for (k, output) in self.outputs.iter().enumerate().filter(|(k, _)| is_late(&late, *k)) {
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
            Place::Output(k) if is_late(self.late, k) => {
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
