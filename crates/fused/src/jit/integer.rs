//! Operations on integers of 32 or 64 bits. Smaller ones are in 32-bit lanes, extended by their sign or by zeros.

use super::block::Arg;
use super::encode as x86;
use super::vector::Vector;
use taut_kernels::DType;
use taut_kernels::elementwise::{Binary, Unary};

/// Whether comparing as signed numbers would be wrong: smaller unsigned ones are positive in their lanes.
fn fills_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::U32 | DType::U64)
}

impl Vector<'_> {
    /// An operation of one operand, or `None` if it has no code.
    pub fn int_unary(&mut self, code: Unary, dtype: DType, x: Arg) -> Option<Arg> {
        let unsigned = dtype.is_unsigned_integer();
        let zero = self.integer(0);
        Some(match code {
            Unary::Neg => self.int_sub(zero, x),
            Unary::Abs | Unary::Relu if unsigned => x,
            Unary::Abs => self.int_abs(x),
            Unary::Relu => {
                let negative = self.int_gt(zero, x);
                self.not_and(negative, x)
            }
            Unary::Sign if unsigned => {
                let (one, zeros) = (self.integer(1), self.int_eq(x, zero));
                self.not_and(zeros, one)
            }
            // A mask is minus one.
            Unary::Sign => {
                let (below, above) = (self.int_gt(zero, x), self.int_gt(x, zero));
                self.int_sub(below, above)
            }
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
    pub fn int_binary(&mut self, code: Binary, dtype: DType, a: Arg, b: Arg) -> Option<Arg> {
        Some(match code {
            Binary::Add => self.int_add(a, b),
            Binary::Sub => self.int_sub(a, b),
            Binary::Mul => self.int_mul(a, b),
            Binary::SquaredDifference => {
                let difference = self.int_sub(a, b);
                self.int_mul(difference, difference)
            }
            Binary::Maximum => {
                let above = self.int_above(dtype, a, b);
                self.select(above, a, b)
            }
            Binary::Minimum => {
                let above = self.int_above(dtype, a, b);
                self.select(above, b, a)
            }
            Binary::Eq => self.int_eq(a, b),
            Binary::Ne => {
                let equal = self.int_eq(a, b);
                self.not(equal)
            }
            Binary::Lt => self.int_above(dtype, b, a),
            Binary::Gt => self.int_above(dtype, a, b),
            Binary::Le => {
                let above = self.int_above(dtype, a, b);
                self.not(above)
            }
            Binary::Ge => {
                let below = self.int_above(dtype, b, a);
                self.not(below)
            }
            Binary::LogicalAnd | Binary::LogicalOr | Binary::LogicalXor => {
                let (a, b) = (self.int_nonzero(a), self.int_nonzero(b));
                return self.truth(code, a, b);
            }
            Binary::BitwiseAnd => self.and(a, b),
            Binary::BitwiseOr => self.or(a, b),
            Binary::BitwiseXor => self.xor(a, b),
            // The instructions' distances are unsigned too, and at the width and beyond give what we define.
            Binary::ShiftLeft => self.shift_by(x86::SHIFT_LEFT_BY, a, b),
            Binary::ShiftRight if dtype.is_unsigned_integer() => self.shift_by(x86::SHIFT_RIGHT_BY, a, b),
            Binary::ShiftRight if !self.wide => self.shift_by(x86::SHIFT_SIGNED_BY, a, b),
            _ => return None,
        })
    }

    fn shift_by(&mut self, op: x86::Op, x: Arg, by: Arg) -> Arg {
        self.block.two(if self.wide { op.w() } else { op }, x, by)
    }

    /// Where it is not zero.
    pub fn int_nonzero(&mut self, x: Arg) -> Arg {
        let zero = self.integer(0);
        let zeros = self.int_eq(x, zero);
        self.not(zeros)
    }

    /// `a > b`.
    fn int_above(&mut self, dtype: DType, a: Arg, b: Arg) -> Arg {
        if !fills_unsigned(dtype) {
            return self.int_gt(a, b);
        }
        // Moving zero to the least signed number keeps the order.
        let (a, b) = (self.neg(a), self.neg(b));
        self.int_gt(a, b)
    }

    /// A result in 32-bit lanes as a smaller type keeps it.
    pub fn settle(&mut self, dtype: DType, x: Arg) -> Arg {
        match dtype {
            DType::I8 => self.extend_sign(x, 24),
            DType::I16 => self.extend_sign(x, 16),
            DType::U8 => {
                let low = self.bits(0xff);
                self.and(x, low)
            }
            DType::U16 => {
                let low = self.bits(0xffff);
                self.and(x, low)
            }
            DType::F16 => {
                let half = self.block.one_with(x86::F32_TO_F16, x, 0);
                self.block.one(x86::F16_TO_F32, half)
            }
            DType::BF16 => self.round_bf16(x),
            _ => x,
        }
    }

    fn extend_sign(&mut self, x: Arg, by: u8) -> Arg {
        let high = self.shift_left(x, by);
        self.block.one_with(x86::SHIFT_SIGNED_32, high, by)
    }

    fn round_bf16(&mut self, x: Arg) -> Arg {
        // Half of the lost part, or a little less if the kept part is even.
        let (one, most) = (self.integer(1), self.integer(0x7fff));
        let last = self.shift_right(x, 16);
        let last = self.and(last, one);
        let bias = self.int_add(last, most);
        let rounded = self.int_add(x, bias);
        // A NaN whose payload lies in the lost bits must not become an infinity.
        let nan = self.nan(x);
        let quiet = self.integer(0x40_0000);
        let quiet = self.or(x, quiet);
        let rounded = self.select(nan, quiet, rounded);
        let kept = self.bits(0xffff_0000);
        self.and(rounded, kept)
    }
}
