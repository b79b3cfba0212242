//! The buffers to pack, how long to search, and the resulting packing.

use std::fmt;

/// The most bytes that all sizes and alignments may add up to: sums of a few offsets then stay far from overflow.
pub(crate) const MAX_TOTAL_BYTES: usize = usize::MAX / 8;

/// A buffer to pack: its size, and its live range `[start, end)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LiveBuffer {
    /// Bytes. An empty buffer gets offset 0 and overlaps no other.
    pub size: usize,
    /// The first instant at which it is live.
    pub start: u32,
    /// The first instant after its live range.
    pub end: u32,
    /// Its offset is a multiple of this; 1 allows any offset.
    pub align: usize,
}

impl LiveBuffer {
    /// A buffer that may lie at any offset.
    pub const fn new(size: usize, start: u32, end: u32) -> Self {
        LiveBuffer { size, start, end, align: 1 }
    }

    /// The same buffer at multiples of `align` only.
    #[must_use]
    pub const fn aligned(self, align: usize) -> Self {
        LiveBuffer { align, ..self }
    }
}

/// How long the search may run before it returns the best packing so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// A step is one visit of the search to one buffer. Zero runs the greedy orders only.
    pub steps: u64,
}

impl Effort {
    /// The greedy orders alone.
    pub const PORTFOLIO: Effort = Effort { steps: 0 };
}

impl Default for Effort {
    /// About a second of one core, where the greedy orders miss the lower bound.
    fn default() -> Self {
        Effort { steps: 200_000_000 }
    }
}

/// Which algorithm found a packing, and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// One of the greedy orders, in milliseconds.
    Portfolio,
    /// The search.
    Search {
        /// Steps spent until this packing was found.
        steps: u64,
    },
}

/// Offsets in one arena, and how good they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// The offset of each buffer, in the order of the input.
    pub offsets: Vec<usize>,
    /// The size of the arena: where the highest buffer ends.
    pub bytes: usize,
    /// The most bytes that are live at one instant: no packing is smaller.
    pub lower_bound: usize,
    /// Whether it is proven that no packing is smaller, up to the common divisor of all alignments.
    pub optimal: bool,
    /// The algorithm that found it.
    pub found_by: FoundBy,
}

impl Packing {
    /// How much larger than the lower bound the arena is, as a fraction of the lower bound.
    pub fn gap(&self) -> f64 {
        if self.lower_bound == 0 {
            return 0.0;
        }
        (self.bytes - self.lower_bound) as f64 / self.lower_bound as f64
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Packing { bytes, lower_bound, .. } = self;
        write!(f, "{bytes} bytes packed, lower bound {lower_bound}, gap {:.2} %, ", self.gap() * 100.0)?;
        match self.found_by {
            FoundBy::Portfolio => write!(f, "by portfolio")?,
            FoundBy::Search { steps } => write!(f, "by search ({steps} steps)")?,
        }
        f.write_str(if self.optimal { ", optimal" } else { "" })
    }
}

/// Why buffers cannot be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackError {
    /// The live range of a buffer is empty: `end <= start`.
    NeverAlive {
        /// Its index in the input.
        buffer: usize,
    },
    /// The alignment of a buffer is 0.
    NoAlignment {
        /// Its index in the input.
        buffer: usize,
    },
    /// Offsets could overflow `usize`.
    TooLarge,
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackError::NeverAlive { buffer } => {
                write!(f, "buffer {buffer}: end must be > start")
            }
            PackError::NoAlignment { buffer } => {
                write!(f, "buffer {buffer}: alignment must be >= 1, got 0")
            }
            PackError::TooLarge => {
                write!(f, "the sum of all sizes and alignments must be <= {MAX_TOTAL_BYTES} bytes")
            }
        }
    }
}

impl std::error::Error for PackError {}
