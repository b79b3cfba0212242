//! Per-thread state: on the common path, an allocation writes no shared memory but the ledger's totals.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::allocator::ThreadCache;
use crate::category::Category;
use crate::lock;

/// Counters that one thread writes and every thread may read. They are never reset: when a thread exits, the next one to
/// start continues with its counters.
#[repr(align(128))]
pub(crate) struct ThreadCounters {
    allocations: AtomicU64,
    /// Live buffers by category. Negative where a thread frees buffers of others.
    buffers: [AtomicI64; Category::ALL.len()],
    /// Bytes of the idle blocks in the thread's cache.
    idle: AtomicUsize,
}

impl ThreadCounters {
    const fn new() -> ThreadCounters {
        ThreadCounters {
            allocations: AtomicU64::new(0),
            buffers: [const { AtomicI64::new(0) }; Category::ALL.len()],
            idle: AtomicUsize::new(0),
        }
    }

    pub(crate) fn idle(&self) -> usize {
        self.idle.load(Relaxed)
    }

    /// Must be called by the thread that holds the counters.
    pub(crate) fn set_idle(&self, bytes: usize) {
        self.idle.store(bytes, Relaxed);
    }
}

struct CounterTable {
    all: Vec<&'static ThreadCounters>,
    free: Vec<&'static ThreadCounters>,
}

static COUNTERS: Mutex<CounterTable> = Mutex::new(CounterTable { all: Vec::new(), free: Vec::new() });

/// For buffers allocated or freed while a thread is exiting, after it has released its counters. Several threads may
/// write them.
static EXITING: ThreadCounters = ThreadCounters::new();

/// The state of one thread.
pub(crate) struct Thread {
    counters: Cell<Option<&'static ThreadCounters>>,
    live: Cell<isize>,
    requests: Cell<u64>,
    fail_at: Cell<u64>,
    pub(crate) cache: ThreadCache,
}

thread_local! {
    // Without a destructor, so that access is one address computation and works until the thread has exited.
    static THREAD: Thread = const { Thread {
        counters: Cell::new(None),
        live: Cell::new(0),
        requests: Cell::new(0),
        fail_at: Cell::new(u64::MAX),
        cache: ThreadCache::new(),
    } };
    static THREAD_EXIT: ThreadExit = const { ThreadExit };
}

/// Returns the thread's idle blocks and its counters when the thread exits.
struct ThreadExit;

impl Drop for ThreadExit {
    fn drop(&mut self) {
        with(|thread| {
            if let Some(counters) = thread.counters.get() {
                thread.cache.empty_into_store(counters);
                thread.counters.set(None);
                lock(&COUNTERS).free.push(counters);
            }
        });
    }
}

#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(f)
}

impl Thread {
    /// The thread's counters; `None` if the thread is exiting.
    #[inline]
    pub(crate) fn counters(&self) -> Option<&'static ThreadCounters> {
        match self.counters.get() {
            None => self.register(),
            counters => counters,
        }
    }

    #[cold]
    fn register(&self) -> Option<&'static ThreadCounters> {
        // Fails once the destructor has run.
        THREAD_EXIT.try_with(|_| ()).ok()?;
        let mut table = lock(&COUNTERS);
        let counters = table.free.pop().unwrap_or_else(|| {
            let counters: &'static ThreadCounters = Box::leak(Box::new(ThreadCounters::new()));
            table.all.push(counters);
            counters
        });
        self.counters.set(Some(counters));
        Some(counters)
    }

    /// Counts a request for memory; false if a test makes this one fail.
    #[inline]
    pub(crate) fn request(&self) -> bool {
        let number = self.requests.get();
        self.requests.set(number + 1);
        number != self.fail_at.get()
    }

    /// How many requests the thread has made.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Makes the request with this number fail.
    pub(crate) fn fail_at(&self, number: u64) {
        self.fail_at.set(number);
    }

    pub(crate) fn live(&self) -> isize {
        self.live.get()
    }

    #[inline]
    pub(crate) fn count_allocation(&self, bytes: usize, category: Category) {
        self.live.set(self.live.get().wrapping_add_unsigned(bytes));
        if let Some(counters) = self.counters() {
            counters.allocations.store(counters.allocations.load(Relaxed).wrapping_add(1), Relaxed);
        } else {
            EXITING.allocations.fetch_add(1, Relaxed);
        }
        self.add_buffers(category, 1);
    }

    #[inline]
    pub(crate) fn count_release(&self, bytes: usize, category: Category) {
        self.live.set(self.live.get().wrapping_sub_unsigned(bytes));
        self.add_buffers(category, -1);
    }

    #[inline]
    pub(crate) fn add_buffers(&self, category: Category, change: i64) {
        if let Some(counters) = self.counters() {
            // There is one writer: a load and a store are enough, and far cheaper than an atomic addition.
            let buffers = &counters.buffers[category as usize];
            buffers.store(buffers.load(Relaxed).wrapping_add(change), Relaxed);
        } else {
            EXITING.buffers[category as usize].fetch_add(change, Relaxed);
        }
    }
}

fn sum<T: std::iter::Sum>(of: impl Fn(&ThreadCounters) -> T) -> T {
    lock(&COUNTERS).all.iter().copied().chain([&EXITING]).map(of).sum()
}

/// Buffers allocated so far, by all threads.
pub(crate) fn allocations() -> u64 {
    sum(|counters| counters.allocations.load(Relaxed))
}

/// Live buffers of a category, of all threads.
pub(crate) fn buffers(category: Category) -> usize {
    // While other threads run, the sum may include the release of a buffer without its allocation.
    sum(|counters| counters.buffers[category as usize].load(Relaxed)).max(0) as usize
}

/// Idle bytes in the caches of all threads.
pub(crate) fn cached_bytes() -> usize {
    sum(ThreadCounters::idle)
}
