//! Counter-based random numbers: a function of (seed, epoch, index).

use taut_kernels::random::{Key, random_bits};
use taut_kernels::{DType, ViewMut};

/// Numbers generated at a time.
const BLOCK: usize = 64;

/// A sequence of random numbers with random access.
pub(crate) struct RandomSequence {
    key: Key,
    block: u64,
    bits: [u64; BLOCK],
}

impl RandomSequence {
    pub(crate) fn new(seed: u64, epoch: u64) -> RandomSequence {
        let mut random = RandomSequence { key: Key { seed, op: epoch }, block: 0, bits: [0; BLOCK] };
        random.fill();
        random
    }

    fn fill(&mut self) {
        let out = ViewMut::new(DType::U64, bytemuck::cast_slice_mut(&mut self.bits), &[BLOCK]);
        random_bits(self.key, self.block * BLOCK as u64, out);
    }

    /// Number `index` of the sequence.
    fn bits(&mut self, index: u64) -> u64 {
        let block = index / BLOCK as u64;
        if block != self.block {
            self.block = block;
            self.fill();
        }
        self.bits[(index % BLOCK as u64) as usize]
    }

    /// Number `index` of the sequence, as an integer in `[0, count)`.
    pub(crate) fn below(&mut self, index: u64, count: usize) -> usize {
        let bits = self.bits(index);
        // The upper half of the product; the bias is below count / 2^64.
        ((u128::from(bits) * count as u128) >> 64) as usize
    }

    /// Number `index` of the sequence, as a float in [0, 1).
    pub(crate) fn unit(&mut self, index: u64) -> f64 {
        (self.bits(index) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_random() {
        let mut forward = RandomSequence::new(7, 2);
        let all: Vec<usize> = (0..200).map(|i| forward.below(i, 1000)).collect();
        let mut backward = RandomSequence::new(7, 2);
        let mut back: Vec<usize> = (0..200).rev().map(|i| backward.below(i, 1000)).collect();
        back.reverse();
        assert_eq!(all, back);
        let mut other = RandomSequence::new(7, 3);
        assert_ne!(all, (0..200).map(|i| other.below(i, 1000)).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut random = RandomSequence::new(1, 0);
        let mut counts = [0; 10];
        (0..10_000).for_each(|i| counts[random.below(i, 10)] += 1);
        // 1000 each; five standard deviations are 150.
        assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }
}
