//! Parquet and Arrow files, written by the crates of these formats.
#![cfg(feature = "arrow")]

mod common;

use arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
use common::Folder;
use parquet::arrow::ArrowWriter;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taut_core::{DType, ErrorKind, Result, Spec, Tensor};
use taut_data::{Dataset, load_arrow, load_parquet};
use taut_memory::testing::ledger_check;

type Load = fn(&Path, Option<&[&str]>) -> Result<std::collections::BTreeMap<String, Tensor>>;

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
        assert_eq!(table["number"].to_vec::<i64>().unwrap(), (0..7).collect::<Vec<_>>());
        assert_eq!(table["half"].to_vec::<f64>().unwrap(), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(table["even"].to_vec::<bool>().unwrap(), [true, false, true, false, true, false, true]);
        assert_eq!(table["three"].shape(), &[7, 3]);
        assert_eq!(table["three"].to_vec::<f32>().unwrap()[15..], [5.0, 6.0, 7.0, 6.0, 7.0, 8.0]);
        assert_eq!(Dataset::from_tensor_slices(table).unwrap().iter().unwrap().count(), 7);
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
        assert_eq!(table["three"].spec(), &Spec::new(DType::F32, [0, 3]));
        assert_eq!(table["even"].spec(), &Spec::new(DType::Bool, [0]));
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
    assert_eq!(load_arrow(&path, Some(&["b"])).unwrap()["b"].to_vec::<i64>().unwrap(), [10, 11]);
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
        refused(None, ErrorKind::DType, &["`name`", "Utf8"]);
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
                if let Err(error) = load(&path, Some(&["number", "three"])) {
                    assert!(error.to_string().contains("x."), "{error}");
                }
            }
        }
    }
}
