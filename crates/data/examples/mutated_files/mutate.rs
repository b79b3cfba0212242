//! Changes of files, from seeds.

/// Random numbers (splitmix64).
pub struct Random(u64);

impl Random {
    /// The numbers of one input.
    pub fn new(format: &str, seed: u64, number: u64) -> Random {
        let name = format.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut random = Random(name ^ seed.rotate_left(32) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[0, most)`; 0 if `most` is 0.
    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

/// One of the originals with one to six changes.
pub fn mutated(originals: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut file = originals[random.below(originals.len())].clone();
    for _ in 0..=random.below(6) {
        change(&mut file, originals, random);
    }
    file
}

fn change(file: &mut Vec<u8>, originals: &[Vec<u8>], random: &mut Random) {
    // Half of the changes are near the start, where headers are.
    let reach = if random.below(2) == 0 { file.len().min(64) } else { file.len() };
    let at = random.below(reach + 1).min(file.len());
    let until = (at + 1 + random.below(16)).min(file.len());
    match random.below(9) {
        0 | 1 => {
            if let Some(byte) = file.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        2 => {
            if let Some(byte) = file.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        3 => drop(file.drain(at..until)),
        4 => {
            let bytes = random.next().to_le_bytes();
            let count = 1 + random.below(8);
            file.splice(at..at, bytes[..count].iter().copied());
        }
        5 => {
            let part = file[at..until].to_vec();
            file.splice(at..at, part);
        }
        6 => file.truncate(at),
        7 => {
            // A number that a length or a size might be: a power of two, one less, or all bits set.
            let value = (1u64 << random.below(64)).wrapping_sub(random.below(2) as u64);
            let width = 1 << random.below(4);
            let bytes = if random.below(2) == 0 {
                value.to_le_bytes()[..width].to_vec()
            } else {
                value.to_be_bytes()[8 - width..].to_vec()
            };
            for (to, from) in file[at..].iter_mut().zip(bytes) {
                *to = from;
            }
        }
        _ => {
            // The rest of another file of the format.
            let other = &originals[random.below(originals.len())];
            let from = random.below(other.len() + 1);
            file.truncate(at);
            file.extend_from_slice(&other[from..]);
        }
    }
}

/// Corrects the checksums of the chunks of a PNG image, so that changes reach the decoder.
pub fn repair_png(file: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = file.get(at..at + 4) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let end = at + 8 + length;
        if file.len() < end + 4 {
            return;
        }
        let mut crc = flate2::Crc::new();
        crc.update(&file[at + 4..end]);
        file[end..end + 4].copy_from_slice(&crc.sum().to_be_bytes());
        at = end + 4;
    }
}

/// Corrects the checksums of TFRecords.
pub fn repair_records(file: &mut [u8]) {
    let mut at = 0;
    while at + 12 <= file.len() {
        let length = u64::from_le_bytes(std::array::from_fn(|i| file[at + i]));
        let check = masked(&file[at..at + 8]);
        file[at + 8..at + 12].copy_from_slice(&check);
        let Some(end) = usize::try_from(length).ok().and_then(|length| length.checked_add(at + 12)) else {
            return;
        };
        if end.checked_add(4).is_none_or(|end| end > file.len()) {
            return;
        }
        let check = masked(&file[at + 12..end]);
        file[end..end + 4].copy_from_slice(&check);
        at = end + 4;
    }
}

fn masked(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    let crc = !bytes.iter().fold(!0u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)));
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}
