//! Checks a packing without trusting how it was made.

use crate::packing::{Buffer, Packing};
use std::collections::BTreeMap;
use std::fmt;

/// What is wrong with a packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackingFlaw {
    /// There is not one offset per buffer.
    Count {
        /// Buffers.
        buffers: usize,
        /// Offsets.
        offsets: usize,
    },
    /// Two buffers that are alive together share bytes.
    Overlap {
        /// One of them.
        first: usize,
        /// The other.
        second: usize,
    },
    /// An offset is no multiple of its buffer's alignment.
    Misaligned {
        /// The buffer.
        buffer: usize,
    },
    /// A buffer ends above the arena.
    Outside {
        /// The buffer.
        buffer: usize,
    },
}

impl fmt::Display for PackingFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackingFlaw::Count { buffers, offsets } => write!(f, "{offsets} offsets for {buffers} buffers"),
            PackingFlaw::Overlap { first, second } => write!(f, "buffers {first} and {second} share bytes"),
            PackingFlaw::Misaligned { buffer } => write!(f, "buffer {buffer} is not aligned"),
            PackingFlaw::Outside { buffer } => write!(f, "buffer {buffer} ends above the arena"),
        }
    }
}

impl std::error::Error for PackingFlaw {}

/// Whether every buffer lies in the arena, aligned, and apart from those alive with it. O(n log n).
pub fn verify(buffers: &[Buffer], packing: &Packing) -> Result<(), PackingFlaw> {
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
    // Ends sort before starts: what ends at an instant is gone in it.
    events.sort_unstable();
    let mut alive: BTreeMap<usize, usize> = BTreeMap::new();
    for (_, begins, i) in events {
        if !begins {
            alive.remove(&offsets[i]);
            continue;
        }
        // Those alive are apart so far, so only the nearest on either side can be in the way.
        let top = offsets[i] + buffers[i].size;
        let below =
            alive.range(..=offsets[i]).next_back().filter(|(at, j)| *at + buffers[**j].size > offsets[i]);
        let above = alive.range(offsets[i]..top).next();
        if let Some((_, &j)) = below.or(above) {
            return Err(PackingFlaw::Overlap { first: i.min(j), second: i.max(j) });
        }
        alive.insert(offsets[i], i);
    }
    Ok(())
}
