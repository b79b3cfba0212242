//! Checks of the sizes that Arrow and Parquet files claim, before their readers allocate as much.

use super::super::format_error;
use super::compact::{Compact, LIST, STRUCT};
use super::layout::check_types;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use taut_core::{Error, Result};

/// Runs a reader. The crates that read these formats panic on some corrupt files; that is an error about the file.
pub(super) fn catch_panics<R>(read: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(corrupt("its reader failed")))
}

#[cold]
pub(super) fn corrupt(what: &str) -> Error {
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

/// Refuses a Parquet file whose footer has lists with more elements than bytes, fields of other types than Parquet's, or groups
/// with more columns than the schema.
pub(super) fn check_parquet(file: &mut File) -> Result<()> {
    let Some((footer, _)) = footer::<8>(file)? else { return Ok(()) };
    let sound = check_types(&footer).and_then(|()| check_footer(&footer));
    sound.ok_or_else(|| corrupt("its footer has values of other types than Parquet's, or beyond its end"))
}

/// `FileMetaData` of Parquet: field 2 is the schema, whose elements have their number of children in field 5.
fn check_footer(footer: &[u8]) -> Option<()> {
    let mut footer = Compact::new(footer);
    footer.fields(0, |footer, id, kind| {
        if id != 2 {
            return footer.skip(kind, 1);
        }
        if kind != LIST {
            return None;
        }
        let (of, count) = footer.list()?;
        (0..count).try_for_each(|_| match of {
            STRUCT => footer.fields(2, |element, id, kind| match id {
                5 => (0..=count as i64).contains(&element.int(kind)?).then_some(()),
                _ => element.skip(kind, 3),
            }),
            other => footer.element(other, 1),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_no_more_columns_than_the_schema() {
        let _ledger = taut_memory::testing::ledger_check();
        // Field 2: a list of two structures; field 5 of the first, its children: 1, or 2^30.
        assert!(check_footer(&[0x29, 0x2c, 0x55, 2, 0, 0, 0]).is_some());
        assert!(check_footer(&[0x29, 0x2c, 0x55, 0x80, 0x80, 0x80, 0x80, 8, 0, 0, 0]).is_none());
    }
}
