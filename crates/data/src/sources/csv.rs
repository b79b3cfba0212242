//! CSV: tables of numbers as text.

use super::{Unpacked, broken, open, read_error};
use crate::dataset::{Cardinality, Cursor, Dataset, Stage};
use crate::item::is_element;
use crate::meter::Run;
use csv::{ByteRecord, Reader, ReaderBuilder};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taut_core::{DType, Error, Result, Scalar, Shape, Spec, Tensor};
use taut_memory::{Buffer, Category, Location};

/// Rows that types are told from.
const LOOKED_AT: usize = 100;

type Rows = Reader<Unpacked<BufReader<File>>>;

/// A CSV file: which columns are taken, and as what. It may be packed by gzip.
///
/// Types that are not given are told from the first 100 rows and the value for missing fields: `bool`, `int64` or `float32`. A column of text needs its
/// [`classes`](Csv::classes). An empty field is an error that names its line, unless the column has a value for
/// [`missing`](Csv::missing) ones.
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
    kinds: BTreeMap<String, Kind>,
    missing: BTreeMap<String, Scalar>,
}

/// What the fields of a column are.
#[derive(Clone, Debug)]
enum Kind {
    Number(DType),
    Classes(Vec<String>),
}

/// A column that is taken.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    index: usize,
    kind: Kind,
    missing: Option<Scalar>,
}

impl Csv {
    /// The file at `path`, whose first line names the columns.
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

    /// The first line is data: columns are called `0`, `1`, and so on.
    #[must_use]
    pub fn without_header(mut self) -> Csv {
        self.header = false;
        self
    }

    /// What stands between fields, instead of a comma.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Csv {
        self.delimiter = delimiter;
        self
    }

    /// Takes these columns only.
    #[must_use]
    pub fn columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Csv {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The type of a column.
    #[must_use]
    pub fn dtype(mut self, column: impl Into<String>, dtype: DType) -> Csv {
        self.kinds.insert(column.into(), Kind::Number(dtype));
        self
    }

    /// A column of names, which become their places in this list.
    #[must_use]
    pub fn classes<N: Into<String>>(
        mut self,
        column: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Csv {
        self.kinds.insert(column.into(), Kind::Classes(names.into_iter().map(Into::into).collect()));
        self
    }

    /// What an empty field of a column is: a value that the column's type can hold. NaN makes a column of floats.
    #[must_use]
    pub fn missing(mut self, column: impl Into<String>, value: impl Into<Scalar>) -> Csv {
        self.missing.insert(column.into(), value.into());
        self
    }

    /// The rows as a dataset, read as they are needed: each column is a tensor without dimensions.
    #[track_caller]
    pub fn dataset(&self) -> Result<Dataset<BTreeMap<String, Tensor>>> {
        let at = Location::caller();
        let fields = self.named(at, || self.fields())?;
        Ok(Dataset::new(Lines { csv: self.clone(), fields: fields.into(), at }))
    }

    /// The whole file: each column is a tensor with a dimension for the rows.
    #[track_caller]
    pub fn read(&self) -> Result<BTreeMap<String, Tensor>> {
        let at = Location::caller();
        self.named(at, || self.read_at(at))
    }

    /// Runs `work`, whose errors then name the file and the line of the caller.
    fn named<R>(&self, at: Location, work: impl FnOnce() -> Result<R>) -> Result<R> {
        work().map_err(|error| error.about(self.path.display()).at(at))
    }

    fn rows(&self) -> Result<Rows> {
        let file = open(&self.path)?;
        Ok(ReaderBuilder::new().has_headers(self.header).delimiter(self.delimiter).from_reader(file))
    }

    /// The columns that are taken, and their types.
    fn fields(&self) -> Result<Vec<Field>> {
        let mut rows = self.rows()?;
        let mut first = Vec::new();
        let mut record = ByteRecord::new();
        for _ in 0..LOOKED_AT {
            match rows.read_byte_record(&mut record) {
                Ok(true) => first.push(record.clone()),
                Ok(false) => break,
                Err(error) if error.is_io_error() => return Err(csv_error(error)),
                // A row of the wrong length tells no types; whoever reads it is told.
                Err(_) => {}
            }
        }
        let there: Vec<String> = if self.header {
            let names = rows.byte_headers().map_err(csv_error)?.iter();
            names.map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect()
        } else {
            (0..first.first().map_or(0, ByteRecord::len)).map(|i| i.to_string()).collect()
        };
        let find = |name: &String| {
            there.iter().position(|other| other == name).ok_or_else(|| {
                Error::value(format!("there is no column `{name}`"))
                    .help(format!("columns are {}", there.join(", ")))
            })
        };
        for name in self.kinds.keys().chain(self.missing.keys()) {
            find(name)?;
        }
        let wanted = self.columns.as_ref().unwrap_or(&there);
        let field = |name: &String| {
            let index = find(name)?;
            if there[index + 1..].contains(name) {
                let message = format!("several columns are called `{name}`");
                return Err(broken(message).help("columns() takes other columns only"));
            }
            let missing = self.missing.get(name).copied();
            let kind = match self.kinds.get(name) {
                Some(kind) => kind.clone(),
                None => Kind::Number(guess(first.iter().filter_map(|row| row.get(index)), missing, name)?),
            };
            if let Some(value) = missing.filter(|&value| !is_element(value, kind.dtype())) {
                let message =
                    format!("{} for missing fields of `{name}` is no {}", value.to_f64(), kind.dtype());
                return Err(Error::value(message));
            }
            Ok(Field { name: name.clone(), index, kind, missing })
        };
        wanted.iter().map(field).collect()
    }

    fn read_at(&self, at: Location) -> Result<BTreeMap<String, Tensor>> {
        let fields = self.fields()?;
        let mut record = ByteRecord::new();
        // Counted first, so that columns are written where they stay.
        let (mut rows, mut count) = (self.rows()?, 0);
        while rows.read_byte_record(&mut record).map_err(csv_error)? {
            count += 1;
        }
        let mut columns = Vec::new();
        for field in &fields {
            columns.push(Buffer::new_at(count * field.kind.dtype().size(), Category::Dataset, at)?);
        }
        let mut rows = self.rows()?;
        for row in 0..count {
            if !rows.read_byte_record(&mut record).map_err(csv_error)? {
                return Err(broken("it became shorter while it was read"));
            }
            for (field, column) in fields.iter().zip(&mut columns) {
                let size = field.kind.dtype().size();
                let value = field.parse(&record)?;
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

impl Kind {
    fn dtype(&self) -> DType {
        match self {
            Kind::Number(dtype) => *dtype,
            Kind::Classes(_) => DType::I64,
        }
    }
}

impl Field {
    /// The value of this column in a row.
    fn parse(&self, record: &ByteRecord) -> Result<Scalar> {
        let place = || {
            let line = record.position().map_or(0, csv::Position::line);
            format!("line {line}, column `{}`", self.name)
        };
        let refuse = |what: String| broken(what).about(place());
        let bytes = record.get(self.index).unwrap_or(&[]);
        let text = std::str::from_utf8(bytes).map_err(|_| refuse("not text".to_owned()))?.trim();
        if text.is_empty() {
            return self.missing.ok_or_else(|| {
                refuse("nothing there".to_owned()).help("missing() gives such fields a value")
            });
        }
        match &self.kind {
            Kind::Classes(names) => match names.iter().position(|name| name == text) {
                Some(index) => Ok(Scalar::from(index as i64)),
                None => Err(refuse(format!("`{text}` is none of its classes"))),
            },
            Kind::Number(dtype) => {
                number(text, *dtype).ok_or_else(|| refuse(format!("`{text}` is no {dtype}")))
            }
        }
    }
}

fn number(text: &str, dtype: DType) -> Option<Scalar> {
    match dtype {
        DType::Bool => truth(text).map(Scalar::from),
        dtype if dtype.is_float() => text.parse::<f64>().ok().map(Scalar::from),
        DType::U64 => text.parse::<u64>().ok().map(Scalar::from),
        dtype => text.parse::<i64>().ok().map(Scalar::from).filter(|value| value.fits(dtype)),
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The type that all these fields have, and if there is one, that also holds what stands for missing ones.
fn guess<'a>(fields: impl Iterator<Item = &'a [u8]>, missing: Option<Scalar>, name: &str) -> Result<DType> {
    let texts = fields.map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    let fits = |dtype| texts.iter().all(|text| number(text, dtype).is_some());
    // A column without a field to look at is one of numbers.
    let candidates =
        if texts.is_empty() { &[DType::F32][..] } else { &[DType::Bool, DType::I64, DType::F32] };
    let mut fitting = candidates.iter().copied().filter(|&dtype| fits(dtype)).peekable();
    let first = fitting.peek().copied();
    let holding = fitting.find(|&dtype| missing.is_none_or(|value| is_element(value, dtype)));
    holding.or(first).ok_or_else(|| {
        Error::dtype(format!("column `{name}` is text"))
            .help("classes() makes numbers of names, columns() takes other columns only")
    })
}

#[cold]
fn csv_error(error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => read_error(error),
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.map_or(0, |pos| pos.line());
            broken(format!("line {line} has {len} fields, and those before it {expected_len}"))
        }
        other => broken(format!("{other:?}")),
    }
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
    record: ByteRecord,
    at: Location,
    ended: bool,
}

impl Stage<BTreeMap<String, Tensor>> for Lines {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn start(&self, _run: &Run, _epoch: u64) -> Result<Box<dyn Cursor<BTreeMap<String, Tensor>>>> {
        let rows = self.csv.named(self.at, || self.csv.rows())?;
        let (csv, fields, at) = (self.csv.clone(), self.fields.clone(), self.at);
        Ok(Box::new(LinesCursor { csv, rows, fields, record: ByteRecord::new(), at, ended: false }))
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
        let read = self.rows.read_byte_record(&mut self.record);
        // After a failure to read, there is no next row; a row of the wrong length is only a row.
        self.ended = match &read {
            Ok(more) => !more,
            Err(error) => error.is_io_error(),
        };
        read.map_err(csv_error)
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
                let (dtype, value) = (field.kind.dtype(), field.parse(&self.record)?);
                let tensor =
                    Tensor::build(Spec::new(dtype, Shape::scalar()), Category::Dataset, self.at, |out| {
                        out.bytes().copy_from_slice(&value.to_bytes(dtype));
                    })?;
                Ok((field.name.clone(), tensor))
            });
            element.collect::<Result<_>>().map(Some)
        })
    }

    fn jump(&mut self, count: u64) -> Result<Option<u64>> {
        for passed in 0..count {
            if let Ok(false) = self.advance() {
                return Ok(Some(passed));
            }
        }
        Ok(Some(count))
    }
}
