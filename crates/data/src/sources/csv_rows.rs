//! Rows of comma-separated values as tuples of numbers and strings: TensorFlow's `CsvDataset` and `decode_csv`.

use super::csv_records::{FieldSyntax, RecordReader, split_fields};
use super::files::{Contents, FileFormat, FileSet, ReadFailure};
use super::format_error;
use crate::dataset::Dataset;
use crate::element::AnyTensor;
use std::path::Path;
use taut_core::{DType, Error, Result, Shape, Tensor, source_location};
use taut_memory::Location;
use taut_strings::{StringBuilder, StringTensor, hexadecimal_float};

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
    /// The most fields that a row may have if columns are selected; `None` for any number.
    pub most_fields: Option<usize>,
}

impl CsvFormat {
    fn syntax(&self) -> FieldSyntax {
        FieldSyntax { delimiter: self.delimiter, quote: self.quote }
    }
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
    std::str::from_utf8(field.trim_ascii()).ok()
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
                .help("read its column as strings, or leave such rows out with `ignore_errors`")
        };
        macro_rules! number {
            ($values:ident, $default:ident, $type:ty, $dtype:expr $(, $other:expr)?) => {
                $values.push(match field {
                    Some(field) => text(field)
                        .and_then(|text| text.parse::<$type>().ok() $(.or_else(|| $other(text)))?)
                        .ok_or_else(|| invalid(field, $dtype))?,
                    None => $default.ok_or_else(required)?,
                })
            };
        }
        match (self, out) {
            (CsvColumn::F32(default), Values::F32(values)) => {
                let hexadecimal = |text| hexadecimal_float(text).map(|value| value as f32);
                number!(values, default, f32, DType::F32, hexadecimal);
            }
            (CsvColumn::F64(default), Values::F64(values)) => {
                number!(values, default, f64, DType::F64, hexadecimal_float);
            }
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
    let (least, most) = match &format.select {
        None => (columns.len(), columns.len()),
        Some(select) => (select.last().map_or(0, |last| last + 1), format.most_fields.unwrap_or(usize::MAX)),
    };
    if !(least..=most).contains(&len) {
        let wanted = match most {
            usize::MAX => format!("at least {least}"),
            most if most == least => format!("{least}"),
            most => format!("{least} to {most}"),
        };
        let message = format!("a row must have {wanted} fields, got {len}");
        return Err(
            format_error(message).help("correct the row, or leave such rows out with `ignore_errors`")
        );
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

/// A file of rows.
struct RowReader {
    records: RecordReader<Contents>,
    /// Whether the next record has the names of the columns.
    at_header: bool,
}

impl FileFormat for CsvRows {
    type Element = Vec<AnyTensor>;
    type Reader = RowReader;
    type Rows = Vec<Values>;

    fn name(&self) -> &'static str {
        "csv_rows"
    }

    fn open(&self, files: &FileSet, path: &Path) -> Result<RowReader> {
        let records = RecordReader::new(files.open(path)?, self.format.syntax());
        Ok(RowReader { records, at_header: self.format.header })
    }

    fn rows(&self, count: usize) -> Vec<Values> {
        self.columns.iter().map(|column| column.values(count)).collect()
    }

    fn read(&self, reader: &mut RowReader, out: &mut Vec<Values>) -> Result<bool, ReadFailure> {
        let records = &mut reader.records;
        if std::mem::take(&mut reader.at_header) {
            let is_there = records.read().map_err(|failure| ReadFailure {
                error: failure.error.about("the header"),
                ends_file: failure.ends_file,
            })?;
            if !is_there {
                let error = format_error("expected a header, got an empty file");
                return Err(ReadFailure { error, ends_file: true });
            }
        }
        if !records.read()? {
            return Ok(false);
        }
        push_row(&self.columns, &self.format, out, records.len(), |i| records.field(i)).map_err(|error| {
            ReadFailure { error: error.about(format_args!("line {}", records.line())), ends_file: false }
        })?;
        Ok(true)
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
    // Fields behind the last column are not looked at, if columns are selected.
    let last = format.select.as_ref().map_or(usize::MAX, |select| select.last().map_or(0, |last| last + 1));
    let most = if format.most_fields.is_some() { usize::MAX } else { last };
    for (row, line) in values.iter().enumerate() {
        scratch.clear();
        ends.clear();
        let about = |error: Error| error.about(format_args!("record {row}"));
        split_fields(line, format.syntax(), most, &mut scratch, &mut ends).map_err(about)?;
        let field = |i: usize| &scratch[if i == 0 { 0 } else { ends[i - 1] }..ends[i]];
        push_row(columns, format, &mut out, ends.len(), field).map_err(about)?;
    }
    out.into_iter().map(|column| column.finish(rows.shape())).collect()
}
