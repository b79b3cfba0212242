//! The maximum size of a buffer.

use taut_core::{Error, Result};
use taut_memory::Bytes;

/// The maximum size of a buffer. A plain number is a number of elements, [`Bytes`] a number of bytes.
///
/// Bytes are those of the elements' tensors and some 400 for each tensor's handle; a row of a larger tensor counts as its row. A buffer never exceeds its size. A
/// single element that is larger passes through an empty buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// At most this many elements.
    Elements(usize),
    /// At most this many bytes of tensors.
    Bytes(usize),
}

impl BufferSize {
    /// An error if the size is 0.
    pub(crate) fn checked(self, stage: &str) -> Result<BufferSize> {
        match self {
            BufferSize::Elements(0) | BufferSize::Bytes(0) => {
                Err(Error::value("buffer_size must be >= 1, got 0").about(stage))
            }
            size => Ok(size),
        }
    }

    /// Whether one more element of `next` bytes fits beside the current contents.
    pub(crate) fn has_space(self, elements: usize, bytes: usize, next: usize) -> bool {
        match self {
            BufferSize::Elements(most) => elements < most,
            // Elements without tensors have no bytes; their number must be limited all the same.
            BufferSize::Bytes(most) => elements == 0 || elements < most && bytes.saturating_add(next) <= most,
        }
    }
}

impl From<usize> for BufferSize {
    fn from(elements: usize) -> BufferSize {
        BufferSize::Elements(elements)
    }
}

impl From<Bytes> for BufferSize {
    fn from(bytes: Bytes) -> BufferSize {
        BufferSize::Bytes(bytes.0)
    }
}
