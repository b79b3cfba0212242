//! `.npz`: named arrays in a ZIP archive, as `numpy.savez` writes them.

use super::npy::{self, Header};
use super::{format_error, read_error};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use std::borrow::Borrow;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use taut_memory::Location;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Writes named tensors to an uncompressed `.npz` file, which `numpy.load` reads.
///
/// ```
/// # use taut_core::{Tensor, io};
/// # let directory = std::env::temp_dir().join(format!("taut-save-npz-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let path = directory.join("model.npz");
/// io::save_npz(&path, [("weight", Tensor::new([[1.0f32, 2.0]])?), ("bias", Tensor::new([0.5f32])?)])?;
///
/// let tensors = io::load_npz(&path)?;
/// assert_eq!(tensors[0].0, "weight");
/// assert_eq!(tensors[1].1.to_vec::<f32>()?, [0.5]);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn save_npz<N: AsRef<str>, T: Borrow<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<()> {
    save(path.as_ref(), tensors, CompressionMethod::Stored, Location::caller())
}

/// Writes named tensors to a compressed `.npz` file. See [`save_npz`].
///
/// ```
/// # use taut_core::{Tensor, io};
/// # let directory = std::env::temp_dir().join(format!("taut-save-npzc-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let path = directory.join("zeros.npz");
/// io::save_npz_compressed(&path, [("zeros", Tensor::from_vec(vec![0u8; 100_000], [100_000])?)])?;
/// assert!(std::fs::metadata(&path)?.len() < 1000);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn save_npz_compressed<N: AsRef<str>, T: Borrow<Tensor>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<()> {
    save(path.as_ref(), tensors, CompressionMethod::Deflated, Location::caller())
}

/// Writes named tensors in `.npz` format, uncompressed.
///
/// ```
/// # use taut_core::{Tensor, io};
/// let mut archive = std::io::Cursor::new(Vec::new());
/// io::write_npz(&mut archive, [("x", Tensor::new([1, 2, 3])?)])?;
/// assert_eq!(io::read_npz(archive)?[0].1.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn write_npz<N: AsRef<str>, T: Borrow<Tensor>>(
    writer: impl Write + Seek,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<()> {
    let at = Location::caller();
    write(writer, tensors, CompressionMethod::Stored, at).map_err(|error| error.at(at))
}

/// Writes named tensors in `.npz` format, compressed. See [`write_npz`].
///
/// ```
/// # use taut_core::{Tensor, io};
/// let mut archive = std::io::Cursor::new(Vec::new());
/// io::write_npz_compressed(&mut archive, [("zeros", Tensor::from_vec(vec![0u8; 100_000], [100_000])?)])?;
/// assert!(archive.get_ref().len() < 1000);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn write_npz_compressed<N: AsRef<str>, T: Borrow<Tensor>>(
    writer: impl Write + Seek,
    tensors: impl IntoIterator<Item = (N, T)>,
) -> Result<()> {
    let at = Location::caller();
    write(writer, tensors, CompressionMethod::Deflated, at).map_err(|error| error.at(at))
}

/// Reads a `.npz` file: names and tensors in the order of the file. See [`Tensor::load_npy`] for what it takes.
///
/// ```
/// # use taut_core::{ErrorKind, io};
/// assert_eq!(io::load_npz("no/such/file.npz").unwrap_err().kind(), ErrorKind::Io);
/// ```
#[track_caller]
pub fn load_npz(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let (path, at) = (path.as_ref(), Location::caller());
    let load = || read(BufReader::new(File::open(path)?), at);
    load().map_err(|error| error.about(path.display()).at(at))
}

/// Reads a `.npz` archive: names and tensors in its order. See [`Tensor::load_npy`] for what it takes.
///
/// ```
/// # use taut_core::{ErrorKind, io};
/// let error = io::read_npz(std::io::Cursor::new(b"not an archive")).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Format);
/// ```
#[track_caller]
pub fn read_npz(reader: impl Read + Seek) -> Result<Vec<(String, Tensor)>> {
    let at = Location::caller();
    read(reader, at).map_err(|error| error.at(at))
}

fn save<N: AsRef<str>, T: Borrow<Tensor>>(
    path: &Path,
    tensors: impl IntoIterator<Item = (N, T)>,
    method: CompressionMethod,
    at: Location,
) -> Result<()> {
    let save = || write(File::create(path)?, tensors, method, at);
    save().map_err(|error| error.about(path.display()).at(at))
}

fn write<N: AsRef<str>, T: Borrow<Tensor>>(
    writer: impl Write + Seek,
    tensors: impl IntoIterator<Item = (N, T)>,
    method: CompressionMethod,
    at: Location,
) -> Result<()> {
    let write_error = |error| match error {
        ZipError::Io(error) => Error::from(error),
        other => Error::value(other.to_string()),
    };
    let mut archive = ZipWriter::new(writer);
    for (name, tensor) in tensors {
        let (name, tensor) = (name.as_ref(), tensor.borrow());
        let large = npy::file_size(tensor.spec())? >= u32::MAX as u64;
        let options = SimpleFileOptions::default().compression_method(method).large_file(large);
        let start = archive.start_file(format!("{name}.npy"), options).map_err(write_error);
        start.and_then(|()| npy::write(tensor, &mut archive, at)).map_err(|error| error.about(name))?;
    }
    archive.finish().map_err(write_error)?.flush()?;
    Ok(())
}

fn read(mut reader: impl Read + Seek, at: Location) -> Result<Vec<(String, Tensor)>> {
    let size = reader.seek(SeekFrom::End(0))?;
    let mut archive = ZipArchive::new(reader).map_err(archive_error)?;
    // Overlapping entries could expand a small archive without bound.
    if archive.has_overlapping_entries().map_err(archive_error)? {
        return Err(format_error("entries of the archive overlap"));
    }
    let mut tensors = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(archive_error)?;
        let member = entry.name().map_err(archive_error)?.into_owned();
        drop(entry);
        let Some(name) = member.strip_suffix(".npy") else {
            return Err(format_error(format!("member '{member}' is not a .npy array")));
        };
        let tensor = read_entry(&mut archive, index, size, at).map_err(|error| error.about(&member))?;
        tensors.push((name.to_owned(), tensor));
    }
    Ok(tensors)
}

fn read_entry(
    archive: &mut ZipArchive<impl Read + Seek>,
    index: usize,
    archive_size: u64,
    at: Location,
) -> Result<Tensor> {
    let mut entry = archive.by_index(index).map_err(archive_error)?;
    let mut header = Header::read(&mut entry)?;
    header.check(entry.size().saturating_sub(header.len as u64))?;
    let bytes = header.spec.bytes() as u64;
    if bytes > archive_size {
        // The decompressed size is a claim only: decompress once without storing anything, to verify it.
        let inflated = io::copy(&mut entry, &mut io::sink()).map_err(read_error)?;
        header.check(inflated)?;
        drop(entry);
        entry = archive.by_index(index).map_err(archive_error)?;
        header = Header::read(&mut entry)?;
    }
    let tensor = header.elements(&mut entry, bytes, at)?;
    // The checksum is compared at the end of the entry, and only there.
    match entry.read(&mut [0]).map_err(read_error)? {
        0 => Ok(tensor),
        _ => Err(format_error("the archive has more bytes than it declares")),
    }
}

#[cold]
fn archive_error(error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => read_error(error),
        other => format_error(other.to_string()),
    }
}
