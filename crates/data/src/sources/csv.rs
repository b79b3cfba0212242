//! CSV files: tables of numbers, booleans and class names.

use super::csv_records::{FieldSyntax, RecordReader};
use super::files::ReadFailure;
use super::{MaybeGzip, format_error};
use crate::counters::StageRun;
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::is_element;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taut_core::{DType, Error, Result, Scalar, Shape, Spec, Tensor};
use taut_memory::{Buffer, Category, Location};

/// The number of rows from which types are inferred.
const INFERENCE_ROWS: usize = 100;

/// The rows of a file behind its header, all of which must have the same number of fields.
struct Rows {
    records: RecordReader<BufReader<MaybeGzip<BufReader<File>>>>,
    /// The names of the columns, if the file has a header.
    header: Option<Vec<String>>,
    /// The number of fields: that of the first row.
    width: Option<usize>,
}

impl Rows {
    /// Reads the next row. False at the end.
    fn read(&mut self) -> Result<bool, ReadFailure> {
        if !self.records.read()? {
            return Ok(false);
        }
        let (found, line) = (self.records.len(), self.records.line());
        let expected = *self.width.get_or_insert(found);
        if found != expected {
            let error = format_error(format!("line {line}: expected {expected} fields, got {found}"));
            return Err(ReadFailure { error, ends_file: false });
        }
        Ok(true)
    }
}

/// A CSV file: which columns are read, and as which types. It may be compressed with gzip.
///
/// Types that are not given are inferred from the first 100 rows and the value for missing fields: `bool`, `int64` or
/// `float32`. A column of text needs its [`classes`](Csv::classes). An empty field is an error that names its line, unless
/// the column has a value for [`missing`](Csv::missing) fields.
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("taut-csv-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let path = directory.join("flowers.csv");
/// std::fs::write(&path, "length,kind\n5.1,setosa\n,virginica\n")?;
/// let table = taut_data::Csv::new(&path).classes("kind", ["setosa", "virginica"]).missing("length", 5.0).read()?;
/// assert_eq!(table["length"].to_vec::<f32>()?, [5.1, 5.0]);
/// assert_eq!(table["kind"].to_vec::<i64>()?, [0, 1]);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    path: PathBuf,
    header: bool,
    delimiter: u8,
    columns: Option<Vec<String>>,
    kinds: BTreeMap<String, ColumnType>,
    missing: BTreeMap<String, Scalar>,
}

/// The type of a column.
#[derive(Clone, Debug)]
enum ColumnType {
    Number(DType),
    Classes(Vec<String>),
}

/// A column that is read.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    index: usize,
    kind: ColumnType,
    missing: Option<Scalar>,
}

impl Csv {
    /// The file at `path`, whose first line has the names of the columns.
    pub fn new(path: impl AsRef<Path>) -> Csv {
        Csv {
            path: path.as_ref().to_owned(),
            header: true,
            delimiter: b',',
            columns: None,
            kinds: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    /// The first line is data: columns are named `0`, `1`, and so on.
    #[must_use]
    pub fn without_header(mut self) -> Csv {
        self.header = false;
        self
    }

    /// Sets the delimiter of fields; the default is a comma.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Csv {
        self.delimiter = delimiter;
        self
    }

    /// Reads these columns only.
    #[must_use]
    pub fn columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Csv {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the type of a column.
    #[must_use]
    pub fn dtype(mut self, column: impl Into<String>, dtype: DType) -> Csv {
        self.kinds.insert(column.into(), ColumnType::Number(dtype));
        self
    }

    /// A column of class names, which become their indices in this list.
    #[must_use]
    pub fn classes<N: Into<String>>(
        mut self,
        column: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Csv {
        self.kinds.insert(column.into(), ColumnType::Classes(names.into_iter().map(Into::into).collect()));
        self
    }

    /// The value of empty fields of a column, which must be representable in its type. NaN makes it a column of floats.
    #[must_use]
    pub fn missing(mut self, column: impl Into<String>, value: impl Into<Scalar>) -> Csv {
        self.missing.insert(column.into(), value.into());
        self
    }

    /// The rows as a dataset, read on demand: each column is a scalar.
    #[track_caller]
    pub fn dataset(&self) -> Result<Dataset<BTreeMap<String, Tensor>>> {
        let at = Location::caller();
        let fields = self.named(at, || self.fields())?;
        Ok(Dataset::new(Lines { csv: self.clone(), fields: fields.into(), at }))
    }

    /// Reads the whole file: each column is a tensor `[rows]`.
    #[track_caller]
    pub fn read(&self) -> Result<BTreeMap<String, Tensor>> {
        let at = Location::caller();
        self.named(at, || self.read_at(at))
    }

    /// Runs `work`, and adds the file and the source location of the caller to its errors.
    fn named<R>(&self, at: Location, work: impl FnOnce() -> Result<R>) -> Result<R> {
        work().map_err(|error| error.about(self.path.display()).at(at))
    }

    fn rows(&self) -> Result<Rows> {
        let contents = BufReader::with_capacity(1 << 16, open(&self.path)?);
        let syntax = FieldSyntax { delimiter: self.delimiter, quote: true };
        let mut rows = Rows { records: RecordReader::new(contents, syntax), header: None, width: None };
        if self.header {
            let found = rows.read().map_err(|failure| failure.error.about("the header"))?;
            let fields = (0..if found { rows.records.len() } else { 0 }).map(|i| rows.records.field(i));
            let names = fields.map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect();
            rows.header = Some(names);
        }
        Ok(rows)
    }

    /// The columns that are read, and their types.
    fn fields(&self) -> Result<Vec<Field>> {
        let mut rows = self.rows()?;
        let mut first: Vec<Vec<Vec<u8>>> = Vec::new();
        for _ in 0..INFERENCE_ROWS {
            match rows.read() {
                Ok(true) => {
                    let records = &rows.records;
                    first.push((0..records.len()).map(|i| records.field(i).to_vec()).collect());
                }
                Ok(false) => break,
                Err(failure) if failure.ends_file => return Err(failure.error),
                // A row with an error is not used for inference; reading it is an error.
                Err(_) => {}
            }
        }
        let by_index = || (0..first.first().map_or(0, Vec::len)).map(|i| i.to_string()).collect();
        let names: Vec<String> = rows.header.take().unwrap_or_else(by_index);
        let find = |name: &String| {
            names.iter().position(|other| other == name).ok_or_else(|| {
                Error::value(format!("unknown column `{name}`"))
                    .help(format!("the columns are {}", names.join(", ")))
            })
        };
        for name in self.kinds.keys().chain(self.missing.keys()) {
            find(name)?;
        }
        let selected = self.columns.as_ref().unwrap_or(&names);
        let field = |name: &String| {
            let index = find(name)?;
            if names[index + 1..].contains(name) {
                let message = format!("several columns are named `{name}`");
                return Err(format_error(message).help("select other columns with columns()"));
            }
            let missing = self.missing.get(name).copied();
            let kind = match self.kinds.get(name) {
                Some(kind) => kind.clone(),
                None => ColumnType::Number(infer_dtype(
                    first.iter().filter_map(|row| row.get(index).map(Vec::as_slice)),
                    missing,
                    name,
                )?),
            };
            if let Some(value) = missing.filter(|&value| !is_element(value, kind.dtype())) {
                let (dtype, value) = (kind.dtype(), value.to_f64());
                let message = format!(
                    "the value for missing fields of `{name}` must be representable in {dtype}, got {value}"
                );
                return Err(Error::value(message));
            }
            Ok(Field { name: name.clone(), index, kind, missing })
        };
        selected.iter().map(field).collect()
    }

    fn read_at(&self, at: Location) -> Result<BTreeMap<String, Tensor>> {
        let fields = self.fields()?;
        // Rows are counted first, so that columns are written into their final memory.
        let (mut rows, mut count) = (self.rows()?, 0);
        while rows.read().map_err(|failure| failure.error)? {
            count += 1;
        }
        let mut columns = Vec::new();
        for field in &fields {
            columns.push(Buffer::new_at(count * field.kind.dtype().size(), Category::Dataset, at)?);
        }
        let mut rows = self.rows()?;
        for row in 0..count {
            if !rows.read().map_err(|failure| failure.error)? {
                return Err(format_error("the file became shorter while it was read"));
            }
            for (field, column) in fields.iter().zip(&mut columns) {
                let size = field.kind.dtype().size();
                let value = field.parse(&rows)?;
                column.as_mut_slice()[row * size..][..size]
                    .copy_from_slice(&value.to_bytes(field.kind.dtype()));
            }
        }
        let named = fields.into_iter().zip(columns).map(|(field, column)| {
            let tensor = Tensor::from_buffer(Spec::new(field.kind.dtype(), [count]), column)?;
            Ok((field.name, tensor))
        });
        named.collect()
    }
}

impl ColumnType {
    fn dtype(&self) -> DType {
        match self {
            ColumnType::Number(dtype) => *dtype,
            ColumnType::Classes(_) => DType::I64,
        }
    }
}

impl Field {
    /// The value of this column in a row.
    fn parse(&self, rows: &Rows) -> Result<Scalar> {
        let place = || format!("line {}, column `{}`", rows.records.line(), self.name);
        let invalid = |message: String| format_error(message).about(place());
        // A file that was replaced since its columns were found can have fewer of them.
        let has_field = self.index < rows.records.len();
        let bytes = if has_field { rows.records.field(self.index) } else { &[] };
        let text = std::str::from_utf8(bytes).map_err(|_| invalid("not UTF-8".to_owned()))?.trim();
        if text.is_empty() {
            return self.missing.ok_or_else(|| {
                invalid("the field is empty".to_owned()).help("set a value for empty fields with missing()")
            });
        }
        match &self.kind {
            ColumnType::Classes(names) => match names.iter().position(|name| name == text) {
                Some(index) => Ok(Scalar::from(index as i64)),
                None => Err(invalid(format!("`{text}` is not one of the classes"))),
            },
            ColumnType::Number(dtype) => {
                number(text, *dtype).ok_or_else(|| invalid(format!("expected {dtype}, got `{text}`")))
            }
        }
    }
}

fn number(text: &str, dtype: DType) -> Option<Scalar> {
    match dtype {
        DType::Bool => parse_bool(text).map(Scalar::from),
        dtype if dtype.is_float() => text.parse::<f64>().ok().map(Scalar::from),
        DType::U64 => text.parse::<u64>().ok().map(Scalar::from),
        dtype => text.parse::<i64>().ok().map(Scalar::from).filter(|value| value.fits(dtype)),
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The first type that represents all these fields, preferably one that also represents the value for missing ones.
fn infer_dtype<'a>(
    fields: impl Iterator<Item = &'a [u8]>,
    missing: Option<Scalar>,
    name: &str,
) -> Result<DType> {
    let texts = fields.map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    let fits = |dtype| texts.iter().all(|text| number(text, dtype).is_some());
    // A column of empty fields is one of floats.
    let candidates =
        if texts.is_empty() { &[DType::F32][..] } else { &[DType::Bool, DType::I64, DType::F32] };
    let mut fitting = candidates.iter().copied().filter(|&dtype| fits(dtype)).peekable();
    let first = fitting.peek().copied();
    let holding = fitting.find(|&dtype| missing.is_none_or(|value| is_element(value, dtype)));
    holding.or(first).ok_or_else(|| {
        Error::dtype(format!("column `{name}` is text"))
            .help("map its names to indices with classes(), or select other columns with columns()")
    })
}

/// Opens a file that may be compressed with gzip.
fn open(path: &Path) -> Result<MaybeGzip<BufReader<File>>> {
    MaybeGzip::new(BufReader::with_capacity(1 << 16, File::open(path)?))
}

struct Lines {
    csv: Csv,
    fields: Arc<[Field]>,
    at: Location,
}

struct LinesCursor {
    csv: Csv,
    rows: Rows,
    fields: Arc<[Field]>,
    at: Location,
    ended: bool,
}

impl Stage<BTreeMap<String, Tensor>> for Lines {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn start(&self, _run: &StageRun, _epoch: u64) -> Result<Box<dyn Cursor<BTreeMap<String, Tensor>>>> {
        let rows = self.csv.named(self.at, || self.csv.rows())?;
        let (csv, fields, at) = (self.csv.clone(), self.fields.clone(), self.at);
        Ok(Box::new(LinesCursor { csv, rows, fields, at, ended: false }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        Vec::new()
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }

    fn bytes_each(&self) -> Option<usize> {
        Some(self.fields.iter().map(|field| field.kind.dtype().size()).sum())
    }
}

impl LinesCursor {
    /// Reads the next row. False at the end.
    fn advance(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let read = self.rows.read();
        // An I/O error ends the sequence; a row that is not valid does not.
        self.ended = match &read {
            Ok(more) => !more,
            Err(failure) => failure.ends_file,
        };
        read.map_err(|failure| failure.error)
    }
}

impl Cursor<BTreeMap<String, Tensor>> for LinesCursor {
    fn next(&mut self) -> Result<Option<BTreeMap<String, Tensor>>> {
        let csv = self.csv.clone();
        csv.named(self.at, || {
            if !self.advance()? {
                return Ok(None);
            }
            let element = self.fields.iter().map(|field| {
                let (dtype, value) = (field.kind.dtype(), field.parse(&self.rows)?);
                let tensor =
                    Tensor::build(Spec::new(dtype, Shape::scalar()), Category::Dataset, self.at, |out| {
                        out.bytes().copy_from_slice(&value.to_bytes(dtype));
                    })?;
                Ok((field.name.clone(), tensor))
            });
            element.collect::<Result<_>>().map(Some)
        })
    }

    fn try_skip(&mut self, count: u64) -> Result<Option<u64>> {
        for skipped in 0..count {
            if let Ok(false) = self.advance() {
                return Ok(Some(skipped));
            }
        }
        Ok(Some(count))
    }
}
