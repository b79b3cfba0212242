//! Selecting, stacking and concatenating strings.

use crate::builder::StringBuilder;
use crate::tensor::{StringTensor, StringValues};
use taut_core::{DType, Error, Result, Shape, Tensor};

/// The strings at `indices` (`int64`, of any shape) into the elements of several tensors in row-major order, one tensor after
/// the other. The result has the shape of the indices; -1 is the empty string.
#[track_caller]
pub fn take(pool: &[&StringTensor], indices: &Tensor) -> Result<StringTensor> {
    if indices.dtype() != DType::I64 {
        return Err(Error::dtype(format!("indices must be int64, got {}", indices.spec())));
    }
    let wanted = indices.to_vec::<i64>()?;
    let values = pool.iter().map(|tensor| tensor.values()).collect::<Result<Vec<_>>>()?;
    let mut firsts = Vec::with_capacity(values.len());
    let mut total = 0;
    for part in &values {
        firsts.push(total);
        total += part.len();
    }
    let mut out = StringBuilder::new(wanted.len(), 0);
    for index in wanted {
        if index == -1 {
            out.push(b"")?;
            continue;
        }
        let Some(index) = usize::try_from(index).ok().filter(|&index| index < total) else {
            return Err(Error::index(format!("indices must be in [0, {total}), got {index}")));
        };
        let part = firsts.partition_point(|&first| first <= index) - 1;
        out.push(values[part].get(index - firsts[part]))?;
    }
    out.finish(indices.shape().clone())
}

/// Stacks tensors of equal shapes along a new first axis.
#[track_caller]
pub fn stack(rows: &[&StringTensor]) -> Result<StringTensor> {
    let shape = rows.first().map_or_else(Shape::scalar, |row| row.shape().clone());
    if let Some(other) = rows.iter().find(|row| *row.shape() != shape) {
        return Err(Error::shape(format!("all shapes must be equal, got {shape} and {}", other.shape())));
    }
    joined(rows)?.reshape(shape.with_inserted(0, rows.len()))
}

/// Concatenates tensors along the first axis.
#[track_caller]
pub fn concat(parts: &[&StringTensor]) -> Result<StringTensor> {
    let Some(first) = parts.first() else {
        return Err(Error::value("expected at least one tensor to concatenate, got none"));
    };
    let mut dims = first.shape().to_vec();
    if dims.is_empty() {
        return Err(Error::shape("expected rank >= 1, got a scalar").help("stack adds an axis"));
    }
    dims[0] = 0;
    for part in parts {
        if part.rank() != dims.len() || part.shape()[1..] != dims[1..] {
            let (a, b) = (first.shape(), part.shape());
            return Err(Error::shape(format!(
                "shapes must be equal but for the first axis, got {a} and {b}"
            )));
        }
        dims[0] += part.shape()[0];
    }
    joined(parts)?.reshape(dims)
}

/// The strings of all parts along one axis.
#[track_caller]
fn joined(parts: &[&StringTensor]) -> Result<StringTensor> {
    let count = parts.iter().map(|part| part.len()).sum();
    let values = parts.iter().map(|part| part.values()).collect::<Result<Vec<_>>>()?;
    let mut out = StringBuilder::new(count, values.iter().map(StringValues::byte_len).sum());
    for part in values {
        part.iter().try_for_each(|value| out.push(value))?;
    }
    out.finish_vector()
}

/// Stacks tensors of one rank along a new first axis, each padded at its ends to a shape.
#[track_caller]
pub fn pad_stack(rows: &[&StringTensor], target: &Shape, padding: &[u8]) -> Result<StringTensor> {
    let mut out = StringBuilder::new(rows.len().saturating_mul(target.len()), 0);
    for row in rows {
        let values = row.values()?;
        let shape = row.shape();
        let mut counter = vec![0; target.rank()];
        for _ in 0..target.len() {
            let inside = counter.iter().zip(shape.iter()).all(|(at, dim)| at < dim);
            let index = counter.iter().zip(shape.iter()).fold(0, |index, (at, dim)| index * dim + at);
            out.push(if inside { values.get(index) } else { padding })?;
            for axis in (0..counter.len()).rev() {
                counter[axis] += 1;
                if counter[axis] < target[axis] {
                    break;
                }
                counter[axis] = 0;
            }
        }
    }
    out.finish(target.clone().with_inserted(0, rows.len()))
}
