//! The process limit.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::allocator;
use crate::ledger::live_bytes;

const NONE: usize = usize::MAX;

static LIMIT: AtomicUsize = AtomicUsize::new(NONE);

/// Limits the bytes of the process, live and idle together, and returns the previous limit. `None` removes it.
///
/// A request that would exceed the limit first returns idle blocks to the system, the least recently used first, and
/// fails only if it exceeds the limit together with the live bytes alone. A limit below the live bytes frees nothing:
/// requests fail until enough is freed.
///
/// Idle blocks in the caches of *other* threads (at most 512 KiB per thread) cannot be freed from this thread, and do not
/// make a request fail.
///
/// ```
/// use taut_memory::{Buffer, Category, limit, live_bytes};
///
/// let previous = limit(live_bytes() + 1000);
/// let first = Buffer::new(600, Category::Tensor)?;
/// let error = Buffer::new(600, Category::Tensor).unwrap_err();
/// assert_eq!(error.requested, 600);
/// drop(first);
/// assert!(Buffer::new(600, Category::Tensor).is_ok());
/// limit(previous);
/// # Ok::<(), taut_memory::OutOfMemory>(())
/// ```
pub fn limit(bytes: impl Into<Option<usize>>) -> Option<usize> {
    let previous = LIMIT.swap(bytes.into().unwrap_or(NONE), Relaxed);
    make_room(0);
    (previous != NONE).then_some(previous)
}

/// The limit in force.
#[inline]
pub fn current_limit() -> Option<usize> {
    let limit = LIMIT.load(Relaxed);
    (limit != NONE).then_some(limit)
}

/// Whether the limit allows this many bytes beyond the live ones, with no block idle.
#[inline]
pub(crate) fn allows(bytes: usize) -> bool {
    current_limit().is_none_or(|limit| live_bytes().checked_add(bytes).is_some_and(|sum| sum <= limit))
}

/// Frees idle blocks until this many bytes of fresh memory fit under the limit.
pub(crate) fn make_room(bytes: usize) {
    if let Some(limit) = current_limit() {
        let held = live_bytes().saturating_add(bytes).saturating_add(allocator::trimmable_bytes());
        if held > limit {
            allocator::shrink(held - limit);
        }
    }
}

/// The most bytes that may be idle under the limit.
pub(crate) fn max_idle_bytes() -> usize {
    current_limit().map_or(usize::MAX, |limit| limit.saturating_sub(live_bytes()))
}
