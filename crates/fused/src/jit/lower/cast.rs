//! Conversions between types, and between widths of lanes.

use super::{LaneGroup, Lowering, is_wide};
use crate::jit::block::Arg;
use crate::jit::encode as x86;
use crate::jit::vector::{Relation, Rounding, Vector};
use taut_kernels::DType;

/// `2^52`: or-ing an integer below it into the low bits makes a float that is `2^52` plus the integer.
const WHOLE: f64 = 4503599627370496.0;

/// The least and the largest number of an integer type of up to 32 bits.
fn limits(dtype: DType) -> Option<(f64, f64)> {
    Some(match dtype {
        DType::I8 => (i8::MIN as f64, i8::MAX as f64),
        DType::I16 => (i16::MIN as f64, i16::MAX as f64),
        DType::I32 => (i32::MIN as f64, i32::MAX as f64),
        DType::U8 => (0.0, u8::MAX as f64),
        DType::U16 => (0.0, u16::MAX as f64),
        DType::U32 => (0.0, u32::MAX as f64),
        _ => return None,
    })
}

impl Lowering<'_> {
    /// A boolean as a mask of lanes of this width; other types stay.
    pub fn mask(&mut self, group: LaneGroup, wide: bool) -> LaneGroup {
        match group.dtype {
            DType::Bool if wide && !group.wide => self.widen(group, x86::I32_TO_64),
            DType::Bool if group.wide && !wide => self.narrow(group),
            _ => group,
        }
    }

    /// One vector of narrow lanes as two of wide ones.
    fn widen(&mut self, group: LaneGroup, op: x86::Op) -> LaneGroup {
        let [x, _] = group.vectors;
        let low = self.block.get_mut().one(op, x);
        let high = match x {
            // A constant is the same everywhere.
            Arg::Constant(_) => low,
            Arg::Value(_) => {
                let high = self.block.get_mut().one_with(x86::HIGH_HALF, x, 1);
                self.block.get_mut().one(op, high)
            }
        };
        LaneGroup { wide: true, vectors: [low, high], ..group }
    }

    /// The low halves of the lanes of two vectors as one.
    fn narrow(&mut self, group: LaneGroup) -> LaneGroup {
        let [low, high] = group.vectors;
        let mixed = self.block.get_mut().two_with(x86::SHUFFLE, low, high, 0x88);
        let vector = self.block.get_mut().one_with(x86::PERMUTE_64, mixed, 0xd8);
        LaneGroup { wide: false, vectors: [vector; 2], ..group }
    }

    /// Two vectors, each converted to half its size, as one.
    fn join(&mut self, group: LaneGroup, op: x86::Op) -> LaneGroup {
        let [low, high] = group.vectors.map(|x| self.block.get_mut().one(op, x));
        let vector = self.block.get_mut().two_with(x86::JOIN_HALVES, low, high, 1);
        LaneGroup { wide: false, vectors: [vector; 2], ..group }
    }

    /// The group converted to another type, or `None` if the conversion has no code.
    pub fn cast(&mut self, x: LaneGroup, to: DType) -> Option<LaneGroup> {
        let from = x.dtype;
        if from == to {
            return Some(x);
        }
        let group = match (from, to) {
            (DType::Bool, _) => self.bool_to(x, to)?,
            (_, DType::Bool) => self.map(to, [x], |lanes, [x]| {
                Some(if from.is_float() {
                    lanes.compare_to(Relation::Differ, x, 0.0)
                } else {
                    lanes.int_nonzero(x)
                })
            })?,
            (DType::F64, _) => self.double_to(x, to)?,
            (_, _) if from.is_float() => self.single_to(x, to)?,
            (_, _) if to.is_float() => self.integer_to(x, to)?,
            // Between integers: bits are cut off, or extended by sign or zeros.
            (_, _) => match (is_wide(from), is_wide(to)) {
                (true, false) => self.narrow(x),
                (false, true) => {
                    self.widen(x, if from.is_unsigned_integer() { x86::U32_TO_64 } else { x86::I32_TO_64 })
                }
                _ => x,
            },
        };
        self.round_to_type(LaneGroup { dtype: to, ..group })
    }

    fn bool_to(&mut self, x: LaneGroup, to: DType) -> Option<LaneGroup> {
        let x = self.mask(x, is_wide(to));
        self.map(to, [x], |lanes, [mask]| {
            let one = if to.is_float() { lanes.number(1.0) } else { lanes.integer(1) };
            Some(lanes.and(mask, one))
        })
    }

    fn single_to(&mut self, x: LaneGroup, to: DType) -> Option<LaneGroup> {
        match to {
            DType::F64 => Some(self.widen(x, x86::F32_TO_F64)),
            DType::U32 => {
                let wide = self.widen(x, x86::F32_TO_F64);
                self.double_to(wide, to)
            }
            _ if to.is_float() => Some(x),
            DType::I32 => self.map(to, [x], |lanes, [x]| {
                // The instruction gives the least integer if the value is out of range; flipped, it is the largest.
                let cut = lanes.one(x86::F32_TO_I32, x);
                let cut = lanes.xor(cut, lanes.compare_to(Relation::GreaterEqual, x, 2147483648.0));
                Some(lanes.and(cut, lanes.compare(Relation::Ordered, x, x)))
            }),
            _ => {
                let bounds = limits(to)?;
                self.map(to, [x], |lanes, [x]| Some(lanes.one(x86::F32_TO_I32, lanes.saturated(x, bounds))))
            }
        }
    }

    fn double_to(&mut self, x: LaneGroup, to: DType) -> Option<LaneGroup> {
        match to {
            DType::F32 => Some(self.join(x, x86::F64_TO_F32)),
            _ if to.is_float() => self.round_to_odd(x),
            _ => {
                let bounds = limits(to)?;
                let bounded = self.map(x.dtype, [x], |lanes, [x]| Some(lanes.saturated(x, bounds)))?;
                if to != DType::U32 {
                    return Some(self.join(bounded, x86::F64_TO_I32));
                }
                let whole = self.map(x.dtype, [bounded], |lanes, [x]| {
                    Some(lanes.add(lanes.round(x, Rounding::Zero), lanes.number(WHOLE)))
                })?;
                Some(self.narrow(whole))
            }
        }
    }

    /// To `f32`, rounded to odd: an inexact value is truncated and its last bit set, so that rounding to a half type
    /// afterwards rounds once.
    fn round_to_odd(&mut self, x: LaneGroup) -> Option<LaneGroup> {
        let near = self.join(x, x86::F64_TO_F32);
        let back = self.widen(near, x86::F32_TO_F64);
        let away = self.map(DType::Bool, [x, back], |lanes, [x, back]| {
            Some(lanes.compare(Relation::Greater, lanes.abs(back), lanes.abs(x)))
        })?;
        let inexact = self
            .map(DType::Bool, [x, back], |lanes, [x, back]| Some(lanes.compare(Relation::Differ, back, x)))?;
        let (away, inexact) = (self.mask(away, false), self.mask(inexact, false));
        self.map(DType::F32, [near, away, inexact], |lanes, [near, away, inexact]| {
            // A mask is minus one.
            Some(lanes.or(lanes.int_add(near, away), lanes.and(inexact, lanes.integer(1))))
        })
    }

    fn integer_to(&mut self, x: LaneGroup, to: DType) -> Option<LaneGroup> {
        let from = x.dtype;
        let double = match from {
            DType::I64 | DType::U64 if to == DType::F32 => return None,
            DType::I64 | DType::U64 => {
                self.map(DType::F64, [x], |lanes, [x]| Some(lanes.double_of(x, from == DType::I64)))?
            }
            DType::U32 => {
                let wide = self.widen(x, x86::U32_TO_64);
                self.map(DType::F64, [wide], |lanes, [x]| {
                    let whole = lanes.number(WHOLE);
                    Some(lanes.sub(lanes.or(x, whole), whole))
                })?
            }
            DType::I32 if to != DType::F32 => self.widen(x, x86::I32_TO_F64),
            _ if to == DType::F64 => self.widen(x, x86::I32_TO_F64),
            _ => return self.map(to, [x], |lanes, [x]| Some(lanes.one(x86::I32_TO_F32, x))),
        };
        let double = LaneGroup { dtype: DType::F64, ..double };
        if to == DType::F64 { Some(double) } else { self.double_to(double, to) }
    }
}

impl Vector<'_> {
    /// A float kept between bounds; NaN becomes zero.
    fn saturated(self, x: Arg, (low, high): (f64, f64)) -> Arg {
        let x = self.and(x, self.compare(Relation::Ordered, x, x));
        self.larger(self.number(low), self.smaller(self.number(high), x))
    }

    /// A 64-bit integer as `f64`: each half is put into the fraction of a float, and their sum rounds once.
    fn double_of(self, x: Arg, signed: bool) -> Arg {
        const HIGH: f64 = WHOLE * 4294967296.0;
        let low = self.or(self.and(x, self.bits(0xffff_ffff)), self.number(WHOLE));
        let x = if signed { self.neg(x) } else { x };
        let high = self.or(self.shift_right(x, 32), self.number(HIGH));
        let bias = if signed { 9223372036854775808.0 } else { 0.0 };
        self.add(self.sub(high, self.number(HIGH + bias + WHOLE)), low)
    }
}
