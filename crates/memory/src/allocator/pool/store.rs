//! The block store: idle blocks shared by all threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::size_class::{CLASSES, IdleBlock, SizeClass};
use crate::allocator::system::machine_bytes;
use crate::lock;

/// The cap before it is set.
const UNSET: usize = usize::MAX;

/// Idle blocks by class.
#[derive(Debug)]
pub(super) struct BlockStore {
    free_lists: Mutex<FreeLists>,
    /// A copy of `FreeLists::idle`, to read without the lock.
    idle: AtomicUsize,
    cap: AtomicUsize,
}

/// One list of idle blocks per size class.
#[derive(Debug)]
struct FreeLists {
    blocks: [Vec<IdleBlock>; CLASSES],
    /// Per class, the value of `uses` at its last use.
    used: [u64; CLASSES],
    uses: u64,
    /// Bytes of all blocks.
    idle: usize,
}

impl FreeLists {
    fn touch(&mut self, class: SizeClass) {
        self.uses += 1;
        self.used[class.index()] = self.uses;
    }

    fn pop(&mut self, class: SizeClass) -> Option<IdleBlock> {
        let block = self.blocks[class.index()].pop()?;
        self.idle -= class.size();
        Some(block)
    }

    fn push(&mut self, block: IdleBlock) {
        let class = block.class();
        if keep_or_free(&mut self.blocks[class.index()], block) {
            self.idle += class.size();
        }
    }

    /// Removes blocks, least recently used classes first, until at most `keep` bytes are idle.
    fn evict(&mut self, keep: usize) -> Vec<IdleBlock> {
        let mut evicted = Vec::new();
        while self.idle > keep {
            let stale = (0..CLASSES).filter(|&index| !self.blocks[index].is_empty());
            let Some(index) = stale.min_by_key(|&index| self.used[index]) else { break };
            while self.idle > keep
                && let Some(block) = self.pop(SizeClass::number(index))
            {
                keep_or_free(&mut evicted, block);
            }
            if self.blocks[index].is_empty() {
                self.blocks[index] = Vec::new();
            }
        }
        evicted
    }
}

/// Adds a block to a list; if the system has no memory for a longer list, the block is returned to it. Returns whether it was added.
fn keep_or_free(list: &mut Vec<IdleBlock>, block: IdleBlock) -> bool {
    if list.try_reserve(1).is_err() {
        block.free();
        return false;
    }
    list.push(block);
    true
}

impl BlockStore {
    pub(super) const fn new() -> BlockStore {
        let free_lists =
            FreeLists { blocks: [const { Vec::new() }; CLASSES], used: [0; CLASSES], uses: 0, idle: 0 };
        BlockStore {
            free_lists: Mutex::new(free_lists),
            idle: AtomicUsize::new(0),
            cap: AtomicUsize::new(UNSET),
        }
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
        // Another thread may set it at the same time: the first value stays.
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

    pub(super) fn take(&self, class: SizeClass) -> Option<IdleBlock> {
        let mut first = None;
        self.take_some(class, 1, |block| first = Some(block));
        first
    }

    /// Passes up to `count` idle blocks of the class to `to`.
    pub(super) fn take_some(&self, class: SizeClass, count: usize, mut to: impl FnMut(IdleBlock)) {
        if self.idle() < class.size() {
            return;
        }
        let mut free_lists = lock(&self.free_lists);
        free_lists.touch(class);
        for _ in 0..count {
            match free_lists.pop(class) {
                Some(block) => to(block),
                None => break,
            }
        }
        self.idle.store(free_lists.idle, Relaxed);
    }

    /// Keeps blocks, then returns idle bytes above `cap` to the system.
    pub(super) fn put(&self, blocks: impl IntoIterator<Item = IdleBlock>, cap: usize) {
        let mut evicted = Vec::new();
        {
            let mut free_lists = lock(&self.free_lists);
            for block in blocks {
                free_lists.touch(block.class());
                if block.class().size() > cap {
                    // It would evict all others and still exceed the cap.
                    keep_or_free(&mut evicted, block);
                } else {
                    free_lists.push(block);
                }
            }
            if free_lists.idle > cap {
                for block in free_lists.evict(cap) {
                    keep_or_free(&mut evicted, block);
                }
            }
            self.idle.store(free_lists.idle, Relaxed);
        }
        // Outside the lock, because system calls are slow.
        evicted.into_iter().for_each(IdleBlock::free);
    }

    /// Returns at least `bytes` idle bytes, or all, to the system, and the number of bytes returned.
    pub(super) fn shrink(&self, bytes: usize) -> usize {
        if bytes == 0 {
            return 0;
        }
        let evicted = {
            let mut free_lists = lock(&self.free_lists);
            let keep = free_lists.idle.saturating_sub(bytes);
            let evicted = free_lists.evict(keep);
            self.idle.store(free_lists.idle, Relaxed);
            evicted
        };
        let returned = evicted.iter().map(|block| block.class().size()).sum();
        evicted.into_iter().for_each(IdleBlock::free);
        returned
    }
}

impl Drop for BlockStore {
    fn drop(&mut self) {
        self.shrink(usize::MAX);
    }
}
