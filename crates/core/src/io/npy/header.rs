//! The header of a `.npy` file: a Python dictionary of type, order and shape.

use super::super::{MAX_RANK, claimed_shape, format_error, read_error};
use super::read_exactly;
use crate::error::{Error, Result};
use crate::op::Spec;
use std::io::Read;
use taut_kernels::DType;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The offset of the elements is a multiple of this.
const ALIGNMENT: usize = 64;

/// NumPy leaves space for this many digits of the axis that grows when an array is appended to.
const GROWTH_DIGITS: usize = 21;

/// Only structured types, which are not supported, have longer headers.
const MAX_LEN: usize = u16::MAX as usize;

/// The other byte order and this machine's, as NumPy writes them.
const FOREIGN_ORDER: char = if cfg!(target_endian = "little") { '>' } else { '<' };
const NATIVE_ORDER: char = if cfg!(target_endian = "little") { '<' } else { '>' };

/// A decoded header.
pub(in super::super) struct Header {
    /// Type and shape.
    pub(in super::super) spec: Spec,
    /// Whether the first index varies fastest.
    pub(in super::super) fortran_order: bool,
    /// Whether the elements are in the other byte order than this machine's.
    pub(in super::super) swapped: bool,
    /// Bytes from the start of the file to the first element.
    pub(in super::super) len: usize,
}

impl Header {
    /// Reads up to the first element.
    pub(in super::super) fn read(reader: &mut dyn Read) -> Result<Header> {
        let start: [u8; 8] = read_exactly(reader)?;
        if start[..6] != *MAGIC {
            return Err(format_error("not in .npy format: the first bytes are not \\x93NUMPY"));
        }
        let (len, before) = match start[6] {
            1 => (u16::from_le_bytes(read_exactly(reader)?) as usize, 10),
            2 | 3 => (u32::from_le_bytes(read_exactly(reader)?) as usize, 12),
            version => return Err(format_error(format!(".npy version must be 1, 2 or 3, got {version}"))),
        };
        if len > MAX_LEN {
            return Err(format_error(format!("the header must have at most {MAX_LEN} bytes, got {len}")));
        }
        let mut text = vec![0; len];
        reader.read_exact(&mut text).map_err(read_error)?;
        let (spec, fortran_order, swapped) = decode(&text)?;
        Ok(Header { spec, fortran_order, swapped, len: before + len })
    }
}

/// The header of an array of this spec, up to the first element: the same bytes as NumPy's.
pub(super) fn encode(spec: &Spec, fortran_order: bool) -> Result<Vec<u8>> {
    let shape = &spec.shape;
    if shape.rank() > MAX_RANK {
        let message = format!("rank {} exceeds the maximum of {MAX_RANK} of .npy", shape.rank());
        return Err(Error::shape(message));
    }
    let dims: String = match shape[..] {
        [dim] => format!("{dim},"),
        _ => shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    };
    let growing = if fortran_order { shape.last() } else { shape.first() };
    let spare = growing.map_or(0, |dim| GROWTH_DIGITS - dim.to_string().len());
    let order = if fortran_order { "True" } else { "False" };
    let descr = descr(spec.dtype);
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({dims}), }}{:spare$}", "");

    let before = MAGIC.len() + 2 + size_of::<u16>();
    let total = (before + text.len() + 1).next_multiple_of(ALIGNMENT);
    let len =
        u16::try_from(total - before).map_err(|_| Error::shape("the shape is too long for a .npy header"))?;
    let mut out = Vec::with_capacity(total);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.resize(total - 1, b' ');
    out.push(b'\n');
    Ok(out)
}

fn descr(dtype: DType) -> String {
    let order = if dtype.size() == 1 { '|' } else { NATIVE_ORDER };
    format!("{order}{}", code(dtype))
}

fn code(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "b1",
        DType::U8 => "u1",
        DType::U16 => "u2",
        DType::U32 => "u4",
        DType::U64 => "u8",
        DType::I8 => "i1",
        DType::I16 => "i2",
        DType::I32 => "i4",
        DType::I64 => "i8",
        DType::F16 => "f2",
        DType::BF16 => "V2",
        DType::F32 => "f4",
        DType::F64 => "f8",
        DType::C64 => "c8",
        DType::C128 => "c16",
    }
}

/// The type of a description, and whether it is in the other byte order.
fn parse_descr(descr: &str) -> Result<(DType, bool)> {
    let known = descr.get(1..).and_then(|rest| DType::ALL.into_iter().find(|&dtype| code(dtype) == rest));
    match (known, descr.chars().next()) {
        (Some(dtype), Some('<' | '>' | '|' | '=')) => Ok((dtype, descr.starts_with(FOREIGN_ORDER))),
        _ if descr.contains('O') => {
            Err(Error::dtype("elements must be numbers, got Python objects")
                .help("save numbers, not objects"))
        }
        _ => Err(Error::dtype(format!("NumPy type '{descr}' is not supported"))
            .help("convert the array with astype() before saving it")),
    }
}

/// Type and shape, whether in Fortran order, and whether in the other byte order.
fn decode(text: &[u8]) -> Result<(Spec, bool, bool)> {
    let broken = |what: &str| format_error(format!("the header {what}"));
    let mut literal = Literal { rest: text };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    literal.expect(b'{')?;
    while !literal.take(b'}') {
        let key = literal.string()?;
        literal.expect(b':')?;
        match key {
            "descr" if matches!(literal.peek(), Some(b'[' | b'(' | b'{')) => {
                return Err(Error::dtype("elements must be numbers, got structures")
                    .help("save each field by itself"));
            }
            "descr" => descr = Some(parse_descr(literal.string()?)?),
            "fortran_order" => fortran_order = Some(literal.boolean()?),
            "shape" => shape = Some(claimed_shape(&literal.tuple()?)?),
            other => return Err(broken(&format!("has an unknown key '{other}'"))),
        }
        if !literal.take(b',') && literal.peek() != Some(b'}') {
            return Err(broken("is not a Python dictionary"));
        }
    }
    if literal.peek().is_some() {
        return Err(broken("has text after its dictionary"));
    }
    match (descr, fortran_order, shape) {
        (Some((dtype, swapped)), Some(order), Some(shape)) => Ok((Spec { dtype, shape }, order, swapped)),
        _ => Err(broken("lacks 'descr', 'fortran_order' or 'shape'")),
    }
}

/// A parser of the Python literals that occur in headers.
struct Literal<'a> {
    rest: &'a [u8],
}

impl<'a> Literal<'a> {
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.take(byte) { Ok(()) } else { Err(self.unexpected(&format!("'{}'", byte as char))) }
    }

    /// A string without escapes.
    fn string(&mut self) -> Result<&'a str> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
        let Some(quote) = quote else { return Err(self.unexpected("a string")) };
        let body = &self.rest[1..];
        let end = body.iter().position(|&byte| byte == quote);
        let end = end.ok_or_else(|| self.unexpected("the end of a string"))?;
        self.rest = &body[end + 1..];
        str::from_utf8(&body[..end]).map_err(|_| format_error("the header is not text"))
    }

    fn boolean(&mut self) -> Result<bool> {
        self.peek();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word.as_bytes()) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<usize>> {
        let mut numbers = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            numbers.push(self.number()?);
            if !self.take(b',') && self.peek() != Some(b')') {
                return Err(self.unexpected("',' or ')'"));
            }
        }
        Ok(numbers)
    }

    fn number(&mut self) -> Result<usize> {
        self.peek();
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(len);
        if digits.is_empty() {
            return Err(self.unexpected("a number"));
        }
        // The suffix of Python 2's long integers.
        self.rest = rest.strip_prefix(b"L").unwrap_or(rest);
        let overflow = || format_error("the header has a dimension that exceeds the address space");
        str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(overflow)
    }

    #[cold]
    fn unexpected(&self, wanted: &str) -> Error {
        let found = String::from_utf8_lossy(&self.rest[..self.rest.len().min(16)]).into_owned();
        format_error(format!("the header must have {wanted}, got {found:?}"))
    }
}
