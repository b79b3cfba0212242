//! How much a buffer may hold.

use taut_core::{Error, Result};
use taut_memory::Bytes;

/// How much a buffer may hold. A plain number means elements, [`Bytes`] mean bytes.
///
/// Bytes are those of the elements' tensors; a row of a larger tensor costs its row. A buffer stays at or under them. An
/// element that alone is larger is let through alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// As many elements.
    Elements(usize),
    /// As many bytes of tensors.
    Bytes(usize),
}

impl Room {
    /// Refuses room for nothing.
    pub(crate) fn checked(self, what: &str) -> Result<Room> {
        match self {
            Room::Elements(0) | Room::Bytes(0) => Err(Error::value(format!("{what} with room for nothing"))
                .help("give it room for one element at least")),
            room => Ok(room),
        }
    }

    /// Whether one more element of `next` bytes may be put to what is held.
    pub(crate) fn takes(self, elements: usize, bytes: usize, next: usize) -> bool {
        match self {
            Room::Elements(most) => elements < most,
            // Elements without tensors cost nothing; there must be an end to them all the same.
            Room::Bytes(most) => elements == 0 || elements < most && bytes.saturating_add(next) <= most,
        }
    }
}

impl From<usize> for Room {
    fn from(elements: usize) -> Room {
        Room::Elements(elements)
    }
}

impl From<Bytes> for Room {
    fn from(bytes: Bytes) -> Room {
        Room::Bytes(bytes.0)
    }
}
