//! The thread cache: idle blocks of one thread, without locks and without atomic read-modify-write.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use super::size_class::{CACHED, IdleBlock, SizeClass};
use super::{STORE, TRIMS, store_blocks};
use crate::thread::ThreadCounters;

/// The most blocks of each class.
const DEPTH: usize = 8;
/// The most bytes of a thread.
const CAP: usize = 512 << 10;

/// Idle blocks of the shared pool, for one thread. The thread's counters have their bytes.
pub(crate) struct ThreadCache {
    /// The value of [`TRIMS`] when this cache was last emptied for a trim.
    trims: Cell<u64>,
    count: [Cell<u8>; CACHED],
    blocks: [[Cell<Option<IdleBlock>>; DEPTH]; CACHED],
}

impl ThreadCache {
    pub(crate) const fn new() -> ThreadCache {
        ThreadCache {
            trims: Cell::new(0),
            count: [const { Cell::new(0) }; CACHED],
            blocks: [const { [const { Cell::new(None) }; DEPTH] }; CACHED],
        }
    }

    /// A block of the class, from this cache or from the store.
    #[inline]
    pub(super) fn take(&self, class: SizeClass, counters: &ThreadCounters) -> Option<IdleBlock> {
        self.pop(class, counters).or_else(|| self.refill(class, counters))
    }

    /// Keeps a block, or moves some to the store.
    #[inline]
    pub(super) fn put(&self, block: IdleBlock, counters: &ThreadCounters) {
        let class = block.class();
        let full = self.count[class.index()].get() as usize == DEPTH;
        if full || self.is_stale() || counters.idle() + class.size() > CAP.min(STORE.cap()) {
            self.put_slowly(block, counters);
        } else {
            self.push(block, counters);
        }
    }

    #[cold]
    fn put_slowly(&self, block: IdleBlock, counters: &ThreadCounters) {
        self.refresh(counters);
        let class = block.class();
        if counters.idle() + class.size() > CAP.min(STORE.cap()) {
            self.empty_into_store(counters);
            return store_blocks([block]);
        }
        if self.count[class.index()].get() as usize == DEPTH {
            store_blocks(std::iter::from_fn(|| self.pop(class, counters)).take(DEPTH / 2));
        }
        self.push(block, counters);
    }

    #[cold]
    fn refill(&self, class: SizeClass, counters: &ThreadCounters) -> Option<IdleBlock> {
        self.refresh(counters);
        let count = (CAP.saturating_sub(counters.idle()) / class.size()).clamp(1, DEPTH / 2);
        let mut first = None;
        STORE.take_some(class, count, |block| match first {
            None => first = Some(block),
            Some(_) => self.push(block, counters),
        });
        first
    }

    #[inline]
    fn pop(&self, class: SizeClass, counters: &ThreadCounters) -> Option<IdleBlock> {
        let count = &self.count[class.index()];
        let top = count.get().checked_sub(1)?;
        count.set(top);
        counters.set_idle(counters.idle() - class.size());
        self.blocks[class.index()][top as usize].take()
    }

    /// The class must have fewer than `DEPTH` blocks.
    #[inline]
    fn push(&self, block: IdleBlock, counters: &ThreadCounters) {
        let class = block.class();
        let count = &self.count[class.index()];
        counters.set_idle(counters.idle() + class.size());
        self.blocks[class.index()][count.get() as usize].set(Some(block));
        count.set(count.get() + 1);
    }

    #[inline]
    fn is_stale(&self) -> bool {
        self.trims.get() != TRIMS.load(Relaxed)
    }

    /// Applies a trim that another thread requested: returns all blocks to the system if there was one, and the number of
    /// bytes returned.
    pub(super) fn refresh(&self, counters: &ThreadCounters) -> usize {
        if !self.is_stale() {
            return 0;
        }
        self.trims.set(TRIMS.load(Relaxed));
        let before = counters.idle();
        self.drain(counters).for_each(IdleBlock::free);
        before
    }

    /// Moves all blocks to the store, where other threads can reuse them.
    pub(crate) fn empty_into_store(&self, counters: &ThreadCounters) {
        if counters.idle() > 0 {
            store_blocks(self.drain(counters));
        }
    }

    fn drain(&self, counters: &ThreadCounters) -> impl Iterator<Item = IdleBlock> {
        (0..CACHED)
            .flat_map(move |index| std::iter::from_fn(move || self.pop(SizeClass::number(index), counters)))
    }
}
