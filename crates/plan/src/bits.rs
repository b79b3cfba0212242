//! Sets of small numbers in words of 64 bits.

/// The numbers in one word of a set, in rising order; `word` is its index.
pub fn ones(word: usize, bits: u64) -> impl Iterator<Item = usize> {
    let mut left = bits;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let bit = left.trailing_zeros() as usize;
        left &= left - 1;
        Some(word * 64 + bit)
    })
}

/// The numbers that are in both sets, in rising order.
pub fn both(a: &[u64], b: &[u64]) -> impl Iterator<Item = usize> {
    a.iter().zip(b).enumerate().flat_map(|(word, (x, y))| ones(word, x & y))
}

pub fn has(set: &[u64], i: usize) -> bool {
    set[i / 64] >> (i % 64) & 1 == 1
}

pub fn add(set: &mut [u64], i: usize) {
    set[i / 64] |= 1 << (i % 64);
}

pub fn remove(set: &mut [u64], i: usize) {
    set[i / 64] &= !(1 << (i % 64));
}
