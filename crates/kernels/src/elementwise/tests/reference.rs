//! Each operation in plain scalar code.

use crate::dtype::{Bool, DType, Element, bf16, f16};
use crate::elementwise::{Binary, Unary};
use crate::math::tests::exact;

/// A float operation in `f64`; tests give 0 or 1.
pub(super) fn unary(code: Unary, x: f64) -> f64 {
    match code {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign => {
            if x.is_nan() || x == 0.0 {
                x
            } else {
                x.signum()
            }
        }
        Unary::Square => x * x,
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Trunc => x.trunc(),
        Unary::Reciprocal => 1.0 / x,
        Unary::Relu => {
            if x > 0.0 || x.is_nan() {
                x
            } else {
                0.0
            }
        }
        Unary::Relu6 => {
            if x.is_nan() {
                x
            } else {
                x.clamp(0.0, 6.0)
            }
        }
        Unary::LeakyRelu(slope) => {
            if x < 0.0 {
                slope * x
            } else {
                x
            }
        }
        Unary::Elu(alpha) => {
            if x > 0.0 {
                x
            } else {
                alpha * x.exp_m1()
            }
        }
        Unary::Selu => {
            1.0507009873554804934193349852946
                * if x > 0.0 { x } else { 1.6732632423543772848170429916717 * x.exp_m1() }
        }
        Unary::IsNan => x.is_nan() as u8 as f64,
        Unary::IsInf => x.is_infinite() as u8 as f64,
        Unary::IsFinite => x.is_finite() as u8 as f64,
        Unary::LogicalNot => (x == 0.0) as u8 as f64,
        Unary::BitwiseNot => unreachable!("not for floats"),
        _ => exact(code, x),
    }
}

/// An integer operation, exactly; the caller wraps the result to its type.
pub(super) fn unary_integer(code: Unary, x: i128) -> Option<i128> {
    Some(match code {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign => x.signum(),
        Unary::Square => x.wrapping_mul(x),
        Unary::Relu => x.max(0),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => x,
        Unary::IsNan | Unary::IsInf => 0,
        Unary::IsFinite => 1,
        Unary::LogicalNot => (x == 0) as i128,
        Unary::BitwiseNot => !x,
        _ => return None,
    })
}

/// A float operation in `f64`.
pub(super) fn binary(code: Binary, a: f64, b: f64) -> Option<f64> {
    let truth = |value: bool| value as u8 as f64;
    Some(match code {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        // a - floor(a / b) * b, where the product would cancel.
        Binary::Mod => a % b + if a % b != 0.0 && (a < 0.0) != (b < 0.0) { b } else { 0.0 },
        Binary::TruncateMod => a % b,
        Binary::Pow => a.powf(b),
        Binary::Maximum => {
            if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                a.max(b)
            }
        }
        Binary::Minimum => {
            if a.is_nan() || b.is_nan() {
                f64::NAN
            } else {
                a.min(b)
            }
        }
        Binary::Atan2 => a.atan2(b),
        Binary::SquaredDifference => (a - b) * (a - b),
        Binary::DivNoNan => {
            if b == 0.0 {
                0.0
            } else {
                a / b
            }
        }
        Binary::MulNoNan => {
            if b == 0.0 {
                0.0
            } else {
                a * b
            }
        }
        Binary::Eq => truth(a == b),
        Binary::Ne => truth(a != b),
        Binary::Lt => truth(a < b),
        Binary::Le => truth(a <= b),
        Binary::Gt => truth(a > b),
        Binary::Ge => truth(a >= b),
        Binary::LogicalAnd => truth(a != 0.0 && b != 0.0),
        Binary::LogicalOr => truth(a != 0.0 || b != 0.0),
        Binary::LogicalXor => truth((a != 0.0) != (b != 0.0)),
        _ => return None,
    })
}

/// An integer operation on `bits` bits, exactly; the caller wraps the result to its type.
pub(super) fn binary_integer(code: Binary, a: i128, b: i128, bits: u32) -> Option<i128> {
    let truth = |value: bool| value as i128;
    let floor = |a: i128, b: i128| a.div_euclid(b) - truth(b < 0 && a.rem_euclid(b) != 0);
    Some(match code {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a.wrapping_mul(b),
        Binary::FloorDiv | Binary::Mod | Binary::TruncateMod if b == 0 => 0,
        Binary::FloorDiv => floor(a, b),
        Binary::Mod => a - floor(a, b) * b,
        Binary::TruncateMod => a % b,
        Binary::Pow if b < 0 => match a {
            1 => 1,
            -1 => {
                if b % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        },
        Binary::Pow => {
            // Square and multiply on the full width; the low bits are what wrapping gives.
            (0..128).rev().fold(1i128, |result, k| {
                let square = result.wrapping_mul(result);
                if b >> k & 1 == 1 { square.wrapping_mul(a) } else { square }
            })
        }
        Binary::Maximum => a.max(b),
        Binary::Minimum => a.min(b),
        Binary::SquaredDifference => (a - b).wrapping_mul(a - b),
        Binary::Eq => truth(a == b),
        Binary::Ne => truth(a != b),
        Binary::Lt => truth(a < b),
        Binary::Le => truth(a <= b),
        Binary::Gt => truth(a > b),
        Binary::Ge => truth(a >= b),
        Binary::LogicalAnd => truth(a != 0 && b != 0),
        Binary::LogicalOr => truth(a != 0 || b != 0),
        Binary::LogicalXor => truth((a != 0) != (b != 0)),
        Binary::BitwiseAnd => a & b,
        Binary::BitwiseOr => a | b,
        Binary::BitwiseXor => a ^ b,
        Binary::ShiftLeft if b < 0 || b >= bits as i128 => 0,
        Binary::ShiftLeft => a << b,
        Binary::ShiftRight if b < 0 || b >= bits as i128 => {
            if a < 0 {
                -1
            } else {
                0
            }
        }
        Binary::ShiftRight => a >> b,
        _ => return None,
    })
}

/// The conversion as documented, through exact integers or `f64`.
pub(super) fn cast<T: Element, U: Element>(x: T) -> U {
    let bytes = bytemuck::bytes_of(&x);
    if T::DTYPE.is_float() || T::DTYPE == DType::Bool {
        return from_double(x.to_f64());
    }
    // Sign- or zero-extended.
    let mut wide = [if T::DTYPE.is_signed_integer() && x.to_f64() < 0.0 { 255 } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let whole = i128::from_le_bytes(wide);
    if U::DTYPE.is_integer() {
        return bytemuck::pod_read_unaligned(&whole.to_le_bytes()[..size_of::<U>()]);
    }
    match U::DTYPE {
        DType::Bool => same(Bool::from(whole != 0)),
        DType::F32 => same(whole as f32),
        _ => from_double(whole as f64),
    }
}

fn from_double<U: Element>(x: f64) -> U {
    match U::DTYPE {
        DType::F16 => same(nearest(x, f16::from_f64(x), f16::to_bits, f16::from_bits)),
        DType::BF16 => same(nearest(x, bf16::from_f64(x), bf16::to_bits, bf16::from_bits)),
        _ => U::from_f64(x),
    }
}

/// The half nearest to `x` (the even one of two), starting from a guess that may be one off.
fn nearest<H: Element>(x: f64, guess: H, to_bits: fn(H) -> u16, from_bits: fn(u16) -> H) -> H {
    if x.is_nan() || x == 0.0 || guess.to_f64() == x {
        return guess;
    }
    let bits = to_bits(guess);
    let candidates = [bits.wrapping_sub(1), bits, bits.wrapping_add(1)];
    // An infinity stands for the number that would follow the largest one.
    let value = |bits: u16| {
        let value = from_bits(bits).to_f64();
        let step = |bits: u16| from_bits(bits).to_f64().abs();
        let next = 2.0 * step(bits.wrapping_sub(1)) - step(bits.wrapping_sub(2));
        if value.is_infinite() { next.copysign(value) } else { value }
    };
    let distance = |bits: &u16| (value(*bits) - x).abs();
    let valid = candidates.into_iter().filter(|bits| value(*bits).signum() == x.signum());
    let best = valid.min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
    from_bits(best.unwrap_or(bits))
}

/// A value of a type that is known to be `U`.
fn same<T: Element, U: Element>(x: T) -> U {
    assert_eq!(T::DTYPE, U::DTYPE);
    bytemuck::pod_read_unaligned(bytemuck::bytes_of(&x))
}
