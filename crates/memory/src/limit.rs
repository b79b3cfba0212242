//! The process limit.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::allocator;
use crate::ledger::live_bytes;

const NONE: usize = usize::MAX;

static LIMIT: AtomicUsize = AtomicUsize::new(NONE);

/// Bounds the bytes the process may hold, live and idle together, and returns the limit that was in force. `None`
/// lifts it.
///
/// A request that would pass the limit first makes idle blocks go back to the system, those least recently used
/// first, and fails only if the live bytes alone leave no room for it. A limit below what is live now takes nothing
/// away from anyone: requests fail until enough has been dropped.
///
/// Idle blocks in the caches of *other* threads (at most 512 KiB a thread) cannot be taken back from here and do not
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

/// Whether the limit allows that many bytes more, once nothing is idle.
#[inline]
pub(crate) fn allows(bytes: usize) -> bool {
    current_limit().is_none_or(|limit| live_bytes().checked_add(bytes).is_some_and(|sum| sum <= limit))
}

/// Trims idle blocks until that many bytes of fresh memory fit under the limit.
pub(crate) fn make_room(bytes: usize) {
    if let Some(limit) = current_limit() {
        let held = live_bytes().saturating_add(bytes).saturating_add(allocator::trimmable_bytes());
        if held > limit {
            allocator::shrink(held - limit);
        }
    }
}

/// How many bytes may lie idle under the limit.
pub(crate) fn idle_room() -> usize {
    current_limit().map_or(usize::MAX, |limit| limit.saturating_sub(live_bytes()))
}
