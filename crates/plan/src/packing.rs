//! What is asked, and what is answered.

use std::fmt;

/// A buffer: how many bytes, and when it is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Bytes. A buffer of none gets offset 0 and is in nobody's way.
    pub size: usize,
    /// The first instant at which it is alive.
    pub start: u32,
    /// The first instant at which it is alive no more.
    pub end: u32,
    /// Its offset is a multiple of this; 1 for any offset.
    pub align: usize,
}

impl Buffer {
    /// A buffer that may lie at any offset.
    pub const fn new(size: usize, start: u32, end: u32) -> Self {
        Buffer { size, start, end, align: 1 }
    }

    /// The same buffer at multiples of `align` only.
    #[must_use]
    pub const fn aligned(self, align: usize) -> Self {
        Buffer { align, ..self }
    }
}

/// How much the search may do before it settles for what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Each look of the search at one buffer is a step. Zero leaves it to the greedy orders.
    pub steps: u64,
}

impl Effort {
    /// The greedy orders alone.
    pub const PORTFOLIO: Effort = Effort { steps: 0 };
}

impl Default for Effort {
    /// About a second of one core, where the greedy orders miss the load.
    fn default() -> Self {
        Effort { steps: 200_000_000 }
    }
}

/// Where a packing comes from; it says what it has cost, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// One of the greedy orders, in milliseconds.
    Portfolio,
    /// The search, after so many steps.
    Search {
        /// Steps that were spent until this packing was found.
        steps: u64,
    },
}

/// Offsets in one arena, and how good they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// An offset for each buffer, in the order they were given.
    pub offsets: Vec<usize>,
    /// The size of the arena: where the highest buffer ends.
    pub bytes: usize,
    /// The load: no packing takes fewer bytes than are alive at once.
    pub lower_bound: usize,
    /// Whether it is known that no packing is smaller, up to the alignment that all buffers have in common.
    pub optimal: bool,
    /// What found it.
    pub found_by: FoundBy,
}

impl Packing {
    /// How much larger than the load the arena is, as a fraction of the load.
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

/// Why buffers cannot be packed at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackError {
    /// A buffer ends before it starts, or at once.
    NeverAlive {
        /// Its place in the input.
        buffer: usize,
    },
    /// A buffer wants multiples of zero.
    NoAlignment {
        /// Its place in the input.
        buffer: usize,
    },
    /// Offsets could leave the range of `usize`.
    TooLarge,
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackError::NeverAlive { buffer } => {
                write!(f, "buffer {buffer} is never alive; its end must come after its start")
            }
            PackError::NoAlignment { buffer } => {
                write!(f, "buffer {buffer} has alignment 0; use 1 for any offset")
            }
            PackError::TooLarge => {
                write!(f, "all sizes and alignments together exceed {} bytes", crate::parts::MOST)
            }
        }
    }
}

impl std::error::Error for PackError {}
