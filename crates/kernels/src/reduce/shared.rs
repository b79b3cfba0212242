//! Room for the values of a tile of outputs, and outputs whose elements several threads write, each thread its own, where
//! they do not form chunks.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// How many outputs are computed together down columns, and the size of a row's piece that is gathered.
pub(crate) const WIDE: usize = 512;

/// Room for one value per output of a tile. Only those in use are set: setting all of them takes time.
pub(crate) struct PerOutput<T>([MaybeUninit<T>; WIDE]);

impl<T: Copy> PerOutput<T> {
    #[inline(always)]
    pub(crate) const fn new() -> PerOutput<T> {
        PerOutput([const { MaybeUninit::uninit() }; WIDE])
    }

    /// The first `len` values, set to `value`.
    #[inline]
    pub(crate) fn filled(&mut self, len: usize, value: T) -> &mut [T] {
        let values = &mut self.0[..len];
        values.fill(MaybeUninit::new(value));
        // SAFETY: these values were just set.
        unsafe { values.assume_init_mut() }
    }
}

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
