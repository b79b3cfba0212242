//! The operations on one vector of 32- or 64-bit lanes.

use super::block::{Arg, Block};
use super::encode::{self as x86, Op};
use std::cell::RefCell;

/// Emits code for vectors of one width of lanes.
#[derive(Clone, Copy)]
pub(super) struct Vector<'a> {
    pub block: &'a RefCell<Block>,
    /// Lanes of 64 bits instead of 32.
    pub wide: bool,
}

/// A comparison of floats; all but `Differ` and `Unordered` are false if an operand is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Relation {
    Equal = 0x00,
    Unordered = 0x03,
    Differ = 0x04,
    Ordered = 0x07,
    Less = 0x11,
    LessEqual = 0x12,
    GreaterEqual = 0x1d,
    Greater = 0x1e,
}

/// How to round to an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Rounding {
    Nearest = 0x08,
    Down = 0x09,
    Up = 0x0a,
    Zero = 0x0b,
}

impl Vector<'_> {
    pub fn one(self, op: Op, x: Arg) -> Arg {
        self.block.borrow_mut().one(op, x)
    }

    pub fn one_with(self, op: Op, x: Arg, immediate: u8) -> Arg {
        self.block.borrow_mut().one_with(op, x, immediate)
    }

    pub fn two(self, op: Op, a: Arg, b: Arg) -> Arg {
        self.block.borrow_mut().two(op, a, b)
    }

    fn two_with(self, op: Op, a: Arg, b: Arg, immediate: u8) -> Arg {
        self.block.borrow_mut().two_with(op, a, b, immediate)
    }

    fn three(self, op: Op, a: Arg, b: Arg, c: Arg) -> Arg {
        self.block.borrow_mut().three(op, a, b, c)
    }

    fn float(self, op: Op) -> Op {
        if self.wide { op.double() } else { op }
    }

    fn sized(self, narrow: Op, wide: Op) -> Op {
        if self.wide { wide } else { narrow }
    }

    /// The bits in every lane; narrow lanes have the low half.
    pub fn bits(self, bits: u64) -> Arg {
        let bits = if self.wide { bits } else { (bits & 0xffff_ffff) << 32 | bits & 0xffff_ffff };
        self.block.borrow_mut().constant(bits)
    }

    /// The float in every lane, by the width of the lanes.
    pub fn pick(self, single: f32, double: f64) -> Arg {
        let bits = if self.wide { double.to_bits() } else { single.to_bits() as u64 };
        self.bits(bits)
    }

    /// The float in every lane, rounded if lanes are narrow.
    pub fn number(self, number: f64) -> Arg {
        self.pick(number as f32, number)
    }

    /// The integer in every lane.
    pub fn integer(self, number: i64) -> Arg {
        self.bits(number as u64)
    }

    pub fn add(self, a: Arg, b: Arg) -> Arg {
        self.two(self.float(x86::ADD), a, b)
    }

    pub fn sub(self, a: Arg, b: Arg) -> Arg {
        self.two(self.float(x86::SUB), a, b)
    }

    pub fn mul(self, a: Arg, b: Arg) -> Arg {
        self.two(self.float(x86::MUL), a, b)
    }

    pub fn div(self, a: Arg, b: Arg) -> Arg {
        self.two(self.float(x86::DIV), a, b)
    }

    /// `a < b ? a : b`, so `b` if one is NaN.
    pub fn smaller(self, a: Arg, b: Arg) -> Arg {
        self.two(self.float(x86::MIN), a, b)
    }

    /// `a > b ? a : b`, so `b` if one is NaN.
    pub fn larger(self, a: Arg, b: Arg) -> Arg {
        self.two(self.float(x86::MAX), a, b)
    }

    pub fn sqrt(self, x: Arg) -> Arg {
        self.one(self.float(x86::SQRT), x)
    }

    pub fn round(self, x: Arg, rounding: Rounding) -> Arg {
        self.one_with(self.sized(x86::ROUND_SINGLE, x86::ROUND_DOUBLE), x, rounding as u8)
    }

    fn fused(self, op: Op, a: Arg, b: Arg, c: Arg) -> Arg {
        self.three(if self.wide { op.w() } else { op }, a, b, c)
    }

    /// `a * b + c`, rounded once.
    pub fn mul_add(self, a: Arg, b: Arg, c: Arg) -> Arg {
        self.fused(x86::MUL_ADD, a, b, c)
    }

    /// `a * b - c`, rounded once.
    pub fn mul_sub(self, a: Arg, b: Arg, c: Arg) -> Arg {
        self.fused(x86::MUL_SUB, a, b, c)
    }

    /// `c - a * b`, rounded once.
    pub fn neg_mul_add(self, a: Arg, b: Arg, c: Arg) -> Arg {
        self.fused(x86::NEG_MUL_ADD, a, b, c)
    }

    /// A mask: all bits of the lanes where it holds.
    pub fn compare(self, relation: Relation, a: Arg, b: Arg) -> Arg {
        self.two_with(self.float(x86::COMPARE), a, b, relation as u8)
    }

    /// [`Vector::compare`] with a number.
    pub fn compare_to(self, relation: Relation, a: Arg, number: f64) -> Arg {
        self.compare(relation, a, self.number(number))
    }

    /// Where it is NaN.
    pub fn nan(self, x: Arg) -> Arg {
        self.compare(Relation::Unordered, x, x)
    }

    /// `mask ? a : b`.
    pub fn select(self, mask: Arg, a: Arg, b: Arg) -> Arg {
        self.three(x86::BLEND, b, a, mask)
    }

    pub fn and(self, a: Arg, b: Arg) -> Arg {
        self.two(x86::AND, a, b)
    }

    /// `!a & b`.
    pub fn not_and(self, a: Arg, b: Arg) -> Arg {
        self.two(x86::NOT_AND, a, b)
    }

    pub fn or(self, a: Arg, b: Arg) -> Arg {
        self.two(x86::OR, a, b)
    }

    pub fn xor(self, a: Arg, b: Arg) -> Arg {
        self.two(x86::XOR, a, b)
    }

    pub fn not(self, x: Arg) -> Arg {
        self.xor(x, self.bits(u64::MAX))
    }

    fn sign_bit(self) -> Arg {
        self.pick(-0.0, -0.0)
    }

    pub fn neg(self, x: Arg) -> Arg {
        self.xor(x, self.sign_bit())
    }

    pub fn abs(self, x: Arg) -> Arg {
        self.and(x, self.bits(if self.wide { !(1 << 63) } else { !(1 << 31) }))
    }

    /// `-|x|`.
    pub fn neg_abs(self, x: Arg) -> Arg {
        self.or(x, self.sign_bit())
    }

    /// The magnitude of `size`, whose sign is positive, with the sign of `sign`.
    pub fn with_sign(self, size: Arg, sign: Arg) -> Arg {
        self.or(size, self.and(sign, self.sign_bit()))
    }

    pub fn int_add(self, a: Arg, b: Arg) -> Arg {
        self.two(self.sized(x86::ADD_32, x86::ADD_64), a, b)
    }

    pub fn int_sub(self, a: Arg, b: Arg) -> Arg {
        self.two(self.sized(x86::SUB_32, x86::SUB_64), a, b)
    }

    pub fn int_mul(self, a: Arg, b: Arg) -> Arg {
        if !self.wide {
            return self.two(x86::MUL_32, a, b);
        }
        let (high_a, high_b) = (self.shift_right(a, 32), self.shift_right(b, 32));
        let cross = self.int_add(self.two(x86::MUL_HALVES, high_a, b), self.two(x86::MUL_HALVES, high_b, a));
        self.int_add(self.two(x86::MUL_HALVES, a, b), self.shift_left(cross, 32))
    }

    pub fn int_eq(self, a: Arg, b: Arg) -> Arg {
        self.two(self.sized(x86::EQ_32, x86::EQ_64), a, b)
    }

    /// `a > b` of signed integers.
    pub fn int_gt(self, a: Arg, b: Arg) -> Arg {
        self.two(self.sized(x86::GT_32, x86::GT_64), a, b)
    }

    pub fn int_abs(self, x: Arg) -> Arg {
        if !self.wide {
            return self.one(x86::ABS_32, x);
        }
        let negative = self.int_gt(self.integer(0), x);
        self.int_sub(self.xor(x, negative), negative)
    }

    pub fn shift_left(self, x: Arg, by: u8) -> Arg {
        self.one_with(self.sized(x86::SHIFT_LEFT_32, x86::SHIFT_LEFT_64), x, by)
    }

    pub fn shift_right(self, x: Arg, by: u8) -> Arg {
        self.one_with(self.sized(x86::SHIFT_RIGHT_32, x86::SHIFT_RIGHT_64), x, by)
    }
}
