//! Checks a packing independently of the algorithm that made it.

use crate::packing::{LiveBuffer, Packing};
use std::collections::BTreeMap;
use std::fmt;

/// Why a packing is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackingFlaw {
    /// The number of offsets is not the number of buffers.
    Count {
        /// The number of buffers.
        buffers: usize,
        /// The number of offsets.
        offsets: usize,
    },
    /// Two buffers with overlapping live ranges share bytes.
    Overlap {
        /// The index of the first.
        first: usize,
        /// The index of the second.
        second: usize,
    },
    /// An offset is not a multiple of its buffer's alignment.
    Misaligned {
        /// The buffer.
        buffer: usize,
    },
    /// A buffer ends beyond the arena.
    Outside {
        /// The buffer.
        buffer: usize,
    },
}

impl fmt::Display for PackingFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackingFlaw::Count { buffers, offsets } => write!(f, "{offsets} offsets for {buffers} buffers"),
            PackingFlaw::Overlap { first, second } => {
                write!(f, "buffers {first} and {second} are live at the same time and share bytes")
            }
            PackingFlaw::Misaligned { buffer } => write!(f, "the offset of buffer {buffer} is not aligned"),
            PackingFlaw::Outside { buffer } => write!(f, "buffer {buffer} ends beyond the arena"),
        }
    }
}

impl std::error::Error for PackingFlaw {}

/// Checks that every buffer lies in the arena, is aligned, and shares no byte with a buffer live at the same time. O(n log n).
pub fn verify(buffers: &[LiveBuffer], packing: &Packing) -> Result<(), PackingFlaw> {
    let offsets = &packing.offsets;
    if buffers.len() != offsets.len() {
        return Err(PackingFlaw::Count { buffers: buffers.len(), offsets: offsets.len() });
    }
    for (buffer, (b, &offset)) in buffers.iter().zip(offsets).enumerate() {
        if b.align == 0 || offset % b.align != 0 {
            return Err(PackingFlaw::Misaligned { buffer });
        }
        if offset.checked_add(b.size).is_none_or(|top| top > packing.bytes) {
            return Err(PackingFlaw::Outside { buffer });
        }
    }
    let mut events: Vec<(u32, bool, usize)> = Vec::new();
    for (i, b) in buffers.iter().enumerate().filter(|(_, b)| b.size > 0 && b.start < b.end) {
        events.extend([(b.start, true, i), (b.end, false, i)]);
    }
    // Ends sort before starts: live ranges are half-open.
    events.sort_unstable();
    let mut live: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, begins, i) in events {
        if !begins {
            live.remove(&offsets[i]);
            continue;
        }
        // The live buffers are disjoint so far, so only the nearest on either side can overlap this one.
        let top = offsets[i] + buffers[i].size;
        let below =
            live.range(..=offsets[i]).next_back().filter(|(at, j)| *at + buffers[**j].size > offsets[i]);
        let above = live.range(offsets[i]..top).next();
        if let Some((_, &j)) = below.or(above) {
            return Err(PackingFlaw::Overlap { first: i.min(j), second: i.max(j) });
        }
        live.insert(offsets[i], i);
    }
    Ok(())
}
