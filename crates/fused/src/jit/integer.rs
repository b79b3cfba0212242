//! Operations on integers of 32 or 64 bits. Smaller ones are in 32-bit lanes, extended by their sign or by zeros.

use super::block::Arg;
use super::encode as x86;
use super::vector::Vector;
use taut_kernels::DType;
use taut_kernels::elementwise::{Binary, Unary};

/// Whether a signed comparison would be wrong: smaller unsigned types are positive in their lanes.
fn fills_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::U32 | DType::U64)
}

impl Vector<'_> {
    /// An operation of one operand, or `None` if it has no code.
    pub fn int_unary(self, code: Unary, dtype: DType, x: Arg) -> Option<Arg> {
        let unsigned = dtype.is_unsigned_integer();
        let zero = self.integer(0);
        Some(match code {
            Unary::Neg => self.int_sub(zero, x),
            Unary::Abs | Unary::Relu if unsigned => x,
            Unary::Abs => self.int_abs(x),
            Unary::Relu => self.not_and(self.int_gt(zero, x), x),
            Unary::Sign if unsigned => self.not_and(self.int_eq(x, zero), self.integer(1)),
            // A mask is minus one.
            Unary::Sign => self.int_sub(self.int_gt(zero, x), self.int_gt(x, zero)),
            Unary::Square => self.int_mul(x, x),
            Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => x,
            Unary::IsNan | Unary::IsInf => zero,
            Unary::IsFinite => self.bits(u64::MAX),
            Unary::LogicalNot => self.int_eq(x, zero),
            Unary::BitwiseNot => self.not(x),
            _ => return None,
        })
    }

    /// An operation of two operands, or `None` if it has no code.
    pub fn int_binary(self, code: Binary, dtype: DType, a: Arg, b: Arg) -> Option<Arg> {
        Some(match code {
            Binary::Add => self.int_add(a, b),
            Binary::Sub => self.int_sub(a, b),
            Binary::Mul => self.int_mul(a, b),
            Binary::SquaredDifference => {
                let difference = self.int_sub(a, b);
                self.int_mul(difference, difference)
            }
            Binary::Maximum => self.select(self.int_above(dtype, a, b), a, b),
            Binary::Minimum => self.select(self.int_above(dtype, a, b), b, a),
            Binary::Eq => self.int_eq(a, b),
            Binary::Ne => self.not(self.int_eq(a, b)),
            Binary::Lt => self.int_above(dtype, b, a),
            Binary::Gt => self.int_above(dtype, a, b),
            Binary::Le => self.not(self.int_above(dtype, a, b)),
            Binary::Ge => self.not(self.int_above(dtype, b, a)),
            Binary::LogicalAnd | Binary::LogicalOr | Binary::LogicalXor => {
                return self.truth(code, self.int_nonzero(a), self.int_nonzero(b));
            }
            Binary::BitwiseAnd => self.and(a, b),
            Binary::BitwiseOr => self.or(a, b),
            Binary::BitwiseXor => self.xor(a, b),
            // The instructions treat distances as unsigned, and from the width on give the defined result.
            Binary::ShiftLeft => self.shift_by(x86::SHIFT_LEFT_BY, a, b),
            Binary::ShiftRight if dtype.is_unsigned_integer() => self.shift_by(x86::SHIFT_RIGHT_BY, a, b),
            Binary::ShiftRight if !self.wide => self.shift_by(x86::SHIFT_SIGNED_BY, a, b),
            _ => return None,
        })
    }

    fn shift_by(self, op: x86::Op, x: Arg, by: Arg) -> Arg {
        self.two(if self.wide { op.w() } else { op }, x, by)
    }

    /// Where it is not zero.
    pub fn int_nonzero(self, x: Arg) -> Arg {
        self.not(self.int_eq(x, self.integer(0)))
    }

    /// `a > b`.
    fn int_above(self, dtype: DType, a: Arg, b: Arg) -> Arg {
        if !fills_unsigned(dtype) {
            return self.int_gt(a, b);
        }
        // Flipping the sign bit maps unsigned order to signed order.
        self.int_gt(self.neg(a), self.neg(b))
    }

    /// A result in 32-bit lanes, rounded or wrapped to a smaller type.
    pub fn round_to_type(self, dtype: DType, x: Arg) -> Arg {
        match dtype {
            DType::I8 => self.extend_sign(x, 24),
            DType::I16 => self.extend_sign(x, 16),
            DType::U8 => self.and(x, self.bits(0xff)),
            DType::U16 => self.and(x, self.bits(0xffff)),
            DType::F16 => self.one(x86::F16_TO_F32, self.one_with(x86::F32_TO_F16, x, 0)),
            DType::BF16 => self.round_bf16(x),
            _ => x,
        }
    }

    fn extend_sign(self, x: Arg, by: u8) -> Arg {
        self.one_with(x86::SHIFT_SIGNED_32, self.shift_left(x, by), by)
    }

    fn round_bf16(self, x: Arg) -> Arg {
        // Half of the lost part, or a little less if the kept part is even.
        let last = self.and(self.shift_right(x, 16), self.integer(1));
        let rounded = self.int_add(x, self.int_add(last, self.integer(0x7fff)));
        // A NaN whose payload lies in the lost bits must not become an infinity.
        let quiet = self.or(x, self.integer(0x40_0000));
        self.and(self.select(self.nan(x), quiet, rounded), self.bits(0xffff_0000))
    }

    /// A logical operation on masks.
    pub fn truth(self, code: Binary, a: Arg, b: Arg) -> Option<Arg> {
        use Binary::*;
        Some(match code {
            Add | Maximum | LogicalOr | BitwiseOr => self.or(a, b),
            Mul | Minimum | LogicalAnd | BitwiseAnd => self.and(a, b),
            LogicalXor | BitwiseXor | Ne => self.xor(a, b),
            Eq => self.not(self.xor(a, b)),
            Lt => self.not_and(a, b),
            Gt => self.not_and(b, a),
            Le => self.not(self.not_and(b, a)),
            Ge => self.not(self.not_and(a, b)),
            _ => return None,
        })
    }
}
