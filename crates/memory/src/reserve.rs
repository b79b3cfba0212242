//! A global allocator with a reserve, so that a system without memory is an error and not the end of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;

/// Rust's system allocator with a reserve for the moment at which the system refuses memory.
///
/// Handles, lists and messages come from Rust's global allocator, and Rust ends the process if that fails. With this one, each
/// refusal releases a part of the reserve, which serves such small requests; once most of it is gone, every
/// [`Buffer`](crate::Buffer) fails with [`OutOfMemory`](crate::OutOfMemory) until the system grants the reserve again. A single request beyond the reserve still
/// ends the process: whatever grows with the data has to ask first ([`list_with_capacity`](crate::list_with_capacity)).
///
/// ```
/// use taut_memory::ReserveAllocator;
///
/// #[global_allocator]
/// static GLOBAL: ReserveAllocator = ReserveAllocator;
///
/// ReserveAllocator::fill();
/// assert!(ReserveAllocator::is_filled());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ReserveAllocator;

/// The bytes of a block of the reserve: address space of its own, which is never touched. 4 MiB are enough for the handles and messages
/// of the calls that are under way on many threads: where the system's allocator has no other memory, it takes a page for each small
/// request, so that a quarter of that was spent between two checks.
const BLOCK: usize = 4 << 20;

/// The number of blocks. All of them are enough for lists that grow with the number of elements of a dataset or of strings. They
/// are released one by one: one large block would become the heap of the thread that asks first, and others would get nothing.
const COUNT: usize = 16;

/// The blocks that have to be there for further buffers, after a refusal.
const LEAST: usize = 2;

/// The blocks; null before they are taken and after they were released.
static BLOCKS: [AtomicPtr<u8>; COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; COUNT];
/// Whether a block was released and is missing.
static IS_SPENT: AtomicBool = AtomicBool::new(false);

impl ReserveAllocator {
    /// Takes the blocks that are missing from the system.
    pub fn fill() {
        for place in &BLOCKS {
            if !place.load(Ordering::Acquire).is_null() {
                continue;
            }
            let Some(block) = take() else { return };
            if place.compare_exchange(ptr::null_mut(), block, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // Another thread was faster.
                // SAFETY: the block came from `take`, and has no user.
                unsafe { give_back(block) };
            }
        }
        IS_SPENT.store(false, Ordering::SeqCst);
        // Another thread may have released a block before the store, which hides that.
        if BLOCKS.iter().any(|place| place.load(Ordering::SeqCst).is_null()) {
            IS_SPENT.store(true, Ordering::SeqCst);
        }
    }

    /// Whether there is a reserve.
    pub fn is_filled() -> bool {
        // The first ones are taken first and released last.
        BLOCKS[..LEAST].iter().all(|place| !place.load(Ordering::Acquire).is_null())
    }

    /// Releases a block. Returns whether there was one.
    fn release() -> bool {
        let block = BLOCKS.iter().rev().map(|place| place.swap(ptr::null_mut(), Ordering::SeqCst));
        let Some(block) = block.into_iter().find(|block| !block.is_null()) else { return false };
        IS_SPENT.store(true, Ordering::SeqCst);
        // SAFETY: the block came from `take`, and the swap made this thread its only owner.
        unsafe { give_back(block) };
        true
    }
}

/// A block that does not come from a heap, whose free memory might serve one thread alone. It is writable: only such mappings count
/// against a limit of data (`RLIMIT_DATA`) and of what the system has promised, so that others would be no reserve for these.
#[cfg(unix)]
fn take() -> Option<*mut u8> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, which nothing else uses.
    let block = unsafe { libc::mmap(ptr::null_mut(), BLOCK, access, flags, -1, 0) };
    (block != libc::MAP_FAILED).then(|| block.cast())
}

/// # Safety
/// The block came from [`take`], and has no user.
#[cfg(unix)]
unsafe fn give_back(block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(block.cast(), BLOCK) };
}

#[cfg(not(unix))]
const LAYOUT: Layout = match Layout::from_size_align(BLOCK, align_of::<usize>()) {
    Ok(layout) => layout,
    Err(_) => panic!("the size of a block is a layout"),
};

#[cfg(not(unix))]
fn take() -> Option<*mut u8> {
    // SAFETY: the layout has a size.
    let block = unsafe { System.alloc(LAYOUT) };
    (!block.is_null()).then_some(block)
}

/// # Safety
/// The block came from [`take`], and has no user.
#[cfg(not(unix))]
unsafe fn give_back(block: *mut u8) {
    // SAFETY: the block came from there with this layout.
    unsafe { System.dealloc(block, LAYOUT) };
}

/// Whether new buffers must fail: the reserve is spent, and the system does not grant it again.
#[inline]
pub(crate) fn is_exhausted() -> bool {
    IS_SPENT.load(Ordering::Relaxed) && is_still_exhausted()
}

#[cold]
fn is_still_exhausted() -> bool {
    ReserveAllocator::fill();
    if !ReserveAllocator::is_filled() {
        // Blocks that are kept for reuse are memory, too.
        crate::trim();
        ReserveAllocator::fill();
    }
    !ReserveAllocator::is_filled()
}

/// How often a request is repeated once the reserve is gone: another thread may have taken the last block again, for a buffer that it
/// makes, and release it.
const TRIES: usize = 100;

/// The block of a request, which is repeated after a block of the reserve was released, until there is none.
#[inline]
fn or_from_reserve(request: impl Fn() -> *mut u8) -> *mut u8 {
    let block = request();
    if block.is_null() { from_reserve(request) } else { block }
}

#[cold]
fn from_reserve(request: impl Fn() -> *mut u8) -> *mut u8 {
    let mut tries = 0;
    while tries < TRIES {
        if !ReserveAllocator::release() {
            tries += 1;
            thread::yield_now();
        }
        let block = request();
        if !block.is_null() {
            return block;
        }
    }
    ptr::null_mut()
}

// SAFETY: every block comes from `System` and goes back to it, with the layout of the caller.
unsafe impl GlobalAlloc for ReserveAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_from_reserve(|| unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        or_from_reserve(|| unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise; a request that fails leaves the block as it is.
        or_from_reserve(|| unsafe { System.realloc(block, layout, size) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Category};

    #[test]
    fn a_refused_request_takes_the_reserve_and_is_repeated() {
        ReserveAllocator::fill();
        let mut mine = 0u8;
        let here = ptr::from_mut(&mut mine);
        let tries = std::cell::Cell::new(0);
        let block = or_from_reserve(|| {
            tries.set(tries.get() + 1);
            if tries.get() == 1 { ptr::null_mut() } else { here }
        });
        assert_eq!((block, tries.get()), (here, 2));
        assert!(IS_SPENT.load(Ordering::Acquire) && ReserveAllocator::is_filled());
        // A large request takes all of it.
        tries.set(0);
        let block = or_from_reserve(|| {
            tries.set(tries.get() + 1);
            if tries.get() < COUNT { ptr::null_mut() } else { here }
        });
        assert_eq!((block, tries.get()), (here, COUNT));
        assert!(!ReserveAllocator::is_filled());
        // A thread that finds nothing, since another one has released it, tries again, too.
        tries.set(0);
        let block = or_from_reserve(|| {
            tries.set(tries.get() + 1);
            if tries.get() <= 5 { ptr::null_mut() } else { here }
        });
        assert_eq!((block, tries.get()), (here, 6));
        // The system has memory: the next buffer takes the reserve again, and is made.
        assert!(Buffer::new(100, Category::Tensor).is_ok());
        assert!(ReserveAllocator::is_filled());
    }
}
