//! TFRecord files: records with lengths and checksums.
//!
//! A record is its length (`u64`, little-endian), the checksum of the length (`u32`), the bytes, and their checksum. The
//! checksum is CRC-32C, rotated and offset so that it can be part of data that has a checksum itself.

use super::files::FileSet;
use super::{INCOMPLETE, format_error, read_error};
use crate::dataset::Dataset;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use taut_core::{Error, Result, source_location};
use taut_memory::Location;
use taut_strings::StringTensor;

use super::files::Compression;

/// The records of TFRecord files.
#[track_caller]
pub fn tf_records(files: &FileSet) -> Dataset<StringTensor> {
    files.strings("tf_records", source_location(Location::caller()), |files, path| {
        let mut contents = files.open(path)?;
        let mut offset = 0;
        Ok(move |out: &mut Vec<u8>| read_record(&mut contents, &mut offset, out))
    })
}

/// Reads the next record. Returns false at the end of the file.
fn read_record(contents: &mut impl Read, offset: &mut u64, out: &mut Vec<u8>) -> Result<bool> {
    let mut head = [0; 12];
    let truncated = |at: u64| format_error(format!("the record at byte {at} is truncated")).help(INCOMPLETE);
    match read_up_to(contents, &mut head)? {
        0 => return Ok(false),
        12 => {}
        _ => return Err(truncated(*offset)),
    }
    let (len, check) = head.split_at(8);
    if masked(crc32c(len)).to_le_bytes() != check {
        let message = format!("the length of the record at byte {offset} must match its checksum");
        return Err(format_error(message).help("the file is damaged, compressed, or not a TFRecord file"));
    }
    let len = u64::from_le_bytes(std::array::from_fn(|i| len[i]));
    // Read as far as there is data: the length of a damaged record allocates nothing.
    if contents.by_ref().take(len).read_to_end(out).map_err(read_error)? as u64 != len {
        return Err(truncated(*offset));
    }
    let mut check = [0; 4];
    if read_up_to(contents, &mut check)? != 4 {
        return Err(truncated(*offset));
    }
    if masked(crc32c(out)).to_le_bytes() != check {
        let message = format!("the record at byte {offset} must match its checksum");
        return Err(format_error(message).help(INCOMPLETE));
    }
    *offset += 16 + len;
    Ok(true)
}

fn read_up_to(contents: &mut impl Read, into: &mut [u8]) -> Result<usize> {
    let mut found = 0;
    while found < into.len() {
        match contents.read(&mut into[found..]).map_err(read_error)? {
            0 => break,
            count => found += count,
        }
    }
    Ok(found)
}

/// Writes a TFRecord file.
///
/// ```
/// use taut_data::{Compression, FileSet, TfRecordWriter, tf_records};
/// # let path = std::env::temp_dir().join(format!("taut-records-{}", std::process::id()));
/// let mut writer = TfRecordWriter::create(&path, Compression::None)?;
/// writer.write(b"first")?;
/// writer.write(b"second")?;
/// writer.finish()?;
/// let records = tf_records(&FileSet::new([&path]));
/// assert_eq!(records.iter()?.nth(1).unwrap()?.item()?, b"second");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TfRecordWriter {
    out: Output,
    path: std::path::PathBuf,
}

enum Output {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zlib(ZlibEncoder<BufWriter<File>>),
}

impl Output {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Output::Plain(out) => out,
            Output::Gzip(out) => out,
            Output::Zlib(out) => out,
        }
    }
}

impl TfRecordWriter {
    /// Creates or overwrites a file.
    pub fn create(path: impl AsRef<Path>, compression: Compression) -> Result<TfRecordWriter> {
        let path = path.as_ref();
        let file = File::create(path).map_err(|error| Error::from(error).about(path.display()))?;
        let file = BufWriter::with_capacity(256 << 10, file);
        let level = flate2::Compression::default();
        let out = match compression {
            Compression::None => Output::Plain(file),
            Compression::Gzip => Output::Gzip(GzEncoder::new(file, level)),
            Compression::Zlib => Output::Zlib(ZlibEncoder::new(file, level)),
        };
        Ok(TfRecordWriter { out, path: path.to_owned() })
    }

    /// Appends a record.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        let len = (record.len() as u64).to_le_bytes();
        let out = self.out.writer();
        let written = out
            .write_all(&len)
            .and_then(|()| out.write_all(&masked(crc32c(&len)).to_le_bytes()))
            .and_then(|()| out.write_all(record))
            .and_then(|()| out.write_all(&masked(crc32c(record)).to_le_bytes()));
        written.map_err(|error| Error::from(error).about(self.path.display()))
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> Result<()> {
        self.out.writer().flush().map_err(|error| Error::from(error).about(self.path.display()))
    }

    /// Completes the file.
    pub fn finish(self) -> Result<()> {
        let path = self.path;
        let done = match self.out {
            Output::Plain(mut out) => out.flush(),
            Output::Gzip(out) => out.finish().and_then(|mut out| out.flush()),
            Output::Zlib(out) => out.finish().and_then(|mut out| out.flush()),
        };
        done.map_err(|error| Error::from(error).about(path.display()))
    }
}

fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), eight bytes at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut crc = !0u32;
    for word in words {
        let value = u64::from_le_bytes(*word) ^ u64::from(crc);
        crc = (0..8).fold(0, |crc, i| crc ^ TABLES[7 - i][(value >> (8 * i)) as usize & 0xff]);
    }
    for &byte in rest {
        crc = (crc >> 8) ^ TABLES[0][(crc as u8 ^ byte) as usize];
    }
    !crc
}

/// `TABLES[k][b]`: the remainder of byte `b` followed by `k` zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[zeros - 1][byte];
            tables[zeros][byte] = (crc >> 8) ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::{crc32c, read_record};

    #[test]
    fn checksum_of_the_standard_vector() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn the_length_of_a_truncated_record_allocates_nothing() {
        let len = (1u64 << 40).to_le_bytes();
        let mut file = len.to_vec();
        file.extend(super::masked(crc32c(&len)).to_le_bytes());
        file.extend(b"short");
        let mut out = Vec::new();
        let error = read_record(&mut &file[..], &mut 0, &mut out).unwrap_err();
        assert!(error.message().contains("truncated"), "{error}");
        assert!(out.capacity() < 1 << 16);
    }
}
