//! Type promotion: a tensor's bytes do not grow because of the type of the operand beside it.
//!
//! | | bool | u8 | u16 | u32 | u64 | i8 | i16 | i32 | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
//! | **bool** | bool | u8 | u16 | u32 | u64 | i8 | i16 | i32 | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **u8** | | u8 | u16 | u32 | u64 | i16 | i16 | i32 | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **u16** | | | u16 | u32 | u64 | i32 | i32 | i32 | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **u32** | | | | u32 | u64 | i64 | i64 | i64 | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **u64** | | | | | u64 | error | error | error | error | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **i8** | | | | | | i8 | i16 | i32 | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **i16** | | | | | | | i16 | i32 | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **i32** | | | | | | | | i32 | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **i64** | | | | | | | | | i64 | f16 | bf16 | f32 | f64 | c64 | c128 |
//! | **f16** | | | | | | | | | | f16 | f32 | f32 | f64 | c64 | c128 |
//! | **bf16** | | | | | | | | | | | bf16 | f32 | f64 | c64 | c128 |
//! | **f32** | | | | | | | | | | | | f32 | f64 | c64 | c128 |
//! | **f64** | | | | | | | | | | | | | f64 | c128 | c128 |
//! | **c64** | | | | | | | | | | | | | | c64 | c128 |
//! | **c128** | | | | | | | | | | | | | | | c128 |
//!
//! - An integer or bool beside a float or complex number takes its type; two floats take the wider one, and so do the parts of
//!   complex numbers beside floats.
//! - Two integers take the smallest integer type that holds both ranges, as in NumPy. No integer type holds those of `uint64`
//!   and a signed type, and a float would round: that is an error.
//! - Plain numbers are weak: they take the tensor's type. A float beside a tensor of integers makes `float32`, an integer
//!   beside a tensor of bools its own type.
//! - Mathematical functions and true division of integers compute in `float32`.

use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use taut_kernels::DType::{self, *};
use taut_memory::Location;

/// The type that an op on two tensors of these types has; an error for `uint64` and a signed integer.
///
/// ```
/// # use taut_core::{DType, promote};
/// assert_eq!(promote(DType::I32, DType::F32)?, DType::F32);
/// assert_eq!(promote(DType::U8, DType::I8)?, DType::I16);
/// assert!(promote(DType::U64, DType::I8).is_err());
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
pub fn promote(a: DType, b: DType) -> Result<DType> {
    if a == b {
        return Ok(a);
    }
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    match (low, high) {
        (F16, BF16) => Ok(F32),
        (F64, C64) => Ok(C128),
        (U64, signed) if signed.is_signed_integer() => Err(no_common_integer(a, b)),
        (unsigned, signed) if unsigned.is_unsigned_integer() && signed.is_signed_integer() => {
            Ok(signed_of_size((unsigned.size() * 2).max(signed.size())))
        }
        (_, wider) => Ok(wider),
    }
}

#[cold]
fn no_common_integer(a: DType, b: DType) -> Error {
    Error::dtype(format!("no integer type holds the values of both {a} and {b}"))
        .help("cast one of them to the other's type")
}

fn signed_of_size(size: usize) -> DType {
    match size {
        2 => I16,
        4 => I32,
        _ => I64,
    }
}

/// The type that the tensors of a call promote to; `float32` if there are none. An error names the op and the caller's line.
#[track_caller]
pub(crate) fn common_dtype<'a>(
    op: &'static str,
    tensors: impl IntoIterator<Item = &'a Tensor> + Clone,
) -> Result<DType> {
    let mut dtypes = tensors.clone().into_iter().map(Tensor::dtype);
    let first = dtypes.next().unwrap_or(F32);
    match dtypes.try_fold(first, promote) {
        Ok(dtype) => Ok(dtype),
        Err(error) => Err(error.in_op(op, tensors.into_iter().map(Tensor::spec)).at(Location::caller())),
    }
}

/// The type that an op on a tensor and a plain number has.
#[inline]
pub fn promote_scalar(dtype: DType, scalar: Scalar) -> DType {
    match scalar {
        Scalar::Complex(_) => dtype.complex(),
        Scalar::Float(_) if !dtype.is_inexact() => F32,
        Scalar::Int(_) | Scalar::Uint(_) if dtype == Bool => scalar.default_dtype(),
        _ => dtype,
    }
}

/// The floating-point or complex type that mathematical functions and true division of this type compute in.
#[inline]
pub fn float_of(dtype: DType) -> DType {
    if dtype.is_inexact() { dtype } else { F32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex;

    #[test]
    fn numbers_are_weak() {
        let _ledger = taut_memory::testing::ledger_check();
        for dtype in DType::ALL {
            let float = promote_scalar(dtype, Scalar::Float(0.5));
            assert_eq!(float, if dtype.is_inexact() { dtype } else { F32 });
            let complex = promote_scalar(dtype, Scalar::Complex(Complex { re: 0.0, im: 1.0 }));
            assert_eq!(complex, if matches!(dtype, F64 | C128) { C128 } else { C64 });
            assert_eq!(promote_scalar(dtype, Scalar::Bool(true)), dtype);
            let integer = promote_scalar(dtype, Scalar::Int(1));
            assert_eq!(integer, if dtype == Bool { I32 } else { dtype });
        }
        assert_eq!(promote_scalar(Bool, Scalar::Int(1 << 40)), I64);
    }

    #[test]
    fn refusal_names_both_types_in_order() {
        let _ledger = taut_memory::testing::ledger_check();
        let message = promote(I32, U64).unwrap_err().to_string();
        assert!(message.contains("both int32 and uint64"), "{message}");
        assert!(message.contains("cast"), "{message}");
    }

    /// The documented table is the tested one: it is read from this file.
    #[test]
    fn table_in_the_docs_is_true() {
        let _ledger = taut_memory::testing::ledger_check();
        let short = |name: &str| match name {
            "bool" => Bool,
            "bf16" => BF16,
            _ => {
                let (kind, bits) = name.split_at(1);
                let kind = ["uint", "int", "float", "complex"]["uifc".find(kind).unwrap()];
                DType::from_name(&format!("{kind}{bits}")).unwrap()
            }
        };
        let mut checked = 0;
        for line in include_str!("promote.rs").lines().filter(|l| l.starts_with("//! | **")) {
            let cells: Vec<&str> = line.trim_start_matches("//! |").split('|').map(str::trim).collect();
            let row = short(cells[0].trim_matches('*'));
            for (column, cell) in DType::ALL.iter().zip(&cells[1..]).filter(|(_, cell)| !cell.is_empty()) {
                let expected = (*cell != "error").then(|| short(cell));
                assert_eq!(promote(row, *column).ok(), expected, "{row} with {column}");
                assert_eq!(promote(*column, row).ok(), expected, "{column} with {row}");
                checked += 1;
            }
        }
        assert_eq!(checked, 15 * 16 / 2);
    }
}
