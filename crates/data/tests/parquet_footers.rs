//! Footers of Parquet files that are marked with other types than they are read as take no memory.
#![cfg(feature = "arrow")]

use taut_core::ErrorKind;
use taut_data::load_parquet;
use taut_testing::{Folder, HeapCounter, exclusive};

#[global_allocator]
static HEAP: HeapCounter = HeapCounter;

/// A file whose footer is these bytes.
fn file(footer: &[u8]) -> Vec<u8> {
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", footer, &length, b"PAR1"].concat()
}

#[test]
fn a_list_that_is_marked_as_a_byte_takes_no_memory() {
    let _exclusive = exclusive();
    let folder = Folder::new("parquet-footers");
    let path = folder.join("x.parquet");
    // Field 7, the orders of the columns, as a byte, and field 21, 16 bytes. Parquet's reader takes field 7 for a list, of which
    // the first bytes of field 21 are the length.
    let mut footer = vec![0x73, 0xf7, 0xed, 0xff, 0xff, 0x1f];
    footer.resize(20, 0);
    std::fs::write(&path, file(&footer)).unwrap();
    let before = HeapCounter::start();
    let error = load_parquet(&path, None).unwrap_err();
    let grown = HeapCounter::peak() - before;
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    assert!(grown < 64 << 10, "{grown} bytes for a file of {}", footer.len() + 12);
}
