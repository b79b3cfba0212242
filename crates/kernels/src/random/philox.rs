//! Philox4x32 with ten rounds, the counter-based generator of Salmon, Moraes, Dror and Shaw (2011).

use super::Key;

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: u32 = 10;

/// Counters drawn side by side.
pub(super) const LANES: usize = 8;

/// What a group of counters gives: word `w` of lane `l` is `words[w][l]`.
pub(super) type Words = [[u32; LANES]; 4];

/// The 128 random bits of a counter under a key.
pub(super) fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _ in 0..ROUNDS {
        let [low, high] = [c[0], c[2]].map(u64::from);
        let [a, b] = [low * u64::from(MULTIPLIERS[0]), high * u64::from(MULTIPLIERS[1])];
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

/// The words of counters `8 * number..8 * number + 8` under a key.
#[inline(always)]
pub(super) fn group(key: Key, number: u64) -> Words {
    // Words are in the low halves of 64-bit lanes, where vector multiplication reads its operands; the upper halves
    // are never read.
    let first = number.wrapping_mul(LANES as u64);
    let counters: [u64; LANES] = std::array::from_fn(|l| first + l as u64);
    let mut c = [counters, counters.map(|counter| counter >> 32), [key.op; LANES], [key.op >> 32; LANES]];
    let mut k = [key.seed as u32, (key.seed >> 32) as u32];
    for _ in 0..ROUNDS {
        let before = c;
        for l in 0..LANES {
            let a = (before[0][l] & 0xffff_ffff) * u64::from(MULTIPLIERS[0]);
            let b = (before[2][l] & 0xffff_ffff) * u64::from(MULTIPLIERS[1]);
            c[0][l] = (b >> 32) ^ before[1][l] ^ u64::from(k[0]);
            c[1][l] = b;
            c[2][l] = (a >> 32) ^ before[3][l] ^ u64::from(k[1]);
            c[3][l] = a;
        }
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c.map(|lanes| lanes.map(|word| word as u32))
}

/// The bits of one counter, outside any group.
pub(super) fn block(key: Key, counter: u64) -> [u32; 4] {
    let halves = |v: u64| [v as u32, (v >> 32) as u32];
    let ([a, b], [c, d]) = (halves(counter), halves(key.op));
    philox([a, b, c, d], halves(key.seed))
}

/// A generator of its own for one element: as many bits as it needs.
pub(super) struct Stream {
    key: [u32; 2],
    drawn: u32,
}

impl Stream {
    /// The generator of element `index`.
    pub(super) fn new(key: Key, index: u64) -> Stream {
        let [a, b, ..] = block(key, index);
        Stream { key: [a, b], drawn: 0 }
    }

    /// The next 128 bits, as two words.
    pub(super) fn next(&mut self) -> [u64; 2] {
        let [a, b, c, d] = philox([self.drawn, 0, 0, 0], self.key);
        self.drawn += 1;
        [join(a, b), join(c, d)]
    }
}

/// One 64-bit word of two.
#[inline(always)]
pub(super) fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The 64-bit words of a group: 16 of them, the first eight from the first two words of each lane.
#[inline(always)]
pub(super) fn join_all(words: &Words) -> [[u64; LANES]; 2] {
    let mut wide = [[0; LANES]; 2];
    for l in 0..LANES {
        wide[0][l] = join(words[0][l], words[1][l]);
        wide[1][l] = join(words[2][l], words[3][l]);
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors() {
        let answers = [
            ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
            (
                [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
                [0xa4093822, 0x299f31d0],
                [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
            ),
        ];
        for (counter, key, expected) in answers {
            assert_eq!(philox(counter, key), expected);
        }
    }

    #[test]
    fn a_group_is_eight_counters() {
        let key = Key { seed: 0x299f31d0_a4093822, op: 0x03707344_13198a2e };
        for number in [0, 1, 77, (1 << 29) - 1, 1 << 29, u64::MAX >> 3] {
            let words = group(key, number);
            for l in 0..LANES {
                assert_eq!(words.map(|lanes| lanes[l]), block(key, number * 8 + l as u64));
            }
        }
        // The counter of the published vector, reached through its group.
        let counter = 0x85a308d3_243f6a88u64;
        let words = group(key, counter / 8);
        assert_eq!(
            [0, 1, 2, 3].map(|w| words[w][counter as usize % 8]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }
}
