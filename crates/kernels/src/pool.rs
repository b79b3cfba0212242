//! The threads. (Serial until the claim-based pool is in.)

use std::ops::Range;

/// How many threads work on a large kernel, the caller included.
pub fn threads() -> usize {
    1
}

/// Calls `work` on consecutive ranges that together cover `0..len`, in parallel; every range but the last has
/// `chunk` elements.
pub fn for_each(len: usize, chunk: usize, work: impl Fn(Range<usize>) + Sync) {
    let chunk = chunk.max(1);
    let mut start = 0;
    while start < len {
        let end = (start + chunk).min(len);
        work(start..end);
        start = end;
    }
}

/// Splits `out` into chunks of `chunk` elements and calls `work(first index, chunk)` on each, in parallel.
pub fn for_each_mut<T: Send>(out: &mut [T], chunk: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let chunk = chunk.max(1);
    for (i, part) in out.chunks_mut(chunk).enumerate() {
        work(i * chunk, part);
    }
}
