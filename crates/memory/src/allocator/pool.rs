//! The pool: blocks kept for reuse, because the first write to fresh pages costs several times a write to warm ones.

mod size_class;
mod store;
mod thread_cache;

pub(crate) use thread_cache::ThreadCache;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use size_class::{IdleBlock, SizeClass};
use store::BlockStore;

use super::{Allocator, System};
use crate::limit;
use crate::thread::{self, Thread};

/// The store behind the shared pool.
static STORE: BlockStore = BlockStore::new();

/// The number of trims of the shared pool; a thread cache that has seen fewer is emptied.
static TRIMS: AtomicU64 = AtomicU64::new(0);

/// Keeps released blocks by size class, up to a cap, and reuses them.
///
/// Sizes are rounded up to multiples of 64 bytes, and above 512 bytes to four sizes per power of two: at most 25 % more
/// than requested. The shared pool, which is the default allocator, keeps small blocks (up to 64 KiB each, 512 KiB in
/// total) in a cache per thread, without locks. Above the cap, blocks of the least recently used sizes are returned to the
/// system first.
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
    /// `None` for the shared pool, whose store is a static.
    private: Option<Box<BlockStore>>,
}

impl Pool {
    /// The pool of the process: the default allocator. It keeps at most a quarter of the machine's (or the container's)
    /// memory, unless [`Pool::set_cap`] sets another cap.
    pub fn shared() -> Arc<Pool> {
        shared().clone()
    }

    /// A separate pool that keeps at most `bytes` idle bytes. It has no thread caches: each allocation takes a short lock.
    pub fn with_cap(bytes: usize) -> Pool {
        let pool = Pool { private: Some(Box::new(BlockStore::new())) };
        pool.set_cap(bytes);
        pool
    }

    /// The most idle bytes the pool keeps, apart from the thread caches of the shared pool.
    pub fn cap(&self) -> usize {
        self.store().cap()
    }

    /// Sets the most idle bytes the pool keeps, and returns the previous cap. Bytes above it are returned to the system.
    pub fn set_cap(&self, bytes: usize) -> usize {
        let previous = self.store().set_cap(bytes);
        if self.private.is_none() {
            TRIMS.fetch_add(1, Relaxed);
        }
        previous
    }

    fn store(&self) -> &BlockStore {
        self.private.as_deref().unwrap_or(&STORE)
    }

    fn reuse(&self, class: SizeClass) -> Option<IdleBlock> {
        match &self.private {
            Some(store) => store.take(class),
            None => thread::with(|thread| reuse(thread, class)),
        }
    }

    fn fresh(&self, class: SizeClass) -> Option<NonNull<u8>> {
        System.allocate(class.size()).or_else(|| {
            self.trim();
            System.allocate(class.size())
        })
    }
}

// SAFETY: blocks come from `System` with the size of their class, which is at least the requested size; a block is either
// in use or in exactly one store or cache, which removes it when it is allocated.
unsafe impl Allocator for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let class = SizeClass::of(bytes)?;
        self.reuse(class).map(IdleBlock::into_raw).or_else(|| self.fresh(class))
    }

    fn allocate_zeroed(&self, bytes: usize) -> Option<NonNull<u8>> {
        let class = SizeClass::of(bytes)?;
        self.reuse(class).map(|block| block.into_zeroed(bytes)).or_else(|| self.fresh(class))
    }

    unsafe fn release(&self, block: NonNull<u8>, bytes: usize) {
        match &self.private {
            Some(store) => {
                // SAFETY: the caller's promise: the block is unused and came from here, so it has its class's size.
                store.put([unsafe { IdleBlock::from_raw(block, bytes) }], store.cap());
            }
            // SAFETY: as above.
            None => thread::with(|thread| unsafe { release_to_pool(thread, block, bytes) }),
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

/// A block of the shared pool for a request that the limit allows, after idle blocks are freed where needed.
#[inline]
pub(crate) fn allocate_from_pool(thread: &Thread, bytes: usize, zeroed: bool) -> Option<NonNull<u8>> {
    let class = SizeClass::of(bytes)?;
    match reuse(thread, class) {
        Some(block) if zeroed => Some(block.into_zeroed(bytes)),
        Some(block) => Some(block.into_raw()),
        None => allocate_fresh(class, bytes),
    }
}

#[cold]
fn allocate_fresh(class: SizeClass, bytes: usize) -> Option<NonNull<u8>> {
    limit::make_room(bytes);
    shared().fresh(class)
}

/// An idle block of the shared pool.
#[inline]
fn reuse(thread: &Thread, class: SizeClass) -> Option<IdleBlock> {
    match thread.counters() {
        Some(counters) if class.is_cached() => thread.cache.take(class, counters),
        _ => STORE.take(class),
    }
}

/// Releases a block to the shared pool.
///
/// # Safety
/// The block came from the shared pool for the same `bytes`, and is no longer used.
#[inline]
pub(crate) unsafe fn release_to_pool(thread: &Thread, block: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise: the block has its class's size and no other owner.
    let block = unsafe { IdleBlock::from_raw(block, bytes) };
    match thread.counters() {
        Some(counters) if block.class().is_cached() => thread.cache.put(block, counters),
        _ => store_blocks([block]),
    }
}

/// Puts blocks into the shared store, which keeps as many as its cap and the process limit allow.
fn store_blocks(blocks: impl IntoIterator<Item = IdleBlock>) {
    STORE.put(blocks, STORE.cap().min(limit::max_idle_bytes()));
}

/// The bytes that [`shrink`] could return now.
pub(super) fn trimmable_bytes() -> usize {
    let cached = thread::with(|thread| thread.counters().map_or(0, thread::ThreadCounters::idle));
    STORE.idle() + cached
}

/// Returns at least `bytes` idle bytes of the shared pool to the system, or all that this thread has access to.
pub(super) fn shrink(bytes: usize) -> usize {
    let stored = STORE.shrink(bytes);
    if stored < bytes { stored + trim_caches() } else { stored }
}

fn trim_caches() -> usize {
    TRIMS.fetch_add(1, Relaxed);
    thread::with(|thread| thread.counters().map_or(0, |counters| thread.cache.refresh(counters)))
}
