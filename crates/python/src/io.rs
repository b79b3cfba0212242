//! Files, records, examples and encoded images.

use crate::array::wrap;
use crate::call::call;
use crate::convert;
use crate::data::source;
use crate::error::exception;
use crate::nest::Tree;
use crate::strings::{is_strings, strings_of, wrap_contents, wrap_strings};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use taut::data::{
    self, AnyTensor, Compression, CsvColumn, CsvFormat, FeatureSpec, FeatureValues, FileSet, ImageFormat,
    ParsedFeature, TfRecordWriter,
};
use taut::strings::StringTensor;
use taut::{DType, Shape};

type Object<'py> = PyResult<Bound<'py, PyAny>>;

fn compression(name: &str) -> PyResult<Compression> {
    match name {
        "" => Ok(Compression::None),
        "GZIP" => Ok(Compression::Gzip),
        "ZLIB" => Ok(Compression::Zlib),
        _ => {
            let message = format!("compression_type must be '', 'GZIP' or 'ZLIB', got '{name}'");
            Err(Python::attach(|py| exception(py, taut::Error::value(message))))
        }
    }
}

fn files(paths: Vec<PathBuf>, kind: &str, buffer: Option<usize>) -> PyResult<FileSet> {
    let files = FileSet::new(paths).compression(compression(kind)?);
    Ok(match buffer {
        Some(bytes) => files.buffer_bytes(bytes),
        None => files,
    })
}

fn tree(value: AnyTensor) -> Tree {
    match value {
        AnyTensor::Numbers(tensor) => Tree::Tensor(tensor),
        AnyTensor::Strings(strings) => Tree::Strings(strings),
    }
}

/// The strings of files: their lines, the records of TFRecord files, or records of a fixed length (with the lengths of a record,
/// of the header and of the footer).
#[pyfunction]
pub fn file_strings<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    kind: &str,
    lengths: Option<[usize; 3]>,
    compression: &str,
    buffer: Option<usize>,
) -> Object<'py> {
    let files = files(paths, compression, buffer)?;
    let made = crate::line::at_line(py, || match (kind, lengths) {
        ("lines", None) => Ok(data::text_lines(&files)),
        ("records", None) => Ok(data::tf_records(&files)),
        ("fixed", Some([record, header, footer])) => {
            data::fixed_length_records(&files, record, header, footer)
        }
        _ => Err(taut::Error::value(format!("kind must be lines, records or fixed, got {kind}"))),
    });
    source(py, made.map_err(|error| exception(py, error))?.map_structure(Tree::Strings))
}

/// A tensor as a serialized `TensorProto`.
#[pyfunction]
pub fn serialize_tensor<'py>(py: Python<'py>, tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let tensor = if is_strings(tensor) {
        AnyTensor::Strings(strings_of(tensor)?)
    } else {
        AnyTensor::Numbers(convert::tensor(tensor)?)
    };
    crate::strings::bytes(py, &call(py, 0, || data::serialize_tensor(&tensor))?)
}

/// The tensor of a serialized `TensorProto`.
#[pyfunction]
pub fn parse_tensor<'py>(py: Python<'py>, serialized: &Bound<'py, PyAny>) -> Object<'py> {
    let serialized = strings_of(serialized)?;
    tree(call(py, serialized.byte_len(), || data::parse_tensor(serialized.item()?))?).object(py)
}

/// A column of CSV files: its type, and its default or `None` if it is required.
type ColumnArgument<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

fn csv_columns(columns: Vec<ColumnArgument<'_>>) -> PyResult<Vec<CsvColumn>> {
    let column = |(dtype, default): ColumnArgument<'_>| -> PyResult<CsvColumn> {
        if crate::dtype::is_string(&dtype) {
            let text = default.map(|value| strings_of(&value)).transpose()?;
            let text = text.map(|text| text.item().map(<[u8]>::to_vec)).transpose();
            return Ok(CsvColumn::String(text.map_err(|error| exception(dtype.py(), error))?));
        }
        let float = || default.as_ref().map(convert::float).transpose();
        let int = || default.as_ref().map(convert::int).transpose();
        Ok(match crate::dtype::given(&dtype)? {
            DType::F32 => CsvColumn::F32(float()?.map(|value| value as f32)),
            DType::F64 => CsvColumn::F64(float()?),
            DType::I32 => CsvColumn::I32(int()?.map(|value| value as i32)),
            DType::I64 => CsvColumn::I64(int()?),
            other => {
                let message = format!(
                    "a column must be float32, float64, int32, int64 or string, got {}",
                    other.name()
                );
                return Err(PyTypeError::new_err(message));
            }
        })
    };
    columns.into_iter().map(column).collect()
}

fn csv_format(
    header: bool,
    delimiter: &[u8],
    quote: bool,
    missing: &[u8],
    select: Option<Vec<usize>>,
) -> PyResult<CsvFormat> {
    let [delimiter] = *delimiter else {
        return Err(PyValueError::new_err("field_delim must be one byte"));
    };
    Ok(CsvFormat { header, delimiter, quote, missing: missing.to_vec(), select, most_fields: None })
}

/// The rows of CSV files.
#[pyfunction]
#[pyo3(signature = (paths, columns, header, delimiter, quote, missing, select, compression, buffer, most_fields=None))]
pub fn csv_rows<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    columns: Vec<ColumnArgument<'py>>,
    header: bool,
    delimiter: &[u8],
    quote: bool,
    missing: &[u8],
    select: Option<Vec<usize>>,
    compression: &str,
    buffer: Option<usize>,
    most_fields: Option<usize>,
) -> Object<'py> {
    let files = files(paths, compression, buffer)?;
    let format = CsvFormat { most_fields, ..csv_format(header, delimiter, quote, missing, select)? };
    let columns = csv_columns(columns)?;
    let rows = crate::line::at_line(py, || data::csv_rows(&files, columns, format));
    let rows = rows.map_err(|error| exception(py, error))?;
    source(py, rows.map_structure(|row| Tree::Tuple(row.into_iter().map(tree).collect())))
}

/// Parses strings that are rows of comma-separated values.
#[pyfunction]
#[pyo3(signature = (rows, columns, delimiter, quote, missing, select))]
pub fn decode_csv<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    columns: Vec<ColumnArgument<'py>>,
    delimiter: &[u8],
    quote: bool,
    missing: &[u8],
    select: Option<Vec<usize>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let rows = strings_of(rows)?;
    let (columns, format) = (csv_columns(columns)?, csv_format(false, delimiter, quote, missing, select)?);
    let parsed = call(py, rows.byte_len(), || data::decode_csv(&rows, &columns, &format))?;
    parsed.into_iter().map(|column| tree(column).object(py)).collect()
}

/// A feature: its key, its type, its shape (`None` for a variable length) and its default.
type FeatureArgument<'py> = (String, Bound<'py, PyAny>, Option<Vec<usize>>, Option<Bound<'py, PyAny>>);

fn feature_specs(features: Vec<FeatureArgument<'_>>) -> PyResult<Vec<FeatureSpec>> {
    let feature = |(key, dtype, shape, default): FeatureArgument<'_>| -> PyResult<FeatureSpec> {
        let values = if crate::dtype::is_string(&dtype) {
            FeatureValues::Bytes
        } else {
            match crate::dtype::given(&dtype)? {
                DType::F32 => FeatureValues::Floats,
                DType::I64 => FeatureValues::Ints,
                other => {
                    let message = format!(
                        "feature '{key}' must have type float32, int64 or string, got {}",
                        other.name()
                    );
                    return Err(PyTypeError::new_err(message));
                }
            }
        };
        let default = match default {
            None => None,
            Some(default) if values == FeatureValues::Bytes => {
                Some(AnyTensor::Strings(strings_of(&default)?))
            }
            Some(default) => Some(AnyTensor::Numbers(convert::tensor(&default)?)),
        };
        Ok(FeatureSpec { key, values, shape: shape.map(Shape::from), default })
    };
    features.into_iter().map(feature).collect()
}

fn parsed_features(py: Python<'_>, parsed: Vec<ParsedFeature>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let object = |feature: ParsedFeature| match feature {
        ParsedFeature::Fixed(values) => tree(values).object(py),
        ParsedFeature::Variable(values, lengths) => {
            Ok(PyTuple::new(py, [tree(values).object(py)?, wrap(py, lengths)?])?.into_any())
        }
    };
    parsed.into_iter().map(object).collect()
}

/// The bytes of arithmetic that take as long as parsing these messages.
fn parsing_work(serialized: &StringTensor) -> usize {
    16 * serialized.byte_len()
}

/// Parses serialized `tf.train.Example` messages. Each feature becomes a tensor, or values and lengths.
#[pyfunction]
pub fn parse_examples<'py>(
    py: Python<'py>,
    serialized: &Bound<'py, PyAny>,
    features: Vec<FeatureArgument<'py>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (serialized, features) = (strings_of(serialized)?, feature_specs(features)?);
    let parsed = call(py, parsing_work(&serialized), || data::parse_examples(&serialized, &features))?;
    parsed_features(py, parsed)
}

/// Features of contexts, and lists: values, the number of values of each step, and of steps of each example.
type ParsedSequences<'py> = (Vec<Bound<'py, PyAny>>, Vec<[Bound<'py, PyAny>; 3]>);

/// Parses serialized `tf.train.SequenceExample` messages.
#[pyfunction]
pub fn parse_sequence_examples<'py>(
    py: Python<'py>,
    serialized: &Bound<'py, PyAny>,
    context: Vec<FeatureArgument<'py>>,
    lists: Vec<FeatureArgument<'py>>,
) -> PyResult<ParsedSequences<'py>> {
    let (serialized, context, lists) =
        (strings_of(serialized)?, feature_specs(context)?, feature_specs(lists)?);
    let parse = || data::parse_sequence_examples(&serialized, &context, &lists);
    let (context, lists) = call(py, parsing_work(&serialized), parse)?;
    let list = |list: data::ParsedList| {
        Ok([tree(list.values).object(py)?, wrap(py, list.lengths)?, wrap(py, list.steps)?])
    };
    Ok((parsed_features(py, context)?, lists.into_iter().map(list).collect::<PyResult<_>>()?))
}

/// Writes a TFRecord file.
#[pyclass(frozen, module = "taut")]
pub struct RecordWriter(Mutex<Option<TfRecordWriter>>);

impl RecordWriter {
    fn with_writer<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut TfRecordWriter) -> taut::Result<R>,
    ) -> PyResult<R> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = writer.as_mut().ok_or_else(|| PyValueError::new_err("the writer is closed"))?;
        work(writer).map_err(|error| exception(py, error))
    }
}

#[pymethods]
impl RecordWriter {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, compression: &str) -> PyResult<RecordWriter> {
        let made = TfRecordWriter::create(path, self::compression(compression)?);
        Ok(RecordWriter(Mutex::new(Some(made.map_err(|error| exception(py, error))?))))
    }

    fn write(&self, py: Python<'_>, record: &Bound<'_, PyBytes>) -> PyResult<()> {
        self.with_writer(py, |writer| writer.write(record.as_bytes()))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with_writer(py, TfRecordWriter::flush)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        writer.map_or(Ok(()), |writer| writer.finish().map_err(|error| exception(py, error)))
    }
}

/// The pixels of an encoded image: `uint16` for a PNG if `wide`, else `uint8`. `None` if the strings are no scalar, or a GIF.
#[pyfunction]
pub fn decode_image<'py>(
    py: Python<'py>,
    contents: &Bound<'py, PyAny>,
    channels: usize,
    wide: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let contents = strings_of(contents)?;
    if contents.shape().rank() > 0 {
        return Ok(None);
    }
    let bytes = contents.item().map_err(|error| exception(py, error))?;
    let format = data::image_format(bytes);
    if format == Some(ImageFormat::Gif) {
        return Ok(None);
    }
    let wide = wide && format == Some(ImageFormat::Png);
    wrap(py, call(py, usize::MAX, || data::decode_image(bytes, channels, wide))?).map(Some)
}

/// The frames of a GIF.
#[pyfunction]
pub fn decode_gif<'py>(py: Python<'py>, contents: &Bound<'py, PyAny>) -> Object<'py> {
    let contents = strings_of(contents)?;
    wrap(py, call(py, usize::MAX, || data::decode_gif(contents.item()?))?)
}

/// The format of an encoded image, in lower case; `None` if it is none.
#[pyfunction]
pub fn image_format(py: Python<'_>, contents: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let contents = strings_of(contents)?;
    let bytes = contents.item().map_err(|error| exception(py, error))?;
    Ok(data::image_format(bytes).map(|format| format!("{format:?}").to_lowercase()))
}

/// The contents of a file, whose path is a scalar string or an object of Python that is a path.
#[pyfunction]
pub fn read_file<'py>(py: Python<'py>, path: &Bound<'py, PyAny>) -> Object<'py> {
    let path = if is_strings(path) {
        let strings = strings_of(path)?;
        if strings.shape().rank() > 0 {
            let message = format!("filename must be a scalar, got shape {}", strings.shape());
            return Err(exception(py, taut::Error::shape(message)));
        }
        let bytes = strings.item().map_err(|error| exception(py, error))?;
        PathBuf::from(OsStr::from_bytes(bytes))
    } else {
        path.extract()?
    };
    let contents = py.detach(|| std::fs::read(&path))?;
    let strings = call(py, contents.len(), || StringTensor::scalar(&contents))?;
    wrap_contents(py, strings, Some(path))
}

/// The interpolation along an axis: the first old pixel of each new one, and the weights.
#[pyclass(frozen, module = "taut")]
pub struct ResampleTaps {
    first: Vec<i32>,
    weights: Vec<f32>,
}

#[pymethods]
impl ResampleTaps {
    #[new]
    fn new(py: Python<'_>, first: &Bound<'_, PyAny>, weights: &Bound<'_, PyAny>) -> PyResult<ResampleTaps> {
        let first = convert::tensor(first)?.to_vec::<i32>().map_err(|error| exception(py, error))?;
        let weights = convert::tensor(weights)?.to_vec::<f32>().map_err(|error| exception(py, error))?;
        Ok(ResampleTaps { first, weights })
    }
}

impl ResampleTaps {
    fn taps(&self) -> data::Taps<'_> {
        data::Taps { first: &self.first, weights: &self.weights }
    }
}

/// Images of bytes at another size.
#[pyfunction]
pub fn resample<'py>(
    py: Python<'py>,
    images: &Bound<'py, PyAny>,
    rows: &Bound<'py, ResampleTaps>,
    columns: &Bound<'py, ResampleTaps>,
    columns_first: bool,
) -> Object<'py> {
    let images = convert::tensor(images)?;
    let (rows, columns) = (rows.get().taps(), columns.get().taps());
    wrap(py, call(py, usize::MAX, || data::resample(&images, rows, columns, columns_first))?)
}

/// An image as JPEG.
#[pyfunction]
pub fn encode_jpeg<'py>(py: Python<'py>, image: &Bound<'py, PyAny>, quality: u8) -> Object<'py> {
    let image = convert::tensor(image)?;
    wrap_strings(py, call(py, usize::MAX, || data::encode_jpeg(&image, quality))?)
}

/// An image as PNG.
#[pyfunction]
pub fn encode_png<'py>(py: Python<'py>, image: &Bound<'py, PyAny>) -> Object<'py> {
    let image = convert::tensor(image)?;
    wrap_strings(py, call(py, usize::MAX, || data::encode_png(&image))?)
}
