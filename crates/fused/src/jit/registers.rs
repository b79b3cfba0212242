//! Register assignment and the encoding of the loop.
//!
//! The code is straight-line, so one pass suffices: a register is free after its value's last use, and if none is free the
//! value whose next use is furthest is spilled to the stack. A constant stays in a register if one is left over, and is an
//! operand in memory otherwise.

use super::block::{Arg, Block, Instruction, MemoryOperand};
use super::encode::{self as x86, Assembler, Form, General, Op, Operand};

/// The function's arguments: the table of arrays (the address of the end of each), the negative number of elements, and the
/// constants.
const TABLE: General = x86::RDI;
const INDEX: General = x86::RSI;
const CONSTANTS: General = x86::RDX;

/// Hold the addresses of the first arrays; the others are loaded into [`SCRATCH`] when needed.
const BASES: [General; 10] =
    [x86::RCX, x86::R8, x86::R9, x86::R10, x86::R11, x86::RBX, x86::R12, x86::R13, x86::R14, x86::R15];
/// How many of [`BASES`] are caller-saved.
const VOLATILE: usize = 5;
const SCRATCH: General = x86::RAX;

/// The most vector registers of any width.
const MAX_REGISTERS: usize = 32;
/// The bytes from a constant to the next.
pub(super) const CONSTANT_BYTES: usize = 64;
/// The most vectors on the stack; with more, spilling costs more than fusion saves.
const MAX_SLOTS: usize = 96;
const NEVER: u32 = u32::MAX;

/// Encodes a function that runs `block` for every `elements` of the arrays, and returns its offset; `None` if it needs more
/// than [`MAX_SLOTS`] on the stack. With `stream`, stores of whole vectors bypass the caches.
pub(super) fn encode_loop(
    code: &mut Assembler,
    block: &Block,
    arrays: usize,
    elements: usize,
    stream: bool,
) -> Option<usize> {
    code.align(32);
    let entry = code.position();
    let bases = &BASES[..arrays.min(BASES.len())];
    let saved = &bases[VOLATILE.min(bases.len())..];
    code.push(x86::RBP);
    saved.iter().for_each(|&register| code.push(register));
    code.copy(x86::RBP, x86::RSP);
    code.add(x86::RSP, 0);
    let frame = code.position();
    code.align_to_vector(x86::RSP);
    for (i, &base) in bases.iter().enumerate() {
        code.load(base, TABLE, 8 * i as i32);
    }
    let mut allocator = RegisterAllocator::new(code, block, stream);
    allocator.pin_constants();
    allocator.code.align(32);
    let head = allocator.code.position();
    for (i, instruction) in block.instructions.iter().enumerate() {
        allocator.instruction(i, instruction);
    }
    let slots = allocator.slots;
    code.add(INDEX, elements as i32);
    code.jump_unless_zero(head);
    let slot_bytes = code.width().bytes();
    code.patch(frame, -((slot_bytes * slots) as i32));
    if stream {
        code.store_fence();
    }
    code.zero_upper();
    code.copy(x86::RSP, x86::RBP);
    saved.iter().rev().for_each(|&register| code.pop(register));
    code.pop(x86::RBP);
    code.ret();
    (slots <= MAX_SLOTS).then_some(entry)
}

fn constant_address(constant: usize) -> Operand {
    Operand::At(CONSTANTS, (CONSTANT_BYTES * constant) as i32)
}

/// Where a value is: in a register, on the stack, or both.
#[derive(Clone, Copy, Default)]
struct ValueLocation {
    register: Option<u8>,
    slot: Option<u32>,
}

struct RegisterAllocator<'a> {
    code: &'a mut Assembler,
    block: &'a Block,
    stream: bool,
    locations: Vec<ValueLocation>,
    /// The next instruction that reads each value.
    next: Vec<u32>,
    /// Per operand of each instruction, the next instruction that reads the same value.
    after: Vec<[u32; 3]>,
    /// The register of each constant that has one.
    pinned: Vec<Option<u8>>,
    /// The value in each register.
    holders: [Option<u32>; MAX_REGISTERS],
    /// The free registers, one bit each.
    free: u32,
    /// The registers that the current instruction reads.
    locked: u32,
    slots: usize,
    free_slots: Vec<u32>,
    /// Slots that are free after the current instruction.
    dead_slots: Vec<u32>,
    /// The registers of constants, one bit each.
    pins: u32,
}

fn lowest(set: u32) -> u8 {
    set.trailing_zeros() as u8
}

impl<'a> RegisterAllocator<'a> {
    fn new(code: &'a mut Assembler, block: &'a Block, stream: bool) -> RegisterAllocator<'a> {
        let n = block.instructions.len();
        let (mut next, mut after) = (vec![NEVER; n], vec![[NEVER; 3]; n]);
        for (i, instruction) in block.instructions.iter().enumerate().rev() {
            for (k, arg) in instruction.args().iter().enumerate() {
                if let Arg::Value(value) = *arg {
                    after[i][k] = next[value as usize];
                }
            }
            for arg in instruction.args() {
                if let Arg::Value(value) = *arg {
                    next[value as usize] = i as u32;
                }
            }
        }
        let registers = code.width().registers();
        RegisterAllocator {
            code,
            block,
            stream,
            locations: vec![ValueLocation::default(); n],
            next,
            after,
            pinned: vec![None; block.constants.len()],
            holders: [None; MAX_REGISTERS],
            free: u32::MAX >> (MAX_REGISTERS - registers),
            locked: 0,
            slots: 0,
            free_slots: Vec::new(),
            dead_slots: Vec::new(),
            pins: 0,
        }
    }

    /// The most values that are live at one time.
    fn pressure(&self) -> usize {
        let (mut alive, mut most) = (0usize, 0);
        for (i, instruction) in self.block.instructions.iter().enumerate() {
            let args = instruction.args();
            for (k, arg) in args.iter().enumerate() {
                let last = matches!(arg, Arg::Value(_)) && self.after[i][k] == NEVER;
                alive -= (last && !args[..k].contains(arg)) as usize;
            }
            alive += (self.next[i] != NEVER) as usize;
            most = most.max(alive);
        }
        most
    }

    /// Loads the most used constants into the registers that values do not need.
    fn pin_constants(&mut self) {
        let mut uses = vec![0u32; self.block.constants.len()];
        for instruction in &self.block.instructions {
            for (k, arg) in instruction.args().iter().enumerate() {
                if let Arg::Constant(constant) = *arg {
                    // As the first operand it must be in a register.
                    uses[constant as usize] += if k == 0 { 3 } else { 1 };
                }
            }
        }
        let mut order: Vec<usize> = (0..uses.len()).collect();
        order.sort_by_key(|&constant| std::cmp::Reverse(uses[constant]));
        // Two more than live values: one for a constant that an instruction needs in a register, one for a copy.
        let left = self.code.width().registers().saturating_sub(self.pressure() + 2);
        for &constant in order.iter().take(left) {
            let register = lowest(self.free);
            self.free &= self.free - 1;
            self.pinned[constant] = Some(register);
            self.pins |= 1 << register;
            self.code.vector(x86::LOAD, register, 0, constant_address(constant), None);
        }
    }

    /// The address of a vector on the stack.
    fn slot_address(&self, slot: u32) -> Operand {
        Operand::At(x86::RSP, (self.code.width().bytes() * slot as usize) as i32)
    }

    fn register_of(&self, arg: Arg) -> Option<u8> {
        match arg {
            Arg::Value(value) => self.locations[value as usize].register,
            Arg::Constant(constant) => self.pinned[constant as usize],
        }
    }

    /// The operand, in a register or in memory.
    fn operand(&self, arg: Arg) -> Operand {
        match (self.register_of(arg), arg) {
            (Some(register), _) => Operand::Register(register),
            (None, Arg::Constant(constant)) => constant_address(constant as usize),
            (None, Arg::Value(value)) => {
                let slot = self.locations[value as usize]
                    .slot
                    .expect("a live value is in a register or on the stack");
                self.slot_address(slot)
            }
        }
    }

    /// A register to write to; if none is free, a value is spilled.
    fn take(&mut self) -> u8 {
        if self.free == 0 {
            let victim = (0..self.code.width().registers() as u8)
                .filter(|&register| self.locked >> register & 1 == 0)
                .filter_map(|register| self.holders[register as usize].map(|value| (register, value)))
                .max_by_key(|&(_, value)| self.next[value as usize]);
            let (register, value) =
                victim.expect("an instruction reads fewer values than there are registers");
            self.spill(register, value);
        }
        let register = lowest(self.free);
        self.free &= self.free - 1;
        register
    }

    fn spill(&mut self, register: u8, value: u32) {
        if self.locations[value as usize].slot.is_none() {
            let slot = self.free_slots.pop().unwrap_or_else(|| {
                self.slots += 1;
                self.slots as u32 - 1
            });
            self.locations[value as usize].slot = Some(slot);
            let address = self.slot_address(slot);
            self.code.vector(x86::STORE, register, 0, address, None);
        }
        self.locations[value as usize].register = None;
        self.holders[register as usize] = None;
        self.free |= 1 << register;
    }

    /// Loads an operand into a register, which is locked until [`RegisterAllocator::release`].
    fn fetch(&mut self, arg: Arg) -> u8 {
        let register = self.register_of(arg).unwrap_or_else(|| {
            let address = self.operand(arg);
            let register = self.take();
            self.code.vector(x86::LOAD, register, 0, address, None);
            if let Arg::Value(value) = arg {
                self.locations[value as usize].register = Some(register);
                self.holders[register as usize] = Some(value);
            }
            register
        });
        self.locked |= 1 << register;
        register
    }

    /// Frees the registers of values whose last use is the `i`-th instruction, and those of its constants.
    fn release(&mut self, i: usize, args: &[Arg]) {
        for (k, arg) in args.iter().enumerate() {
            let Arg::Value(value) = *arg else { continue };
            let value = value as usize;
            self.next[value] = self.after[i][k];
            if self.next[value] == NEVER {
                let location = std::mem::take(&mut self.locations[value]);
                if let Some(register) = location.register {
                    self.holders[register as usize] = None;
                }
                self.dead_slots.extend(location.slot);
            }
        }
        // Locked without a value: that of a dead value, or of a constant that is not pinned.
        for register in (0..MAX_REGISTERS).filter(|&register| self.holders[register].is_none()) {
            self.free |= self.locked & !self.pins & 1 << register;
        }
    }

    /// Ends an instruction.
    fn done(&mut self) {
        self.locked = 0;
        self.free_slots.append(&mut self.dead_slots);
    }

    /// Ends the `i`-th instruction, whose result is in this register.
    fn define(&mut self, i: usize, register: u8) {
        self.done();
        if self.next[i] == NEVER {
            self.free |= 1 << register;
            return;
        }
        self.locations[i].register = Some(register);
        self.holders[register as usize] = Some(i as u32);
    }

    /// The address of an operand in an array.
    fn address(&mut self, memory: MemoryOperand) -> Operand {
        let base = BASES.get(memory.array as usize).copied().unwrap_or_else(|| {
            self.code.load(SCRATCH, TABLE, 8 * memory.array as i32);
            SCRATCH
        });
        Operand::Indexed { base, index: INDEX, scale: memory.scale, displacement: memory.offset }
    }

    fn instruction(&mut self, i: usize, instruction: &Instruction) {
        match *instruction {
            Instruction::Load(op, memory) => {
                let to = self.take();
                let address = self.address(memory);
                self.code.vector(op, to, 0, address, None);
                self.define(i, to);
            }
            Instruction::Store(op, memory, value) => {
                let from = self.fetch(value);
                let address = self.address(memory);
                let op = if self.stream && op == x86::STORE { x86::STREAM } else { op };
                self.code.vector(op, from, 0, address, None);
                self.release(i, instruction.args());
                self.done();
            }
            Instruction::Compute { op, args, immediate } => {
                self.compute(i, op, args, instruction.args(), immediate);
            }
        }
    }

    fn compute(&mut self, i: usize, op: Op, args: [Arg; 3], used: &[Arg], immediate: Option<u8>) {
        match op.form {
            Form::Unary => {
                let x = self.operand(args[0]);
                self.lock(x);
                self.release(i, used);
                let to = self.take();
                self.code.vector(op, to, 0, x, immediate);
                self.define(i, to);
            }
            Form::Shift(digit) => {
                let x = self.fetch(args[0]);
                self.release(i, used);
                let to = self.take();
                self.code.vector(op, digit, to, Operand::Register(x), immediate);
                self.define(i, to);
            }
            Form::Reversed => {
                let x = self.fetch(args[0]);
                self.release(i, used);
                let to = self.take();
                self.code.vector(op, x, 0, Operand::Register(to), immediate);
                self.define(i, to);
            }
            Form::Binary | Form::Commuting => {
                let a = self.fetch(args[0]);
                let b = self.operand(args[1]);
                self.lock(b);
                self.release(i, used);
                let to = self.take();
                self.code.vector(op, to, a, b, immediate);
                self.define(i, to);
            }
            Form::Blend => {
                let a = self.fetch(args[0]);
                let mask = self.fetch(args[2]);
                let b = self.operand(args[1]);
                self.lock(b);
                self.release(i, used);
                let to = self.take();
                self.code.blend(op, to, a, b, mask);
                self.define(i, to);
            }
            Form::Fused => self.fused(i, op, args),
        }
    }

    fn lock(&mut self, operand: Operand) {
        if let Operand::Register(register) = operand {
            self.locked |= 1 << register;
        }
    }

    /// `args[0] * args[1] + args[2]` overwrites one of the three: one whose last use this is, or a copy.
    fn fused(&mut self, i: usize, op: Op, args: [Arg; 3]) {
        let memory = [2, 1, 0].into_iter().find(|&k| self.register_of(args[k]).is_none());
        let mut registers = [0; 3];
        for k in (0..3).filter(|&k| Some(k) != memory) {
            registers[k] = self.fetch(args[k]);
        }
        let dies = |k: usize| match args[k] {
            Arg::Value(_) => self.after[i][k] == NEVER,
            Arg::Constant(constant) => self.pinned[constant as usize].is_none(),
        };
        let candidates = || (0..3).filter(|&k| Some(k) != memory);
        let target =
            candidates().find(|&k| dies(k)).or_else(|| candidates().next()).expect("two are in registers");
        let dead = dies(target);
        let place = |k: usize| match memory {
            Some(at) if at == k => self.operand(args[k]),
            _ => Operand::Register(registers[k]),
        };
        // 132: target * operand + other; 213: other * target + operand; 231: other * operand + target.
        let (order, other, operand) = match (target, memory) {
            (2, Some(0)) => (2, 1, 0),
            (2, _) => (2, 0, 1),
            (factor, Some(2) | None) => (1, 1 - factor, 2),
            (factor, _) => (0, 2, 1 - factor),
        };
        let operand = place(operand);
        self.release(i, &args);
        let to = if dead {
            self.free &= !(1 << registers[target]);
            registers[target]
        } else {
            let to = self.take();
            self.code.vector(x86::MOVE, to, 0, Operand::Register(registers[target]), None);
            to
        };
        self.code.vector(op.fused(order), to, registers[other], operand, None);
        self.define(i, to);
    }
}
