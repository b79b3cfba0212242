//! Several parts of one block at once: some to read, some to write.

use std::marker::PhantomData;
use std::ops::Range;

/// Lends parts of one slice, each checked against those lent before: what is written overlaps nothing else.
///
/// ```
/// use taut_memory::Parts;
/// let mut block = [1u8, 2, 3, 4];
/// let mut lent = Vec::new();
/// let mut parts = Parts::new(&mut block, &mut lent);
/// let read = parts.read(0..2).unwrap();
/// let write = parts.write(2..4).unwrap();
/// write.copy_from_slice(read);
/// assert!(parts.write(1..3).is_none());
/// assert_eq!(block, [1, 2, 1, 2]);
/// ```
pub struct Parts<'a> {
    start: *mut u8,
    len: usize,
    lent: &'a mut Vec<(Range<usize>, bool)>,
    block: PhantomData<&'a mut [u8]>,
}

impl<'a> Parts<'a> {
    /// Lends parts of `block`. What was lent is noted in `lent`, whose memory is used again and again.
    pub fn new(block: &'a mut [u8], lent: &'a mut Vec<(Range<usize>, bool)>) -> Parts<'a> {
        lent.clear();
        Parts { start: block.as_mut_ptr(), len: block.len(), lent, block: PhantomData }
    }

    /// A part to read; `None` if it is outside the block or overlaps one that is written.
    pub fn read(&mut self, part: Range<usize>) -> Option<&'a [u8]> {
        let place = self.lend(part, false)?;
        // SAFETY: the part lies within the block, which is borrowed for 'a, and overlaps no part lent for writing.
        Some(unsafe { std::slice::from_raw_parts(self.start.add(place.start), place.len()) })
    }

    /// A part to write; `None` if it is outside the block or overlaps any other.
    pub fn write(&mut self, part: Range<usize>) -> Option<&'a mut [u8]> {
        let place = self.lend(part, true)?;
        // SAFETY: the part lies within the block, which is borrowed mutably for 'a, and overlaps no other part.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.add(place.start), place.len()) })
    }

    fn lend(&mut self, part: Range<usize>, write: bool) -> Option<Range<usize>> {
        if part.start > part.end || part.end > self.len {
            return None;
        }
        let overlaps = |other: &Range<usize>| part.start.max(other.start) < part.end.min(other.end);
        if self.lent.iter().any(|(other, written)| (write || *written) && overlaps(other)) {
            return None;
        }
        self.lent.push((part.clone(), write));
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::Parts;

    #[test]
    fn parts_that_are_written_overlap_nothing() {
        let (mut block, mut lent) = ([0u8; 16], Vec::new());
        let mut parts = Parts::new(&mut block, &mut lent);
        let (a, b) = (parts.read(0..8).unwrap(), parts.read(4..12).unwrap());
        assert!(parts.write(11..13).is_none());
        assert!(parts.write(7..7).is_some(), "nothing overlaps nothing");
        let c = parts.write(12..16).unwrap();
        assert!(parts.read(15..16).is_none() && parts.write(12..16).is_none());
        assert!(parts.read(10..17).is_none());
        c.fill(7);
        assert_eq!((a[0], b[7], c[3]), (0, 0, 7));
    }
}
