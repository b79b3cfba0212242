//! The wire format of protocol buffers, as far as the few message types of this crate need it.

use super::format_error;
use taut_core::{Error, Result};

/// The value of a field on the wire.
pub(super) enum WireValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

#[cold]
pub(super) fn damaged() -> Error {
    format_error("the message is damaged: its fields do not end where it ends")
        .help("check that the bytes are one whole serialized message")
}

/// Reads a number of variable length from the front.
#[inline]
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Ok(value);
        }
    }
    Err(damaged())
}

fn take<'a>(message: &mut &'a [u8], len: u64) -> Result<&'a [u8]> {
    let len = usize::try_from(len).map_err(|_| damaged())?;
    let (part, rest) = message.split_at_checked(len).ok_or_else(damaged)?;
    *message = rest;
    Ok(part)
}

/// Calls `visit` with number and value of each field of a message.
#[inline]
pub(super) fn fields<'a>(
    mut message: &'a [u8],
    mut visit: impl FnMut(u64, WireValue<'a>) -> Result<()>,
) -> Result<()> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let value = match tag & 7 {
            0 => WireValue::Varint(varint(&mut message)?),
            1 => {
                let bytes = take(&mut message, 8)?;
                WireValue::Fixed64(u64::from_le_bytes(bytes.try_into().map_err(|_| damaged())?))
            }
            2 => {
                let len = varint(&mut message)?;
                WireValue::Bytes(take(&mut message, len)?)
            }
            5 => {
                let bytes = take(&mut message, 4)?;
                WireValue::Fixed32(u32::from_le_bytes(bytes.try_into().map_err(|_| damaged())?))
            }
            _ => return Err(damaged()),
        };
        visit(tag >> 3, value)?;
    }
    Ok(())
}

/// Appends a number of variable length.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field of bytes: a string, a message, or packed numbers.
pub(super) fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field of a number.
pub(super) fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(out, number << 3);
    put_varint(out, value);
}
