//! Rows of comma-separated values as tuples of numbers and strings: TensorFlow's `CsvDataset` and `decode_csv`.

use super::csv::csv_error;
use super::files::{Contents, FileFormat, FileSet, ReadFailure};
use super::format_error;
use crate::dataset::Dataset;
use crate::element::AnyTensor;
use csv::{ByteRecord, Reader, ReaderBuilder};
use std::path::Path;
use taut_core::{DType, Error, Result, Shape, Tensor, source_location};
use taut_memory::Location;
use taut_strings::{StringBuilder, StringTensor};

/// A column: its type, and the value of empty fields.
#[derive(Clone, Debug)]
pub enum CsvColumn {
    /// `float32`.
    F32(Option<f32>),
    /// `float64`.
    F64(Option<f64>),
    /// `int32`.
    I32(Option<i32>),
    /// `int64`.
    I64(Option<i64>),
    /// Strings.
    String(Option<Vec<u8>>),
}

/// How rows are written.
#[derive(Clone, Debug)]
pub struct CsvFormat {
    /// Whether the first row of each file has the names of the columns.
    pub header: bool,
    /// The byte between fields.
    pub delimiter: u8,
    /// Whether fields may be in quotation marks.
    pub quote: bool,
    /// The text of an empty field, besides the empty one.
    pub missing: Vec<u8>,
    /// The columns to read, in ascending order; all of them if `None`.
    pub select: Option<Vec<usize>>,
}

/// The values of a column under construction.
enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Strings(StringBuilder),
}

fn text(field: &[u8]) -> Option<&str> {
    std::str::from_utf8(field).ok().map(str::trim)
}

impl CsvColumn {
    #[track_caller]
    fn values(&self, count: usize) -> Values {
        match self {
            CsvColumn::F32(_) => Values::F32(Vec::with_capacity(count)),
            CsvColumn::F64(_) => Values::F64(Vec::with_capacity(count)),
            CsvColumn::I32(_) => Values::I32(Vec::with_capacity(count)),
            CsvColumn::I64(_) => Values::I64(Vec::with_capacity(count)),
            CsvColumn::String(_) => Values::Strings(StringBuilder::new(count, 0)),
        }
    }

    /// Adds a field; `None` for an empty one.
    fn push(&self, out: &mut Values, field: Option<&[u8]>, column: usize) -> Result<()> {
        let required = || {
            format_error(format!("field {column} is required, but it is empty"))
                .help("give its column a default value")
        };
        let invalid = |field: &[u8], dtype: DType| {
            let got = String::from_utf8_lossy(field);
            format_error(format!("field {column} must be {dtype}, got {got:?}"))
        };
        macro_rules! number {
            ($values:ident, $default:ident, $type:ty, $dtype:expr) => {
                $values.push(match field {
                    Some(field) => text(field)
                        .and_then(|text| text.parse::<$type>().ok())
                        .ok_or_else(|| invalid(field, $dtype))?,
                    None => $default.ok_or_else(required)?,
                })
            };
        }
        match (self, out) {
            (CsvColumn::F32(default), Values::F32(values)) => number!(values, default, f32, DType::F32),
            (CsvColumn::F64(default), Values::F64(values)) => number!(values, default, f64, DType::F64),
            (CsvColumn::I32(default), Values::I32(values)) => number!(values, default, i32, DType::I32),
            (CsvColumn::I64(default), Values::I64(values)) => number!(values, default, i64, DType::I64),
            (CsvColumn::String(default), Values::Strings(values)) => match (field, default) {
                (Some(field), _) => values.push(field)?,
                (None, Some(default)) => values.push(default)?,
                (None, None) => return Err(required()),
            },
            _ => {}
        }
        Ok(())
    }
}

impl Values {
    fn finish(self, shape: &Shape) -> Result<AnyTensor> {
        let shape = shape.clone();
        Ok(match self {
            Values::F32(values) => AnyTensor::Numbers(Tensor::from_vec(values, shape)?),
            Values::F64(values) => AnyTensor::Numbers(Tensor::from_vec(values, shape)?),
            Values::I32(values) => AnyTensor::Numbers(Tensor::from_vec(values, shape)?),
            Values::I64(values) => AnyTensor::Numbers(Tensor::from_vec(values, shape)?),
            Values::Strings(values) => AnyTensor::Strings(values.finish(shape)?),
        })
    }
}

/// Adds the fields of a row to the columns.
fn push_row<'a>(
    columns: &[CsvColumn],
    format: &CsvFormat,
    out: &mut [Values],
    len: usize,
    get: impl Fn(usize) -> &'a [u8],
) -> Result<()> {
    let wanted =
        format.select.as_ref().map_or(columns.len(), |select| select.last().map_or(0, |last| last + 1));
    let is_valid = if format.select.is_some() { len >= wanted } else { len == wanted };
    if !is_valid {
        let at_least = if format.select.is_some() { "at least " } else { "" };
        return Err(format_error(format!("a row must have {at_least}{wanted} fields, got {len}")));
    }
    for (i, (column, values)) in columns.iter().zip(out).enumerate() {
        let index = format.select.as_ref().map_or(i, |select| select[i]);
        let field = get(index);
        let field = (!field.is_empty() && field != format.missing).then_some(field);
        column.push(values, field, index)?;
    }
    Ok(())
}

fn check(columns: &[CsvColumn], format: &CsvFormat) -> Result<()> {
    if let Some(select) = &format.select
        && (select.len() != columns.len() || !select.is_sorted_by(|a, b| a < b))
    {
        let message = format!(
            "select_cols must be ascending and have one column per default ({}), got {select:?}",
            columns.len()
        );
        return Err(Error::value(message));
    }
    if columns.is_empty() {
        return Err(Error::value("record_defaults must have at least one column, got none"));
    }
    Ok(())
}

/// The rows of CSV files: one scalar per column.
#[track_caller]
pub fn csv_rows(
    files: &FileSet,
    columns: Vec<CsvColumn>,
    format: CsvFormat,
) -> Result<Dataset<Vec<AnyTensor>>> {
    let at = source_location(Location::caller());
    check(&columns, &format).map_err(|error| error.at(at))?;
    Ok(files.elements(CsvRows { columns, format }, at))
}

struct CsvRows {
    columns: Vec<CsvColumn>,
    format: CsvFormat,
}

impl FileFormat for CsvRows {
    type Element = Vec<AnyTensor>;
    type Reader = (Reader<Contents>, ByteRecord);
    type Rows = Vec<Values>;

    fn name(&self) -> &'static str {
        "csv_rows"
    }

    fn open(&self, files: &FileSet, path: &Path) -> Result<Self::Reader> {
        let mut reader = ReaderBuilder::new();
        reader
            .has_headers(self.format.header)
            .flexible(true)
            .delimiter(self.format.delimiter)
            .quoting(self.format.quote);
        Ok((reader.from_reader(files.open(path)?), ByteRecord::new()))
    }

    fn rows(&self, count: usize) -> Vec<Values> {
        self.columns.iter().map(|column| column.values(count)).collect()
    }

    fn read(&self, (reader, record): &mut Self::Reader, out: &mut Vec<Values>) -> Result<bool, ReadFailure> {
        let about = |error: Error, position: Option<&csv::Position>| {
            error.about(format_args!("line {}", position.map_or(0, csv::Position::line)))
        };
        match reader.read_byte_record(record) {
            Ok(false) => Ok(false),
            Err(error) => {
                let position = error.position().cloned();
                let error = about(csv_error(error), position.as_ref());
                Err(ReadFailure { error, ends_file: true })
            }
            Ok(true) => push_row(&self.columns, &self.format, out, record.len(), |i| &record[i])
                .map(|()| true)
                .map_err(|error| ReadFailure { error: about(error, record.position()), ends_file: false }),
        }
    }

    fn finish(&self, rows: Vec<Values>, shape: Shape) -> Result<Vec<AnyTensor>> {
        rows.into_iter().map(|values| values.finish(&shape)).collect()
    }
}

/// Parses strings that are rows: one tensor per column, of the shape of the rows.
#[track_caller]
pub fn decode_csv(rows: &StringTensor, columns: &[CsvColumn], format: &CsvFormat) -> Result<Vec<AnyTensor>> {
    check(columns, format)?;
    let values = rows.values()?;
    let mut out: Vec<Values> = columns.iter().map(|column| column.values(values.len())).collect();
    let (mut scratch, mut ends) = (Vec::new(), Vec::new());
    for (row, line) in values.iter().enumerate() {
        scratch.clear();
        ends.clear();
        let about = |error: Error| error.about(format_args!("record {row}"));
        split_fields(line, format, &mut scratch, &mut ends).map_err(about)?;
        let field = |i: usize| &scratch[if i == 0 { 0 } else { ends[i - 1] }..ends[i]];
        push_row(columns, format, &mut out, ends.len(), field).map_err(about)?;
    }
    out.into_iter().map(|column| column.finish(rows.shape())).collect()
}

/// Appends the fields of a row, without their quotation marks, and where each ends.
fn split_fields(line: &[u8], format: &CsvFormat, out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
    let mut at = 0;
    loop {
        if format.quote && line.get(at) == Some(&b'"') {
            at += 1;
            loop {
                match (line.get(at), line.get(at + 1)) {
                    (Some(b'"'), Some(b'"')) => {
                        out.push(b'"');
                        at += 2;
                    }
                    (Some(b'"'), _) => {
                        at += 1;
                        break;
                    }
                    (Some(&byte), _) => {
                        out.push(byte);
                        at += 1;
                    }
                    (None, _) => return Err(format_error("a quoted field must end with a quotation mark")),
                }
            }
            if line.get(at).is_some_and(|&byte| byte != format.delimiter && byte != b'\n' && byte != b'\r') {
                return Err(format_error("a quoted field must end before the next delimiter"));
            }
        } else {
            let rest = &line[at..];
            let len = rest.iter().position(|&byte| byte == format.delimiter).unwrap_or(rest.len());
            let mut field = &rest[..len];
            if at + len == line.len() {
                while let [start @ .., b'\n' | b'\r'] = field {
                    field = start;
                }
            }
            if format.quote && field.contains(&b'"') {
                return Err(format_error("a field that is not quoted must not have quotation marks"));
            }
            out.extend_from_slice(field);
            at += len;
        }
        ends.push(out.len());
        if line.get(at) != Some(&format.delimiter) {
            return Ok(());
        }
        at += 1;
    }
}
