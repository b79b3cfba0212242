//! Parquet and Arrow files, written by the crates of these formats.
#![cfg(feature = "arrow")]

mod common;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, DictionaryArray, FixedSizeBinaryArray,
    Float64Array, Int64Array, LargeBinaryArray, LargeStringArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
use common::Folder;
use parquet::arrow::ArrowWriter;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taut_core::{DType, ErrorKind, Result, Spec, Tensor};
use taut_data::{AnyTensor, Dataset, load_arrow, load_parquet};
use taut_memory::testing::ledger_check;

type Table = std::collections::BTreeMap<String, AnyTensor>;
type Load = fn(&Path, Option<&[&str]>) -> Result<Table>;

fn numbers<'a>(table: &'a Table, column: &str) -> &'a Tensor {
    table[column].numbers().unwrap()
}

/// Rows `first..first + count`: their number, its half, whether it is even, three neighbours, its name, and a gap.
fn batch(first: i64, count: i64) -> RecordBatch {
    let rows = || first..first + count;
    let mut lists = FixedSizeListBuilder::new(Float32Builder::new(), 3);
    for row in rows() {
        (0..3).for_each(|i| lists.values().append_value((row + i) as f32));
        lists.append(true);
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("number", Arc::new(rows().collect::<Int64Array>())),
        ("half", Arc::new(rows().map(|row| Some(row as f64 / 2.0)).collect::<Float64Array>())),
        ("even", Arc::new(rows().map(|row| Some(row % 2 == 0)).collect::<BooleanArray>())),
        ("three", Arc::new(lists.finish())),
        ("name", Arc::new(rows().map(|row| Some(row.to_string())).collect::<StringArray>())),
        ("date", Arc::new(rows().map(|row| Some(row as i32)).collect::<Date32Array>())),
        ("gap", Arc::new(rows().map(|row| (row % 3 != 1).then_some(row)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The same seven rows in both formats, in batches of unequal size.
fn files(folder: &Folder) -> [(PathBuf, Load); 2] {
    // A slice starts inside its memory.
    let batches = [batch(0, 4), batch(2, 5).slice(2, 3)];
    let (parquet, arrow) = (folder.join("x.parquet"), folder.join("x.arrow"));
    let mut writer =
        ArrowWriter::try_new(File::create(&parquet).unwrap(), batches[0].schema(), None).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    let mut writer = FileWriter::try_new(File::create(&arrow).unwrap(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    [
        (parquet, |path, columns| load_parquet(path, columns)),
        (arrow, |path, columns| load_arrow(path, columns)),
    ]
}

#[test]
fn columns_become_tensors() {
    let _ledger = ledger_check();
    let folder = Folder::new("arrow");
    for (path, load) in files(&folder) {
        let table = load(&path, Some(&["three", "number", "even", "half"])).unwrap();
        assert_eq!(table.len(), 4);
        assert_eq!(numbers(&table, "number").to_vec::<i64>().unwrap(), (0..7).collect::<Vec<_>>());
        assert_eq!(numbers(&table, "half").to_vec::<f64>().unwrap(), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(
            numbers(&table, "even").to_vec::<bool>().unwrap(),
            [true, false, true, false, true, false, true]
        );
        assert_eq!(numbers(&table, "three").shape(), &[7, 3]);
        assert_eq!(numbers(&table, "three").to_vec::<f32>().unwrap()[15..], [5.0, 6.0, 7.0, 6.0, 7.0, 8.0]);
        assert_eq!(Dataset::from_tensor_slices(table).unwrap().iter().unwrap().count(), 7);
    }
}

#[test]
fn text_columns_become_string_tensors() {
    let _ledger = ledger_check();
    let folder = Folder::new("text-arrow");
    for (path, load) in files(&folder) {
        let table = load(&path, Some(&["name", "number"])).unwrap();
        let names: Vec<Vec<u8>> = (0..7).map(|row: i64| row.to_string().into_bytes()).collect();
        assert_eq!(table["name"].strings().unwrap().to_vec().unwrap(), names);
        let error = table["name"].numbers().unwrap_err();
        assert!(error.to_string().contains("expected numbers, got string[7]"), "{error}");
        let batch = Dataset::from_tensor_slices(table).unwrap().batch(4).unwrap();
        let last = batch.iter().unwrap().last().unwrap().unwrap();
        assert_eq!(last["name"].strings().unwrap().to_vec().unwrap(), names[4..]);
        assert_eq!(numbers(&last, "number").to_vec::<i64>().unwrap(), [4, 5, 6]);
    }
}

#[test]
fn all_types_of_text_are_read() {
    let _ledger = ledger_check();
    let folder = Folder::new("text-types-arrow");
    let words = ["a", "", "long enough not to be stored in a view", "\u{e4}"];
    let bytes = words.map(str::as_bytes);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("large", Arc::new(LargeStringArray::from(words.to_vec()))),
        ("view", Arc::new(StringViewArray::from(words.to_vec()))),
        ("binary", Arc::new(LargeBinaryArray::from(bytes.to_vec()))),
        ("binary_view", Arc::new(BinaryViewArray::from(bytes.to_vec()))),
        ("dictionary", Arc::new(words.into_iter().collect::<DictionaryArray<Int8Type>>())),
    ];
    let fixed = FixedSizeBinaryArray::try_from_iter([b"ab", b"cd", b"ef", b"gh"].into_iter()).unwrap();
    let mut columns = columns;
    columns.push(("fixed", Arc::new(fixed)));
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let (arrow, parquet) = (folder.join("x.arrow"), folder.join("x.parquet"));
    let mut writer = FileWriter::try_new(File::create(&arrow).unwrap(), &rows.schema()).unwrap();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&parquet).unwrap(), rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    for table in [load_arrow(&arrow, None).unwrap(), load_parquet(&parquet, None).unwrap()] {
        for name in ["large", "view", "binary", "binary_view", "dictionary"] {
            assert_eq!(table[name].strings().unwrap().to_vec().unwrap(), bytes.map(<[u8]>::to_vec), "{name}");
        }
        assert_eq!(table["fixed"].strings().unwrap().row(3).unwrap().item().unwrap(), b"gh");
    }
}

#[test]
fn files_without_rows_have_their_columns() {
    let _ledger = ledger_check();
    let folder = Folder::new("empty-arrow");
    let (parquet, arrow) = (folder.join("x.parquet"), folder.join("x.arrow"));
    let schema = batch(0, 1).schema();
    ArrowWriter::try_new(File::create(&parquet).unwrap(), schema.clone(), None).unwrap().close().unwrap();
    FileWriter::try_new(File::create(&arrow).unwrap(), &schema).unwrap().finish().unwrap();
    let wanted: Option<&[&str]> = Some(&["three", "even"]);
    for table in [load_parquet(&parquet, wanted).unwrap(), load_arrow(&arrow, wanted).unwrap()] {
        assert_eq!(table.len(), 2);
        assert_eq!(numbers(&table, "three").spec(), &Spec::new(DType::F32, [0, 3]));
        assert_eq!(numbers(&table, "even").spec(), &Spec::new(DType::Bool, [0]));
    }
}

#[test]
fn columns_of_one_name_are_errors() {
    let _ledger = ledger_check();
    let folder = Folder::new("twice-arrow");
    let path = folder.join("x.arrow");
    let field = |name| Field::new(name, DataType::Int64, false);
    let schema = Arc::new(Schema::new(vec![field("a"), field("b"), field("a")]));
    let column = |first: i64| -> ArrayRef { Arc::new((first..first + 2).collect::<Int64Array>()) };
    let rows = RecordBatch::try_new(schema.clone(), vec![column(0), column(10), column(20)]).unwrap();
    let mut writer = FileWriter::try_new(File::create(&path).unwrap(), &schema).unwrap();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();
    let error = load_arrow(&path, None).unwrap_err();
    assert!(error.message().contains("several columns are named `a`"), "{error}");
    assert_eq!(numbers(&load_arrow(&path, Some(&["b"])).unwrap(), "b").to_vec::<i64>().unwrap(), [10, 11]);
}

#[test]
fn errors_name_the_column() {
    let _ledger = ledger_check();
    let folder = Folder::new("bad-arrow");
    for (path, load) in files(&folder) {
        let refused = |columns: Option<&[&str]>, kind: ErrorKind, parts: &[&str]| {
            let error = load(&path, columns).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            parts.iter().for_each(|part| assert!(error.to_string().contains(part), "{error}"));
        };
        refused(Some(&["date"]), ErrorKind::DType, &["`date`", "Date32"]);
        refused(Some(&["gap"]), ErrorKind::Format, &["`gap`", "missing"]);
        refused(Some(&["numbers"]), ErrorKind::Value, &["`numbers`", "number, half"]);
        let good = std::fs::read(&path).unwrap();
        for bytes in [&good[..0], &good[..good.len() / 2], b"something else, and long enough for a footer"] {
            std::fs::write(&path, bytes).unwrap();
            refused(None, ErrorKind::Format, &["x."]);
        }
        std::fs::remove_file(&path).unwrap();
        refused(None, ErrorKind::Io, &["x."]);
    }
}

/// A corrupt byte gives an error or other values; the readers' own panics do not pass.
#[test]
fn corrupt_bytes_do_not_panic() {
    let _ledger = ledger_check();
    let folder = Folder::new("corrupt-arrow");
    for (path, load) in files(&folder) {
        let good = std::fs::read(&path).unwrap();
        for place in (0..good.len()).step_by(3) {
            for value in [0xff, good[place] ^ 0x10] {
                let mut bad = good.clone();
                bad[place] = value;
                std::fs::write(&path, &bad).unwrap();
                if let Err(error) = load(&path, Some(&["number", "three", "name"])) {
                    assert!(error.to_string().contains("x."), "{error}");
                }
            }
        }
    }
}
