//! Several slices of one block at once: some shared, some mutable.

use std::marker::PhantomData;
use std::ops::Range;

/// Borrows several slices of one block, each checked against the earlier ones: a mutable slice overlaps no other.
///
/// ```
/// use taut_memory::DisjointSlices;
/// let mut block = [1u8, 2, 3, 4];
/// let mut borrowed = Vec::new();
/// let mut slices = DisjointSlices::new(&mut block, &mut borrowed);
/// let read = slices.read(0..2).unwrap();
/// let write = slices.write(2..4).unwrap();
/// write.copy_from_slice(read);
/// assert!(slices.write(1..3).is_none());
/// assert_eq!(block, [1, 2, 1, 2]);
/// ```
pub struct DisjointSlices<'a> {
    start: *mut u8,
    len: usize,
    /// The borrowed ranges, and whether each is mutable.
    borrowed: &'a mut Vec<(Range<usize>, bool)>,
    block: PhantomData<&'a mut [u8]>,
}

impl<'a> DisjointSlices<'a> {
    /// Borrows slices of `block`. `borrowed` holds the ranges; callers reuse its memory.
    pub fn new(block: &'a mut [u8], borrowed: &'a mut Vec<(Range<usize>, bool)>) -> DisjointSlices<'a> {
        borrowed.clear();
        DisjointSlices { start: block.as_mut_ptr(), len: block.len(), borrowed, block: PhantomData }
    }

    /// A shared slice; `None` if it is out of bounds or overlaps a mutable one.
    pub fn read(&mut self, range: Range<usize>) -> Option<&'a [u8]> {
        let range = self.borrow(range, false)?;
        // SAFETY: the range is inside the block, which is borrowed for 'a, and overlaps no mutable slice.
        Some(unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) })
    }

    /// A mutable slice; `None` if it is out of bounds or overlaps another one.
    pub fn write(&mut self, range: Range<usize>) -> Option<&'a mut [u8]> {
        let range = self.borrow(range, true)?;
        // SAFETY: the range is inside the block, which is borrowed mutably for 'a, and overlaps no other slice.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) })
    }

    fn borrow(&mut self, range: Range<usize>, mutable: bool) -> Option<Range<usize>> {
        if range.start > range.end || range.end > self.len {
            return None;
        }
        let overlaps = |other: &Range<usize>| range.start.max(other.start) < range.end.min(other.end);
        if self.borrowed.iter().any(|(other, other_mutable)| (mutable || *other_mutable) && overlaps(other)) {
            return None;
        }
        self.borrowed.push((range.clone(), mutable));
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::DisjointSlices;

    #[test]
    fn mutable_slices_overlap_no_other() {
        let (mut block, mut borrowed) = ([0u8; 16], Vec::new());
        let mut slices = DisjointSlices::new(&mut block, &mut borrowed);
        let (a, b) = (slices.read(0..8).unwrap(), slices.read(4..12).unwrap());
        assert!(slices.write(11..13).is_none());
        assert!(slices.write(7..7).is_some(), "an empty slice overlaps no other");
        let c = slices.write(12..16).unwrap();
        assert!(slices.read(15..16).is_none() && slices.write(12..16).is_none());
        assert!(slices.read(10..17).is_none());
        c.fill(7);
        assert_eq!((a[0], b[7], c[3]), (0, 0, 7));
    }
}
