//! The lines of a view along one axis, processed in parallel with scratch memory for each thread.

use crate::index::runs::Runs;
use crate::{Element, View, pool};
use std::marker::PhantomData;

/// The most shares of scratch memory, and so the most threads that process lines that need it.
const SHARES: usize = 8;

/// The number of shares for `lines` lines.
pub(super) fn shares(lines: usize) -> usize {
    lines.min(SHARES)
}

/// The lines of `x` along an axis, in row-major order of the other coordinates.
pub(super) struct Lines<'a, T> {
    data: &'a [T],
    starts: Runs,
    pub(super) count: usize,
    pub(super) len: usize,
    stride: isize,
}

impl<'a, T: Element> Lines<'a, T> {
    pub(super) fn new(x: View<'a>, axis: usize) -> Lines<'a, T> {
        let dims = x.shape().iter().copied().zip(x.strides().iter().copied()).enumerate();
        let others = dims.filter(|(d, _)| *d != axis).map(|(_, dim)| dim);
        Lines {
            data: x.data(),
            starts: Runs::new(x.offset(), others.clone()),
            count: others.map(|(len, _)| len).product(),
            len: x.shape()[axis],
            stride: x.strides()[axis],
        }
    }

    /// Line number `i`.
    pub(super) fn line(&self, i: usize) -> Line<'a, T> {
        Line { data: self.data, start: self.starts.offset_at(i), stride: self.stride, len: self.len }
    }
}

/// One line: elements at a constant stride.
#[derive(Clone, Copy)]
pub(super) struct Line<'a, T> {
    data: &'a [T],
    start: isize,
    stride: isize,
    pub(super) len: usize,
}

impl<T: Copy> Line<'_, T> {
    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> T {
        self.data[(self.start + i as isize * self.stride) as usize]
    }
}

/// An output that several threads write, each to elements of its own.
pub(super) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: the only access is `write`, whose callers promise that no element is written by two threads.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T: Copy> Shared<'a, T> {
    pub(super) fn new(slice: &'a mut [T]) -> Shared<'a, T> {
        Shared { start: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }

    /// Writes element `i`.
    ///
    /// # Safety
    /// No other thread writes element `i` while this output is shared.
    #[inline(always)]
    pub(super) unsafe fn write(&self, i: usize, value: T) {
        assert!(i < self.len);
        // SAFETY: in bounds by the line above, and unaliased by the caller's promise.
        unsafe { self.start.add(i).write(value) }
    }
}

/// Calls `work(line number, slots)` for every line, in parallel, with `slots` a part of the scratch that no other
/// call uses at the same time.
pub(super) fn for_each_line<S: Send>(
    count: usize,
    slots: &mut [S],
    per_line: usize,
    work: impl Fn(usize, &mut [S]) + Sync,
) {
    if count == 0 {
        return;
    }
    let per_share = count.div_ceil(shares(count));
    // Lines of length zero need no scratch.
    if per_line == 0 {
        (0..count).for_each(|i| work(i, &mut []));
        return;
    }
    pool::for_each_mut(&mut slots[..shares(count) * per_line], per_line, |at, slots| {
        let first = at / per_line * per_share;
        for i in first..(first + per_share).min(count) {
            work(i, slots);
        }
    });
}
