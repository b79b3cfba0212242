//! The pages of Parquet columns, checked before they are decoded: what a page claims to hold must fit its bytes.

use super::compact::{Compact, STRUCT};
use super::guard::corrupt;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use taut_core::Result;

/// The most bytes that a byte becomes when it is decompressed (deflate: 1032; Snappy: 22), and those of small pages.
const MOST_EXPANSION: (u64, u64) = (1040, 1024);

/// What the header of a page says.
#[derive(Clone, Copy, Default)]
struct PageHeader {
    length: u64,
    compressed: u64,
    decompressed: u64,
    values: u64,
    /// The values of a dictionary.
    entries: u64,
}

/// What the pages of a column claim to hold.
#[derive(Clone, Copy, Default)]
pub(super) struct ColumnPages {
    /// Values of all pages but dictionaries, also those that are missing.
    pub(super) values: u64,
    /// The bytes of the largest page, and of the largest dictionary, decompressed.
    pub(super) largest: (u64, u64),
}

/// Reads the headers of all pages of a column, in all row groups.
pub(super) fn column_pages(file: &mut File, metadata: &ParquetMetaData, leaf: usize) -> Result<ColumnPages> {
    let bytes = file.metadata()?.len();
    let mut found = ColumnPages::default();
    for column in metadata.row_groups().iter().map(|group| group.column(leaf)) {
        let (start, length) = column.byte_range();
        let end = start.checked_add(length).filter(|&end| end <= bytes);
        let end = end.ok_or_else(|| corrupt("a column is beyond the end of the file"))?;
        let mut at = start;
        while at < end {
            let page = page_header(file, at, end)?;
            at += page.length + page.compressed;
            found.values = found.values.saturating_add(page.values);
            let largest = if page.entries > 0 { &mut found.largest.1 } else { &mut found.largest.0 };
            *largest = page.decompressed.max(*largest);
        }
    }
    file.rewind()?;
    Ok(found)
}

/// The header of the page that begins here.
fn page_header(file: &mut File, at: u64, end: u64) -> Result<PageHeader> {
    let mut room = 256;
    loop {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(at))?;
        file.take((end - at).min(room)).read_to_end(&mut bytes)?;
        match parse_header(&bytes) {
            Some(page) if page.length + page.compressed > end - at => {
                return Err(corrupt("a page is beyond the end of its column"));
            }
            Some(page) if page.decompressed > page.compressed * MOST_EXPANSION.0 + MOST_EXPANSION.1 => {
                return Err(corrupt(&format!(
                    "{} bytes of a page cannot be {} bytes when they are decompressed",
                    page.compressed, page.decompressed
                )));
            }
            Some(page) if page.entries > page.decompressed => {
                return Err(corrupt("a dictionary has more values than bytes"));
            }
            Some(page) => return Ok(page),
            // Statistics make a header long.
            None if room < end - at => room *= 16,
            None => return Err(corrupt("the header of a page has values beyond its end")),
        }
    }
}

/// `PageHeader` of Parquet: fields 2 and 3 are its sizes; fields 5, 7 and 8 are headers of its kinds, whose field 1 is the number
/// of values.
fn parse_header(bytes: &[u8]) -> Option<PageHeader> {
    let mut page = PageHeader::default();
    let mut header = Compact::new(bytes);
    header.fields(0, |header, id, kind| match id {
        2 | 3 => {
            let size = u64::try_from(header.int(kind)?).ok()?;
            *(if id == 2 { &mut page.decompressed } else { &mut page.compressed }) = size;
            Some(())
        }
        5 | 7 | 8 if kind == STRUCT => header.fields(1, |header, inner, kind| match inner {
            1 => {
                let count = u64::try_from(header.int(kind)?).ok()?;
                let of = if id == 7 { &mut page.entries } else { &mut page.values };
                *of = count.max(*of);
                Some(())
            }
            _ => header.skip(kind, 2),
        }),
        5 | 7 | 8 => None,
        _ => header.skip(kind, 1),
    })?;
    page.length = (bytes.len() - header.remaining()) as u64;
    Some(page)
}

/// The row groups of a file; the pages of their columns are checked once they are decompressed.
pub(super) struct CheckedRowGroups {
    pub(super) file: Arc<File>,
    pub(super) metadata: Arc<ParquetMetaData>,
}

impl RowGroups for CheckedRowGroups {
    fn num_rows(&self) -> usize {
        self.metadata.row_groups().iter().map(|group| group.num_rows() as usize).sum()
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let chunks =
            CheckedChunks { file: self.file.clone(), metadata: self.metadata.clone(), leaf, next: 0 };
        Ok(Box::new(chunks))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The parts of a column, one in each row group.
struct CheckedChunks {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    leaf: usize,
    next: usize,
}

impl CheckedChunks {
    fn open(&self, column: &ColumnChunkMetaData, rows: i64) -> ParquetResult<Box<dyn PageReader>> {
        let pages = SerializedPageReader::new(self.file.clone(), column, rows as usize, None)?;
        Ok(Box::new(CheckedPages { pages, column: column.column_descr_ptr() }))
    }
}

impl Iterator for CheckedChunks {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let metadata = self.metadata.clone();
        let group = metadata.row_groups().get(self.next)?;
        self.next += 1;
        Some(self.open(group.column(self.leaf), group.num_rows()))
    }
}

impl PageIterator for CheckedChunks {}

struct CheckedPages {
    pages: SerializedPageReader<File>,
    column: Arc<ColumnDescriptor>,
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if page.as_ref().is_some_and(|page| check_lengths(page, &self.column).is_none()) {
            return Err(ParquetError::General("a page has more lengths of strings than values".to_owned()));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }
}

/// Lengths of strings that are stored as differences begin with their number, which decides what the decoder allocates.
fn check_lengths(page: &Page, column: &ColumnDescriptor) -> Option<()> {
    let lists = match page.encoding() {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return Some(()),
    };
    let values = u64::from(page.num_values());
    let mut data = Compact::new(page.buffer());
    match page {
        Page::DataPage { rep_level_encoding, def_level_encoding, .. } => {
            skip_levels(&mut data, column.max_rep_level(), *rep_level_encoding, values)?;
            skip_levels(&mut data, column.max_def_level(), *def_level_encoding, values)?;
        }
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            data.bytes(u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))?;
        }
        Page::DictionaryPage { .. } => {}
    }
    (0..lists).try_for_each(|_| skip_differences(&mut data, values))
}

/// Skips repetition or definition levels of a page of version 1.
#[expect(deprecated, reason = "old files have packed levels")]
fn skip_levels(data: &mut Compact<'_>, max_level: i16, encoding: Encoding, values: u64) -> Option<()> {
    if max_level == 0 {
        return Some(());
    }
    let length = if encoding == Encoding::BIT_PACKED {
        let bits = u64::from(16 - (max_level as u16).leading_zeros());
        (values * bits).div_ceil(8)
    } else {
        let length = data.bytes(4)?;
        u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]))
    };
    data.bytes(length).map(drop)
}

/// Skips integers that are stored as packed differences; there must be at most as many as values.
fn skip_differences(data: &mut Compact<'_>, values: u64) -> Option<()> {
    let (block, groups, count) = (data.varint()?, data.varint()?, data.varint()?);
    data.varint()?;
    if count > values {
        return None;
    }
    let each = block.checked_div(groups)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        data.varint()?;
        for &bits in data.bytes(groups)? {
            if left == 0 {
                break;
            }
            data.bytes(u64::from(bits).checked_mul(each)? / 8)?;
            left = left.saturating_sub(each);
        }
        if each == 0 {
            return None;
        }
    }
    Some(())
}

/// The leaves of the selected columns, and the bytes of a value of each; `None` for strings.
pub(super) fn leaves(metadata: &ParquetMetaData, mask: &ProjectionMask) -> Vec<(usize, Option<u64>)> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let width = |column: &ColumnDescriptor| match column.physical_type() {
        Type::BOOLEAN => Some(1),
        Type::INT32 | Type::FLOAT => Some(4),
        Type::INT64 | Type::DOUBLE => Some(8),
        Type::INT96 => Some(12),
        Type::BYTE_ARRAY => None,
        Type::FIXED_LEN_BYTE_ARRAY => Some(u64::try_from(column.type_length()).unwrap_or(u64::MAX)),
    };
    let all = columns.iter().enumerate().filter(|&(leaf, _)| mask.leaf_included(leaf));
    all.map(|(leaf, column)| (leaf, width(column))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_pages_have_sizes_and_values() {
        let _ledger = taut_memory::testing::ledger_check();
        // A data page: type 0, 100 bytes decompressed, 50 compressed, field 5: 7 values, encoding 0.
        let page = parse_header(&[0x15, 0, 0x15, 200, 1, 0x15, 100, 0x2c, 0x15, 14, 0x15, 0, 0, 0, 9, 9])
            .expect("the header is whole");
        assert_eq!((page.length, page.decompressed, page.compressed, page.values), (14, 100, 50, 7));
        assert_eq!(page.entries, 0);
        assert!(parse_header(&[0x15, 0, 0x15, 1]).is_none(), "a size must be >= 0");
    }

    #[test]
    fn differences_are_no_more_than_values() {
        let _ledger = taut_memory::testing::ledger_check();
        // Blocks of 128 in 4 groups; 3 integers, the first is 1; least difference 0, 2 bits each in the first group.
        let packed = [128, 1, 4, 3, 2, 0, 2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let skip = |values| {
            let mut data = Compact::new(&packed);
            skip_differences(&mut data, values).map(|()| data.remaining())
        };
        assert_eq!(skip(3), Some(0));
        assert_eq!(skip(2), None);
    }
}
