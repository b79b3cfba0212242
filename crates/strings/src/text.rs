//! Length, parts, and joining of strings.

use crate::builder::StringBuilder;
use crate::case::is_space;
use crate::compare::{Positions, broadcast};
use crate::tensor::{StringTensor, StringValues};
use taut_core::{DType, Error, Result, Shape, Spec, Tensor, source_location};
use taut_memory::{Category, Location, list_with_capacity};

/// What positions and lengths count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Byte,
    /// Characters of UTF-8 text: bytes that do not continue a character.
    Utf8Char,
}

#[inline]
fn starts_char(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// The length of each string, as `int32`.
#[track_caller]
pub fn length(x: &StringTensor, unit: Unit) -> Result<Tensor> {
    let (values, at) = (x.values()?, source_location(Location::caller()));
    Tensor::build(Spec::new(DType::I32, x.shape().clone()), Category::Tensor, at, |out| {
        for (out, value) in out.slice::<i32>().iter_mut().zip(values.iter()) {
            *out = match unit {
                Unit::Byte => value.len() as i32,
                Unit::Utf8Char => value.iter().filter(|&&byte| starts_char(byte)).count() as i32,
            };
        }
    })
}

/// The part of each string from a position on, of at most a length. Positions below 0 count from the end. `pos` and `len`
/// (`int64`) broadcast with the strings.
#[track_caller]
pub fn substr(x: &StringTensor, pos: &Tensor, len: &Tensor, unit: Unit) -> Result<StringTensor> {
    let at = source_location(Location::caller());
    let numbers = pos.to_vec::<i64>()?;
    let lens = len.to_vec::<i64>()?;
    let shape = broadcast(x.shape(), pos.shape()).and_then(|shape| broadcast(&shape, len.shape()));
    let shape = shape.map_err(|error| error.at(at))?;
    let values = x.values()?;
    let all = Positions::new(x.shape(), &shape)
        .zip(Positions::new(pos.shape(), &shape).zip(Positions::new(len.shape(), &shape)));
    let mut out = StringBuilder::new(shape.len(), 0);
    let mut starts = Vec::new();
    for (index, (at_pos, at_len)) in all.take(shape.len()) {
        let (value, from, most) = (values.get(index), numbers[at_pos], lens[at_len]);
        starts.clear();
        let count = match unit {
            Unit::Byte => value.len(),
            Unit::Utf8Char => {
                starts.extend((0..value.len()).filter(|&i| starts_char(value[i])));
                starts.len()
            }
        } as i64;
        let first = if from < 0 { from + count } else { from };
        if !(0..=count).contains(&first) {
            let text = String::from_utf8_lossy(value);
            let message = format!("pos must be in [-{count}, {count}] for string {text:?}, got {from}");
            return Err(Error::value(message).at(at));
        }
        let last = first.saturating_add(most.max(0)).min(count);
        let place = |char: i64| match unit {
            Unit::Byte => char as usize,
            Unit::Utf8Char => starts.get(char as usize).copied().unwrap_or(value.len()),
        };
        out.push(&value[place(first)..place(last)])?;
    }
    out.finish(shape)
}

/// Joins strings of several tensors elementwise. The tensors have equal shapes, or are scalars.
#[track_caller]
pub fn join(parts: &[&StringTensor], separator: &[u8]) -> Result<StringTensor> {
    let shape =
        parts.iter().find(|part| part.rank() > 0).map_or_else(Shape::scalar, |part| part.shape().clone());
    if let Some(other) = parts.iter().find(|part| part.rank() > 0 && *part.shape() != shape) {
        return Err(Error::shape(format!("all shapes must be equal, got {shape} and {}", other.shape())));
    }
    let values = parts.iter().map(|part| part.values()).collect::<Result<Vec<_>>>()?;
    let mut out = StringBuilder::new(shape.len(), values.iter().map(StringValues::byte_len).sum());
    for index in 0..shape.len() {
        for (i, (part, tensor)) in values.iter().zip(parts).enumerate() {
            if i > 0 {
                out.append(separator)?;
            }
            out.append(part.get(if tensor.rank() == 0 { 0 } else { index }))?;
        }
        out.end()?;
    }
    out.finish(shape)
}

/// Joins the strings of each row of a matrix; `row_splits` says where rows of a vector of strings begin.
#[track_caller]
pub fn join_rows(x: &StringTensor, row_splits: &[i64], separator: &[u8]) -> Result<StringTensor> {
    let values = x.values()?;
    let mut out = StringBuilder::new(row_splits.len().saturating_sub(1), values.byte_len());
    for row in rows(row_splits, values.len())? {
        for (i, index) in row.enumerate() {
            if i > 0 {
                out.append(separator)?;
            }
            out.append(values.get(index))?;
        }
        out.end()?;
    }
    out.finish_vector()
}

/// The ranges of the rows of `len` values.
pub(crate) fn rows(row_splits: &[i64], len: usize) -> Result<impl Iterator<Item = std::ops::Range<usize>>> {
    let is_valid = row_splits.first() == Some(&0)
        && row_splits.is_sorted()
        && row_splits.last().is_some_and(|&last| last as usize == len);
    if !is_valid {
        let message = format!("row_splits must begin with 0, must not decrease and must end with {len}");
        return Err(Error::value(message));
    }
    Ok(row_splits.windows(2).map(|pair| pair[0] as usize..pair[1] as usize))
}

/// Splits each string at a separator, at most `limit` times; at runs of white space if the separator is empty. Returns the
/// parts along one axis, and where the parts of each string begin (`int64`, one more than there are strings).
#[track_caller]
pub fn split(x: &StringTensor, separator: &[u8], limit: Option<usize>) -> Result<(StringTensor, Tensor)> {
    let values = x.values()?;
    let mut out = StringBuilder::new(0, values.byte_len());
    let mut splits = list_with_capacity(values.len() + 1)?;
    splits.push(0i64);
    for value in values.iter() {
        if limit == Some(0) {
            out.push(value)?;
        } else if separator.is_empty() {
            split_space(value, limit, &mut out)?;
        } else if !value.is_empty() {
            split_at(value, separator, limit, &mut out)?;
        } else {
            out.push(b"")?;
        }
        splits.push(out.count() as i64);
    }
    let count = splits.len();
    Ok((out.finish_vector()?, Tensor::from_vec(splits, [count])?))
}

fn split_space(value: &[u8], limit: Option<usize>, out: &mut StringBuilder) -> Result<()> {
    let mut rest = value;
    let mut found = 0;
    loop {
        let start = rest.iter().position(|&byte| !is_space(byte)).unwrap_or(rest.len());
        rest = &rest[start..];
        // After that many strings there is one more, which may be empty, as in TensorFlow.
        if limit == Some(found) {
            return out.push(rest);
        }
        if rest.is_empty() {
            return Ok(());
        }
        let end = rest.iter().position(|&byte| is_space(byte)).unwrap_or(rest.len());
        out.push(&rest[..end])?;
        rest = &rest[end..];
        found += 1;
    }
}

fn split_at(value: &[u8], separator: &[u8], limit: Option<usize>, out: &mut StringBuilder) -> Result<()> {
    let mut rest = value;
    let mut found = 0;
    while limit != Some(found)
        && let Some(at) = find(rest, separator)
    {
        out.push(&rest[..at])?;
        rest = &rest[at + separator.len()..];
        found += 1;
    }
    out.push(rest)
}

/// The first position of a needle that is not empty.
fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    match needle {
        [byte] => text.iter().position(|other| other == byte),
        _ => text.windows(needle.len()).position(|window| window == needle),
    }
}

/// The bytes of each string as strings of their own, and where those of each string begin.
#[track_caller]
pub fn bytes_split(x: &StringTensor) -> Result<(StringTensor, Tensor)> {
    let values = x.values()?;
    let mut out = StringBuilder::new(values.byte_len(), values.byte_len());
    let mut splits = vec![0i64];
    for value in values.iter() {
        value.iter().try_for_each(|byte| out.push(std::slice::from_ref(byte)))?;
        splits.push(out.count() as i64);
    }
    let count = splits.len();
    Ok((out.finish_vector()?, Tensor::from_vec(splits, [count])?))
}

/// The n-grams of each row, for each width in turn: `width` consecutive strings, joined. Rows are padded with the `left` and
/// `right` string, if there is one, `padding` times on each side (at most `width - 1` times). A row that is too short for any
/// n-gram becomes one n-gram of all its strings, if `keep_short`.
#[track_caller]
pub fn ngrams(
    x: &StringTensor,
    row_splits: &[i64],
    widths: &[usize],
    separator: &[u8],
    pads: Option<(&[u8], &[u8])>,
    padding: Option<usize>,
    keep_short: bool,
) -> Result<(StringTensor, Tensor)> {
    if widths.is_empty() || widths.contains(&0) {
        return Err(Error::value(format!("ngram_width must be >= 1, got {widths:?}")));
    }
    let values = x.values()?;
    let mut out = StringBuilder::new(0, 0);
    let mut splits = vec![0i64];
    for row in rows(row_splits, values.len())? {
        let before = out.count();
        let len = row.len();
        let write = |first: usize, width: usize, pad: usize, out: &mut StringBuilder| -> Result<()> {
            for place in first..first + width {
                if place > first {
                    out.append(separator)?;
                }
                let (left, right) = pads.unwrap_or((b"", b""));
                out.append(match place.checked_sub(pad) {
                    None => left,
                    Some(at) if at < len => values.get(row.start + at),
                    Some(_) => right,
                })?;
            }
            out.end()
        };
        let pad_of = |width: usize| match pads {
            Some(_) => padding.unwrap_or(usize::MAX).min(width - 1),
            None => 0,
        };
        for &width in widths {
            let pad = pad_of(width);
            for first in 0..(len + 2 * pad + 1).saturating_sub(width) {
                write(first, width, pad, &mut out)?;
            }
        }
        if keep_short && out.count() == before && len > 0 {
            let pad = widths.iter().map(|&width| pad_of(width)).next().unwrap_or(0);
            write(0, len + 2 * pad, pad, &mut out)?;
        }
        splits.push(out.count() as i64);
    }
    let count = splits.len();
    Ok((out.finish_vector()?, Tensor::from_vec(splits, [count])?))
}
