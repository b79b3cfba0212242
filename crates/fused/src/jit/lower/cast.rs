//! Conversions between types, and between widths of lanes.

use super::{Lowering, Part, is_wide};
use crate::jit::block::Arg;
use crate::jit::encode as x86;
use crate::jit::vector::{Relation, Rounding, Vector};
use taut_kernels::DType;

/// `2^52`: an integer below it, put into the low bits, is the fraction of a float.
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
    pub fn mask(&mut self, part: Part, wide: bool) -> Part {
        match part.dtype {
            DType::Bool if wide && !part.wide => self.widen(part, x86::I32_TO_64),
            DType::Bool if part.wide && !wide => self.narrow(part),
            _ => part,
        }
    }

    /// One vector of narrow lanes as two of wide ones.
    fn widen(&mut self, part: Part, op: x86::Op) -> Part {
        let [x, _] = part.vectors;
        let low = self.block.one(op, x);
        let high = match x {
            // A constant is the same everywhere.
            Arg::Constant(_) => low,
            Arg::Value(_) => {
                let high = self.block.one_with(x86::HIGH_HALF, x, 1);
                self.block.one(op, high)
            }
        };
        Part { wide: true, vectors: [low, high], ..part }
    }

    /// The low halves of the lanes of two vectors as one.
    fn narrow(&mut self, part: Part) -> Part {
        let [low, high] = part.vectors;
        let mixed = self.block.two_with(x86::SHUFFLE, low, high, 0x88);
        let vector = self.block.one_with(x86::PERMUTE_64, mixed, 0xd8);
        Part { wide: false, vectors: [vector; 2], ..part }
    }

    /// Two vectors, each converted to half its size, as one.
    fn join(&mut self, part: Part, op: x86::Op) -> Part {
        let [low, high] = part.vectors.map(|x| self.block.one(op, x));
        let vector = self.block.two_with(x86::JOIN_HALVES, low, high, 1);
        Part { wide: false, vectors: [vector; 2], ..part }
    }

    /// A part as another type, or `None` if that has no code.
    pub fn cast(&mut self, x: Part, to: DType) -> Option<Part> {
        let from = x.dtype;
        if from == to {
            return Some(x);
        }
        let part = match (from, to) {
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
            // Between integers: bits are cut off, or the sign says what to add.
            (_, _) => match (is_wide(from), is_wide(to)) {
                (true, false) => self.narrow(x),
                (false, true) => {
                    self.widen(x, if from.is_unsigned_integer() { x86::U32_TO_64 } else { x86::I32_TO_64 })
                }
                _ => x,
            },
        };
        self.settle(Part { dtype: to, ..part })
    }

    fn bool_to(&mut self, x: Part, to: DType) -> Option<Part> {
        let x = self.mask(x, is_wide(to));
        self.map(to, [x], |lanes, [mask]| {
            let one = if to.is_float() { lanes.number(1.0) } else { lanes.integer(1) };
            Some(lanes.and(mask, one))
        })
    }

    fn single_to(&mut self, x: Part, to: DType) -> Option<Part> {
        match to {
            DType::F64 => Some(self.widen(x, x86::F32_TO_F64)),
            DType::U32 => {
                let wide = self.widen(x, x86::F32_TO_F64);
                self.double_to(wide, to)
            }
            _ if to.is_float() => Some(x),
            DType::I32 => self.map(to, [x], |lanes, [x]| {
                // What does not fit gives the least number; where it is too large, flipping the bits gives the largest.
                let cut = lanes.block.one(x86::F32_TO_I32, x);
                let large = lanes.compare_to(Relation::GreaterEqual, x, 2147483648.0);
                let cut = lanes.xor(cut, large);
                let number = lanes.compare(Relation::Ordered, x, x);
                Some(lanes.and(cut, number))
            }),
            _ => {
                let bounds = limits(to)?;
                self.map(to, [x], |lanes, [x]| {
                    let x = lanes.saturated(x, bounds);
                    Some(lanes.block.one(x86::F32_TO_I32, x))
                })
            }
        }
    }

    fn double_to(&mut self, x: Part, to: DType) -> Option<Part> {
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
                    let cut = lanes.round(x, Rounding::Zero);
                    let whole = lanes.number(WHOLE);
                    Some(lanes.add(cut, whole))
                })?;
                Some(self.narrow(whole))
            }
        }
    }

    /// To `f32`, but what is inexact is cut off with its last bit set: so that the rounding to a half type that follows
    /// sees which side of a tie it was on.
    fn round_to_odd(&mut self, x: Part) -> Option<Part> {
        let near = self.join(x, x86::F64_TO_F32);
        let back = self.widen(near, x86::F32_TO_F64);
        let away = self.map(DType::Bool, [x, back], |lanes, [x, back]| {
            let (x, back) = (lanes.abs(x), lanes.abs(back));
            Some(lanes.compare(Relation::Greater, back, x))
        })?;
        let inexact = self
            .map(DType::Bool, [x, back], |lanes, [x, back]| Some(lanes.compare(Relation::Differ, back, x)))?;
        let (away, inexact) = (self.mask(away, false), self.mask(inexact, false));
        self.map(DType::F32, [near, away, inexact], |lanes, [near, away, inexact]| {
            // A mask is minus one.
            let cut = lanes.int_add(near, away);
            let one = lanes.integer(1);
            let bit = lanes.and(inexact, one);
            Some(lanes.or(cut, bit))
        })
    }

    fn integer_to(&mut self, x: Part, to: DType) -> Option<Part> {
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
                    let x = lanes.or(x, whole);
                    Some(lanes.sub(x, whole))
                })?
            }
            DType::I32 if to != DType::F32 => self.widen(x, x86::I32_TO_F64),
            _ if to == DType::F64 => self.widen(x, x86::I32_TO_F64),
            _ => return self.map(to, [x], |lanes, [x]| Some(lanes.block.one(x86::I32_TO_F32, x))),
        };
        let double = Part { dtype: DType::F64, ..double };
        if to == DType::F64 { Some(double) } else { self.double_to(double, to) }
    }
}

impl Vector<'_> {
    /// A float kept between bounds; NaN becomes zero.
    fn saturated(&mut self, x: Arg, (low, high): (f64, f64)) -> Arg {
        let number = self.compare(Relation::Ordered, x, x);
        let x = self.and(x, number);
        let x = self.at_most(x, high);
        self.at_least(x, low)
    }

    /// A 64-bit integer as `f64`: each half is put into the fraction of a float, and their sum rounds once.
    fn double_of(&mut self, x: Arg, signed: bool) -> Arg {
        const HIGH: f64 = WHOLE * 4294967296.0;
        let low = self.bits(0xffff_ffff);
        let low = self.and(x, low);
        let whole = self.number(WHOLE);
        let low = self.or(low, whole);
        let x = if signed { self.neg(x) } else { x };
        let high = self.shift_right(x, 32);
        let unit = self.number(HIGH);
        let high = self.or(high, unit);
        let bias = if signed { 9223372036854775808.0 } else { 0.0 };
        let offset = self.number(HIGH + bias + WHOLE);
        let high = self.sub(high, offset);
        self.add(high, low)
    }
}
