//! What each thread keeps for itself, so that the common path touches nothing shared but the ledger's totals.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::allocator::Cache;
use crate::category::Category;
use crate::lock;

/// Counts that one thread writes and every thread may read. They only ever add up: when a thread ends, the next
/// one to start takes its tally over as it is.
#[repr(align(128))]
pub(crate) struct Tally {
    allocations: AtomicU64,
    /// Live buffers by category. Negative where a thread drops what others made.
    buffers: [AtomicI64; Category::ALL.len()],
    /// Bytes of the idle blocks in the thread's cache.
    idle: AtomicUsize,
}

impl Tally {
    const fn new() -> Tally {
        Tally {
            allocations: AtomicU64::new(0),
            buffers: [const { AtomicI64::new(0) }; Category::ALL.len()],
            idle: AtomicUsize::new(0),
        }
    }

    pub(crate) fn idle(&self) -> usize {
        self.idle.load(Relaxed)
    }

    /// Only for the thread that holds the tally.
    pub(crate) fn set_idle(&self, bytes: usize) {
        self.idle.store(bytes, Relaxed);
    }
}

struct Tallies {
    all: Vec<&'static Tally>,
    free: Vec<&'static Tally>,
}

static TALLIES: Mutex<Tallies> = Mutex::new(Tallies { all: Vec::new(), free: Vec::new() });

/// For buffers made or dropped while a thread is ending, after it has given its tally up. Several threads may
/// write it.
static ORPHANS: Tally = Tally::new();

/// The state of the running thread.
pub(crate) struct Thread {
    tally: Cell<Option<&'static Tally>>,
    live: Cell<isize>,
    requests: Cell<u64>,
    fail_at: Cell<u64>,
    pub(crate) cache: Cache,
}

thread_local! {
    // Without a destructor, so that reaching it is one address computation and works until the thread is gone.
    static THREAD: Thread = const { Thread {
        tally: Cell::new(None),
        live: Cell::new(0),
        requests: Cell::new(0),
        fail_at: Cell::new(u64::MAX),
        cache: Cache::new(),
    } };
    static FAREWELL: Farewell = const { Farewell };
}

/// Gives the thread's idle blocks and its tally back when the thread ends.
struct Farewell;

impl Drop for Farewell {
    fn drop(&mut self) {
        with(|thread| {
            if let Some(tally) = thread.tally.get() {
                thread.cache.empty_into_store(tally);
                thread.tally.set(None);
                lock(&TALLIES).free.push(tally);
            }
        });
    }
}

#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(f)
}

impl Thread {
    /// The thread's tally, or none if the thread is ending.
    #[inline]
    pub(crate) fn tally(&self) -> Option<&'static Tally> {
        match self.tally.get() {
            None => self.take_tally(),
            tally => tally,
        }
    }

    #[cold]
    fn take_tally(&self) -> Option<&'static Tally> {
        // Fails once the farewell has been said.
        FAREWELL.try_with(|_| ()).ok()?;
        let mut tallies = lock(&TALLIES);
        let tally = tallies.free.pop().unwrap_or_else(|| {
            let tally: &'static Tally = Box::leak(Box::new(Tally::new()));
            tallies.all.push(tally);
            tally
        });
        self.tally.set(Some(tally));
        Some(tally)
    }

    /// Notes a request for memory; false if a test wants this one to fail.
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
    pub(crate) fn entered(&self, bytes: usize, category: Category) {
        self.live.set(self.live.get().wrapping_add_unsigned(bytes));
        if let Some(tally) = self.tally() {
            tally.allocations.store(tally.allocations.load(Relaxed).wrapping_add(1), Relaxed);
        } else {
            ORPHANS.allocations.fetch_add(1, Relaxed);
        }
        self.add_buffers(category, 1);
    }

    #[inline]
    pub(crate) fn left(&self, bytes: usize, category: Category) {
        self.live.set(self.live.get().wrapping_sub_unsigned(bytes));
        self.add_buffers(category, -1);
    }

    #[inline]
    pub(crate) fn add_buffers(&self, category: Category, change: i64) {
        if let Some(tally) = self.tally() {
            // One writer: a load and a store will do, which is far cheaper than an atomic addition.
            let buffers = &tally.buffers[category as usize];
            buffers.store(buffers.load(Relaxed).wrapping_add(change), Relaxed);
        } else {
            ORPHANS.buffers[category as usize].fetch_add(change, Relaxed);
        }
    }
}

fn sum<T: std::iter::Sum>(of: impl Fn(&Tally) -> T) -> T {
    lock(&TALLIES).all.iter().copied().chain([&ORPHANS]).map(of).sum()
}

/// Buffers ever made, over all threads.
pub(crate) fn allocations() -> u64 {
    sum(|tally| tally.allocations.load(Relaxed))
}

/// Live buffers of a category, over all threads.
pub(crate) fn buffers(category: Category) -> usize {
    // While other threads run, the sum may miss the making of a buffer whose drop it saw.
    sum(|tally| tally.buffers[category as usize].load(Relaxed)).max(0) as usize
}

/// Bytes idle in the caches of all threads.
pub(crate) fn cached_bytes() -> usize {
    sum(Tally::idle)
}
