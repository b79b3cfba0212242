//! Files as sequences of strings: lines of text, records of a fixed length.

use super::{format_error, read_error};
use crate::dataset::Dataset;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taut_core::{Error, Result, source_location, with_source_location};
use taut_memory::Location;
use taut_strings::StringTensor;

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

    /// The bytes that are read at a time.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> FileSet {
        self.buffer_bytes = bytes.clamp(1, 1 << 30);
        self
    }

    pub(super) fn open(&self, path: &Path) -> Result<Contents> {
        let file = File::open(path).map_err(|error| Error::from(error).about(path.display()))?;
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

    /// The strings that a reader made by `open` returns for each file.
    pub(super) fn dataset<R>(
        &self,
        at: Location,
        start: impl Fn(&FileSet, &Path) -> Result<R> + Send + Sync + Clone + 'static,
    ) -> Dataset<StringTensor>
    where
        R: FnMut(&mut Vec<u8>) -> Result<bool> + Send + 'static,
    {
        let files = self.clone();
        Dataset::from_generator(move || FileStrings {
            files: files.clone(),
            next: 0,
            reader: None,
            start: start.clone(),
            scratch: Vec::new(),
            at,
        })
    }
}

/// Iterates over the strings of files.
struct FileStrings<S, R> {
    files: FileSet,
    next: usize,
    reader: Option<R>,
    start: S,
    scratch: Vec<u8>,
    at: Location,
}

impl<S, R> FileStrings<S, R>
where
    S: Fn(&FileSet, &Path) -> Result<R>,
    R: FnMut(&mut Vec<u8>) -> Result<bool>,
{
    fn advance(&mut self) -> Result<Option<StringTensor>> {
        loop {
            if self.reader.is_none() {
                let Some(path) = self.files.paths.get(self.next).cloned() else { return Ok(None) };
                self.next += 1;
                self.reader = Some((self.start)(&self.files, &path)?);
            }
            let Some(reader) = &mut self.reader else { return Ok(None) };
            self.scratch.clear();
            match reader(&mut self.scratch) {
                Ok(true) => return StringTensor::scalar(&self.scratch).map(Some),
                Ok(false) => self.reader = None,
                Err(error) => {
                    // What follows in this file cannot be told from garbage: the next file comes next.
                    self.reader = None;
                    let path = &self.files.paths[self.next - 1];
                    return Err(error.about(path.display()));
                }
            }
        }
    }
}

impl<S, R> Iterator for FileStrings<S, R>
where
    S: Fn(&FileSet, &Path) -> Result<R>,
    R: FnMut(&mut Vec<u8>) -> Result<bool>,
{
    type Item = Result<StringTensor>;

    fn next(&mut self) -> Option<Result<StringTensor>> {
        let at = self.at;
        with_source_location(None, at, || self.advance().map_err(|error| error.at(at))).transpose()
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
    files.dataset(source_location(Location::caller()), |files, path| {
        let mut contents = files.open(path)?;
        Ok(move |line: &mut Vec<u8>| {
            if contents.read_until(b'\n', line).map_err(read_error)? == 0 {
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
    Ok(files.dataset(at, move |files, path| {
        let mut contents = files.open(path)?;
        let mut started = false;
        Ok(move |out: &mut Vec<u8>| {
            if !started {
                started = true;
                take(&mut contents, header, out)?;
                if out.len() < header {
                    return Err(format_error(format!("the header must have {header} bytes, got {}", out.len())));
                }
                out.clear();
            }
            // A record is complete only if the footer still follows.
            let rest = contents.fill_buf().map_err(read_error)?;
            if rest.len() < record + footer {
                take(&mut contents, record + footer, out)?;
                if out.len() == footer {
                    return Ok(false);
                }
                if out.len() < record + footer {
                    let message = format!(
                        "the file must have whole records of {record} bytes and a footer of {footer}, got {} bytes at the end",
                        out.len()
                    );
                    return Err(format_error(message));
                }
                // What was read ahead of the record comes first in the next call.
                let ahead = out.split_off(record);
                contents = put_back(ahead, std::mem::replace(&mut contents, empty()));
                return Ok(true);
            }
            out.extend_from_slice(&rest[..record]);
            contents.consume(record);
            Ok(true)
        })
    }))
}

/// Reads up to `len` bytes.
fn take(contents: &mut Contents, len: usize, out: &mut Vec<u8>) -> Result<()> {
    contents.by_ref().take(len as u64).read_to_end(out).map(drop).map_err(read_error)
}

fn empty() -> Contents {
    BufReader::with_capacity(0, Box::new(std::io::empty()))
}

fn put_back(bytes: Vec<u8>, contents: Contents) -> Contents {
    let capacity = contents.capacity();
    BufReader::with_capacity(capacity, Box::new(std::io::Cursor::new(bytes).chain(contents)))
}
