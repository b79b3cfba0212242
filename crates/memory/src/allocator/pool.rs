//! Blocks kept for reuse, because fresh pages cost several times what a pass over warm ones does.

mod block;
mod cache;
mod store;

pub(crate) use cache::Cache;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use block::{Block, Class};
use store::Store;

use super::{Allocator, System};
use crate::limit;
use crate::thread::{self, Thread};

/// The store behind the shared pool.
static STORE: Store = Store::new();

/// Grows with every trim of the shared pool; a thread whose cache is older empties it.
static TRIMS: AtomicU64 = AtomicU64::new(0);

/// Keeps released blocks by size class, up to a cap, and hands them out again.
///
/// Sizes are rounded up to multiples of 64 bytes, and above 512 bytes to four sizes per power of two: at most 25 % more
/// than asked. The shared pool, which is the default allocator, keeps small blocks (up to 64 KiB each, 512 KiB in
/// all) on each thread without locks. When the cap is passed, the sizes that were not used for the longest time go back
/// to the system first.
///
/// ```
/// use taut_memory::{Buffer, Category, Pool};
///
/// Pool::shared().set_cap(1 << 30);
/// let first = Buffer::new(10_000, Category::Tensor)?;
/// let address = first.as_ptr();
/// drop(first);
/// assert_eq!(Buffer::new(9_500, Category::Tensor)?.as_ptr(), address);
/// # Ok::<(), taut_memory::OutOfMemory>(())
/// ```
#[derive(Debug)]
pub struct Pool {
    /// None for the shared pool, whose store is a static.
    private: Option<Box<Store>>,
}

impl Pool {
    /// The pool of the process, where buffers come from unless told otherwise. It keeps at most a quarter of the
    /// machine's (or the container's) memory, unless [`Pool::set_cap`] says another number.
    pub fn shared() -> Arc<Pool> {
        shared().clone()
    }

    /// A pool of its own that keeps at most `bytes` idle bytes. It has no thread caches: each block takes a short lock.
    pub fn with_cap(bytes: usize) -> Pool {
        let pool = Pool { private: Some(Box::new(Store::new())) };
        pool.set_cap(bytes);
        pool
    }

    /// The most idle bytes the pool keeps, apart from the thread caches of the shared pool.
    pub fn cap(&self) -> usize {
        self.store().cap()
    }

    /// Changes the most idle bytes the pool keeps and returns what it was. What is above it goes back to the system.
    pub fn set_cap(&self, bytes: usize) -> usize {
        let previous = self.store().set_cap(bytes);
        if self.private.is_none() {
            TRIMS.fetch_add(1, Relaxed);
        }
        previous
    }

    fn store(&self) -> &Store {
        self.private.as_deref().unwrap_or(&STORE)
    }

    fn reuse(&self, class: Class) -> Option<Block> {
        match &self.private {
            Some(store) => store.take(class),
            None => thread::with(|thread| reuse(thread, class)),
        }
    }

    fn fresh(&self, class: Class) -> Option<NonNull<u8>> {
        System.allocate(class.size()).or_else(|| {
            self.trim();
            System.allocate(class.size())
        })
    }
}

// SAFETY: blocks come from `System` with the size of their class, which is at least what was asked; a block is either in
// use or in exactly one store or cache, each of which gives it out once.
unsafe impl Allocator for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let class = Class::of(bytes)?;
        self.reuse(class).map(Block::into_raw).or_else(|| self.fresh(class))
    }

    fn allocate_zeroed(&self, bytes: usize) -> Option<NonNull<u8>> {
        let class = Class::of(bytes)?;
        self.reuse(class).map(|block| block.into_zeroed(bytes)).or_else(|| self.fresh(class))
    }

    unsafe fn release(&self, block: NonNull<u8>, bytes: usize) {
        match &self.private {
            Some(store) => {
                // SAFETY: the caller's promise: the block is unused and came from here, so it has its class's size.
                store.put([unsafe { Block::from_raw(block, bytes) }], store.cap());
            }
            // SAFETY: as above.
            None => thread::with(|thread| unsafe { give(thread, block, bytes) }),
        }
    }

    fn idle_bytes(&self) -> usize {
        let cached = if self.private.is_none() { thread::cached_bytes() } else { 0 };
        self.store().idle() + cached
    }

    fn trim(&self) -> usize {
        let cached = if self.private.is_none() { trim_caches() } else { 0 };
        cached + self.store().shrink(usize::MAX)
    }
}

pub(super) fn shared() -> &'static Arc<Pool> {
    static SHARED: LazyLock<Arc<Pool>> = LazyLock::new(|| Arc::new(Pool { private: None }));
    &SHARED
}

/// A block of the shared pool for a request that the limit allows, once idle blocks have made room for it.
#[inline]
pub(crate) fn take(thread: &Thread, bytes: usize, zeroed: bool) -> Option<NonNull<u8>> {
    let class = Class::of(bytes)?;
    match reuse(thread, class) {
        Some(block) if zeroed => Some(block.into_zeroed(bytes)),
        Some(block) => Some(block.into_raw()),
        None => take_fresh(class, bytes),
    }
}

#[cold]
fn take_fresh(class: Class, bytes: usize) -> Option<NonNull<u8>> {
    limit::make_room(bytes);
    shared().fresh(class)
}

/// An idle block of the shared pool.
#[inline]
fn reuse(thread: &Thread, class: Class) -> Option<Block> {
    match thread.tally() {
        Some(tally) if class.is_cached() => thread.cache.take(class, tally),
        _ => STORE.take(class),
    }
}

/// Takes a block of the shared pool back.
///
/// # Safety
/// The block came from the shared pool for the same `bytes`, and nobody uses it.
#[inline]
pub(crate) unsafe fn give(thread: &Thread, block: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise: the block has its class's size and nobody else has it.
    let block = unsafe { Block::from_raw(block, bytes) };
    match thread.tally() {
        Some(tally) if block.class().is_cached() => thread.cache.put(block, tally),
        _ => put_away([block]),
    }
}

/// Puts blocks into the shared store, which keeps what its cap and the process limit allow.
fn put_away(blocks: impl IntoIterator<Item = Block>) {
    STORE.put(blocks, STORE.cap().min(limit::idle_room()));
}

/// What [`shrink`] could give back now.
pub(super) fn trimmable_bytes() -> usize {
    let cached = thread::with(|thread| thread.tally().map_or(0, thread::Tally::idle));
    STORE.idle() + cached
}

/// Gives back at least `bytes` idle bytes of the shared pool, or all that this thread can reach.
pub(super) fn shrink(bytes: usize) -> usize {
    let stored = STORE.shrink(bytes);
    if stored < bytes { stored + trim_caches() } else { stored }
}

fn trim_caches() -> usize {
    TRIMS.fetch_add(1, Relaxed);
    thread::with(|thread| thread.tally().map_or(0, |tally| thread.cache.refresh(tally)))
}
