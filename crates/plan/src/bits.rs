//! Bit sets: slices of 64-bit words.

/// The members in one word of a set, in rising order; `word` is the index of the word.
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

/// The intersection of two sets, in rising order.
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
