//! Type promotion: NumPy's table, with `bfloat16` added.
//!
//! | | bool | u8 | u16 | u32 | u64 | i8 | i16 | i32 | i64 | f16 | bf16 | f32 | f64 |
//! |---|---|---|---|---|---|---|---|---|---|---|---|---|---|
//! | **bool** | bool | u8 | u16 | u32 | u64 | i8 | i16 | i32 | i64 | f16 | bf16 | f32 | f64 |
//! | **u8** | | u8 | u16 | u32 | u64 | i16 | i16 | i32 | i64 | f16 | bf16 | f32 | f64 |
//! | **u16** | | | u16 | u32 | u64 | i32 | i32 | i32 | i64 | f32 | f32 | f32 | f64 |
//! | **u32** | | | | u32 | u64 | i64 | i64 | i64 | i64 | f64 | f64 | f64 | f64 |
//! | **u64** | | | | | u64 | f64 | f64 | f64 | f64 | f64 | f64 | f64 | f64 |
//! | **i8** | | | | | | i8 | i16 | i32 | i64 | f16 | bf16 | f32 | f64 |
//! | **i16** | | | | | | | i16 | i32 | i64 | f32 | f32 | f32 | f64 |
//! | **i32** | | | | | | | | i32 | i64 | f64 | f64 | f64 | f64 |
//! | **i64** | | | | | | | | | i64 | f64 | f64 | f64 | f64 |
//! | **f16** | | | | | | | | | | f16 | f32 | f32 | f64 |
//! | **bf16** | | | | | | | | | | | bf16 | f32 | f64 |
//! | **f32** | | | | | | | | | | | | f32 | f64 |
//!
//! Plain numbers are weak: they take the tensor's type if its kind can hold them (`float32` tensor + `2.5` is
//! `float32`), else the kind's own type (`int32` tensor + `2.5` is `float64`, as in NumPy).

use crate::scalar::Scalar;
use taut_kernels::DType::{self, *};

/// The type that an op on two tensors of these types has.
///
/// ```
/// # use taut_core::{DType, promote};
/// assert_eq!(promote(DType::I32, DType::F32), DType::F64);
/// assert_eq!(promote(DType::U8, DType::I8), DType::I16);
/// ```
#[inline]
pub fn promote(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    match (low, high) {
        (Bool, other) => other,
        (F16, BF16) => F32,
        (low, F64) if low <= F64 => F64,
        (F16 | BF16, F32) => F32,
        (U8 | I8, float) if float.is_float() => float,
        (U16 | I16, F16 | BF16 | F32) => F32,
        (_, float) if float.is_float() => F64,
        (U64, _) => F64,
        (unsigned, signed) if unsigned.is_unsigned_integer() && signed.is_signed_integer() => {
            signed_of_size((unsigned.size() * 2).max(signed.size()))
        }
        (_, wider) => wider,
    }
}

fn signed_of_size(size: usize) -> DType {
    match size {
        2 => I16,
        4 => I32,
        _ => I64,
    }
}

/// The type that an op on a tensor and a plain number has.
#[inline]
pub fn promote_scalar(dtype: DType, scalar: Scalar) -> DType {
    match scalar {
        Scalar::Float(_) if dtype.is_float() => dtype,
        Scalar::Float(_) => F64,
        Scalar::Bool(_) => dtype,
        Scalar::Int(_) | Scalar::Uint(_) if dtype == Bool => I64,
        Scalar::Int(_) | Scalar::Uint(_) => dtype,
    }
}

/// The floating-point type that mathematical functions of this type compute in, as NumPy chooses it.
#[inline]
pub fn float_of(dtype: DType) -> DType {
    match dtype {
        F16 | BF16 | F32 | F64 => dtype,
        Bool | U8 | I8 => F16,
        U16 | I16 => F32,
        U32 | I32 | U64 | I64 => F64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented table is the tested one: it is read from this file.
    #[test]
    fn table_in_the_docs_is_true() {
        let _ledger = taut_memory::testing::ledger_check();
        let short = |name: &str| match name {
            "bool" => Bool,
            "bf16" => BF16,
            _ => {
                let (kind, bits) = name.split_at(1);
                let kind = ["uint", "int", "float"]["uif".find(kind).unwrap()];
                DType::from_name(&format!("{kind}{bits}")).unwrap()
            }
        };
        let mut checked = 0;
        for line in include_str!("promote.rs").lines().filter(|l| l.starts_with("//! | **")) {
            let cells: Vec<&str> = line.trim_start_matches("//! |").split('|').map(str::trim).collect();
            let row = short(cells[0].trim_matches('*'));
            for (column, cell) in DType::ALL.iter().zip(&cells[1..]).filter(|(_, cell)| !cell.is_empty()) {
                assert_eq!(promote(row, *column), short(cell), "{row} with {column}");
                assert_eq!(promote(*column, row), short(cell), "{column} with {row}");
                checked += 1;
            }
        }
        assert_eq!(checked, 13 * 14 / 2 - 1);
    }
}
