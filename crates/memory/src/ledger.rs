//! The ledger: counters of live and peak bytes, exact at every moment and for any number of threads.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::category::Category;
use crate::limit;
use crate::thread::{self, Thread};

/// Live and peak bytes. Aligned to cache lines of its own, because every allocation writes it.
#[repr(align(128))]
struct Counter {
    live: AtomicUsize,
    peak: AtomicUsize,
}

impl Counter {
    const fn new() -> Counter {
        Counter { live: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// The peak is exact: it is the largest value that an addition produced. Additions and [`Counter::reset_peak`] are
    /// totally ordered, so an addition that the reset did not see sees the reset.
    #[inline]
    fn add(&self, bytes: usize) {
        self.rise(self.live.fetch_add(bytes, SeqCst) + bytes);
    }

    /// Adds, unless the sum would exceed `limit`.
    fn add_within(&self, bytes: usize, limit: usize) -> bool {
        let fits = |live: usize| live.checked_add(bytes).filter(|&sum| sum <= limit);
        match self.live.fetch_update(SeqCst, SeqCst, fits) {
            Ok(before) => {
                self.rise(before + bytes);
                true
            }
            Err(_) => false,
        }
    }

    #[inline]
    fn rise(&self, live: usize) {
        if live > self.peak.load(SeqCst) {
            self.peak.fetch_max(live, SeqCst);
        }
    }

    #[inline]
    fn subtract(&self, bytes: usize) {
        self.live.fetch_sub(bytes, SeqCst);
    }

    fn reset_peak(&self) {
        self.peak.store(0, SeqCst);
        self.peak.fetch_max(self.live.load(SeqCst), SeqCst);
    }
}

static TOTAL: Counter = Counter::new();
static BY_CATEGORY: [Counter; Category::ALL.len()] = [const { Counter::new() }; Category::ALL.len()];

/// Live bytes: the sum of the requested bytes of all live buffers.
#[inline]
pub fn live_bytes() -> usize {
    TOTAL.live.load(SeqCst)
}

/// Live bytes of one category.
pub fn live_bytes_of(category: Category) -> usize {
    BY_CATEGORY[category as usize].live.load(SeqCst)
}

/// The most bytes that were live at one moment, since the start or the last [`reset_peak`].
pub fn peak_bytes() -> usize {
    TOTAL.peak.load(SeqCst)
}

pub(crate) fn peak_bytes_of(category: Category) -> usize {
    BY_CATEGORY[category as usize].peak.load(SeqCst)
}

/// Resets the peak, in total and of each category, to the bytes that are live now.
pub fn reset_peak() {
    TOTAL.reset_peak();
    BY_CATEGORY.iter().for_each(Counter::reset_peak);
}

/// The number of buffers allocated so far. Empty buffers and buffers inside an arena are not counted.
pub fn allocations() -> u64 {
    thread::allocations()
}

/// Bytes this thread allocated minus bytes it freed. Tests that run in parallel check with it that each frees what it
/// allocated; it is negative where a thread frees buffers of others.
pub fn thread_live_bytes() -> isize {
    thread::with(Thread::live)
}

/// Adds a new buffer. False, and nothing changed, if that would exceed the limit.
#[inline]
pub(crate) fn add(thread: &Thread, bytes: usize, category: Category) -> bool {
    match limit::current_limit() {
        None => TOTAL.add(bytes),
        Some(limit) => {
            if !TOTAL.add_within(bytes, limit) {
                return false;
            }
        }
    }
    BY_CATEGORY[category as usize].add(bytes);
    thread.count_allocation(bytes, category);
    true
}

/// Removes a buffer.
#[inline]
pub(crate) fn remove(thread: &Thread, bytes: usize, category: Category) {
    TOTAL.subtract(bytes);
    BY_CATEGORY[category as usize].subtract(bytes);
    thread.count_release(bytes, category);
}

/// Moves a live buffer to another category.
pub(crate) fn move_category(bytes: usize, from: Category, to: Category) {
    BY_CATEGORY[from as usize].subtract(bytes);
    BY_CATEGORY[to as usize].add(bytes);
    thread::with(|thread| {
        thread.add_buffers(from, -1);
        thread.add_buffers(to, 1);
    });
}
