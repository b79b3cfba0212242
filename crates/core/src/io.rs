//! Tensor files: NumPy's `.npy` and `.npz`, and safetensors.
//!
//! Files are not trusted. The header is checked against the size of the file before anything is allocated, so that an invalid
//! or hostile file costs no more memory than its own size, and gives an [`Error`] of kind [`Format`](ErrorKind::Format) that
//! names it. Unsupported element types are errors of kind [`DType`](ErrorKind::DType), failures of the system of kind
//! [`Io`](ErrorKind::Io).

mod npy;
#[cfg(feature = "npz")]
mod npz;
mod safetensors;

pub use self::safetensors::{
    Safetensors, load_safetensors, read_safetensors, save_safetensors, write_safetensors,
    write_safetensors_by,
};
#[cfg(feature = "npz")]
pub use npz::{load_npz, read_npz, save_npz, save_npz_compressed, write_npz, write_npz_compressed};

use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::io::{self, Read};
use taut_kernels::{View, dispatch};
use taut_memory::{Buffer, Category, Location};

/// NumPy's maximum rank; a file that claims more is invalid.
const MAX_RANK: usize = 64;

/// The bytes that are allocated for a header's claim alone, where the size of the stream is unknown.
const UNVERIFIED_BYTES: usize = 1 << 16;

#[cold]
fn format_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, message)
}

/// An error while reading: of kind `Format` if the content is invalid, else of the system's kind.
#[cold]
fn read_error(error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => format_error("unexpected end of file"),
        InvalidData | InvalidInput | Other => format_error(error.to_string()),
        _ => error.into(),
    }
}

/// The shape in a header; fails if no tensor can have it.
fn claimed_shape(dims: &[usize]) -> Result<Shape> {
    if dims.len() > MAX_RANK {
        return Err(format_error(format!("rank {} exceeds the maximum of {MAX_RANK}", dims.len())));
    }
    let shape = Shape::from(dims);
    match shape.checked_len() {
        Some(_) => Ok(shape),
        None => Err(format_error(format!("shape {shape} has more elements than memory has addresses"))),
    }
}

/// Reads `bytes` bytes, of which at least `present` are known to exist. Beyond those it allocates at most twice what it has
/// read.
fn read_buffer(reader: &mut dyn Read, bytes: usize, present: u64, at: Location) -> Result<Buffer> {
    let first = usize::try_from(present).unwrap_or(usize::MAX).max(UNVERIFIED_BYTES).min(bytes);
    let mut buffer = Buffer::new_at(first, Category::Tensor, at)?;
    let mut have = 0;
    loop {
        reader.read_exact(&mut buffer.as_mut_slice()[have..]).map_err(read_error)?;
        have = buffer.len();
        if have == bytes {
            return Ok(buffer);
        }
        let mut larger = Buffer::new_at(bytes.min(2 * have), Category::Tensor, at)?;
        larger.as_mut_slice()[..have].copy_from_slice(buffer.as_slice());
        buffer = larger;
    }
}

/// The bytes of a contiguous view.
fn bytes_of<'a>(view: &View<'a>) -> Option<&'a [u8]> {
    dispatch!(view.dtype(), T in sizes => view.contiguous::<T>().map(bytemuck::cast_slice))
}

/// Passes the elements' bytes in row-major order to `write`; copies only a strided tensor.
fn with_bytes(tensor: &Tensor, at: Location, write: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
    match bytes_of(&tensor.view()?) {
        Some(bytes) => write(bytes),
        None => with_bytes(&tensor.copy_at(at)?, at, write),
    }
}

/// Reverses the bytes of each element.
fn swap_bytes(bytes: &mut [u8], element_size: usize) {
    if element_size > 1 {
        bytes.chunks_exact_mut(element_size).for_each(<[u8]>::reverse);
    }
}
