//! Orthogonal matrices, by a QR factorisation.

use taut_core::ops::binary::{less, mul, where_};
use taut_core::ops::creation::diag_part;
use taut_core::ops::linalg::qr;
use taut_core::ops::random::normal;
use taut_core::ops::shape::{reshape, transpose};
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, Result, Shape, Tensor};

/// A random matrix with orthonormal rows or columns, times `gain`.
pub(super) fn orthogonal(shape: &Shape, gain: f64, dtype: DType) -> Result<Tensor> {
    let Some((&columns, rest)) = shape.split_last().filter(|(_, rest)| !rest.is_empty()) else {
        return Err(Error::shape(format!("Orthogonal expects rank >= 2, got shape {shape}")));
    };
    let rows = Shape::from(rest.to_vec()).checked_len().ok_or_else(|| {
        Error::shape(format!("the number of elements of shape {shape} exceeds the address space"))
    })?;
    // Half precision is too coarse for a factorisation.
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let (q, r) = qr(normal([rows.max(columns), rows.min(columns)], 0.0, 1.0, wide)?, false)?;
    // Multiplying by the signs of R's diagonal makes the distribution uniform over the orthogonal matrices.
    let signs = where_(less(diag_part(r, 0)?, 0.0)?, -gain, gain)?;
    let q = mul(q, cast(signs, wide)?)?;
    let q = if rows < columns { transpose(q, None)? } else { q };
    let dims: Vec<isize> = shape.iter().map(|&dim| dim as isize).collect();
    cast(reshape(q, &dims)?, dtype)
}
