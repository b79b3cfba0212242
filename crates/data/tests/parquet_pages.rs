//! Pages of Parquet files in every encoding that their writer has, and files that claim more than they hold.
#![cfg(feature = "arrow")]

mod common;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use common::Folder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, GzipLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use taut_core::ErrorKind;
use taut_data::load_parquet;
use taut_memory::testing::ledger_check;

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, settings: WriterPropertiesBuilder) {
    // Optional columns have definition levels before their values.
    let columns = columns.into_iter().map(|(name, values)| (name, values, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(settings.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn every_encoding_is_read() {
    let _ledger = ledger_check();
    let (folder, rows) = (Folder::new("parquet-encodings"), 5000i64);
    let path = folder.join("x.parquet");
    let words: Vec<String> = (0..rows).map(|row| format!("word {} of many", row % 700)).collect();
    let texts = [
        None,
        Some(Encoding::PLAIN),
        Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        Some(Encoding::DELTA_BYTE_ARRAY),
    ];
    let packed = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(GzipLevel::default())];
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for text in texts {
            for compression in packed {
                let mut settings = WriterProperties::builder()
                    .set_writer_version(version)
                    .set_compression(compression)
                    .set_data_page_row_count_limit(900);
                if let Some(text) = text {
                    settings =
                        settings.set_dictionary_enabled(false).set_column_encoding("word".into(), text);
                }
                let numbers: ArrayRef = Arc::new((0..rows).map(|row| row * row).collect::<Int64Array>());
                let texts: ArrayRef = Arc::new(words.iter().map(Some).collect::<StringArray>());
                write(&path, vec![("number", numbers), ("word", texts)], settings);
                let table = load_parquet(&path, None).unwrap();
                let found = table["number"].numbers().unwrap().to_vec::<i64>().unwrap();
                assert!(found.iter().zip(0..rows).all(|(&found, row)| found == row * row));
                let found = table["word"].strings().unwrap().to_vec().unwrap();
                assert!(found.iter().zip(&words).all(|(found, word)| found == word.as_bytes()));
            }
        }
    }
}

#[test]
fn repeated_values_are_read_up_to_a_limit() {
    let _ledger = ledger_check();
    let folder = Folder::new("parquet-repeated");
    let path = folder.join("x.parquet");
    let constants =
        |rows: usize| -> ArrayRef { Arc::new(std::iter::repeat_n(7, rows).collect::<Int64Array>()) };
    write(&path, vec![("same", constants(1 << 20))], WriterProperties::builder());
    let table = load_parquet(&path, None).unwrap();
    assert_eq!(table["same"].numbers().unwrap().to_vec::<i64>().unwrap(), vec![7; 1 << 20]);
    // One page of a run: some hundred bytes would become 64 MiB.
    let settings = WriterProperties::builder()
        .set_data_page_row_count_limit(usize::MAX)
        .set_max_row_group_size(usize::MAX);
    write(&path, vec![("same", constants(1 << 23))], settings);
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 4096, "{bytes}");
    let error = load_parquet(&path, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert!(error.to_string().contains("4096 times the size of the file"), "{error}");
    assert!(load_parquet(&path, Some(&[])).unwrap().is_empty());
}
