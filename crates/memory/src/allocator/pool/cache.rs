//! A thread's own idle blocks: no locks, no atomic read-modify-write.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use super::block::{Block, CACHED, Class};
use super::{STORE, TRIMS, put_away};
use crate::thread::Tally;

/// Blocks kept of each class.
const DEPTH: usize = 8;
/// Bytes kept on a thread.
const CAP: usize = 512 << 10;

/// Idle blocks of the shared pool, for one thread. Their bytes are in the thread's tally.
pub(crate) struct Cache {
    /// The trim this cache has last followed.
    trims: Cell<u64>,
    count: [Cell<u8>; CACHED],
    blocks: [[Cell<Option<Block>>; DEPTH]; CACHED],
}

impl Cache {
    pub(crate) const fn new() -> Cache {
        Cache {
            trims: Cell::new(0),
            count: [const { Cell::new(0) }; CACHED],
            blocks: [const { [const { Cell::new(None) }; DEPTH] }; CACHED],
        }
    }

    /// A block of the class, from here or from the store.
    #[inline]
    pub(super) fn take(&self, class: Class, tally: &Tally) -> Option<Block> {
        self.pop(class, tally).or_else(|| self.refill(class, tally))
    }

    /// Keeps a block, or passes some on to the store.
    #[inline]
    pub(super) fn put(&self, block: Block, tally: &Tally) {
        let class = block.class();
        let full = self.count[class.index()].get() as usize == DEPTH;
        if full || self.is_stale() || tally.idle() + class.size() > CAP.min(STORE.cap()) {
            self.put_slowly(block, tally);
        } else {
            self.push(block, tally);
        }
    }

    #[cold]
    fn put_slowly(&self, block: Block, tally: &Tally) {
        self.refresh(tally);
        let class = block.class();
        if tally.idle() + class.size() > CAP.min(STORE.cap()) {
            self.empty_into_store(tally);
            return put_away([block]);
        }
        if self.count[class.index()].get() as usize == DEPTH {
            put_away(std::iter::from_fn(|| self.pop(class, tally)).take(DEPTH / 2));
        }
        self.push(block, tally);
    }

    #[cold]
    fn refill(&self, class: Class, tally: &Tally) -> Option<Block> {
        self.refresh(tally);
        let count = (CAP.saturating_sub(tally.idle()) / class.size()).clamp(1, DEPTH / 2);
        let mut first = None;
        STORE.take_some(class, count, |block| match first {
            None => first = Some(block),
            Some(_) => self.push(block, tally),
        });
        first
    }

    #[inline]
    fn pop(&self, class: Class, tally: &Tally) -> Option<Block> {
        let count = &self.count[class.index()];
        let top = count.get().checked_sub(1)?;
        count.set(top);
        tally.set_idle(tally.idle() - class.size());
        self.blocks[class.index()][top as usize].take()
    }

    /// The class must have room.
    #[inline]
    fn push(&self, block: Block, tally: &Tally) {
        let class = block.class();
        let count = &self.count[class.index()];
        tally.set_idle(tally.idle() + class.size());
        self.blocks[class.index()][count.get() as usize].set(Some(block));
        count.set(count.get() + 1);
    }

    #[inline]
    fn is_stale(&self) -> bool {
        self.trims.get() != TRIMS.load(Relaxed)
    }

    /// Follows a trim that another thread asked for: gives everything back to the system if there was one, and returns
    /// how many bytes.
    pub(super) fn refresh(&self, tally: &Tally) -> usize {
        if !self.is_stale() {
            return 0;
        }
        self.trims.set(TRIMS.load(Relaxed));
        let before = tally.idle();
        self.drain(tally).for_each(Block::free);
        before
    }

    /// Passes everything on to the store, for other threads to use.
    pub(crate) fn empty_into_store(&self, tally: &Tally) {
        if tally.idle() > 0 {
            put_away(self.drain(tally));
        }
    }

    fn drain(&self, tally: &Tally) -> impl Iterator<Item = Block> {
        (0..CACHED).flat_map(move |index| std::iter::from_fn(move || self.pop(Class::number(index), tally)))
    }
}
