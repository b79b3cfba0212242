//! The arena: a bump allocator over one block.

use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{ALIGNMENT, Allocator};
use crate::buffer::Buffer;
use crate::category::Category;
use crate::error::OutOfMemory;

/// Allocates pieces of one block one after the other, and starts over when all of them are released.
///
/// The ledger counts the arena's block once, when it is allocated; buffers inside it are not counted again, and the limit
/// does not apply to them.
///
/// ```
/// use std::sync::Arc;
/// use taut_memory::{Allocator, Arena, Buffer, Category, live_bytes};
///
/// let arena: Arc<dyn Allocator> = Arc::new(Arena::new(1 << 20, Category::Arena)?);
/// let live = live_bytes();
/// let piece = Buffer::new_in(&arena, 1000, Category::Tensor)?;
/// assert_eq!(live_bytes(), live);
/// assert!(Buffer::new_in(&arena, 1 << 20, Category::Tensor).is_err());
/// # Ok::<(), taut_memory::OutOfMemory>(())
/// ```
pub struct Arena {
    block: Buffer,
    /// How many pieces are in use, and where the free part begins. See [`ArenaState`].
    state: AtomicU64,
    /// The furthest beginning of the free part so far, in granules.
    high: AtomicUsize,
}

/// Pieces in use and granules used, packed into one word so that both change atomically.
#[derive(Clone, Copy)]
struct ArenaState {
    pieces: u64,
    granules: u64,
}

impl ArenaState {
    const PIECE_BITS: u32 = 24;
    const GRANULE_BITS: u32 = u64::BITS - ArenaState::PIECE_BITS;

    fn unpack(word: u64) -> ArenaState {
        ArenaState { pieces: word & ((1 << Self::PIECE_BITS) - 1), granules: word >> Self::PIECE_BITS }
    }

    fn fits(self) -> bool {
        self.pieces < 1 << Self::PIECE_BITS && self.granules < 1 << Self::GRANULE_BITS
    }

    fn pack(self) -> u64 {
        self.granules << Self::PIECE_BITS | self.pieces
    }
}

impl Arena {
    /// An arena for `capacity` bytes, each piece rounded up to a multiple of [`ALIGNMENT`].
    #[track_caller]
    pub fn new(capacity: usize, category: Category) -> Result<Arena, OutOfMemory> {
        let block = Buffer::new(capacity, category)?;
        Ok(Arena { block, state: AtomicU64::new(0), high: AtomicUsize::new(0) })
    }

    /// The bytes of the arena.
    pub fn capacity(&self) -> usize {
        self.block.len()
    }

    /// Bytes before the free part: those of pieces in use, and of released pieces between them.
    pub fn used(&self) -> usize {
        (ArenaState::unpack(self.state.load(Ordering::Relaxed)).granules as usize) * ALIGNMENT
    }

    /// The most bytes [`used`](Arena::used) so far: the capacity that would have been enough.
    pub fn high_water(&self) -> usize {
        self.high.load(Ordering::Relaxed) * ALIGNMENT
    }

    /// Resets the high-water mark. While pieces are in use it is an error: their number.
    pub fn reset(&self) -> Result<(), usize> {
        match ArenaState::unpack(self.state.load(Ordering::Acquire)).pieces {
            0 => {
                self.high.store(0, Ordering::Relaxed);
                Ok(())
            }
            pieces => Err(pieces as usize),
        }
    }
}

// SAFETY: the block is initialised and aligned, pieces are disjoint multiples of the alignment inside it, and their bytes
// are reused only after the last piece is released.
unsafe impl Allocator for Arena {
    fn name(&self) -> &'static str {
        "arena"
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let granules = bytes.div_ceil(ALIGNMENT) as u64;
        let grown = |word| {
            let ArenaState { pieces, granules: used } = ArenaState::unpack(word);
            let next = ArenaState { pieces: pieces + 1, granules: used.checked_add(granules)? };
            // In bytes, not granules: the last piece may end inside a granule.
            let end = usize::try_from(used).ok()?.checked_mul(ALIGNMENT)?.checked_add(bytes)?;
            (end <= self.capacity() && next.fits()).then(|| next.pack())
        };
        // Acquire: writes of earlier owners of these bytes happen before.
        let before = self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, grown).ok()?;
        let start = ArenaState::unpack(before).granules;
        self.high.fetch_max((start + granules) as usize, Ordering::Relaxed);
        // SAFETY: `grown` has checked that the piece ends inside the block.
        Some(unsafe { self.block.start().add(start as usize * ALIGNMENT) })
    }

    unsafe fn release(&self, _block: NonNull<u8>, _bytes: usize) {
        let shrunk = |word| {
            let ArenaState { pieces, granules } = ArenaState::unpack(word);
            let pieces = pieces - 1;
            Some(ArenaState { pieces, granules: if pieces == 0 { 0 } else { granules } }.pack())
        };
        let _ = self.state.fetch_update(Ordering::Release, Ordering::Relaxed, shrunk);
    }

    fn counts(&self) -> bool {
        false
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("capacity", &self.capacity()).field("used", &self.used()).finish()
    }
}
