//! Checks of the sizes that Arrow and Parquet files claim, before their readers allocate as much.

use super::super::format_error;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use taut_core::{Error, Result};

/// Runs a reader. The crates that read these formats panic on some corrupt files; that is an error about the file.
pub(super) fn catch_panics<R>(read: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(corrupt("its reader failed")))
}

#[cold]
fn corrupt(what: &str) -> Error {
    format_error(format!("the file is corrupt: {what}"))
}

/// The footer before a trailer of `N` bytes, which begins with the footer's length; `None` if the file is too short, which its
/// reader refuses.
fn footer<const N: usize>(file: &mut File) -> Result<Option<(Vec<u8>, u64)>> {
    let bytes = file.metadata()?.len();
    if bytes < N as u64 {
        return Ok(None);
    }
    let mut trailer = [0; N];
    file.seek(SeekFrom::End(-(N as i64)))?;
    file.read_exact(&mut trailer)?;
    let length = u64::from(u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]));
    if length > bytes - N as u64 {
        return Err(corrupt("its footer is longer than the file"));
    }
    let mut footer = vec![0; length as usize];
    file.seek(SeekFrom::Start(bytes - N as u64 - length))?;
    file.read_exact(&mut footer)?;
    file.rewind()?;
    Ok(Some((footer, bytes)))
}

/// Refuses an Arrow file whose footer names blocks beyond the file's end.
pub(super) fn check_arrow(file: &mut File) -> Result<()> {
    let Some((footer, bytes)) = footer::<10>(file)? else { return Ok(()) };
    let footer = arrow_ipc::root_as_footer(&footer).map_err(|error| corrupt(&error.to_string()))?;
    let batches = footer.recordBatches().into_iter().flatten();
    for block in batches.chain(footer.dictionaries().into_iter().flatten()) {
        let parts = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let end = parts.iter().try_fold(0u64, |end, &part| end.checked_add(u64::try_from(part).ok()?));
        if end.is_none_or(|end| end > bytes) {
            return Err(corrupt("a record batch is beyond the end of the file"));
        }
    }
    Ok(())
}

/// Refuses a Parquet file whose footer has lists with more elements than bytes.
pub(super) fn check_parquet(file: &mut File) -> Result<()> {
    let Some((footer, _)) = footer::<8>(file)? else { return Ok(()) };
    Compact { rest: &footer }.skip(STRUCT, 0).ok_or_else(|| corrupt("its footer has values beyond its end"))
}

/// Refuses columns of a Parquet file that are beyond its end.
pub(super) fn check_columns(metadata: &ParquetMetaData, bytes: u64) -> Result<()> {
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let (start, length) = column.byte_range();
        if start.checked_add(length).is_none_or(|end| end > bytes) {
            return Err(corrupt("a column is beyond the end of the file"));
        }
    }
    Ok(())
}

const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Deeper structures do not occur in Parquet.
const MAX_DEPTH: usize = 32;

/// Thrift's compact protocol, in which Parquet's footer is written. Values are skipped; `None` where one is beyond the end.
struct Compact<'a> {
    rest: &'a [u8],
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn bytes(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
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

    /// A number of elements, each of which takes at least a byte.
    fn count(&self, count: u64) -> Option<u64> {
        (count <= self.rest.len() as u64).then_some(count)
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            BYTE => self.bytes(1),
            DOUBLE => self.bytes(8),
            UUID => self.bytes(16),
            BINARY => {
                let length = self.varint()?;
                self.bytes(length)
            }
            LIST | SET => {
                let header = self.byte()?;
                let count = if header >> 4 == 15 { self.varint()? } else { u64::from(header >> 4) };
                (0..self.count(count)?).try_for_each(|_| self.element(header & 15, depth))
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
            STRUCT => self.fields(depth),
            // Integers of 16 to 64 bits.
            4..=6 => self.varint().map(drop),
            _ => None,
        }
    }

    /// An element of a collection, where booleans take a byte.
    fn element(&mut self, kind: u8, depth: usize) -> Option<()> {
        if matches!(kind, 1 | 2) { self.bytes(1) } else { self.skip(kind, depth + 1) }
    }

    fn fields(&mut self, depth: usize) -> Option<()> {
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(());
            }
            if header >> 4 == 0 {
                self.varint()?;
            }
            // The value of a boolean field is its type.
            if !matches!(header & 15, 1 | 2) {
                self.skip(header & 15, depth + 1)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_no_longer_than_their_bytes() {
        let _ledger = taut_memory::testing::ledger_check();
        let skip = |bytes: &[u8]| Compact { rest: bytes }.skip(STRUCT, 0).is_some();
        // Field 1: a list of two 32-bit integers. Field 2: true. Field 3: the text "ab".
        assert!(skip(&[0x19, 0x25, 2, 4, 0x11, 0x18, 2, b'a', b'b', 0]));
        // The list claims 2^31 - 1 structures, the text 2^31 - 1 bytes.
        assert!(!skip(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0, 0]));
        assert!(!skip(&[0x18, 0xff, 0xff, 0xff, 0xff, 7, b'a', 0]));
        // Structures without an end.
        assert!(!skip(&[0x1c; 100]));
    }
}
