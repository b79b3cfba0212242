//! Idle blocks that all threads share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::block::{Block, CLASSES, Class};
use crate::allocator::system::machine_bytes;
use crate::lock;

/// A cap that nobody has set yet.
const UNSET: usize = usize::MAX;

/// Idle blocks by class.
#[derive(Debug)]
pub(super) struct Store {
    shelves: Mutex<Shelves>,
    /// A copy of the shelves' count, to read without the lock.
    idle: AtomicUsize,
    cap: AtomicUsize,
}

#[derive(Debug)]
struct Shelves {
    blocks: [Vec<Block>; CLASSES],
    /// When each class was last used, counted in uses of the store.
    used: [u64; CLASSES],
    uses: u64,
    idle: usize,
}

impl Shelves {
    fn touch(&mut self, class: Class) {
        self.uses += 1;
        self.used[class.index()] = self.uses;
    }

    fn pop(&mut self, class: Class) -> Option<Block> {
        let block = self.blocks[class.index()].pop()?;
        self.idle -= class.size();
        Some(block)
    }

    fn push(&mut self, block: Block) {
        self.idle += block.class().size();
        self.blocks[block.class().index()].push(block);
    }

    /// Takes blocks out, least recently used classes first, until at most `keep` bytes are idle.
    fn evict(&mut self, keep: usize) -> Vec<Block> {
        let mut evicted = Vec::new();
        while self.idle > keep {
            let stale = (0..CLASSES).filter(|&index| !self.blocks[index].is_empty());
            let Some(index) = stale.min_by_key(|&index| self.used[index]) else { break };
            while self.idle > keep
                && let Some(block) = self.pop(Class::number(index))
            {
                evicted.push(block);
            }
            if self.blocks[index].is_empty() {
                self.blocks[index] = Vec::new();
            }
        }
        evicted
    }
}

impl Store {
    pub(super) const fn new() -> Store {
        let shelves =
            Shelves { blocks: [const { Vec::new() }; CLASSES], used: [0; CLASSES], uses: 0, idle: 0 };
        Store { shelves: Mutex::new(shelves), idle: AtomicUsize::new(0), cap: AtomicUsize::new(UNSET) }
    }

    pub(super) fn idle(&self) -> usize {
        self.idle.load(Relaxed)
    }

    #[inline]
    pub(super) fn cap(&self) -> usize {
        match self.cap.load(Relaxed) {
            UNSET => self.default_cap(),
            cap => cap,
        }
    }

    #[cold]
    fn default_cap(&self) -> usize {
        let default = machine_bytes() / 4;
        // Somebody else may set it meanwhile: theirs stays.
        match self.cap.compare_exchange(UNSET, default, Relaxed, Relaxed) {
            Ok(_) => default,
            Err(cap) => cap,
        }
    }

    pub(super) fn set_cap(&self, bytes: usize) -> usize {
        let previous = self.cap();
        let cap = bytes.min(UNSET - 1);
        self.cap.store(cap, Relaxed);
        self.shrink(self.idle().saturating_sub(cap));
        previous
    }

    pub(super) fn take(&self, class: Class) -> Option<Block> {
        let mut first = None;
        self.take_some(class, 1, |block| first = Some(block));
        first
    }

    /// Passes up to `count` idle blocks of the class on.
    pub(super) fn take_some(&self, class: Class, count: usize, mut to: impl FnMut(Block)) {
        if self.idle() < class.size() {
            return;
        }
        let mut shelves = lock(&self.shelves);
        shelves.touch(class);
        for _ in 0..count {
            match shelves.pop(class) {
                Some(block) => to(block),
                None => break,
            }
        }
        self.idle.store(shelves.idle, Relaxed);
    }

    /// Keeps blocks, then gives back what is idle beyond `cap`.
    pub(super) fn put(&self, blocks: impl IntoIterator<Item = Block>, cap: usize) {
        let mut evicted = Vec::new();
        {
            let mut shelves = lock(&self.shelves);
            for block in blocks {
                shelves.touch(block.class());
                if block.class().size() > cap {
                    // It would push out everything else and still have to go.
                    evicted.push(block);
                } else {
                    shelves.push(block);
                }
            }
            if shelves.idle > cap {
                evicted.append(&mut shelves.evict(cap));
            }
            self.idle.store(shelves.idle, Relaxed);
        }
        // Outside the lock: it may take the system a while.
        evicted.into_iter().for_each(Block::free);
    }

    /// Gives back at least `bytes` idle bytes, or all, and returns how many.
    pub(super) fn shrink(&self, bytes: usize) -> usize {
        if bytes == 0 {
            return 0;
        }
        let evicted = {
            let mut shelves = lock(&self.shelves);
            let keep = shelves.idle.saturating_sub(bytes);
            let evicted = shelves.evict(keep);
            self.idle.store(shelves.idle, Relaxed);
            evicted
        };
        let given = evicted.iter().map(|block| block.class().size()).sum();
        evicted.into_iter().for_each(Block::free);
        given
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.shrink(usize::MAX);
    }
}
