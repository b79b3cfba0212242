//! Random numbers that depend on (seed, epoch, place) alone.

use taut_kernels::random::{Key, random_bits};
use taut_kernels::{DType, ViewMut};

/// Numbers made at a time.
const BLOCK: usize = 64;

/// A sequence of random numbers that can be entered anywhere.
pub(crate) struct Draws {
    key: Key,
    block: u64,
    bits: [u64; BLOCK],
}

impl Draws {
    pub(crate) fn new(seed: u64, epoch: u64) -> Draws {
        let mut draws = Draws { key: Key { seed, op: epoch }, block: 0, bits: [0; BLOCK] };
        draws.fill();
        draws
    }

    fn fill(&mut self) {
        let out = ViewMut::new(DType::U64, bytemuck::cast_slice_mut(&mut self.bits), &[BLOCK]);
        random_bits(self.key, self.block * BLOCK as u64, out);
    }

    /// Number `place` of the sequence.
    fn bits(&mut self, place: u64) -> u64 {
        let block = place / BLOCK as u64;
        if block != self.block {
            self.block = block;
            self.fill();
        }
        self.bits[(place % BLOCK as u64) as usize]
    }

    /// Number `place` of the sequence, as one of `0..count`.
    pub(crate) fn below(&mut self, place: u64, count: usize) -> usize {
        let bits = self.bits(place);
        // The upper half of the product; the bias is below count / 2^64.
        ((u128::from(bits) * count as u128) >> 64) as usize
    }

    /// Number `place` of the sequence, from 0 to 1, without 1.
    pub(crate) fn unit(&mut self, place: u64) -> f64 {
        (self.bits(place) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_can_be_entered() {
        let mut forward = Draws::new(7, 2);
        let all: Vec<usize> = (0..200).map(|place| forward.below(place, 1000)).collect();
        let mut backward = Draws::new(7, 2);
        let mut back: Vec<usize> = (0..200).rev().map(|place| backward.below(place, 1000)).collect();
        back.reverse();
        assert_eq!(all, back);
        let mut other = Draws::new(7, 3);
        assert_ne!(all, (0..200).map(|place| other.below(place, 1000)).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut draws = Draws::new(1, 0);
        let mut counts = [0; 10];
        (0..10_000).for_each(|place| counts[draws.below(place, 10)] += 1);
        // 1000 each; five standard deviations are 150.
        assert!(counts.iter().all(|&count| (850..1150).contains(&count)), "{counts:?}");
    }
}
