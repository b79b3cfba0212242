//! Allocators: the sources of blocks.

mod arena;
mod pool;
mod system;

pub use arena::Arena;
pub use pool::Pool;
pub(crate) use pool::{ThreadCache, allocate_from_pool, release_to_pool};
pub use system::System;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The alignment of every block, in bytes: a cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// A source of blocks. Implement it to place Taut's memory: in shared memory, on a NUMA node, under your own accounting.
///
/// # Safety
/// For `bytes > 0`, [`allocate`](Allocator::allocate) and [`allocate_zeroed`](Allocator::allocate_zeroed) return a
/// block that
/// - is aligned to [`ALIGNMENT`] and at least `bytes` long,
/// - is initialised: zero or any old contents, but never memory that the compiler may treat as undefined,
/// - is owned by the caller alone and stays valid until it is released, even if it is released on another thread.
///
/// `counts` always returns the same value.
///
/// ```
/// use std::ptr::NonNull;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use taut_memory::{Allocator, Buffer, Category, System};
///
/// #[derive(Default)]
/// struct Counting {
///     given: AtomicUsize,
/// }
///
/// // SAFETY: blocks come from `System`, which keeps the contract.
/// unsafe impl Allocator for Counting {
///     fn name(&self) -> &str {
///         "counting"
///     }
///     fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
///         self.given.fetch_add(1, Ordering::Relaxed);
///         System.allocate(bytes)
///     }
///     unsafe fn release(&self, block: NonNull<u8>, bytes: usize) {
///         // SAFETY: the caller's promise, passed on.
///         unsafe { System.release(block, bytes) }
///     }
/// }
///
/// let counting = Arc::new(Counting::default());
/// let buffer = Buffer::new_in(&(counting.clone() as Arc<dyn Allocator>), 100, Category::Tensor)?;
/// assert_eq!(buffer.len(), 100);
/// assert_eq!(counting.given.load(Ordering::Relaxed), 1);
/// # Ok::<(), taut_memory::OutOfMemory>(())
/// ```
pub unsafe trait Allocator: Send + Sync {
    /// The name used in errors.
    fn name(&self) -> &str;

    /// A block for `bytes` (more than zero) bytes, or `None` if the allocation fails.
    fn allocate(&self, bytes: usize) -> Option<NonNull<u8>>;

    /// Like [`allocate`](Allocator::allocate), with the first `bytes` bytes zero.
    fn allocate_zeroed(&self, bytes: usize) -> Option<NonNull<u8>> {
        let block = self.allocate(bytes)?;
        // SAFETY: `allocate` returned a block of at least `bytes` bytes without another owner.
        unsafe { block.write_bytes(0, bytes) };
        Some(block)
    }

    /// Releases a block.
    ///
    /// # Safety
    /// The block came from this allocator for the same `bytes`, and is no longer used.
    unsafe fn release(&self, block: NonNull<u8>, bytes: usize);

    /// Bytes that the allocator keeps for reuse.
    fn idle_bytes(&self) -> usize {
        0
    }

    /// Returns idle memory to the system, and the number of bytes returned.
    fn trim(&self) -> usize {
        0
    }

    /// Whether the ledger counts this allocator's blocks. False if they are parts of memory that is already counted, as
    /// in an [`Arena`].
    fn counts(&self) -> bool {
        true
    }
}

/// The default allocator, unless it is the shared pool, which needs no lock.
static CUSTOM: RwLock<Option<Arc<dyn Allocator>>> = RwLock::new(None);
static IS_CUSTOM: AtomicBool = AtomicBool::new(false);

/// Makes `allocator` the source of all new buffers, and returns the previous one. Live buffers are released to the
/// allocator that they came from.
///
/// ```
/// use std::sync::Arc;
/// use taut_memory::{Pool, System, allocator, set_allocator};
///
/// set_allocator(Arc::new(System));
/// assert_eq!(allocator().name(), "system");
/// set_allocator(Pool::shared());
/// assert_eq!(allocator().name(), "pool");
/// ```
pub fn set_allocator(allocator: Arc<dyn Allocator>) -> Arc<dyn Allocator> {
    let custom = unless_shared_pool(&allocator);
    let mut current = CUSTOM.write().unwrap_or_else(PoisonError::into_inner);
    IS_CUSTOM.store(custom.is_some(), Ordering::Release);
    std::mem::replace(&mut *current, custom).unwrap_or_else(|| Pool::shared())
}

/// The source of new buffers.
pub fn allocator() -> Arc<dyn Allocator> {
    custom().unwrap_or_else(|| Pool::shared())
}

/// The default allocator, if it is not the shared pool.
#[inline]
pub(crate) fn custom() -> Option<Arc<dyn Allocator>> {
    if IS_CUSTOM.load(Ordering::Acquire) {
        CUSTOM.read().unwrap_or_else(PoisonError::into_inner).clone()
    } else {
        None
    }
}

/// The allocator, if it is not the shared pool.
pub(crate) fn unless_shared_pool(allocator: &Arc<dyn Allocator>) -> Option<Arc<dyn Allocator>> {
    let shared = Arc::as_ptr(pool::shared());
    (!std::ptr::addr_eq(Arc::as_ptr(allocator), shared)).then(|| allocator.clone())
}

/// Bytes kept for reuse by the shared pool and by the default allocator, in whole blocks. Other pools are not included;
/// see [`Allocator::idle_bytes`].
pub fn idle_bytes() -> usize {
    pool::shared().idle_bytes() + custom().map_or(0, |allocator| allocator.idle_bytes())
}

/// Returns all idle memory to the system, and the number of bytes returned. Small blocks in the caches of other threads
/// are returned when such a thread next releases one.
pub fn trim() -> usize {
    pool::shared().trim() + custom().map_or(0, |allocator| allocator.trim())
}

/// Idle bytes that [`shrink`] can return at once.
pub(crate) fn trimmable_bytes() -> usize {
    pool::trimmable_bytes() + custom().map_or(0, |allocator| allocator.idle_bytes())
}

/// Returns at least `bytes` idle bytes to the system, or all idle bytes.
pub(crate) fn shrink(bytes: usize) {
    let returned = pool::shrink(bytes);
    if returned < bytes
        && let Some(allocator) = custom()
    {
        allocator.trim();
    }
}
