//! Bytes that Rust's global allocator has given out.
#![expect(unsafe_code, reason = "the trait of global allocators is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// A global allocator that counts bytes, for tests of how much a reader of files allocates beside the buffers of the ledger.
///
/// ```
/// use taut_testing::HeapCounter;
///
/// #[global_allocator]
/// static HEAP: HeapCounter = HeapCounter;
///
/// let before = HeapCounter::start();
/// drop(Vec::<u8>::with_capacity(1 << 20));
/// assert!(HeapCounter::peak() - before >= 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HeapCounter;

impl HeapCounter {
    /// Sets the peak to the bytes that are live, and returns them.
    pub fn start() -> usize {
        let live = LIVE.load(Relaxed);
        PEAK.store(live, Relaxed);
        live
    }

    /// The most bytes that were live since the last [`start`](HeapCounter::start).
    pub fn peak() -> usize {
        PEAK.load(Relaxed)
    }

    fn add(block: *mut u8, bytes: usize) -> *mut u8 {
        if !block.is_null() {
            PEAK.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
        }
        block
    }
}

// SAFETY: every block comes from `System` and goes back to it, with the layout of the caller.
unsafe impl GlobalAlloc for HeapCounter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        HeapCounter::add(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        HeapCounter::add(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() {
            HeapCounter::add(moved, size);
            LIVE.fetch_sub(layout.size(), Relaxed);
        }
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}
