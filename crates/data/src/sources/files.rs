//! Files as sequences of strings: lines of text, records of a fixed length.

use super::{format_error, read_error};
use crate::counters::StageRun;
use crate::dataset::{Cardinality, Cursor, Dataset, PipelineStage, Stage};
use crate::element::DatasetElement;
use crate::stages::at_element;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taut_core::{Error, Result, Shape, source_location, with_source_location};
use taut_memory::{Location, list_with_capacity, reserve};
use taut_strings::{StringBuilder, StringTensor};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip; several members may follow each other.
    Gzip,
    /// zlib.
    Zlib,
}

/// Files that are read one after the other.
#[derive(Clone, Debug)]
pub struct FileSet {
    pub(super) paths: Arc<[PathBuf]>,
    compression: Compression,
    buffer_bytes: usize,
}

/// The bytes that are read at a time, unless another number is given.
const BUFFER_BYTES: usize = 256 << 10;

/// A reader of the contents of a file.
pub(super) type Contents = BufReader<Box<dyn Read + Send>>;

impl FileSet {
    /// These files, in this order.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> FileSet {
        let paths = paths.into_iter().map(Into::into).collect();
        FileSet { paths, compression: Compression::None, buffer_bytes: BUFFER_BYTES }
    }

    /// The compression of all files.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> FileSet {
        self.compression = compression;
        self
    }

    /// The bytes that are read at a time, up to 16 MiB.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> FileSet {
        self.buffer_bytes = bytes.clamp(1, 16 << 20);
        self
    }

    pub(super) fn open(&self, path: &Path) -> Result<Contents> {
        let file = File::open(path).map_err(|error| Error::from(error).about(path.display()))?;
        // `BufReader` would end the process where the system refuses memory: ask first, for both buffers.
        drop(list_with_capacity::<u8>(2 * self.buffer_bytes)?);
        let reader: Box<dyn Read + Send> = match self.compression {
            Compression::None => Box::new(file),
            Compression::Gzip => {
                Box::new(MultiGzDecoder::new(BufReader::with_capacity(self.buffer_bytes, file)))
            }
            Compression::Zlib => {
                Box::new(ZlibDecoder::new(BufReader::with_capacity(self.buffer_bytes, file)))
            }
        };
        Ok(BufReader::with_capacity(self.buffer_bytes, reader))
    }

    /// The strings that a reader made by `start` returns for each file.
    pub(super) fn strings<S, R>(&self, name: &'static str, at: Location, start: S) -> Dataset<StringTensor>
    where
        S: Fn(&FileSet, &Path) -> Result<R> + Send + Sync + 'static,
        R: FnMut(&mut Vec<u8>) -> Result<bool> + Send + 'static,
    {
        self.elements(Strings { name, start }, at)
    }

    /// The elements of the files, one after the other.
    pub(super) fn elements<F: FileFormat>(&self, format: F, at: Location) -> Dataset<F::Element> {
        Dataset::new(FileElements { files: self.clone(), format: Arc::new(format), at })
    }
}

/// How the elements of files of a format are read: each one into rows under construction, of which there may be one or many.
pub(super) trait FileFormat: Send + Sync + 'static {
    type Element: DatasetElement;
    type Reader: Send;
    type Rows;

    /// The name of the source in reports.
    fn name(&self) -> &'static str;

    fn open(&self, files: &FileSet, path: &Path) -> Result<Self::Reader>;

    /// Rows for about this many elements.
    fn rows(&self, count: usize) -> Self::Rows;

    /// Appends the next element. False at the end of the file.
    fn read(&self, reader: &mut Self::Reader, out: &mut Self::Rows) -> Result<bool, ReadFailure>;

    /// The rows as tensors of this shape.
    fn finish(&self, rows: Self::Rows, shape: Shape) -> Result<Self::Element>;
}

/// An element that could not be read.
pub(super) struct ReadFailure {
    pub(super) error: Error,
    /// Whether what follows in the file cannot be told from garbage: the next file comes next.
    pub(super) ends_file: bool,
}

/// Strings of files.
struct Strings<S> {
    name: &'static str,
    start: S,
}

impl<S, R> FileFormat for Strings<S>
where
    S: Fn(&FileSet, &Path) -> Result<R> + Send + Sync + 'static,
    R: FnMut(&mut Vec<u8>) -> Result<bool> + Send + 'static,
{
    type Element = StringTensor;
    /// The reader, and the string that it reads.
    type Reader = (R, Vec<u8>);
    type Rows = StringBuilder;

    fn name(&self) -> &'static str {
        self.name
    }

    fn open(&self, files: &FileSet, path: &Path) -> Result<(R, Vec<u8>)> {
        Ok(((self.start)(files, path)?, Vec::new()))
    }

    fn rows(&self, count: usize) -> StringBuilder {
        StringBuilder::new(count, 0)
    }

    fn read(&self, (read, value): &mut (R, Vec<u8>), out: &mut StringBuilder) -> Result<bool, ReadFailure> {
        value.clear();
        let more = read(value).map_err(|error| ReadFailure { error, ends_file: true })?;
        if more {
            out.push(value).map_err(|error| ReadFailure { error, ends_file: false })?;
        }
        Ok(more)
    }

    fn finish(&self, rows: StringBuilder, shape: Shape) -> Result<StringTensor> {
        rows.finish(shape)
    }
}

/// The source of the elements of files.
struct FileElements<F> {
    files: FileSet,
    format: Arc<F>,
    at: Location,
}

impl<F: FileFormat> Stage<F::Element> for FileElements<F> {
    fn name(&self) -> &'static str {
        self.format.name()
    }

    fn start(&self, _run: &StageRun, _epoch: u64) -> Result<Box<dyn Cursor<F::Element>>> {
        let (files, format, at) = (self.files.clone(), self.format.clone(), self.at);
        Ok(Box::new(FileCursor { files, format, next_file: 0, reader: None, index: 0, at }))
    }

    fn inputs(&self) -> Vec<&dyn PipelineStage> {
        Vec::new()
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct FileCursor<F: FileFormat> {
    files: FileSet,
    format: Arc<F>,
    next_file: usize,
    reader: Option<F::Reader>,
    /// Elements and errors so far.
    index: u64,
    at: Location,
}

/// The most elements for which space is reserved: a batch may be larger than the files.
const MOST_RESERVED: usize = 1 << 12;

impl<F: FileFormat> FileCursor<F> {
    /// Appends the next element. False at the end of all files.
    fn read(&mut self, out: &mut F::Rows) -> Result<bool> {
        loop {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None => {
                    let Some(path) = self.files.paths.get(self.next_file) else { return Ok(false) };
                    self.next_file += 1;
                    self.reader.insert(self.format.open(&self.files, path)?)
                }
            };
            match self.format.read(reader, out) {
                Ok(true) => return Ok(true),
                Ok(false) => self.reader = None,
                Err(failure) => {
                    if failure.ends_file {
                        self.reader = None;
                    }
                    let path = &self.files.paths[self.next_file - 1];
                    return Err(failure.error.about(path.display()));
                }
            }
        }
    }

    /// Appends the next element, and counts it. Errors have its index and the source location of the dataset.
    fn read_indexed(&mut self, out: &mut F::Rows) -> Result<bool> {
        let read = self.read(out).map_err(|error| at_element(error.at(self.at), self.index));
        if !matches!(read, Ok(false)) {
            self.index += 1;
        }
        read
    }
}

impl<F: FileFormat> Cursor<F::Element> for FileCursor<F> {
    fn next(&mut self) -> Result<Option<F::Element>> {
        with_source_location(None, self.at, || {
            let mut rows = self.format.rows(1);
            let more = self.read_indexed(&mut rows)?;
            more.then(|| self.format.finish(rows, Shape::scalar())).transpose()
        })
    }

    fn try_stack(&mut self, count: usize) -> Option<(usize, Result<F::Element>)> {
        Some(with_source_location(None, self.at, || {
            let mut rows = self.format.rows(count.min(MOST_RESERVED));
            let (mut found, mut failed) = (0, None);
            // All elements are read, even after an error: a batch covers the same indices in any case.
            while found < count {
                match self.read_indexed(&mut rows) {
                    Ok(false) => break,
                    Ok(true) => {}
                    Err(error) => failed = failed.or(Some(error)),
                }
                found += 1;
            }
            let made = match failed {
                Some(error) => Err(error),
                None => self.format.finish(rows, Shape::from([found])),
            };
            (found, made)
        }))
    }
}

/// The lines of text files, without their ends (`\n` or `\r\n`).
///
/// ```
/// # let path = std::env::temp_dir().join(format!("taut-lines-{}.txt", std::process::id()));
/// std::fs::write(&path, "one\ntwo\r\n\nlast")?;
/// let lines = taut_data::text_lines(&taut_data::FileSet::new([&path]));
/// let lines: Result<Vec<_>, _> = lines.iter()?.map(|line| Ok::<_, taut_core::Error>(line?.item()?.to_vec())).collect();
/// assert_eq!(lines?, [&b"one"[..], b"two", b"", b"last"]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn text_lines(files: &FileSet) -> Dataset<StringTensor> {
    files.strings("text_lines", source_location(Location::caller()), |files, path| {
        let mut contents = files.open(path)?;
        Ok(move |line: &mut Vec<u8>| {
            read_line(&mut contents, line)?;
            if line.is_empty() {
                return Ok(false);
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            Ok(true)
        })
    })
}

/// The records of binary files, each of `record` bytes, between a header and a footer.
#[track_caller]
pub fn fixed_length_records(
    files: &FileSet,
    record: usize,
    header: usize,
    footer: usize,
) -> Result<Dataset<StringTensor>> {
    let at = source_location(Location::caller());
    if record == 0 {
        return Err(Error::value("record_bytes must be >= 1, got 0").at(at));
    }
    Ok(files.strings("fixed_length_records", at, move |files, path| {
        let mut contents = files.open(path)?;
        let mut started = false;
        // A record is complete only if as many bytes as the footer has follow it. These are read ahead, and are the first bytes
        // of the next record unless the file ends.
        let mut ahead = Vec::new();
        let whole = record.saturating_add(footer);
        Ok(move |out: &mut Vec<u8>| {
            if !started {
                started = true;
                let skipped = skip(&mut contents, header)?;
                if skipped < header as u64 {
                    return Err(format_error(format!("the header must have {header} bytes, got {skipped}")));
                }
            }
            out.append(&mut ahead);
            take(&mut contents, whole - out.len(), out)?;
            if out.len() == footer {
                return Ok(false);
            }
            if out.len() < whole {
                let message = format!(
                    "the file must have whole records of {record} bytes and a footer of {footer}, got {} bytes at the end",
                    out.len()
                );
                return Err(format_error(message).help("choose other sizes, or leave the rest out with `ignore_errors`"));
            }
            ahead.extend(out.drain(record..));
            Ok(true)
        })
    }))
}

/// Appends a line with its end.
///
/// Memory: each part of the line is asked for before it is read.
fn read_line(contents: &mut Contents, line: &mut Vec<u8>) -> Result<()> {
    loop {
        let buffered = match contents.fill_buf() {
            Ok(buffer) => buffer.len(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(read_error(error)),
        };
        reserve(line, buffered)?;
        let part = contents.by_ref().take(buffered as u64).read_until(b'\n', line).map_err(read_error)?;
        if part == 0 || line.last() == Some(&b'\n') {
            return Ok(());
        }
    }
}

/// Skips up to `len` bytes. Returns how many there were.
fn skip(contents: &mut Contents, len: usize) -> Result<u64> {
    std::io::copy(&mut contents.by_ref().take(len as u64), &mut std::io::sink()).map_err(read_error)
}

/// Appends up to `len` bytes.
///
/// Memory: that of the bytes that there are, however large `len` is.
fn take(contents: &mut Contents, mut len: usize, out: &mut Vec<u8>) -> Result<()> {
    while len > 0 {
        let buffer = match contents.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(read_error(error)),
        };
        let count = buffer.len().min(len);
        if count == 0 {
            break;
        }
        reserve(out, count)?;
        out.extend_from_slice(&buffer[..count]);
        contents.consume(count);
        len -= count;
    }
    Ok(())
}
