//! Parquet and Arrow files.

mod compact;
mod guard;
mod layout;
mod pages;

use super::format_error;
use crate::element::AnyTensor;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType, FieldRef, Schema};
use pages::{CheckedRowGroups, column_pages, leaves};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::file::metadata::ParquetMetaData;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use taut_core::{DType, Error, Result, Shape, Spec, Tensor};
use taut_memory::{Buffer, Category, Location};
use taut_strings::StringBuilder;

/// The selected columns of a file may be this many times its size, and [`LEAST_LIMIT`] bytes in any case.
const MOST_EXPANSION: u64 = 1 << 12;
const LEAST_LIMIT: u64 = 16 << 20;

/// The most rows of a Parquet file that are decoded at once.
const MOST_ROWS: u64 = 1024;

/// Reads columns of a Parquet file, by default all of them: each becomes a tensor whose first axis is the rows.
///
/// Numbers and booleans become tensors `[rows]`, fixed-size lists of them `[rows, size]`, and so on; text and binary columns,
/// also those with a dictionary, become string tensors. Columns of other types and columns with missing values are errors that
/// name the column: select other columns.
///
/// Memory: the columns, twice. They may be at most 4096 times the bytes of the file, or 16 MiB: a file that claims more is
/// refused before it is decoded.
#[track_caller]
pub fn load_parquet(path: impl AsRef<Path>, columns: Option<&[&str]>) -> Result<BTreeMap<String, AnyTensor>> {
    let (path, at) = (path.as_ref(), Location::caller());
    let load = || {
        let mut file = File::open(path)?;
        guard::check_parquet(&mut file)?;
        let most = most_bytes(&file)?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(parquet_error)?;
        let selected = selected(metadata.schema(), columns)?;
        let fields = fields(metadata.schema(), &selected);
        let mask = ProjectionMask::roots(metadata.parquet_schema(), selected);
        let rows = rows_at_once(&mut file, metadata.metadata(), &mask, &fields, most)?;
        let hint = Some(metadata.schema().fields());
        let levels = parquet_to_arrow_field_levels(metadata.parquet_schema(), mask, hint);
        let groups = CheckedRowGroups { file: Arc::new(file), metadata: metadata.metadata().clone() };
        let reader = levels.and_then(|levels| {
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, rows, None)
        });
        tensors(reader.map_err(parquet_error)?, &fields, most, at)
    };
    guard::catch_panics(load).map_err(|error| error.about(path.display()).at(at))
}

/// Reads columns of an Arrow IPC file (Feather, version 2), or all of them, as [`load_parquet`] does.
#[track_caller]
pub fn load_arrow(path: impl AsRef<Path>, columns: Option<&[&str]>) -> Result<BTreeMap<String, AnyTensor>> {
    let (path, at) = (path.as_ref(), Location::caller());
    let load = || {
        guard::check_arrow(&mut File::open(path)?)?;
        let schema = FileReader::try_new(File::open(path)?, None).map_err(arrow_error)?.schema();
        let selected = selected(&schema, columns)?;
        let fields = fields(&schema, &selected);
        let reader = FileReader::try_new(File::open(path)?, Some(selected)).map_err(arrow_error)?;
        tensors(reader, &fields, most_bytes(&File::open(path)?)?, at)
    };
    guard::catch_panics(load).map_err(|error| error.about(path.display()).at(at))
}

/// The most bytes that the selected columns of a file may be.
fn most_bytes(file: &File) -> Result<u64> {
    Ok(file.metadata()?.len().saturating_mul(MOST_EXPANSION).max(LEAST_LIMIT))
}

#[cold]
fn too_much(most: u64) -> Error {
    format_error(format!(
        "the columns are more than {most} bytes, {MOST_EXPANSION} times the size of the file"
    ))
    .help("the file is corrupt, or repeats few values: select fewer columns, or store them in several files")
}

/// The rows to decode at once, so that what is decoded is bounded before it is allocated: at most [`MOST_ROWS`].
fn rows_at_once(
    file: &mut File,
    metadata: &ParquetMetaData,
    mask: &ProjectionMask,
    fields: &[FieldRef],
    most: u64,
) -> Result<usize> {
    let (mut pages, mut all, mut row) = (0u64, 0u64, 0u64);
    for (leaf, width) in leaves(metadata, mask) {
        let column = column_pages(file, metadata, leaf)?;
        let (page, dictionary) = column.largest;
        pages = pages.saturating_add(page).saturating_add(dictionary);
        // Numbers, or the offset of a string, and two levels.
        all = all.saturating_add(column.values.saturating_mul(width.unwrap_or(4).saturating_add(4)));
        // A string is no longer than its page.
        row = row.saturating_add(width.unwrap_or(page.max(dictionary)));
    }
    for field in fields.iter().filter(|field| !is_text(field.data_type())) {
        let (dtype, dims) = shape(field.data_type())?;
        let bytes = dims.iter().try_fold(dtype.size() as u64, |bytes, &dim| bytes.checked_mul(dim as u64));
        row = row.saturating_add(bytes.unwrap_or(u64::MAX));
    }
    if pages.max(all).max(row) > most {
        return Err(too_much(most));
    }
    Ok((most / row.max(1)).clamp(1, MOST_ROWS) as usize)
}

#[cold]
fn parquet_error(error: parquet::errors::ParquetError) -> Error {
    format_error(error.to_string())
}

#[cold]
fn arrow_error(error: ArrowError) -> Error {
    format_error(error.to_string())
}

/// The indices of the selected columns, whose names must be unique.
fn selected(schema: &Schema, columns: Option<&[&str]>) -> Result<Vec<usize>> {
    let index_of = |name: &&str| {
        schema.index_of(name).map_err(|_| {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            Error::value(format!("unknown column `{name}`"))
                .help(format!("the columns are {}", names.join(", ")))
        })
    };
    let selected: Vec<usize> = match columns {
        Some(names) => names.iter().map(index_of).collect::<Result<_>>()?,
        None => (0..schema.fields().len()).collect(),
    };
    for &index in &selected {
        let field = schema.field(index);
        if schema.fields().iter().filter(|other| other.name() == field.name()).count() > 1 {
            return Err(format_error(format!("several columns are named `{}`", field.name())));
        }
        if is_text(field.data_type()) {
            continue;
        }
        shape(field.data_type()).map_err(|error| error.about(format_args!("column `{}`", field.name())))?;
    }
    Ok(selected)
}

/// The element type of a column, and the shape of one row.
fn shape(of: &DataType) -> Result<(DType, Vec<usize>)> {
    let dtype = match of {
        DataType::Boolean => DType::Bool,
        DataType::UInt8 => DType::U8,
        DataType::UInt16 => DType::U16,
        DataType::UInt32 => DType::U32,
        DataType::UInt64 => DType::U64,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::Float16 => DType::F16,
        DataType::Float32 => DType::F32,
        DataType::Float64 => DType::F64,
        DataType::FixedSizeList(inner, size) => {
            let (dtype, mut row) = shape(inner.data_type())?;
            row.insert(0, *size as usize);
            return Ok((dtype, row));
        }
        other => {
            return Err(Error::dtype(format!("{other} cannot be converted to a tensor")).help(
                "select columns of text, numbers, booleans, and fixed-size lists of numbers and booleans",
            ));
        }
    };
    Ok((dtype, Vec::new()))
}

fn fields(schema: &Schema, selected: &[usize]) -> Vec<FieldRef> {
    selected.iter().map(|&index| schema.fields()[index].clone()).collect()
}

/// These columns of all record batches, of which there may be none.
fn tensors(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    fields: &[FieldRef],
    most: u64,
    at: Location,
) -> Result<BTreeMap<String, AnyTensor>> {
    if fields.is_empty() {
        return Ok(BTreeMap::new());
    }
    let batches = collected(batches, most)?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let mut found = BTreeMap::new();
    for field in fields {
        let about = |error: Error| error.about(format_args!("column `{}`", field.name()));
        let missing = || about(format_error("missing in a record batch"));
        let columns = batches.iter().map(|batch| batch.column_by_name(field.name()).ok_or_else(missing));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        if is_text(field.data_type()) {
            let mut out = StringBuilder::new(rows, 0);
            for column in columns {
                push_text(column, &mut out).map_err(about)?;
                if out.byte_len() as u64 > most {
                    return Err(about(too_much(most)));
                }
            }
            found.insert(field.name().clone(), AnyTensor::Strings(out.finish([rows]).map_err(about)?));
            continue;
        }
        let (dtype, mut dims) = shape(field.data_type()).map_err(about)?;
        dims.insert(0, rows);
        let spec = Spec::new(dtype, Shape::from(dims));
        if spec.shape.checked_len().is_none() {
            return Err(about(format_error(format!(
                "the size of shape {} exceeds the address space",
                spec.shape
            ))));
        }
        if columns.iter().map(|column| elements(column)).sum::<usize>() < spec.shape.len() {
            return Err(about(format_error("fewer values than rows")));
        }
        let mut buffer = Buffer::new_at(spec.bytes(), Category::Dataset, at)?;
        let mut rest = buffer.as_mut_slice();
        for column in columns {
            rest = fill(column, rest).map_err(about)?;
        }
        if !rest.is_empty() {
            return Err(about(format_error("fewer values than rows")));
        }
        found.insert(field.name().clone(), AnyTensor::Numbers(Tensor::from_buffer(spec, buffer)?));
    }
    Ok(found)
}

/// All record batches, which may be `most` bytes.
fn collected(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    most: u64,
) -> Result<Vec<RecordBatch>> {
    let (mut all, mut bytes) = (Vec::new(), 0u64);
    for batch in batches {
        let batch = batch.map_err(arrow_error)?;
        bytes = bytes.saturating_add(batch.columns().iter().map(own_bytes).sum());
        if bytes > most {
            return Err(too_much(most));
        }
        all.push(batch);
    }
    Ok(all)
}

/// The bytes of an array, without a dictionary or strings that it may share with others.
fn own_bytes(array: &ArrayRef) -> u64 {
    match array.data_type() {
        DataType::Dictionary(..) => 8 * array.len() as u64,
        DataType::Utf8View | DataType::BinaryView => 16 * array.len() as u64,
        _ => array.get_buffer_memory_size() as u64,
    }
}

/// Whether a column becomes a string tensor.
fn is_text(of: &DataType) -> bool {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            true
        }
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Appends the strings of an array.
fn push_text(array: &ArrayRef, out: &mut StringBuilder) -> Result<()> {
    no_gaps(array)?;
    if array.is_empty() {
        return Ok(());
    }
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let values = dictionary.values();
        no_gaps(values)?;
        let mut known = StringBuilder::new(values.len(), 0);
        push_text(values, &mut known)?;
        let (known, keys) = (known.finish_vector()?, dictionary.normalized_keys());
        let known = known.values()?;
        return keys.into_iter().try_for_each(|key| out.push(known.get(key)));
    }
    match array.data_type() {
        DataType::Utf8 => push_all(array.as_string::<i32>().iter(), out),
        DataType::LargeUtf8 => push_all(array.as_string::<i64>().iter(), out),
        DataType::Utf8View => push_all(array.as_string_view().iter(), out),
        DataType::Binary => push_all(array.as_binary::<i32>().iter(), out),
        DataType::LargeBinary => push_all(array.as_binary::<i64>().iter(), out),
        DataType::BinaryView => push_all(array.as_binary_view().iter(), out),
        DataType::FixedSizeBinary(_) => push_all(array.as_fixed_size_binary().iter(), out),
        other => Err(Error::dtype(format!("{other} cannot be converted to strings"))),
    }
}

/// Appends the strings of an array without gaps.
fn push_all<S: AsRef<[u8]>>(values: impl Iterator<Item = Option<S>>, out: &mut StringBuilder) -> Result<()> {
    values.flatten().try_for_each(|value| out.push(value.as_ref()))
}

fn no_gaps(array: &ArrayRef) -> Result<()> {
    match array.null_count() {
        0 => Ok(()),
        count => Err(format_error(format!("{count} values are missing"))),
    }
}

/// The elements of an array, with those of the lists in it.
fn elements(array: &ArrayRef) -> usize {
    match array.as_fixed_size_list_opt() {
        Some(list) => elements(list.values()),
        None => array.len(),
    }
}

/// Writes an array's elements, and returns the rest of the output.
fn fill<'a>(array: &ArrayRef, out: &'a mut [u8]) -> Result<&'a mut [u8]> {
    no_gaps(array)?;
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean();
            let (here, rest) = split(out, values.len())?;
            here.iter_mut().enumerate().for_each(|(i, byte)| *byte = u8::from(values.value(i)));
            Ok(rest)
        }
        DataType::UInt8 => numbers::<UInt8Type>(array, out),
        DataType::UInt16 => numbers::<UInt16Type>(array, out),
        DataType::UInt32 => numbers::<UInt32Type>(array, out),
        DataType::UInt64 => numbers::<UInt64Type>(array, out),
        DataType::Int8 => numbers::<Int8Type>(array, out),
        DataType::Int16 => numbers::<Int16Type>(array, out),
        DataType::Int32 => numbers::<Int32Type>(array, out),
        DataType::Int64 => numbers::<Int64Type>(array, out),
        DataType::Float16 => numbers::<Float16Type>(array, out),
        DataType::Float32 => numbers::<Float32Type>(array, out),
        DataType::Float64 => numbers::<Float64Type>(array, out),
        DataType::FixedSizeList(_, size) => {
            let list = array.as_fixed_size_list();
            let (first, count) = (list.offset() * *size as usize, list.len() * *size as usize);
            fill(&list.values().slice(first, count), out)
        }
        other => Err(Error::dtype(format!("{other} cannot be converted to a tensor"))),
    }
}

fn numbers<'a, T: ArrowPrimitiveType>(array: &ArrayRef, out: &'a mut [u8]) -> Result<&'a mut [u8]> {
    let values = array.as_primitive::<T>().values().inner().as_slice();
    let (here, rest) = split(out, values.len())?;
    here.copy_from_slice(values);
    Ok(rest)
}

fn split(out: &mut [u8], bytes: usize) -> Result<(&mut [u8], &mut [u8])> {
    out.split_at_mut_checked(bytes).ok_or_else(|| format_error("more values than rows"))
}
