//! Thrift's compact protocol, in which the headers of Parquet files are written.

use std::num::NonZeroU8;

pub(super) const BYTE: u8 = 3;
pub(super) const I16: u8 = 4;
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub(super) const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Deeper structures do not occur in Parquet.
const MAX_DEPTH: usize = 32;

/// A reader of values; `None` where one is beyond the end.
pub(super) struct Compact<'a> {
    rest: &'a [u8],
}

impl<'a> Compact<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Compact<'a> {
        Compact { rest: bytes }
    }

    /// The bytes that are left.
    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Skips bytes, and returns them.
    pub(super) fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }

    /// An unsigned integer of variable length.
    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A signed integer of variable length.
    pub(super) fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A field that must be an integer: the file's reader takes it for one, whatever its type.
    pub(super) fn int(&mut self, kind: u8) -> Option<i64> {
        (kind == I32).then(|| self.zigzag())?
    }

    /// A number of elements, each of which takes at least a byte.
    fn count(&self, count: u64) -> Option<u64> {
        (count <= self.rest.len() as u64).then_some(count)
    }

    /// The type of the elements of a list, and their number.
    pub(super) fn list(&mut self) -> Option<(u8, u64)> {
        let header = self.byte()?;
        let count = if header >> 4 == 15 { self.varint()? } else { u64::from(header >> 4) };
        Some((header & 15, self.count(count)?))
    }

    /// Skips a value.
    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            // The value of a boolean field is its type.
            1 | 2 => Some(()),
            BYTE => self.bytes(1).map(drop),
            DOUBLE => self.bytes(8).map(drop),
            UUID => self.bytes(16).map(drop),
            BINARY => {
                let length = self.varint()?;
                self.bytes(length).map(drop)
            }
            LIST | SET => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.element(kind, depth))
            }
            MAP => match self.varint()? {
                0 => Some(()),
                count => {
                    let kinds = self.byte()?;
                    (0..self.count(count)?).try_for_each(|_| {
                        self.element(kinds >> 4, depth)?;
                        self.element(kinds & 15, depth)
                    })
                }
            },
            STRUCT => self.fields(depth, |fields, _, kind| fields.skip(kind, depth + 1)),
            I16 | I32 | I64 => self.varint().map(drop),
            _ => None,
        }
    }

    /// An element of a collection, where booleans take a byte.
    pub(super) fn element(&mut self, kind: u8, depth: usize) -> Option<()> {
        if matches!(kind, 1 | 2) { self.bytes(1).map(drop) } else { self.skip(kind, depth + 1) }
    }

    /// Reads the fields of a structure: `read` gets the number and type of each, and reads its value.
    pub(super) fn fields(
        &mut self,
        depth: usize,
        mut read: impl FnMut(&mut Compact<'a>, u8, u8) -> Option<()>,
    ) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut id = 0u8;
        loop {
            let header = self.byte()?;
            if header % 16 == 0 {
                return Some(());
            }
            // Fields are in order, and their numbers near each other: 0, for a number that follows, does not occur in Parquet.
            id = id.checked_add(NonZeroU8::new(header >> 4)?.get())?;
            read(self, id, header & 15)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_no_longer_than_their_bytes() {
        let _ledger = taut_memory::testing::ledger_check();
        let skip = |bytes: &[u8]| Compact::new(bytes).skip(STRUCT, 0).is_some();
        // Field 1: a list of two 32-bit integers. Field 2: true. Field 3: the text "ab".
        assert!(skip(&[0x19, 0x25, 2, 4, 0x11, 0x18, 2, b'a', b'b', 0]));
        // The list claims 2^31 - 1 structures, the text 2^31 - 1 bytes.
        assert!(!skip(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0, 0]));
        assert!(!skip(&[0x18, 0xff, 0xff, 0xff, 0xff, 7, b'a', 0]));
        // Structures without an end.
        assert!(!skip(&[0x1c; 100]));
    }

    #[test]
    fn fields_have_numbers() {
        let _ledger = taut_memory::testing::ledger_check();
        let mut found = Vec::new();
        // Field 2: -3; field 6: 7.
        let read = Compact::new(&[0x25, 5, 0x45, 14, 0]).fields(0, |fields, id, kind| {
            found.push((id, kind, fields.zigzag()?));
            Some(())
        });
        assert!(read.is_some());
        assert_eq!(found, [(2, I32, -3), (6, I32, 7)]);
    }
}
