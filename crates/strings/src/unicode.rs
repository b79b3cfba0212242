//! Characters: code points from encoded text and back.

use crate::builder::StringBuilder;
use crate::tensor::StringTensor;
use crate::text::rows;
use taut_core::{Error, Result, Tensor};
use taut_memory::reserve;

/// An encoding of Unicode text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, big-endian.
    Utf16Be,
    /// UTF-32, big-endian.
    Utf32Be,
}

impl Encoding {
    fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16Be => "UTF-16-BE",
            Encoding::Utf32Be => "UTF-32-BE",
        }
    }
}

/// What becomes of bytes that are not valid in the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInvalid {
    /// An error.
    Strict,
    /// Each invalid sequence becomes this code point.
    Replace(u32),
    /// They are left out.
    Ignore,
}

/// One character: its code point (`None` if the bytes are invalid) and the number of bytes.
fn next(bytes: &[u8], encoding: Encoding) -> (Option<u32>, usize) {
    match encoding {
        Encoding::Utf8 => {
            let most = &bytes[..bytes.len().min(4)];
            match std::str::from_utf8(most) {
                Ok(text) => text.chars().next().map_or((None, 1), |c| (Some(c as u32), c.len_utf8())),
                Err(error) if error.valid_up_to() > 0 => {
                    let text = std::str::from_utf8(&most[..error.valid_up_to()]).unwrap_or("");
                    text.chars().next().map_or((None, 1), |c| (Some(c as u32), c.len_utf8()))
                }
                Err(error) => (None, error.error_len().unwrap_or(most.len()).max(1)),
            }
        }
        Encoding::Utf16Be => {
            let unit = |at: usize| {
                bytes.get(at..at + 2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
            };
            match (unit(0), unit(2)) {
                (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
                    (Some(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 4)
                }
                (Some(0xd800..=0xdfff), _) => (None, 2),
                (Some(unit), _) => (Some(unit), 2),
                (None, _) => (None, bytes.len()),
            }
        }
        Encoding::Utf32Be => match bytes.first_chunk::<4>() {
            Some(word) => (char::from_u32(u32::from_be_bytes(*word)).map(|c| c as u32), 4),
            None => (None, bytes.len()),
        },
    }
}

/// The characters of a string: code point and the bytes it came from.
fn chars<'a>(
    value: &'a [u8],
    encoding: Encoding,
    invalid: OnInvalid,
    mut visit: impl FnMut(u32, usize, &'a [u8]) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    while at < value.len() {
        let (found, len) = next(&value[at..], encoding);
        let bytes = &value[at..at + len];
        match (found, invalid) {
            (Some(point), _) => visit(point, at, bytes)?,
            (None, OnInvalid::Replace(point)) => visit(point, at, bytes)?,
            (None, OnInvalid::Ignore) => {}
            (None, OnInvalid::Strict) => {
                let name = encoding.name();
                let message = format!("expected valid {name} text, got an invalid sequence at byte {at}");
                return Err(Error::value(message).help("errors='replace' or errors='ignore' accepts it"));
            }
        }
        at += len;
    }
    Ok(())
}

/// The code points of each string along one axis (`int32`), where those of each string begin, and the byte at which each
/// character starts (both `int64`). Control characters become `control`, if it is given.
#[track_caller]
pub fn decode(
    x: &StringTensor,
    encoding: Encoding,
    invalid: OnInvalid,
    control: Option<u32>,
) -> Result<(Tensor, Tensor, Tensor)> {
    let (mut points, mut offsets, mut splits) = (Vec::<i32>::new(), Vec::<i64>::new(), vec![0i64]);
    for (i, value) in x.values()?.iter().enumerate() {
        chars(value, encoding, invalid, |point, at, _| {
            reserve(&mut points, 1)?;
            reserve(&mut offsets, 1)?;
            points.push(control.filter(|_| point < 0x20).unwrap_or(point) as i32);
            offsets.push(at as i64);
            Ok(())
        })
        .map_err(|error| error.about(format_args!("string {i}")))?;
        splits.push(points.len() as i64);
    }
    let (n, rows) = (points.len(), splits.len());
    Ok((Tensor::from_vec(points, [n])?, Tensor::from_vec(splits, [rows])?, Tensor::from_vec(offsets, [n])?))
}

/// The characters of each string as strings, where those of each string begin, and the byte at which each starts.
#[track_caller]
pub fn unicode_split(
    x: &StringTensor,
    encoding: Encoding,
    invalid: OnInvalid,
) -> Result<(StringTensor, Tensor, Tensor)> {
    let values = x.values()?;
    let mut out = StringBuilder::new(0, values.byte_len());
    let (mut offsets, mut splits) = (Vec::<i64>::new(), vec![0i64]);
    for (i, value) in values.iter().enumerate() {
        chars(value, encoding, invalid, |point, at, _| {
            put(&mut out, point, encoding)?;
            reserve(&mut offsets, 1)?;
            offsets.push(at as i64);
            out.end()
        })
        .map_err(|error| error.about(format_args!("string {i}")))?;
        splits.push(out.count() as i64);
    }
    let (n, rows) = (offsets.len(), splits.len());
    Ok((out.finish_vector()?, Tensor::from_vec(splits, [rows])?, Tensor::from_vec(offsets, [n])?))
}

/// Encodes the code points of each row (`int32`) as a string; `row_splits` says where rows begin.
#[track_caller]
pub fn encode(
    points: &Tensor,
    row_splits: &[i64],
    encoding: Encoding,
    invalid: OnInvalid,
) -> Result<StringTensor> {
    let points = points.to_vec::<i32>()?;
    let mut out = StringBuilder::new(row_splits.len().saturating_sub(1), points.len());
    for row in rows(row_splits, points.len())? {
        for &point in &points[row] {
            match (u32::try_from(point).ok().and_then(char::from_u32), invalid) {
                (Some(c), _) => put(&mut out, c as u32, encoding)?,
                (None, OnInvalid::Replace(other)) => put(&mut out, other, encoding)?,
                (None, OnInvalid::Ignore) => {}
                (None, OnInvalid::Strict) => {
                    return Err(Error::value(format!("expected a Unicode code point, got {point}")));
                }
            }
        }
        out.end()?;
    }
    out.finish_vector()
}

/// Appends one character to the current string.
fn put(out: &mut StringBuilder, point: u32, encoding: Encoding) -> Result<()> {
    let c = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
    match encoding {
        Encoding::Utf8 => out.append(c.encode_utf8(&mut [0; 4]).as_bytes()),
        Encoding::Utf16Be => {
            c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| out.append(&unit.to_be_bytes()))
        }
        Encoding::Utf32Be => out.append(&(c as u32).to_be_bytes()),
    }
}
