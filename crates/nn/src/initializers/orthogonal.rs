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
        return Err(Error::shape(format!("an orthogonal matrix has two axes or more, not {shape}")));
    };
    let rows = Shape::from(rest.to_vec())
        .checked_len()
        .ok_or_else(|| Error::shape(format!("shape {shape} has more elements than memory has addresses")))?;
    // Halves have no digits for a factorisation.
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let (q, r) = qr(normal([rows.max(columns), rows.min(columns)], 0.0, 1.0, wide)?, false)?;
    // With the signs of the triangle's diagonal, all orthogonal matrices are equally likely.
    let signs = where_(less(diag_part(r, 0)?, 0.0)?, -gain, gain)?;
    let q = mul(q, cast(signs, wide)?)?;
    let q = if rows < columns { transpose(q, None)? } else { q };
    let dims: Vec<isize> = shape.iter().map(|&dim| dim as isize).collect();
    cast(reshape(q, &dims)?, dtype)
}
