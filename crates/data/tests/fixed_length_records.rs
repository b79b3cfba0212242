//! Files of records of a fixed length: values, and memory that does not grow with the file.

use taut_core::ErrorKind;
use taut_data::{FileSet, fixed_length_records};
use taut_testing::{Folder, HeapCounter, exclusive};

#[global_allocator]
static HEAP: HeapCounter = HeapCounter;

fn record(index: usize, len: usize) -> Vec<u8> {
    (0..len).map(|place| (index * 31 + place) as u8).collect()
}

/// Header, records and footer.
fn contents(header: usize, count: usize, len: usize, footer: usize) -> Vec<u8> {
    let mut bytes = vec![0xaa; header];
    (0..count).for_each(|index| bytes.extend(record(index, len)));
    bytes.extend(vec![0xff; footer]);
    bytes
}

#[test]
fn memory_does_not_grow_with_the_file() {
    let _exclusive = exclusive();
    let folder = Folder::new("fixed-length-memory");
    let path = folder.join("records");
    let (count, len, footer) = (60_000, 61, 7);
    std::fs::write(&path, contents(5, count, len, footer)).unwrap();
    let files = FileSet::new([&path]).buffer_bytes(4096);
    let mut records = fixed_length_records(&files, len, 5, footer).unwrap().iter().unwrap();
    let before = HeapCounter::start();
    for index in 0..count {
        assert_eq!(records.next().unwrap().unwrap().item().unwrap(), record(index, len), "record {index}");
    }
    assert!(records.next().is_none());
    let grown = HeapCounter::peak() - before;
    assert!(grown < 256 << 10, "{grown} bytes for a file of {}", count * len);
}

#[test]
fn records_may_be_larger_than_the_buffer() {
    let _exclusive = exclusive();
    let folder = Folder::new("fixed-length-values");
    let path = folder.join("records");
    for (header, count, len, footer) in [
        (0, 50, 10_000, 3),
        (9, 7, 10_000, 9_000),
        (10_000, 3, 5, 0),
        (0, 100, 1, 4096),
        (1, 0, 8, 3),
        (0, 0, 8, 0),
    ] {
        std::fs::write(&path, contents(header, count, len, footer)).unwrap();
        let files = FileSet::new([&path, &path]).buffer_bytes(4096);
        let records = fixed_length_records(&files, len, header, footer).unwrap();
        let found: Vec<Vec<u8>> =
            records.iter().unwrap().map(|x| x.unwrap().item().unwrap().to_vec()).collect();
        let wanted: Vec<Vec<u8>> = (0..2 * count).map(|index| record(index % count, len)).collect();
        assert_eq!(found, wanted, "header {header}, {count} records of {len}, footer {footer}");
    }
}

#[test]
fn arguments_larger_than_the_file_are_errors() {
    let _exclusive = exclusive();
    let folder = Folder::new("fixed-length-errors");
    let path = folder.join("records");
    std::fs::write(&path, contents(0, 2, 10, 0)).unwrap();
    let files = FileSet::new([&path]);
    for (record, header, footer, text) in [
        (usize::MAX, 0, 8, "got 20 bytes at the end"),
        (8, 0, usize::MAX, "got 20 bytes at the end"),
        (usize::MAX, 12, usize::MAX, "got 8 bytes at the end"),
        (1, usize::MAX, 0, "bytes, got 20"),
        (3, 0, 0, "got 2 bytes at the end"),
        (10, 0, 1, "got 10 bytes at the end"),
        (10, 0, 21, "got 20 bytes at the end"),
    ] {
        let before = HeapCounter::start();
        let records = fixed_length_records(&files, record, header, footer).unwrap();
        let error = records.iter().unwrap().find_map(Result::err).unwrap();
        assert!(error.kind() == ErrorKind::Format && error.message().contains(text), "{error}");
        assert!(HeapCounter::peak() - before < 1 << 20);
    }
}
