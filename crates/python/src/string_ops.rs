//! The functions behind `tf.strings`.

use crate::array::wrap;
use crate::call::call;
use crate::convert;
use crate::strings::{strings_of, wrap_strings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use taut::strings::{self, Comparison, Encoding, NumberFormat, OnInvalid, Regex, StringTensor, Unit};
use taut::{DType, Tensor};

type Object<'py> = PyResult<Bound<'py, PyAny>>;
type Pair<'py> = PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// The bytes of arithmetic that take as long as a function of these strings.
fn work(strings: &StringTensor) -> usize {
    8 * strings.byte_len()
}

/// Runs a function of strings and wraps its result. `bytes` decides whether the interpreter lock is released.
fn to_strings(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> taut::Result<StringTensor> + Send,
) -> Object<'_> {
    wrap_strings(py, call(py, bytes, work)?)
}

fn to_tensor(py: Python<'_>, bytes: usize, work: impl FnOnce() -> taut::Result<Tensor> + Send) -> Object<'_> {
    wrap(py, call(py, bytes, work)?)
}

/// Runs a function whose result is ragged: values and row splits.
fn to_ragged(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> taut::Result<(StringTensor, Tensor)> + Send,
) -> Pair<'_> {
    let (values, splits) = call(py, bytes, work)?;
    Ok((wrap_strings(py, values)?, wrap(py, splits)?))
}

fn unit(name: &str) -> PyResult<Unit> {
    match name {
        "BYTE" => Ok(Unit::Byte),
        "UTF8_CHAR" => Ok(Unit::Utf8Char),
        _ => Err(PyValueError::new_err(format!("unit must be 'BYTE' or 'UTF8_CHAR', got '{name}'"))),
    }
}

fn encoding(name: &str) -> PyResult<Encoding> {
    match name.to_uppercase().as_str() {
        "UTF-8" | "UTF8" | "US-ASCII" | "ASCII" => Ok(Encoding::Utf8),
        "UTF-16-BE" | "UTF-16BE" => Ok(Encoding::Utf16Be),
        "UTF-32-BE" | "UTF-32BE" => Ok(Encoding::Utf32Be),
        _ => Err(PyValueError::new_err(format!(
            "the encoding must be 'UTF-8', 'UTF-16-BE' or 'UTF-32-BE', got '{name}'"
        ))),
    }
}

fn on_invalid(errors: &str, replacement: u32) -> PyResult<OnInvalid> {
    match errors {
        "strict" => Ok(OnInvalid::Strict),
        "replace" => Ok(OnInvalid::Replace(replacement)),
        "ignore" => Ok(OnInvalid::Ignore),
        _ => {
            let message = format!("errors must be 'strict', 'replace' or 'ignore', got '{errors}'");
            Err(PyValueError::new_err(message))
        }
    }
}

#[pyfunction]
pub fn string_reshape<'py>(py: Python<'py>, x: &Bound<'py, PyAny>, shape: Vec<usize>) -> Object<'py> {
    let x = strings_of(x)?;
    to_strings(py, 0, || x.reshape(shape))
}

/// The strings at positions in the elements of several tensors; -1 is the empty string.
#[pyfunction]
pub fn string_take<'py>(
    py: Python<'py>,
    pool: Vec<Bound<'py, PyAny>>,
    indices: &Bound<'py, PyAny>,
) -> Object<'py> {
    let pool = pool.iter().map(strings_of).collect::<PyResult<Vec<_>>>()?;
    let indices = convert::tensor(indices)?;
    let bytes = indices.spec().bytes();
    to_strings(py, bytes, || strings::take(&pool.iter().collect::<Vec<_>>(), &indices))
}

#[pyfunction]
pub fn string_compare<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    op: &str,
) -> Object<'py> {
    let comparison = match op {
        "equal" => Comparison::Equal,
        "not_equal" => Comparison::NotEqual,
        "less" => Comparison::Less,
        "less_equal" => Comparison::LessEqual,
        "greater" => Comparison::Greater,
        "greater_equal" => Comparison::GreaterEqual,
        _ => return Err(PyValueError::new_err(format!("unknown comparison '{op}'"))),
    };
    let (a, b) = (strings_of(a)?, strings_of(b)?);
    to_tensor(py, work(&a).max(work(&b)), || strings::compare(&a, &b, comparison))
}

#[pyfunction]
pub fn string_unique<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let x = strings_of(x)?;
    let (distinct, indices, counts) = call(py, work(&x), || strings::unique(&x))?;
    Ok((wrap_strings(py, distinct)?, wrap(py, indices)?, wrap(py, counts)?))
}

#[pyfunction]
pub fn string_lower<'py>(py: Python<'py>, x: &Bound<'py, PyAny>, utf8: bool) -> Object<'py> {
    let x = strings_of(x)?;
    to_strings(py, work(&x), || strings::lower(&x, utf8))
}

#[pyfunction]
pub fn string_upper<'py>(py: Python<'py>, x: &Bound<'py, PyAny>, utf8: bool) -> Object<'py> {
    let x = strings_of(x)?;
    to_strings(py, work(&x), || strings::upper(&x, utf8))
}

#[pyfunction]
pub fn string_strip<'py>(py: Python<'py>, x: &Bound<'py, PyAny>) -> Object<'py> {
    let x = strings_of(x)?;
    to_strings(py, work(&x), || strings::strip(&x))
}

#[pyfunction]
pub fn string_length<'py>(py: Python<'py>, x: &Bound<'py, PyAny>, unit: &str) -> Object<'py> {
    let (x, unit) = (strings_of(x)?, self::unit(unit)?);
    to_tensor(py, work(&x), || strings::length(&x, unit))
}

#[pyfunction]
pub fn string_substr<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    pos: &Bound<'py, PyAny>,
    len: &Bound<'py, PyAny>,
    unit: &str,
) -> Object<'py> {
    let (x, unit) = (strings_of(x)?, self::unit(unit)?);
    let (pos, len) = (convert::tensor(pos)?, convert::tensor(len)?);
    to_strings(py, work(&x), || {
        let wide = |tensor: Tensor| taut::cast(tensor, DType::I64);
        strings::substr(&x, &wide(pos)?, &wide(len)?, unit)
    })
}

#[pyfunction]
pub fn string_join<'py>(py: Python<'py>, parts: Vec<Bound<'py, PyAny>>, separator: &[u8]) -> Object<'py> {
    let parts = parts.iter().map(strings_of).collect::<PyResult<Vec<_>>>()?;
    let bytes = parts.iter().map(StringTensor::byte_len).sum();
    to_strings(py, bytes, || strings::join(&parts.iter().collect::<Vec<_>>(), separator))
}

#[pyfunction]
pub fn string_join_rows<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    row_splits: &Bound<'py, PyAny>,
    separator: &[u8],
) -> Object<'py> {
    let (x, splits) = (strings_of(x)?, convert::tensor(row_splits)?);
    to_strings(py, work(&x), || strings::join_rows(&x, &splits.to_vec::<i64>()?, separator))
}

#[pyfunction]
#[pyo3(signature = (x, separator, limit))]
pub fn string_split<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    separator: &[u8],
    limit: Option<usize>,
) -> Pair<'py> {
    let x = strings_of(x)?;
    to_ragged(py, work(&x), || strings::split(&x, separator, limit))
}

#[pyfunction]
pub fn string_bytes_split<'py>(py: Python<'py>, x: &Bound<'py, PyAny>) -> Pair<'py> {
    let x = strings_of(x)?;
    to_ragged(py, work(&x), || strings::bytes_split(&x))
}

#[pyfunction]
#[pyo3(signature = (x, row_splits, widths, separator, pads, padding, keep_short))]
pub fn string_ngrams<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    row_splits: &Bound<'py, PyAny>,
    widths: Vec<usize>,
    separator: Vec<u8>,
    pads: Option<(Vec<u8>, Vec<u8>)>,
    padding: Option<usize>,
    keep_short: bool,
) -> Pair<'py> {
    let (x, splits) = (strings_of(x)?, convert::tensor(row_splits)?);
    to_ragged(py, work(&x), || {
        let pads = pads.as_ref().map(|(left, right)| (&left[..], &right[..]));
        strings::ngrams(&x, &splits.to_vec::<i64>()?, &widths, &separator, pads, padding, keep_short)
    })
}

/// A compiled regular expression with RE2's syntax.
#[pyclass(frozen, module = "taut")]
pub struct StringRegex(Regex);

#[pymethods]
impl StringRegex {
    #[new]
    fn new(py: Python<'_>, pattern: &str, whole: bool) -> PyResult<StringRegex> {
        let made = if whole { Regex::whole(pattern) } else { Regex::new(pattern) };
        made.map(StringRegex).map_err(|error| crate::error::exception(py, error))
    }

    fn full_match<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>) -> Object<'py> {
        let x = strings_of(x)?;
        to_tensor(py, work(&x), || strings::regex_full_match(&x, &self.0))
    }

    fn replace<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        rewrite: &[u8],
        every: bool,
    ) -> Object<'py> {
        let x = strings_of(x)?;
        to_strings(py, work(&x), || strings::regex_replace(&x, &self.0, rewrite, every))
    }
}

/// An immutable hash table of distinct strings.
#[pyclass(frozen, module = "taut")]
pub struct StringTable(strings::StringTable);

#[pymethods]
impl StringTable {
    #[new]
    fn new(keys: &Bound<'_, PyAny>) -> PyResult<StringTable> {
        let (py, keys) = (keys.py(), strings_of(keys)?);
        call(py, work(&keys), || strings::StringTable::new(keys)).map(StringTable)
    }

    /// The position of each string among the keys, or -1.
    fn positions<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>) -> Object<'py> {
        let x = strings_of(x)?;
        to_tensor(py, work(&x), || self.0.positions(&x))
    }

    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> Object<'py> {
        wrap_strings(py, self.0.keys().clone())
    }
}

#[pyfunction]
pub fn string_to_number<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
) -> Object<'py> {
    let (x, dtype) = (strings_of(x)?, crate::dtype::given(dtype)?);
    to_tensor(py, work(&x), || strings::to_number(&x, dtype))
}

#[pyfunction]
#[pyo3(signature = (x, precision, scientific, shortest, width, fill))]
pub fn string_from_numbers<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    precision: Option<usize>,
    scientific: bool,
    shortest: bool,
    width: usize,
    fill: u8,
) -> Object<'py> {
    let x = convert::tensor(x)?;
    let format = NumberFormat { precision, scientific, shortest, width, fill };
    to_strings(py, x.spec().bytes(), || taut::graph::suspend_tracing(|| strings::as_string(&x, format)))
}

/// The bucket of each string by FarmHash's fingerprint, or by SipHash with a key.
#[pyfunction]
#[pyo3(signature = (x, buckets, key=None))]
pub fn string_hash_buckets<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    buckets: i64,
    key: Option<[u64; 2]>,
) -> Object<'py> {
    let x = strings_of(x)?;
    to_tensor(py, work(&x), || match key {
        None => strings::hash_buckets(&x, buckets),
        Some(key) => strings::hash_bucket_strong(&x, buckets, key),
    })
}

/// The bucket of each string by MurmurHash.
#[pyfunction]
pub fn string_murmur_buckets<'py>(py: Python<'py>, x: &Bound<'py, PyAny>, buckets: i64) -> Object<'py> {
    let x = strings_of(x)?;
    to_tensor(py, work(&x), || strings::hash_bucket_murmur(&x, buckets))
}

#[pyfunction]
pub fn string_fingerprints<'py>(py: Python<'py>, x: &Bound<'py, PyAny>) -> Object<'py> {
    let x = strings_of(x)?;
    to_tensor(py, work(&x), || strings::fingerprints(&x))
}

/// The scripts of code points.
#[pyfunction]
pub fn unicode_script<'py>(py: Python<'py>, points: &Bound<'py, PyAny>) -> Object<'py> {
    let points = convert::tensor(points)?;
    to_tensor(py, points.len(), || strings::unicode_script(&points))
}

/// Code points, row splits and byte offsets.
#[pyfunction]
#[pyo3(signature = (x, input_encoding, errors, replacement, control))]
pub fn string_decode<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    input_encoding: &str,
    errors: &str,
    replacement: u32,
    control: Option<u32>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (x, from, invalid) = (strings_of(x)?, encoding(input_encoding)?, on_invalid(errors, replacement)?);
    let (points, splits, offsets) = call(py, work(&x), || strings::decode(&x, from, invalid, control))?;
    Ok((wrap(py, points)?, wrap(py, splits)?, wrap(py, offsets)?))
}

/// Characters, row splits and byte offsets.
#[pyfunction]
pub fn string_unicode_split<'py>(
    py: Python<'py>,
    x: &Bound<'py, PyAny>,
    input_encoding: &str,
    errors: &str,
    replacement: u32,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (x, from, invalid) = (strings_of(x)?, encoding(input_encoding)?, on_invalid(errors, replacement)?);
    let (chars, splits, offsets) = call(py, work(&x), || strings::unicode_split(&x, from, invalid))?;
    Ok((wrap_strings(py, chars)?, wrap(py, splits)?, wrap(py, offsets)?))
}

#[pyfunction]
pub fn string_encode<'py>(
    py: Python<'py>,
    points: &Bound<'py, PyAny>,
    row_splits: &Bound<'py, PyAny>,
    output_encoding: &str,
    errors: &str,
    replacement: u32,
) -> Object<'py> {
    let (points, splits) = (convert::tensor(points)?, convert::tensor(row_splits)?);
    let (to, invalid) = (encoding(output_encoding)?, on_invalid(errors, replacement)?);
    to_strings(py, points.spec().bytes(), || {
        strings::encode(&taut::cast(points, DType::I32)?, &splits.to_vec::<i64>()?, to, invalid)
    })
}
