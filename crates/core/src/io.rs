//! Tensors as files: NumPy's `.npy` and `.npz`, and safetensors.
//!
//! A file is not believed. What its header claims is compared with what the file holds before anything is allocated, so
//! a broken or hostile file costs no more memory than its own size, and ends in an [`Error`] of kind
//! [`Format`](ErrorKind::Format) that names it. Element types that Taut does not have are errors of kind
//! [`DType`](ErrorKind::DType); what the system refuses is of kind [`Io`](ErrorKind::Io).

mod npy;
mod npz;
mod safetensors;

pub use self::safetensors::{
    Safetensors, load_safetensors, read_safetensors, save_safetensors, write_safetensors,
};
pub use npz::{load_npz, read_npz, save_npz, save_npz_compressed, write_npz, write_npz_compressed};

use crate::error::{Error, ErrorKind, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::io::{self, Read};
use taut_kernels::{View, dispatch};
use taut_memory::{Buffer, Category, Location};

/// The most dimensions that NumPy knows; a file that claims more is broken.
const MAX_RANK: usize = 64;

/// How much is allocated on a header's word alone, where nobody knows how much follows.
const ON_TRUST: usize = 1 << 16;

#[cold]
fn format_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, message)
}

/// A failure to read: the content's fault, or the system's.
#[cold]
fn read_error(error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error.kind() {
        UnexpectedEof => format_error("the end comes too early"),
        InvalidData | InvalidInput | Other => format_error(error.to_string()),
        _ => error.into(),
    }
}

/// A shape that a header claims, if a tensor can have it.
fn claimed_shape(dims: &[usize]) -> Result<Shape> {
    if dims.len() > MAX_RANK {
        return Err(format_error(format!("a shape of {} dimensions, more than {MAX_RANK}", dims.len())));
    }
    let shape = Shape::from(dims);
    match shape.checked_len() {
        Some(_) => Ok(shape),
        None => Err(format_error(format!("shape {shape} has more elements than memory has addresses"))),
    }
}

/// Reads `bytes` bytes, of which at least `present` are known to be there. Beyond those it allocates only as much again
/// as was really read.
fn read_buffer(reader: &mut dyn Read, bytes: usize, present: u64, at: Location) -> Result<Buffer> {
    let first = usize::try_from(present).unwrap_or(usize::MAX).max(ON_TRUST).min(bytes);
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

/// The bytes of a view whose elements lie in row-major order.
fn bytes_of<'a>(view: &View<'a>) -> Option<&'a [u8]> {
    dispatch!(view.dtype(), T in sizes => view.contiguous::<T>().map(bytemuck::cast_slice))
}

/// Hands the elements' bytes in row-major order to `write`, copying them only if they lie otherwise.
fn with_bytes(tensor: &Tensor, at: Location, write: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
    match bytes_of(&tensor.view()?) {
        Some(bytes) => write(bytes),
        None => with_bytes(&tensor.copy_at(at)?, at, write),
    }
}

/// Turns the bytes of each element around.
fn swap_bytes(bytes: &mut [u8], element_size: usize) {
    if element_size > 1 {
        bytes.chunks_exact_mut(element_size).for_each(<[u8]>::reverse);
    }
}
