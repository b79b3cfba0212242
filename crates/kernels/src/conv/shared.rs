//! Memory that the tasks of one kernel share: outputs they write different parts of, and scratch they take turns
//! in.

use crate::pool;
use std::marker::PhantomData;

/// An output of which every task writes its own elements.
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: the pointer is used only through `part`, whose callers keep the parts of different threads disjoint, as if
// the slice had been split and sent to them.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(super) fn new(slice: &'a mut [T]) -> Shared<'a, T> {
        Shared { start: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }

    /// Elements `at..at + len`, for writing.
    ///
    /// # Safety
    /// While the part lives, no other part that overlaps it does.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn part(&self, at: usize, len: usize) -> &mut [T] {
        assert!(at <= self.len && len <= self.len - at, "part outside its output");
        // SAFETY: in bounds as just checked, inside a slice borrowed for as long as `self`; unique as the caller
        // promises.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) }
    }

    /// Writes element `at`.
    ///
    /// # Safety
    /// No part that holds the element lives, and no other thread writes it.
    #[inline(always)]
    pub(super) unsafe fn put(&self, at: usize, value: T) {
        // SAFETY: the caller's promise is that of `part`.
        unsafe { self.part(at, 1)[0] = value };
    }
}

/// The alignment of scratch, and of every part of it.
pub(super) const LINE: usize = 64;

/// The bytes of `len` elements, up to the next line.
pub(super) const fn lines<T>(len: usize) -> usize {
    // What overflows cannot be allocated, and is refused there.
    match len.saturating_mul(size_of::<T>()).checked_next_multiple_of(LINE) {
        Some(bytes) => bytes,
        None => usize::MAX,
    }
}

/// Whether so many multiplications are worth starting threads for.
pub(super) fn worth_sharing(work: usize) -> bool {
    work >= 1 << 19
}

/// How many tasks run at once, each with its own slot of scratch.
pub(super) fn slots(tasks: usize, work: usize) -> usize {
    if worth_sharing(work) { pool::threads().min(tasks).max(1) } else { 1 }
}

/// Calls `work(task, slot)` for every task, in parallel; a slot is `bytes` bytes of scratch that no other task
/// uses at the same time. Which slot a task gets is not deterministic.
pub(super) fn with_slots(
    scratch: &mut [u8],
    bytes: usize,
    most: usize,
    tasks: usize,
    work: impl Fn(usize, &mut [u8]) + Sync,
) {
    let slots = (scratch.len() / bytes).min(most);
    assert!(slots > 0, "scratch too short: {} bytes for a task's {bytes}", scratch.len());
    pool::for_each_with_slot(&mut scratch[..slots * bytes], bytes, tasks, work);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn interrupted_tasks_end() {
        let (mut scratch, done) = ([0; 64], AtomicUsize::new(0));
        let finished = pool::interruptible(
            || true,
            || {
                with_slots(&mut scratch, 32, 1, 1000, |_, _| {
                    done.fetch_add(1, Ordering::Relaxed);
                });
            },
        );
        assert!(finished.is_none());
        assert_eq!(done.load(Ordering::Relaxed), 0);
    }
}
