//! A global allocator with a reserve, so that a system without memory is an error and not the end of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;

/// Rust's system allocator with a reserve for the moment at which the system refuses memory.
///
/// Handles, lists and messages come from Rust's global allocator, and Rust ends the process if that fails. With this one, the first
/// refusal releases the reserve, which serves such small requests; from then on every [`Buffer`](crate::Buffer) fails
/// with [`OutOfMemory`](crate::OutOfMemory) until the system grants the reserve again. A single request beyond the reserve still
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

/// The bytes of the reserve, the best size first: address space, which is never touched. 4 MiB are enough for the handles and
/// messages of the calls that are under way on many threads: where the system's allocator has no other memory, it takes a page for
/// each small request, so that a quarter of that was spent between two checks. 64 MiB are enough for lists that grow with the number
/// of elements of a dataset or of strings. After a refusal the heap may be too fragmented for that.
const SIZES: [usize; 2] = [64 << 20, 4 << 20];

/// The reserve; null before it is filled and after it was released.
static BLOCK: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Whether the reserve was released and is missing.
static IS_SPENT: AtomicBool = AtomicBool::new(false);

impl ReserveAllocator {
    /// Takes the reserve from the system, if it is not there.
    pub fn fill() {
        if !BLOCK.load(Ordering::Acquire).is_null() {
            return;
        }
        let Some(block) = SIZES.iter().find_map(|&bytes| take(bytes)) else { return };
        if BLOCK.compare_exchange(ptr::null_mut(), block, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // Another thread was faster.
            // SAFETY: the block came from `take`, and has no user.
            unsafe { give_back(block) };
        }
        IS_SPENT.store(false, Ordering::Release);
    }

    /// Whether the reserve is there.
    pub fn is_filled() -> bool {
        !BLOCK.load(Ordering::Acquire).is_null()
    }

    /// Releases the reserve. Returns whether there was one.
    fn release() -> bool {
        let block = BLOCK.swap(ptr::null_mut(), Ordering::AcqRel);
        if block.is_null() {
            return false;
        }
        IS_SPENT.store(true, Ordering::Release);
        // SAFETY: the block came from `take`, and the swap made this thread its only owner.
        unsafe { give_back(block) };
        true
    }
}

/// The bytes of a size.
const WORD: usize = size_of::<usize>();

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, align_of::<usize>()).ok()
}

/// A block of the system, with its size in its first word.
fn take(bytes: usize) -> Option<*mut u8> {
    // SAFETY: the layout has a size.
    let block = unsafe { System.alloc(layout(bytes)?) };
    if block.is_null() {
        return None;
    }
    // SAFETY: the block has room for a word.
    unsafe { block.cast::<[u8; WORD]>().write(bytes.to_ne_bytes()) };
    Some(block)
}

/// # Safety
/// The block came from [`take`], and has no user.
unsafe fn give_back(block: *mut u8) {
    // SAFETY: `take` wrote the size there.
    let bytes = usize::from_ne_bytes(unsafe { block.cast::<[u8; WORD]>().read() });
    if let Some(layout) = layout(bytes) {
        // SAFETY: the block came from there with this layout.
        unsafe { System.dealloc(block, layout) };
    }
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

/// Whether the system grants a block of this size now, without the reserve. A list that grows with the data asks before it grows:
/// otherwise its block would take the reserve, and nothing would be left for the error.
pub fn is_granted(bytes: usize) -> bool {
    let Some(block) = take(bytes.max(WORD)) else { return false };
    // SAFETY: the block came from `take`, and has no user.
    unsafe { give_back(block) };
    true
}

/// How often a request is repeated: between the release of the reserve and the request, another thread may take the reserve again, for
/// a buffer that it makes.
const TRIES: usize = 100;

/// The block of a request, which is repeated after the reserve was released.
#[inline]
fn or_from_reserve(request: impl Fn() -> *mut u8) -> *mut u8 {
    let block = request();
    if block.is_null() { from_reserve(request) } else { block }
}

#[cold]
fn from_reserve(request: impl Fn() -> *mut u8) -> *mut u8 {
    for _ in 0..TRIES {
        // Also where another thread has released it since the last request.
        ReserveAllocator::release();
        let block = request();
        if !block.is_null() {
            return block;
        }
        thread::yield_now();
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
        // A thread that finds the reserve released by another one tries again, too.
        tries.set(0);
        assert!(!ReserveAllocator::is_filled());
        let block = or_from_reserve(|| {
            tries.set(tries.get() + 1);
            if tries.get() == 1 { ptr::null_mut() } else { here }
        });
        assert_eq!((block, tries.get()), (here, 2));
        // While other threads take it again, the request is repeated.
        tries.set(0);
        let block = or_from_reserve(|| {
            tries.set(tries.get() + 1);
            ReserveAllocator::fill();
            if tries.get() <= 5 { ptr::null_mut() } else { here }
        });
        assert_eq!((block, tries.get()), (here, 6));
        assert!(is_granted(1000) && !is_granted(1 << 60));
        // The system has memory: the next buffer takes the reserve again, and is made.
        assert!(Buffer::new(100, Category::Tensor).is_ok());
        assert!(ReserveAllocator::is_filled());
    }
}
