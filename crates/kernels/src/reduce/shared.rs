//! An output whose elements several threads write, each thread its own, where they do not form chunks.

use std::marker::PhantomData;

/// An output that several threads write.
pub(crate) struct Shared<'a, T> {
    out: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: elements are reached through `write` and `slice` alone, whose callers promise that no two threads name the
// same element.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T: Copy> Shared<'a, T> {
    pub(crate) fn new(out: &'a mut [T]) -> Shared<'a, T> {
        Shared { out: out.as_mut_ptr(), len: out.len(), borrow: PhantomData }
    }

    /// # Safety
    /// No other thread may reach element `i` while this view lives.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, i: usize, value: T) {
        assert!(i < self.len, "output too short");
        // SAFETY: in bounds by the check above; exclusive by this function's contract.
        unsafe { self.out.add(i).write(value) }
    }

    /// # Safety
    /// Elements `start..start + len` must not be accessed in another way while the slice is alive.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.len && len <= self.len - start, "output too short");
        // SAFETY: in bounds by the check above; exclusive by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.out.add(start), len) }
    }
}
