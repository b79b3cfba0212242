//! Upper and lower case, and white space around strings.

use crate::builder::StringBuilder;
use crate::tensor::StringTensor;
use taut_core::{Error, Result};
use taut_memory::list_with_capacity;

/// Each string in lower case: ASCII letters, or all letters of UTF-8 text.
#[track_caller]
pub fn lower(x: &StringTensor, utf8: bool) -> Result<StringTensor> {
    cased(x, utf8, <[u8]>::make_ascii_lowercase, str::to_lowercase)
}

/// Each string in upper case: ASCII letters, or all letters of UTF-8 text.
#[track_caller]
pub fn upper(x: &StringTensor, utf8: bool) -> Result<StringTensor> {
    cased(x, utf8, <[u8]>::make_ascii_uppercase, str::to_uppercase)
}

#[track_caller]
fn cased(
    x: &StringTensor,
    utf8: bool,
    ascii: fn(&mut [u8]),
    unicode: fn(&str) -> String,
) -> Result<StringTensor> {
    let values = x.values()?;
    let mut out = StringBuilder::new(values.len(), values.byte_len());
    let mut scratch = [0; 256];
    for (index, value) in values.iter().enumerate() {
        if utf8 {
            let text = std::str::from_utf8(value).map_err(|_| not_utf8(index))?;
            // What the standard library makes of it may be up to three times as long.
            drop(list_with_capacity::<u8>(text.len().saturating_mul(3))?);
            out.push(unicode(text).as_bytes())?;
        } else {
            for part in value.chunks(scratch.len()) {
                let scratch = &mut scratch[..part.len()];
                scratch.copy_from_slice(part);
                ascii(scratch);
                out.append(scratch)?;
            }
            out.end()?;
        }
    }
    out.finish(x.shape().clone())
}

#[cold]
pub(crate) fn not_utf8(index: usize) -> Error {
    Error::value(format!("string {index} must be valid UTF-8"))
        .help("unicode_transcode with errors='replace' makes it valid")
}

/// Each string without white space at both ends.
#[track_caller]
pub fn strip(x: &StringTensor) -> Result<StringTensor> {
    let values = x.values()?;
    let mut out = StringBuilder::new(values.len(), 0);
    for value in values.iter() {
        let start = value.iter().position(|&byte| !is_space(byte)).unwrap_or(value.len());
        let end = value.iter().rposition(|&byte| !is_space(byte)).map_or(start, |last| last + 1);
        out.push(&value[start..end])?;
    }
    out.finish(x.shape().clone())
}

/// White space of ASCII, with the vertical tab.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}
