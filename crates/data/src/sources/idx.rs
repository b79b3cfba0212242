//! IDX: the file format of MNIST.

use super::{MaybeGzip, format_error, read_error};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use taut_core::{DType, Error, Result, Shape, Spec, Tensor};
use taut_memory::{Category, Location};

/// The largest compression ratio of gzip.
const MAX_GZIP_RATIO: u64 = 1032;

/// Reads an array from an IDX file, which may be compressed with gzip.
///
/// ```
/// use taut_core::ErrorKind;
/// let error = taut_data::load_idx("no/such/images-idx3-ubyte.gz").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Io);
/// assert!(error.message().starts_with("no/such/images-idx3-ubyte.gz: "));
/// ```
#[track_caller]
pub fn load_idx(path: impl AsRef<Path>) -> Result<Tensor> {
    let (path, at) = (path.as_ref(), Location::caller());
    let load = || {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        read(BufReader::new(file), len, at)
    };
    load().map_err(|error: Error| error.about(path.display()).at(at))
}

/// Reads an array in IDX format, which may be compressed with gzip.
///
/// ```
/// let bytes = [0, 0, 8, 1, 0, 0, 0, 3, 5, 6, 7]; // three bytes along one axis
/// assert_eq!(taut_data::read_idx(&bytes)?.to_vec::<u8>()?, [5, 6, 7]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn read_idx(bytes: &[u8]) -> Result<Tensor> {
    let at = Location::caller();
    read(bytes, bytes.len() as u64, at).map_err(|error| error.at(at))
}

/// Reads from `len` bytes. A header that claims more than they can hold is rejected before anything is allocated.
fn read(reader: impl Read, len: u64, at: Location) -> Result<Tensor> {
    let mut reader = MaybeGzip::new(reader)?;
    let most = if reader.is_packed() { len.saturating_mul(MAX_GZIP_RATIO) } else { len };
    let mut magic = [0; 4];
    reader.read_exact(&mut magic).map_err(read_error)?;
    let dtype = match magic {
        [0, 0, 0x08, _] => DType::U8,
        [0, 0, 0x09, _] => DType::I8,
        [0, 0, 0x0b, _] => DType::I16,
        [0, 0, 0x0c, _] => DType::I32,
        [0, 0, 0x0d, _] => DType::F32,
        [0, 0, 0x0e, _] => DType::F64,
        _ => return Err(format_error("not in IDX format: the magic number has no known type")),
    };
    let mut dims = Vec::new();
    for _ in 0..magic[3] {
        let mut dim = [0; 4];
        reader.read_exact(&mut dim).map_err(read_error)?;
        dims.push(u32::from_be_bytes(dim) as usize);
    }
    let shape = Shape::from(dims);
    let bytes = shape.checked_len().and_then(|count| count.checked_mul(dtype.size()));
    if bytes.is_none_or(|bytes| bytes as u64 > most) {
        return Err(format_error(format!("the header claims {dtype}{shape}, which {len} bytes cannot hold")));
    }
    let mut outcome = Ok(());
    let tensor = Tensor::build(Spec::new(dtype, shape), Category::Dataset, at, |out| {
        outcome = reader.read_exact(out.bytes()).map_err(read_error);
        if cfg!(target_endian = "little") && dtype.size() > 1 {
            out.bytes().chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        }
    })?;
    outcome?;
    if reader.read(&mut [0]).map_err(read_error)? > 0 {
        return Err(format_error(format!("trailing bytes after {}", tensor.spec())));
    }
    Ok(tensor)
}
