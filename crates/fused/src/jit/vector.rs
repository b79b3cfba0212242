//! The operations on one vector of 32- or 64-bit lanes.

use super::block::{Arg, Block};
use super::encode::{self as x86, Op};

/// Writes code for vectors of one width of lanes.
pub(super) struct Vector<'a> {
    pub block: &'a mut Block,
    /// Lanes of 64 bits instead of 32.
    pub wide: bool,
}

/// A comparison of floats; all but `Differ` and `Unordered` are false of a NaN.
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
    fn float(&self, op: Op) -> Op {
        if self.wide { op.double() } else { op }
    }

    fn sized(&self, narrow: Op, wide: Op) -> Op {
        if self.wide { wide } else { narrow }
    }

    /// The bits in every lane; narrow lanes have the low half.
    pub fn bits(&mut self, bits: u64) -> Arg {
        let bits = if self.wide { bits } else { (bits & 0xffff_ffff) << 32 | bits & 0xffff_ffff };
        self.block.constant(bits)
    }

    /// The float in every lane, by the width of the lanes.
    pub fn pick(&mut self, single: f32, double: f64) -> Arg {
        let bits = if self.wide { double.to_bits() } else { single.to_bits() as u64 };
        self.bits(bits)
    }

    /// The float in every lane, rounded if lanes are narrow.
    pub fn number(&mut self, number: f64) -> Arg {
        self.pick(number as f32, number)
    }

    /// The integer in every lane.
    pub fn integer(&mut self, number: i64) -> Arg {
        self.bits(number as u64)
    }

    pub fn add(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.float(x86::ADD), a, b)
    }

    pub fn sub(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.float(x86::SUB), a, b)
    }

    pub fn mul(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.float(x86::MUL), a, b)
    }

    pub fn div(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.float(x86::DIV), a, b)
    }

    /// `a < b ? a : b`, so `b` if one is NaN.
    pub fn less(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.float(x86::MIN), a, b)
    }

    /// `a > b ? a : b`, so `b` if one is NaN.
    pub fn greater(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.float(x86::MAX), a, b)
    }

    pub fn sqrt(&mut self, x: Arg) -> Arg {
        self.block.one(self.float(x86::SQRT), x)
    }

    pub fn round(&mut self, x: Arg, rounding: Rounding) -> Arg {
        self.block.one_with(self.sized(x86::ROUND_SINGLE, x86::ROUND_DOUBLE), x, rounding as u8)
    }

    fn fused(&mut self, op: Op, a: Arg, b: Arg, c: Arg) -> Arg {
        self.block.three(if self.wide { op.w() } else { op }, a, b, c)
    }

    /// `a * b + c`, rounded once.
    pub fn mul_add(&mut self, a: Arg, b: Arg, c: Arg) -> Arg {
        self.fused(x86::MUL_ADD, a, b, c)
    }

    /// `a * b - c`, rounded once.
    pub fn mul_sub(&mut self, a: Arg, b: Arg, c: Arg) -> Arg {
        self.fused(x86::MUL_SUB, a, b, c)
    }

    /// `c - a * b`, rounded once.
    pub fn neg_mul_add(&mut self, a: Arg, b: Arg, c: Arg) -> Arg {
        self.fused(x86::NEG_MUL_ADD, a, b, c)
    }

    /// A mask: all bits of the lanes where it holds.
    pub fn compare(&mut self, relation: Relation, a: Arg, b: Arg) -> Arg {
        self.block.two_with(self.float(x86::COMPARE), a, b, relation as u8)
    }

    /// [`Vector::compare`] with a number.
    pub fn compare_to(&mut self, relation: Relation, a: Arg, number: f64) -> Arg {
        let number = self.number(number);
        self.compare(relation, a, number)
    }

    /// Where it is NaN.
    pub fn nan(&mut self, x: Arg) -> Arg {
        self.compare(Relation::Unordered, x, x)
    }

    /// `mask ? a : b`.
    pub fn select(&mut self, mask: Arg, a: Arg, b: Arg) -> Arg {
        self.block.three(x86::BLEND, b, a, mask)
    }

    pub fn and(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(x86::AND, a, b)
    }

    /// `!a & b`.
    pub fn not_and(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(x86::NOT_AND, a, b)
    }

    pub fn or(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(x86::OR, a, b)
    }

    pub fn xor(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(x86::XOR, a, b)
    }

    pub fn not(&mut self, x: Arg) -> Arg {
        let ones = self.bits(u64::MAX);
        self.xor(x, ones)
    }

    fn sign_bit(&mut self) -> Arg {
        self.pick(-0.0, -0.0)
    }

    pub fn neg(&mut self, x: Arg) -> Arg {
        let sign = self.sign_bit();
        self.xor(x, sign)
    }

    pub fn abs(&mut self, x: Arg) -> Arg {
        let rest = self.bits(if self.wide { !(1 << 63) } else { !(1 << 31) });
        self.and(x, rest)
    }

    /// `-|x|`.
    pub fn neg_abs(&mut self, x: Arg) -> Arg {
        let sign = self.sign_bit();
        self.or(x, sign)
    }

    /// The size of one, whose sign is positive, with the sign of the other.
    pub fn with_sign(&mut self, size: Arg, sign: Arg) -> Arg {
        let bit = self.sign_bit();
        let sign = self.and(sign, bit);
        self.or(size, sign)
    }

    pub fn int_add(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.sized(x86::ADD_32, x86::ADD_64), a, b)
    }

    pub fn int_sub(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.sized(x86::SUB_32, x86::SUB_64), a, b)
    }

    pub fn int_mul(&mut self, a: Arg, b: Arg) -> Arg {
        if !self.wide {
            return self.block.two(x86::MUL_32, a, b);
        }
        let (high_a, high_b) = (self.shift_right(a, 32), self.shift_right(b, 32));
        let one = self.block.two(x86::MUL_HALVES, high_a, b);
        let other = self.block.two(x86::MUL_HALVES, high_b, a);
        let high = self.int_add(one, other);
        let high = self.shift_left(high, 32);
        let low = self.block.two(x86::MUL_HALVES, a, b);
        self.int_add(low, high)
    }

    pub fn int_eq(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.sized(x86::EQ_32, x86::EQ_64), a, b)
    }

    /// `a > b` of signed integers.
    pub fn int_gt(&mut self, a: Arg, b: Arg) -> Arg {
        self.block.two(self.sized(x86::GT_32, x86::GT_64), a, b)
    }

    pub fn int_abs(&mut self, x: Arg) -> Arg {
        if !self.wide {
            return self.block.one(x86::ABS_32, x);
        }
        let zero = self.integer(0);
        let negative = self.int_gt(zero, x);
        let flipped = self.xor(x, negative);
        self.int_sub(flipped, negative)
    }

    pub fn shift_left(&mut self, x: Arg, by: u8) -> Arg {
        self.block.one_with(self.sized(x86::SHIFT_LEFT_32, x86::SHIFT_LEFT_64), x, by)
    }

    pub fn shift_right(&mut self, x: Arg, by: u8) -> Arg {
        self.block.one_with(self.sized(x86::SHIFT_RIGHT_32, x86::SHIFT_RIGHT_64), x, by)
    }
}
