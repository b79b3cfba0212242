//! The file format of caches: records of tensors, each with a checksum, and a table of their offsets at the end.

use crate::atomic_file::AtomicFile;
use flate2::Crc;
use std::fs::File;
use std::io::{BufReader, BufWriter, IntoInnerError, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taut_core::{DType, Error, ErrorKind, Result, Shape, Spec, Tensor, source_location};
use taut_memory::{Category, Location};

const START: &[u8; 8] = b"TAUTDAT1";
const END: &[u8; 8] = b"TAUTEND1";
/// Checksum of the table, its offset, the number of records, the end marker.
const FOOTER: u64 = 4 + 8 + 8 + 8;

#[cold]
fn format_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, message)
}

/// Writes records.
pub(super) struct RecordWriter {
    out: BufWriter<AtomicFile>,
    /// The offset of each record.
    starts: Vec<u64>,
    position: u64,
}

impl RecordWriter {
    /// Begins a file that will be at `path`, or temporary.
    pub(super) fn create(path: &Path) -> Result<RecordWriter> {
        let file = AtomicFile::create(path).map_err(|error| error.about(path.display()))?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        out.write_all(START).map_err(|error| Error::from(error).about(path.display()))?;
        Ok(RecordWriter { out, starts: Vec::new(), position: START.len() as u64 })
    }

    /// Writes one record.
    pub(super) fn write(&mut self, tensors: &[&Tensor]) -> Result<()> {
        self.starts.push(self.position);
        let mut crc = Crc::new();
        let mut put = |bytes: &[u8]| -> Result<()> {
            crc.update(bytes);
            self.position += bytes.len() as u64;
            self.out.write_all(bytes).map_err(Error::from)
        };
        put(&(tensors.len() as u32).to_le_bytes())?;
        for tensor in tensors {
            let dtype = DType::ALL.iter().position(|&dtype| dtype == tensor.dtype()).unwrap_or(0);
            put(&[dtype as u8, tensor.rank() as u8])?;
            tensor.shape().iter().try_for_each(|&dim| put(&(dim as u64).to_le_bytes()))?;
            let copy = if tensor.is_contiguous() { None } else { Some(tensor.copy()?) };
            put(copy.as_ref().unwrap_or(tensor).span().unwrap_or(&[]))?;
        }
        let sum = crc.sum().to_le_bytes();
        self.position += sum.len() as u64;
        Ok(self.out.write_all(&sum)?)
    }

    /// Completes the file without renaming it: it is removed when the records are dropped.
    pub(super) fn finish(mut self) -> Result<RecordFile> {
        let mut table = Vec::with_capacity(self.starts.len() * 8);
        self.starts.iter().for_each(|start| table.extend_from_slice(&start.to_le_bytes()));
        let mut crc = Crc::new();
        crc.update(&table);
        self.out.write_all(&table)?;
        self.out.write_all(&crc.sum().to_le_bytes())?;
        self.out.write_all(&self.position.to_le_bytes())?;
        self.out.write_all(&(self.starts.len() as u64).to_le_bytes())?;
        self.out.write_all(END)?;
        let file = self.out.into_inner().map_err(IntoInnerError::into_error)?;
        self.starts.push(self.position);
        let path = file.temporary_path().to_owned();
        Ok(RecordFile { path, starts: self.starts.into(), temporary: Some(file) })
    }

    /// Completes the file and renames it to its path.
    pub(super) fn finish_at(self, path: &Path) -> Result<RecordFile> {
        let mut records = self.finish()?;
        if let Some(file) = records.temporary.take() {
            file.finish()?;
        }
        path.clone_into(&mut records.path);
        Ok(records)
    }
}

/// A complete file of records.
#[derive(Debug)]
pub(super) struct RecordFile {
    path: PathBuf,
    /// The offset of each record, and the end of the last one.
    starts: Arc<[u64]>,
    /// Removes the file when dropped, if it is temporary.
    temporary: Option<AtomicFile>,
}

impl RecordFile {
    /// Opens the file of an earlier run, and validates its markers, sizes and checksums.
    pub(super) fn open(path: &Path) -> Result<RecordFile> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut start = [0; START.len()];
        let is_cache = file.read_exact(&mut start).is_ok() && start == *START;
        if !is_cache {
            return Err(
                format_error("not the cache of a dataset").help("a cache does not overwrite other files")
            );
        }
        let truncated = || {
            format_error("the cache is truncated or damaged")
                .help("remove the file; it will be written again")
        };
        let footer_at =
            len.checked_sub(FOOTER).filter(|&at| at >= START.len() as u64).ok_or_else(truncated)?;
        let mut footer = [0; FOOTER as usize];
        file.seek(SeekFrom::Start(footer_at))?;
        file.read_exact(&mut footer)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| footer[at + i]));
        let (table_at, count) = (word(4), word(12));
        let table_len = count.checked_mul(8).filter(|len| table_at.checked_add(*len) == Some(footer_at));
        let (Some(table_len), true) = (table_len, footer[20..] == *END) else {
            return Err(truncated());
        };
        let mut table = vec![0; table_len as usize];
        file.seek(SeekFrom::Start(table_at))?;
        file.read_exact(&mut table)?;
        let mut crc = Crc::new();
        crc.update(&table);
        let (words, _) = table.as_chunks::<8>();
        let mut starts: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        starts.push(table_at);
        if crc.sum().to_le_bytes() != footer[..4] || !starts.is_sorted() || starts[0] < START.len() as u64 {
            return Err(truncated());
        }
        Ok(RecordFile { path: path.to_owned(), starts: starts.into(), temporary: None })
    }

    pub(super) fn count(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    pub(super) fn name(&self) -> impl std::fmt::Display {
        self.path.display()
    }

    /// A reader with a file handle of its own.
    pub(super) fn reader(&self) -> Result<RecordReader> {
        let file = File::open(&self.path).map_err(|error| Error::from(error).about(self.name()))?;
        Ok(RecordReader { file: BufReader::with_capacity(1 << 18, file), position: 0 })
    }
}

/// Reads records of a file.
pub(super) struct RecordReader {
    file: BufReader<File>,
    position: u64,
}

impl RecordReader {
    /// The tensors of record `index`.
    #[track_caller]
    pub(super) fn read(&mut self, records: &RecordFile, index: u64) -> Result<Vec<Tensor>> {
        let at = source_location(Location::caller());
        let [start, end] = [0, 1].map(|i| records.starts[index as usize + i]);
        let read = self.record(start, end, at);
        // After a failure the position is unknown, and the next read seeks.
        self.position = if read.is_ok() { end } else { u64::MAX };
        read.map_err(|error| error.about(format_args!("element {index}")).about(records.name()))
    }

    fn record(&mut self, start: u64, end: u64, at: Location) -> Result<Vec<Tensor>> {
        if self.position != start {
            self.file.seek(SeekFrom::Start(start))?;
        }
        let mut left = end - start;
        let mut crc = Crc::new();
        let file = &mut self.file;
        let mut get = |into: &mut [u8]| -> Result<()> {
            left =
                left.checked_sub(into.len() as u64).ok_or_else(|| format_error("the record is damaged"))?;
            file.read_exact(into)?;
            crc.update(into);
            Ok(())
        };
        let mut word = [0; 4];
        get(&mut word)?;
        let count = u32::from_le_bytes(word);
        let mut tensors = Vec::new();
        for _ in 0..count {
            let mut head = [0; 2];
            get(&mut head)?;
            let dtype =
                *DType::ALL.get(head[0] as usize).ok_or_else(|| format_error("the record is damaged"))?;
            let mut dims = Vec::with_capacity(head[1] as usize);
            for _ in 0..head[1] {
                let mut dim = [0; 8];
                get(&mut dim)?;
                dims.push(u64::from_le_bytes(dim) as usize);
            }
            let shape = Shape::from(dims);
            let bytes = shape.checked_len().and_then(|len| len.checked_mul(dtype.size()));
            // The size of a damaged record is rejected before it is allocated.
            if bytes.is_none_or(|bytes| bytes as u64 > end - start) {
                return Err(format_error("the record is damaged"));
            }
            let mut outcome = Ok(());
            let tensor = Tensor::build(Spec::new(dtype, shape), Category::Dataset, at, |out| {
                outcome = get(out.bytes());
            })?;
            outcome?;
            tensors.push(tensor);
        }
        let sum = crc.sum().to_le_bytes();
        let mut kept = [0; 4];
        file.read_exact(&mut kept)?;
        if left != 4 || kept != sum {
            return Err(format_error("the record is damaged: its checksum is wrong"));
        }
        Ok(tensors)
    }
}
