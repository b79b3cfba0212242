//! Size classes, and idle blocks of them.

use std::ptr::NonNull;

use crate::allocator::{Allocator, System};

const GRANULE: usize = 64;
/// Up to this power of two, classes are multiples of the granule; above, there are four per power of two.
const LINEAR_BITS: u32 = 9;
const LINEAR: usize = (1 << LINEAR_BITS) / GRANULE;
/// The number of classes: enough for every size of a slice.
pub(super) const CLASSES: usize = LINEAR + 4 * (usize::BITS - 1 - LINEAR_BITS) as usize;
/// The number of classes, the smallest ones, that thread caches keep: up to 64 KiB.
pub(super) const CACHED: usize = LINEAR + 4 * (16 - LINEAR_BITS) as usize;

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SizeClass(u8);

impl SizeClass {
    pub(super) const fn number(index: usize) -> SizeClass {
        assert!(index < CLASSES);
        SizeClass(index as u8)
    }

    /// The smallest class of at least this many bytes; `None` for 0 bytes, and for more than a slice may have.
    #[inline]
    pub(super) const fn of(bytes: usize) -> Option<SizeClass> {
        let last = bytes.wrapping_sub(1);
        if last >= isize::MAX as usize {
            return None;
        }
        if last < 1 << LINEAR_BITS {
            return Some(SizeClass((last / GRANULE) as u8));
        }
        let power = last.ilog2();
        let quarter = (last >> (power - 2)) & 3;
        Some(SizeClass((LINEAR + 4 * (power - LINEAR_BITS) as usize + quarter) as u8))
    }

    /// The bytes of a block of this class.
    #[inline]
    pub(super) const fn size(self) -> usize {
        let index = self.0 as usize;
        if index < LINEAR {
            return (index + 1) * GRANULE;
        }
        let power = LINEAR_BITS as usize + (index - LINEAR) / 4;
        let quarters = 5 + (index - LINEAR) % 4;
        quarters << (power - 2)
    }

    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(super) const fn is_cached(self) -> bool {
        self.index() < CACHED
    }
}

/// An idle block: the value owns `class.size()` bytes of memory, which came from [`System`]. Dropping the value leaks the
/// block.
#[derive(Debug)]
#[must_use]
pub(super) struct IdleBlock {
    start: NonNull<u8>,
    class: SizeClass,
}

// SAFETY: a block is owned memory without other references.
unsafe impl Send for IdleBlock {}

impl IdleBlock {
    /// # Safety
    /// The block came from [`System`] with the size of the class of `bytes`, and is no longer used.
    #[inline]
    pub(super) unsafe fn from_raw(start: NonNull<u8>, bytes: usize) -> IdleBlock {
        let class = SizeClass::of(bytes).expect("the block was allocated for this many bytes");
        IdleBlock { start, class }
    }

    #[inline]
    pub(super) fn class(&self) -> SizeClass {
        self.class
    }

    #[inline]
    pub(super) fn into_raw(self) -> NonNull<u8> {
        self.start
    }

    /// The memory, with its first `bytes` bytes zero.
    pub(super) fn into_zeroed(self, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.min(self.class.size());
        // SAFETY: the block is owned by `self` and not shorter.
        unsafe { self.start.write_bytes(0, bytes) };
        self.start
    }

    /// Returns the memory to the system.
    pub(super) fn free(self) {
        // SAFETY: the block came from `System` with this size, and is owned by `self`.
        unsafe { System.release(self.start, self.class.size()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_tight_and_in_order() {
        let size = |bytes| SizeClass::of(bytes).unwrap().size();
        for (bytes, expected) in [
            (1, 64),
            (64, 64),
            (65, 128),
            (512, 512),
            (513, 640),
            (640, 640),
            (641, 768),
            (1024, 1024),
            (1025, 1280),
        ] {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
        for bytes in 1..200_000 {
            let (size, below) = (size(bytes), size(bytes.max(2) - 1));
            assert!(size >= bytes && below <= size, "{bytes}");
            assert!(size - bytes < 64 || (size - bytes) * 4 <= bytes, "{bytes} rounds to {size}");
            assert_eq!(size % 64, 0);
        }
    }

    #[test]
    fn sizes_and_classes_are_inverse() {
        for index in 0..CLASSES {
            let class = SizeClass::number(index);
            // The last class is one byte larger than the largest slice.
            let bytes = class.size().min(isize::MAX as usize);
            assert_eq!(SizeClass::of(bytes), Some(class));
        }
        assert_eq!(SizeClass::number(CACHED - 1).size(), 64 << 10);
    }

    #[test]
    fn the_extremes_have_no_class() {
        assert_eq!(SizeClass::of(0), None);
        assert_eq!(SizeClass::of(isize::MAX as usize + 1), None);
        assert_eq!(SizeClass::of(usize::MAX), None);
        assert_eq!(SizeClass::of(isize::MAX as usize), Some(SizeClass::number(CLASSES - 1)));
    }
}
