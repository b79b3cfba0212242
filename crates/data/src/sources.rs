//! Sources: files of several formats, and sets of data that are at hand.

#[cfg(feature = "arrow")]
mod arrow;
mod csv;
mod idx;
mod images;
mod sets;

#[cfg(feature = "arrow")]
pub use arrow::{load_arrow, load_parquet};
pub use csv::Csv;
pub use idx::{load_idx, read_idx};
pub use images::ImageFolder;
pub use sets::{Split, digits, fashion_mnist};

use crate::dataset::Dataset;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::Path;
use taut_core::{Error, ErrorKind, Result, Tensor};

impl Dataset<Tensor> {
    /// The rows of the array in a `.npy` file, which is mapped and not read: rows come into memory when they are used, so the
    /// array may be larger than the memory.
    ///
    /// Mapped bytes are the file's; the ledger does not count them. See [`Tensor::map_npy`].
    #[track_caller]
    pub fn from_npy(path: impl AsRef<Path>) -> Result<Dataset<Tensor>> {
        Dataset::from_tensor_slices(Tensor::map_npy(path)?)
    }
}

#[cold]
fn broken(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, message)
}

/// A failure to read: the content's fault, or the system's.
#[cold]
fn read_error(error: std::io::Error) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => broken("the end comes too early"),
        InvalidData | InvalidInput => broken(error.to_string()),
        _ => error.into(),
    }
}

/// Bytes that are unpacked if they are packed by gzip.
enum Unpacked<R: Read> {
    Plain(Chain<Cursor<Vec<u8>>, R>),
    Packed(Box<MultiGzDecoder<BufReader<Chain<Cursor<Vec<u8>>, R>>>>),
}

impl<R: Read> Unpacked<R> {
    fn new(mut reader: R) -> Result<Unpacked<R>> {
        let mut start = Vec::new();
        reader.by_ref().take(2).read_to_end(&mut start)?;
        let packed = start == [0x1f, 0x8b];
        let whole = Cursor::new(start).chain(reader);
        Ok(if packed {
            Unpacked::Packed(Box::new(MultiGzDecoder::new(BufReader::new(whole))))
        } else {
            Unpacked::Plain(whole)
        })
    }

    fn is_packed(&self) -> bool {
        matches!(self, Unpacked::Packed(_))
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Unpacked::Plain(reader) => reader.read(into),
            Unpacked::Packed(reader) => reader.read(into),
        }
    }
}

/// Opens a file that may be packed by gzip.
fn open(path: &Path) -> Result<Unpacked<BufReader<File>>> {
    Unpacked::new(BufReader::with_capacity(1 << 16, File::open(path)?))
}
