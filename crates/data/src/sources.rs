//! Sources: files of several formats, and bundled datasets.

#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "csv")]
mod csv_records;
#[cfg(feature = "csv")]
mod csv_rows;
mod example;
mod files;
mod idx;
mod images;
mod records;
mod sequence_example;
mod sets;
mod tensor_proto;
mod wire;

#[cfg(feature = "arrow")]
pub use arrow::{load_arrow, load_parquet};
#[cfg(feature = "csv")]
pub use csv::Csv;
#[cfg(feature = "csv")]
pub use csv_rows::{CsvColumn, CsvFormat, csv_rows, decode_csv};
pub use example::{ExampleBuilder, FeatureSpec, FeatureValues, ParsedFeature, parse_examples};
pub use files::{Compression, FileSet, fixed_length_records, text_lines};
pub use idx::{load_idx, read_idx};
pub use images::ImageFolder;
#[cfg(feature = "images")]
pub use images::{
    ImageFormat, Taps, decode_gif, decode_image, encode_jpeg, encode_png, image_format, resample,
};
pub use records::{TfRecordWriter, tf_records};
pub use sequence_example::{ParsedList, parse_sequence_examples};
pub use sets::{Split, digits, fashion_mnist};
pub use tensor_proto::{parse_tensor, serialize_tensor};

use crate::dataset::Dataset;
use flate2::read::MultiGzDecoder;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::Path;
use taut_core::{Error, ErrorKind, Result, Tensor};

impl Dataset<Tensor> {
    /// The rows of the array in a `.npy` file. The file is memory-mapped: rows are read at their first use, so the array may be
    /// larger than the memory.
    ///
    /// The ledger does not count mapped bytes. See [`Tensor::map_npy`].
    #[track_caller]
    pub fn from_npy(path: impl AsRef<Path>) -> Result<Dataset<Tensor>> {
        Dataset::from_tensor_slices(Tensor::map_npy(path)?)
    }
}

#[cold]
fn format_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, message)
}

/// What to do about a file that ends early, or that was changed.
const INCOMPLETE: &str = "the file is damaged or incomplete: `ignore_errors` ends it there";

/// A read error: a format error if the contents are invalid, else an I/O error.
#[cold]
fn read_error(error: std::io::Error) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => format_error("unexpected end of file").help(INCOMPLETE),
        InvalidData | InvalidInput => format_error(error.to_string()),
        _ => error.into(),
    }
}

/// A reader that decompresses gzip, if the data is compressed.
enum MaybeGzip<R: Read> {
    Plain(Chain<Cursor<Vec<u8>>, R>),
    Packed(Box<MultiGzDecoder<BufReader<Chain<Cursor<Vec<u8>>, R>>>>),
}

impl<R: Read> MaybeGzip<R> {
    fn new(mut reader: R) -> Result<MaybeGzip<R>> {
        let mut start = Vec::new();
        reader.by_ref().take(2).read_to_end(&mut start)?;
        let packed = start == [0x1f, 0x8b];
        let whole = Cursor::new(start).chain(reader);
        Ok(if packed {
            MaybeGzip::Packed(Box::new(MultiGzDecoder::new(BufReader::new(whole))))
        } else {
            MaybeGzip::Plain(whole)
        })
    }

    fn is_packed(&self) -> bool {
        matches!(self, MaybeGzip::Packed(_))
    }
}

impl<R: Read> Read for MaybeGzip<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            MaybeGzip::Plain(reader) => reader.read(into),
            MaybeGzip::Packed(reader) => reader.read(into),
        }
    }
}
