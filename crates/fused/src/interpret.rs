//! Programs run step by step, a tile at a time, so that intermediate results stay in the first-level cache.

mod lower;

use crate::executor::TileExecutor;
use crate::program::TileProgram;
use crate::scratch::{CACHED, LINE, Line, lines, with_registers};
use lower::{CallOperand, assign, calls};
use smallvec::SmallVec;
use taut_kernels::elementwise::{BinaryTile, CastTile, SelectTile, UnaryTile};
use taut_kernels::strided::repeat;

/// The most elements of a tile. Beyond this, the cost of a call per step is negligible already.
const MAX_TILE: usize = 2048;

/// A program with its tile functions looked up and its intermediate results assigned to registers.
pub(crate) struct Interpreter {
    calls: Vec<TileCall>,
    registers: Vec<Register>,
    /// Bytes of all registers, for each element of a tile.
    register_bytes: usize,
    /// The constants' tiles, one after the other.
    constants: Vec<Line>,
    outputs: Vec<Output>,
    /// The last call that reads each input, if any does.
    last_reads: Vec<Option<usize>>,
    max_elements: usize,
}

/// One call of a tile function.
struct TileCall {
    function: Function,
    operands: SmallVec<[Operand; 3]>,
    to: TileLocation,
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
    location: TileLocation,
    /// Bytes of an element.
    size: usize,
}

/// Where the elements of a tile are.
#[derive(Clone, Copy)]
enum TileLocation {
    Input(usize),
    /// The offset in the constants in bytes.
    Constant(usize),
    Register(usize),
    /// In an output, or in its register if the output is deferred.
    Output(usize),
}

/// A tile for intermediate results.
struct Register {
    /// Bytes of the registers before it, for each element of a tile.
    start: usize,
    /// Its own bytes, for each element of a tile.
    size: usize,
}

struct Output {
    /// The call that computes it.
    call: usize,
    size: usize,
    /// Holds the result while an input in place in this output is still read, if an input can be in place in it.
    register: Option<usize>,
}

impl Interpreter {
    pub(crate) fn new(program: &TileProgram) -> Interpreter {
        let calls = calls(program);
        let mut last_reads = vec![None; program.inputs().len()];
        for (i, call) in calls.iter().enumerate() {
            for &(value, _) in &call.operands {
                if let CallOperand::Input(input) = value {
                    last_reads[input] = Some(i);
                }
            }
        }
        let types: SmallVec<[_; 8]> = program.output_types().collect();
        let may_be_deferred = |call: usize| {
            let mut inputs = program.inputs().iter().zip(&last_reads);
            let dtype = calls[call].output.map(|k| types[k]);
            inputs.any(|(input, last)| Some(*input) == dtype && *last >= Some(call))
        };
        let assignment = assign(&calls, may_be_deferred);

        let mut outputs: Vec<Output> =
            types.iter().map(|dtype| Output { call: 0, size: dtype.size(), register: None }).collect();
        for (i, call) in calls.iter().enumerate() {
            if let Some(k) = call.output {
                (outputs[k].call, outputs[k].register) = (i, assignment.registers[i]);
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
        let max_elements = CACHED / (register_bytes + constant_bytes + operand_bytes);
        let max_elements = (max_elements / LINE * LINE).clamp(LINE, MAX_TILE);
        let (constants, starts) = constant_tiles(program, max_elements);

        let result = |call: usize| match calls[call].output {
            Some(k) => TileLocation::Output(k),
            None => TileLocation::Register(
                assignment.registers[call].expect("an intermediate result is in a register"),
            ),
        };
        let operand = |&(value, size): &(CallOperand, usize)| {
            let location = match value {
                CallOperand::Input(input) => TileLocation::Input(input),
                CallOperand::Constant(constant) => TileLocation::Constant(starts[constant]),
                CallOperand::Call(call) => result(call),
            };
            Operand { location, size }
        };
        let calls = calls.iter().enumerate().map(|(i, call)| TileCall {
            function: call.function,
            operands: call.operands.iter().map(operand).collect(),
            to: result(i),
            size: call.size,
        });
        let calls = calls.collect();
        Interpreter { calls, registers, register_bytes, constants, outputs, last_reads, max_elements }
    }

    /// Per output, whether it is deferred: computed in a register and copied at the end, because an input in place in it
    /// is read by the call that computes it or a later one. Empty if none is.
    #[inline]
    fn deferred(&self, in_place: &[Option<usize>]) -> SmallVec<[bool; 8]> {
        if in_place.iter().all(Option::is_none) {
            return SmallVec::new();
        }
        let is_deferred = |(k, output): (usize, &Output)| {
            let mut reads = in_place.iter().zip(&self.last_reads);
            reads.any(|(at, last)| *at == Some(k) && *last >= Some(output.call))
        };
        self.outputs.iter().enumerate().map(is_deferred).collect()
    }
}

/// Whether output `k` is deferred.
#[inline]
fn is_deferred(deferred: &[bool], k: usize) -> bool {
    deferred.get(k).is_some_and(|deferred| *deferred)
}

/// A tile filled with each constant, and the offset of each in bytes.
fn constant_tiles(program: &TileProgram, len: usize) -> (Vec<Line>, SmallVec<[usize; 8]>) {
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

impl TileExecutor for Interpreter {
    fn max_elements(&self) -> usize {
        self.max_elements
    }

    fn bytes(&self) -> usize {
        size_of::<Interpreter>() + size_of_val(&self.constants[..]) + size_of_val(&self.calls[..])
    }

    fn run(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]], in_place: &[Option<usize>], _stream: bool) {
        let n = outputs[0].len() / self.outputs[0].size;
        assert!(n <= self.max_elements, "tile is too long");
        let deferred = self.deferred(in_place);
        // Whole lines, so that registers of any element size are aligned.
        let pitch = n.next_multiple_of(LINE);
        with_registers(self.register_bytes * pitch, |registers| {
            let run = TileRun { interpreter: self, inputs, in_place, deferred: &deferred, n, pitch };
            for call in &self.calls {
                run.run_call(call, registers, outputs);
            }
            for (k, output) in self.outputs.iter().enumerate().filter(|(k, _)| is_deferred(&deferred, *k)) {
                let register = output.register.expect("a deferred output has a register");
                let start = self.registers[register].start * pitch;
                outputs[k].copy_from_slice(&registers[start..start + n * output.size]);
            }
        });
    }
}

/// The tile being computed, except for what calls write.
struct TileRun<'a> {
    interpreter: &'a Interpreter,
    inputs: &'a [&'a [u8]],
    in_place: &'a [Option<usize>],
    deferred: &'a [bool],
    n: usize,
    pitch: usize,
}

/// What a call may read: the registers and the outputs before and after its result.
struct ReadableTiles<'a> {
    registers: [&'a [u8]; 2],
    /// The offset of the registers after the result.
    resume: usize,
    outputs: [&'a [&'a mut [u8]]; 2],
}

impl TileRun<'_> {
    /// The location, given which inputs are in place and which outputs are deferred.
    #[inline]
    fn resolve(&self, location: TileLocation) -> TileLocation {
        match location {
            TileLocation::Input(i) => self.in_place[i].map_or(location, TileLocation::Output),
            TileLocation::Output(k) if is_deferred(self.deferred, k) => TileLocation::Register(
                self.interpreter.outputs[k].register.expect("a deferred output has a register"),
            ),
            location => location,
        }
    }

    fn run_call(&self, call: &TileCall, registers: &mut [u8], outputs: &mut [&mut [u8]]) {
        let len = self.n * call.size;
        match self.resolve(call.to) {
            TileLocation::Output(k) => {
                let (before, rest) = outputs.split_at_mut(k);
                let (out, after) = rest.split_first_mut().expect("the output exists");
                let resume = registers.len();
                self.invoke(
                    call,
                    &ReadableTiles { registers: [registers, &[]], resume, outputs: [before, after] },
                    out,
                );
            }
            TileLocation::Register(register) => {
                let register = &self.interpreter.registers[register];
                let (low, rest) = registers.split_at_mut(register.start * self.pitch);
                let (out, high) = rest.split_at_mut(register.size * self.pitch);
                let resume = (register.start + register.size) * self.pitch;
                let readable = ReadableTiles { registers: [low, high], resume, outputs: [outputs, &[]] };
                self.invoke(call, &readable, &mut out[..len]);
            }
            TileLocation::Input(_) | TileLocation::Constant(_) => {
                unreachable!("results are in registers or outputs")
            }
        }
    }

    #[inline]
    fn invoke(&self, call: &TileCall, readable: &ReadableTiles<'_>, out: &mut [u8]) {
        let operand = |n: usize| self.read(&call.operands[n], readable);
        match &call.function {
            Function::Unary(tile) => tile.call(operand(0), out),
            Function::Binary(tile) => tile.call(operand(0), operand(1), out),
            Function::Cast(tile) => tile.call(operand(0), out),
            Function::Select(tile) => tile.call(operand(0), operand(1), operand(2), out),
            Function::Copy => out.copy_from_slice(operand(0)),
        }
    }

    #[inline]
    fn read<'a>(&'a self, operand: &Operand, readable: &ReadableTiles<'a>) -> &'a [u8] {
        let len = self.n * operand.size;
        match self.resolve(operand.location) {
            TileLocation::Input(i) => self.inputs[i],
            TileLocation::Constant(start) => {
                &bytemuck::cast_slice(&self.interpreter.constants)[start..start + len]
            }
            TileLocation::Register(register) => {
                let start = self.interpreter.registers[register].start * self.pitch;
                let [low, high] = readable.registers;
                if start < low.len() {
                    &low[start..start + len]
                } else {
                    &high[start - readable.resume..][..len]
                }
            }
            TileLocation::Output(k) => {
                let [before, after] = readable.outputs;
                if k < before.len() { before[k] } else { after[k - before.len() - 1] }
            }
        }
    }
}
