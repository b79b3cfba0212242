//! The encoding of machine code: instructions on vector registers, and the few others that a loop needs.
//!
//! Vectors of 256 bits have VEX instructions, those of 512 bits EVEX instructions with the same opcodes. Vector instructions have one form (an operation, a result, and operands of which the last may be in memory), so the
//! encoder is short, and compiling a kernel takes microseconds.

/// The operands of an operation and their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One operand, which may be in memory.
    Unary,
    /// Two operands; the last may be in memory.
    Binary,
    /// Two operands that commute; the last may be in memory.
    Commuting,
    /// One operand in a register, and an immediate; the digit completes the opcode.
    Shift(u8),
    /// One operand in a register; result and operand are swapped in the encoding.
    Reversed,
    /// `mask ? b : a`, as the operands `a`, `b`, `mask`; the second may be in memory.
    Blend,
    /// `a * b + c` and variants; the opcode is that of the 132 form, and the result overwrites an operand.
    Fused,
}

/// The width of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// 256 bits in 16 registers, with AVX2 and FMA.
    Avx2,
    /// 512 bits in 32 registers, with AVX-512 F and DQ.
    Avx512,
}

impl Width {
    /// The bytes of a vector.
    pub fn bytes(self) -> usize {
        match self {
            Width::Avx2 => 32,
            Width::Avx512 => 64,
        }
    }

    /// The number of vector registers.
    pub fn registers(self) -> usize {
        match self {
            Width::Avx2 => 16,
            Width::Avx512 => 32,
        }
    }
}

/// A vector instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    prefix: u8,
    map: u8,
    opcode: u8,
    /// The bit that doubles the width of the lanes.
    w: bool,
    /// Whether lanes have 64 bits, which an EVEX prefix says by the same bit even where the opcode says it.
    wide_lanes: bool,
    /// Of 128 bits instead of 256.
    short: bool,
    evex: Evex,
    pub form: Form,
}

/// How an instruction is encoded for vectors of 512 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evex {
    /// It is not.
    None,
    /// With the same opcode.
    Same,
    /// With the same opcode; the result is a mask register instead of a vector.
    Mask,
    /// As a conversion of the sign bits to a mask register, and a blend by it.
    Blend,
}

const fn op(prefix: u8, map: u8, opcode: u8, form: Form) -> Op {
    Op { prefix, map, opcode, w: false, wide_lanes: false, short: false, evex: Evex::None, form }
}

impl Op {
    /// The same on 128 bits.
    pub const fn short(mut self) -> Op {
        self.short = true;
        self
    }

    /// The same with the bit that doubles the width of the lanes.
    pub const fn w(mut self) -> Op {
        self.w = true;
        self
    }

    /// The same on `f64`, where the prefix makes the difference.
    pub const fn double(mut self) -> Op {
        self.prefix = P66;
        self.wide_lanes = true;
        self
    }

    /// An instruction on 64-bit lanes.
    const fn wide(mut self) -> Op {
        self.wide_lanes = true;
        self
    }

    /// An instruction that vectors of 512 bits have as well.
    const fn evex(mut self) -> Op {
        self.evex = Evex::Same;
        self
    }

    /// A comparison that vectors of 512 bits have as well.
    const fn evex_mask(mut self) -> Op {
        self.evex = Evex::Mask;
        self
    }

    /// Whether vectors of this width have the instruction.
    pub fn exists(self, width: Width) -> bool {
        width == Width::Avx2 || self.evex != Evex::None
    }

    /// The form of a fused operation by its index in 132, 213, 231.
    pub const fn fused(mut self, order: u8) -> Op {
        self.opcode += order << 4;
        self
    }
}

const NONE: u8 = 0;
const P66: u8 = 1;
const PF3: u8 = 2;
const M0F: u8 = 1;
const M38: u8 = 2;
const M3A: u8 = 3;
use Form::{Binary, Blend, Commuting, Fused, Reversed, Shift, Unary};

// Floats; those of the first map become `f64` with `double`, those with a `w` variant by `w`.
pub(super) const ADD: Op = op(NONE, M0F, 0x58, Commuting).evex();
pub(super) const MUL: Op = op(NONE, M0F, 0x59, Commuting).evex();
pub(super) const SUB: Op = op(NONE, M0F, 0x5c, Binary).evex();
pub(super) const MIN: Op = op(NONE, M0F, 0x5d, Binary).evex();
pub(super) const DIV: Op = op(NONE, M0F, 0x5e, Binary).evex();
pub(super) const MAX: Op = op(NONE, M0F, 0x5f, Binary).evex();
pub(super) const SQRT: Op = op(NONE, M0F, 0x51, Unary).evex();
pub(super) const COMPARE: Op = op(NONE, M0F, 0xc2, Binary).evex_mask();
pub(super) const ROUND_SINGLE: Op = op(P66, M3A, 0x08, Unary).evex();
pub(super) const ROUND_DOUBLE: Op = op(P66, M3A, 0x09, Unary).wide().evex();
pub(super) const MUL_ADD: Op = op(P66, M38, 0x98, Fused).evex();
pub(super) const MUL_SUB: Op = op(P66, M38, 0x9a, Fused).evex();
pub(super) const NEG_MUL_ADD: Op = op(P66, M38, 0x9c, Fused).evex();

// Bits.
pub(super) const AND: Op = op(NONE, M0F, 0x54, Commuting).evex();
/// `!a & b`.
pub(super) const NOT_AND: Op = op(NONE, M0F, 0x55, Binary).evex();
pub(super) const OR: Op = op(NONE, M0F, 0x56, Commuting).evex();
pub(super) const XOR: Op = op(NONE, M0F, 0x57, Commuting).evex();
/// By the sign bit of every 32 bits, which is correct for masks of either width.
pub(super) const BLEND: Op = Op { evex: Evex::Blend, ..op(P66, M3A, 0x4a, Blend) };

// Integers of 32 and 64 bits.
pub(super) const ADD_32: Op = op(P66, M0F, 0xfe, Commuting).evex();
pub(super) const ADD_64: Op = op(P66, M0F, 0xd4, Commuting).wide().evex();
pub(super) const SUB_32: Op = op(P66, M0F, 0xfa, Binary).evex();
pub(super) const SUB_64: Op = op(P66, M0F, 0xfb, Binary).wide().evex();
pub(super) const MUL_32: Op = op(P66, M38, 0x40, Commuting).evex();
/// The 64-bit products of the low halves.
pub(super) const MUL_HALVES: Op = op(P66, M0F, 0xf4, Commuting).wide().evex();
pub(super) const EQ_32: Op = op(P66, M0F, 0x76, Commuting).evex_mask();
pub(super) const EQ_64: Op = op(P66, M38, 0x29, Commuting).wide().evex_mask();
pub(super) const GT_32: Op = op(P66, M0F, 0x66, Binary).evex_mask();
pub(super) const GT_64: Op = op(P66, M38, 0x37, Binary).wide().evex_mask();
pub(super) const ABS_32: Op = op(P66, M38, 0x1e, Unary).evex();
pub(super) const SHIFT_LEFT_32: Op = op(P66, M0F, 0x72, Shift(6)).evex();
pub(super) const SHIFT_LEFT_64: Op = op(P66, M0F, 0x73, Shift(6)).wide().evex();
pub(super) const SHIFT_RIGHT_32: Op = op(P66, M0F, 0x72, Shift(2)).evex();
pub(super) const SHIFT_RIGHT_64: Op = op(P66, M0F, 0x73, Shift(2)).wide().evex();
pub(super) const SHIFT_SIGNED_32: Op = op(P66, M0F, 0x72, Shift(4)).evex();
/// By a distance per lane, zero from the width on; 64-bit lanes with `w`.
pub(super) const SHIFT_LEFT_BY: Op = op(P66, M38, 0x47, Binary).evex();
pub(super) const SHIFT_RIGHT_BY: Op = op(P66, M38, 0x45, Binary).evex();
pub(super) const SHIFT_SIGNED_BY: Op = op(P66, M38, 0x46, Binary).evex();

// Conversions. Those that double the width read the low half of their operand.
pub(super) const I32_TO_F32: Op = op(NONE, M0F, 0x5b, Unary).evex();
pub(super) const F32_TO_I32: Op = op(PF3, M0F, 0x5b, Unary).evex();
pub(super) const I32_TO_F64: Op = op(PF3, M0F, 0xe6, Unary);
pub(super) const F64_TO_I32: Op = op(P66, M0F, 0xe6, Unary);
pub(super) const F32_TO_F64: Op = op(NONE, M0F, 0x5a, Unary);
pub(super) const F64_TO_F32: Op = op(P66, M0F, 0x5a, Unary);
pub(super) const F16_TO_F32: Op = op(P66, M38, 0x13, Unary);
pub(super) const F32_TO_F16: Op = op(P66, M3A, 0x1d, Reversed);
pub(super) const U8_TO_32: Op = op(P66, M38, 0x31, Unary);
pub(super) const U8_TO_64: Op = op(P66, M38, 0x32, Unary);
pub(super) const U16_TO_32: Op = op(P66, M38, 0x33, Unary);
pub(super) const U32_TO_64: Op = op(P66, M38, 0x35, Unary);
pub(super) const I8_TO_32: Op = op(P66, M38, 0x21, Unary);
pub(super) const I16_TO_32: Op = op(P66, M38, 0x23, Unary);
pub(super) const I32_TO_64: Op = op(P66, M38, 0x25, Unary);

// Moves.
pub(super) const HIGH_HALF: Op = op(P66, M3A, 0x39, Reversed);
pub(super) const JOIN_HALVES: Op = op(P66, M3A, 0x38, Binary);
pub(super) const SHUFFLE: Op = op(NONE, M0F, 0xc6, Binary);
pub(super) const PERMUTE_64: Op = op(P66, M3A, 0x00, Unary).w();
pub(super) const PACK_SIGNED_32: Op = op(P66, M0F, 0x6b, Binary).short();
pub(super) const PACK_SIGNED_16: Op = op(P66, M0F, 0x63, Binary).short();
pub(super) const PACK_32: Op = op(P66, M38, 0x2b, Binary).short();
pub(super) const PACK_16: Op = op(P66, M0F, 0x67, Binary).short();
pub(super) const MOVE: Op = op(NONE, M0F, 0x28, Unary).evex();
pub(super) const LOAD: Op = op(NONE, M0F, 0x10, Unary).evex();
pub(super) const STORE: Op = op(NONE, M0F, 0x11, Reversed).evex();
/// A store that bypasses the caches.
pub(super) const STREAM: Op = op(NONE, M0F, 0x2b, Reversed).evex();
pub(super) const STORE_64: Op = op(P66, M0F, 0xd6, Reversed).short();
pub(super) const STORE_32: Op = op(P66, M0F, 0x7e, Reversed).short();

// Of vectors of 512 bits: from a mask register to lanes of all or no bits, from sign bits of 32-bit lanes to a mask register, and
// `mask ? b : a` of 32-bit lanes.
const MASK_TO_LANES: Op = op(PF3, M38, 0x38, Unary).evex();
const SIGNS_TO_MASK: Op = op(PF3, M38, 0x39, Unary).evex();
const BLEND_BY_MASK: Op = op(P66, M38, 0x65, Binary).evex();
/// The mask register that comparisons and blends use.
const MASK: u8 = 1;

/// A general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct General(pub u8);

pub(super) const RAX: General = General(0);
pub(super) const RCX: General = General(1);
pub(super) const RDX: General = General(2);
pub(super) const RBX: General = General(3);
pub(super) const RSP: General = General(4);
pub(super) const RBP: General = General(5);
pub(super) const RSI: General = General(6);
pub(super) const RDI: General = General(7);
pub(super) const R8: General = General(8);
pub(super) const R9: General = General(9);
pub(super) const R10: General = General(10);
pub(super) const R11: General = General(11);
pub(super) const R12: General = General(12);
pub(super) const R13: General = General(13);
pub(super) const R14: General = General(14);
pub(super) const R15: General = General(15);

/// The operand that may be in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    /// A vector register.
    Register(u8),
    /// `base + displacement`.
    At(General, i32),
    /// `base + (index << scale) + displacement`.
    Indexed { base: General, index: General, scale: u8, displacement: i32 },
}

/// Machine code under construction.
pub(super) struct Assembler {
    width: Width,
    bytes: Vec<u8>,
}

impl Assembler {
    pub fn new(width: Width) -> Assembler {
        Assembler { width, bytes: Vec::new() }
    }

    pub fn width(&self) -> Width {
        self.width
    }

    /// An instruction: `reg` and `vvvv` are the encoding's names of the operands that are always registers.
    pub fn vector(&mut self, op: Op, reg: u8, vvvv: u8, operand: Operand, immediate: Option<u8>) {
        match (self.width, op.evex) {
            (Width::Avx2, _) => self.vex(op, reg, vvvv, operand, immediate),
            (Width::Avx512, Evex::Mask) => {
                self.evex(op, MASK, vvvv, operand, immediate, 0);
                let to_lanes = Op { wide_lanes: op.wide_lanes, ..MASK_TO_LANES };
                self.evex(to_lanes, reg, 0, Operand::Register(MASK), None, 0);
            }
            (Width::Avx512, _) => self.evex(op, reg, vvvv, operand, immediate, 0),
        }
    }

    /// `mask ? b : a` by the sign bits of the register `mask`.
    pub fn blend(&mut self, op: Op, to: u8, a: u8, b: Operand, mask: u8) {
        match self.width {
            Width::Avx2 => self.vex(op, to, a, b, Some(mask << 4)),
            Width::Avx512 => {
                self.evex(SIGNS_TO_MASK, MASK, 0, Operand::Register(mask), None, 0);
                self.evex(BLEND_BY_MASK, to, a, b, None, MASK);
            }
        }
    }

    /// An instruction on 512 bits; `mask` is its mask register, or 0 for none.
    fn evex(&mut self, op: Op, reg: u8, vvvv: u8, operand: Operand, immediate: Option<u8>, mask: u8) {
        debug_assert!(op.exists(Width::Avx512), "{op:?}");
        // The bits of a register number, inverted, in their places of the prefix.
        let bit = |number: u8, bit: u8, place: u8| (!number >> bit & 1) << place;
        let (index, base) = match operand {
            Operand::Register(register) => (bit(register, 4, 6), register),
            Operand::At(base, _) => (bit(0, 3, 6), base.0),
            Operand::Indexed { base, index, .. } => (bit(index.0, 3, 6), base.0),
        };
        self.bytes.extend([
            0x62,
            bit(reg, 3, 7) | index | bit(base, 3, 5) | bit(reg, 4, 4) | op.map,
            ((op.w || op.wide_lanes) as u8) << 7 | (!vvvv & 15) << 3 | 4 | op.prefix,
            0x40 | bit(vvvv, 4, 3) | mask,
            op.opcode,
        ]);
        // Short displacements count vectors.
        self.operand(reg, operand, Width::Avx512.bytes() as i32);
        self.bytes.extend(immediate);
    }

    /// An instruction on 256 bits, or on 128.
    fn vex(&mut self, op: Op, reg: u8, vvvv: u8, operand: Operand, immediate: Option<u8>) {
        let (index, base) = match operand {
            Operand::Register(register) => (0, register),
            Operand::At(base, _) => (0, base.0),
            Operand::Indexed { base, index, .. } => (index.0, base.0),
        };
        let last = (!vvvv & 15) << 3 | (!op.short as u8) << 2 | op.prefix;
        let extended = |register: u8, bit: u8| (register < 8) as u8 * bit;
        if op.map == M0F && !op.w && index < 8 && base < 8 {
            self.bytes.extend([0xc5, extended(reg, 0x80) | last]);
        } else {
            let first = extended(reg, 0x80) | extended(index, 0x40) | extended(base, 0x20) | op.map;
            self.bytes.extend([0xc4, first, (op.w as u8) << 7 | last]);
        }
        self.bytes.push(op.opcode);
        self.operand(reg, operand, 1);
        self.bytes.extend(immediate);
    }

    /// The bytes that encode an operand, after the opcode. A displacement of one byte counts units of so many bytes.
    fn operand(&mut self, reg: u8, operand: Operand, unit: i32) {
        let reg = (reg & 7) << 3;
        let (base, displacement, index) = match operand {
            Operand::Register(register) => return self.bytes.push(0xc0 | reg | register & 7),
            Operand::At(base, displacement) => (base, displacement, None),
            Operand::Indexed { base, index, scale, displacement } => {
                (base, displacement, Some((index, scale)))
            }
        };
        // The base `101` without a displacement has another meaning.
        let size = match displacement / unit {
            0 if displacement == 0 && base.0 & 7 != 5 => 0,
            -128..=127 if displacement % unit == 0 => 0x40,
            _ => 0x80,
        };
        match index {
            Some((index, scale)) => {
                self.bytes.extend([size | reg | 4, scale << 6 | (index.0 & 7) << 3 | base.0 & 7]);
            }
            // The base `100` needs a second byte.
            None if base.0 & 7 == 4 => self.bytes.extend([size | reg | 4, 0x20 | base.0 & 7]),
            None => self.bytes.push(size | reg | base.0 & 7),
        }
        match size {
            0 => {}
            0x40 => self.bytes.push((displacement / unit) as u8),
            _ => self.bytes.extend(displacement.to_le_bytes()),
        }
    }

    /// A 64-bit instruction on general registers.
    fn general(&mut self, opcode: u8, reg: u8, operand: Operand) {
        let base = match operand {
            Operand::Register(register) => register,
            Operand::At(base, _) | Operand::Indexed { base, .. } => base.0,
        };
        self.bytes.extend([0x48 | (reg >> 3) << 2 | base >> 3, opcode]);
        self.operand(reg, operand, 1);
    }

    pub fn push(&mut self, register: General) {
        self.bytes.extend([0x40 | register.0 >> 3, 0x50 | register.0 & 7]);
    }

    pub fn pop(&mut self, register: General) {
        self.bytes.extend([0x40 | register.0 >> 3, 0x58 | register.0 & 7]);
    }

    pub fn copy(&mut self, to: General, from: General) {
        self.general(0x8b, to.0, Operand::Register(from.0));
    }

    pub fn load(&mut self, to: General, base: General, displacement: i32) {
        self.general(0x8b, to.0, Operand::At(base, displacement));
    }

    pub fn add(&mut self, register: General, immediate: i32) {
        self.general(0x81, 0, Operand::Register(register.0));
        self.bytes.extend(immediate.to_le_bytes());
    }

    /// Rounds down to a multiple of the bytes of a vector.
    pub fn align_to_vector(&mut self, register: General) {
        self.general(0x83, 4, Operand::Register(register.0));
        self.bytes.push((self.width.bytes() as u8).wrapping_neg());
    }

    /// Jumps back to a [`Assembler::position`] unless the last [`Assembler::add`] gave zero.
    pub fn jump_unless_zero(&mut self, to: usize) {
        self.bytes.extend([0x0f, 0x85]);
        let from = self.bytes.len() + 4;
        self.bytes.extend((to as i32 - from as i32).to_le_bytes());
    }

    /// Clears the upper halves of the vector registers, as code with SSE instructions expects.
    pub fn zero_upper(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x77]);
    }

    /// Waits for streamed stores.
    pub fn store_fence(&mut self) {
        self.bytes.extend([0x0f, 0xae, 0xf8]);
    }

    pub fn ret(&mut self) {
        self.bytes.push(0xc3);
    }

    /// Pads to a multiple of `to` bytes with no-operation instructions.
    pub fn align(&mut self, to: usize) {
        let end = self.bytes.len().next_multiple_of(to);
        self.bytes.resize(end, 0x90);
    }

    /// The offset of the next instruction.
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces the immediate of the [`Assembler::add`] that ends at `end`.
    pub fn patch(&mut self, end: usize, immediate: i32) {
        self.bytes[end - 4..end].copy_from_slice(&immediate.to_le_bytes());
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
