//! Checks the input, and splits it where nothing is alive.

use crate::packing::{Buffer, PackError};
use std::collections::BTreeMap;

/// Sizes and alignments together may reach this: sums of a few offsets then stay far from overflow.
pub const MOST: usize = usize::MAX / 8;

/// A buffer that takes room, in the types the rest of the crate computes with.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Where it was in the input.
    pub id: usize,
    /// Bytes as given.
    pub raw: u64,
    /// Bytes rounded up to the grain.
    pub size: u64,
    pub start: u32,
    pub end: u32,
    pub align: u64,
}

impl Item {
    pub fn time(&self) -> u64 {
        u64::from(self.end - self.start)
    }
}

/// The input without what takes no room.
pub struct Input {
    /// In parts that share no instant, in the order of time.
    pub parts: Vec<Vec<Item>>,
    /// All offsets are multiples of this: the greatest common divisor of the alignments.
    pub grain: u64,
    /// Packed sizes are multiples of this, up to the grain.
    pub unit: u64,
    /// The load.
    pub lower_bound: u64,
}

pub fn read(buffers: &[Buffer]) -> Result<Input, PackError> {
    let mut sum = 0usize;
    for (buffer, b) in buffers.iter().enumerate() {
        if b.end <= b.start {
            return Err(PackError::NeverAlive { buffer });
        }
        if b.align == 0 {
            return Err(PackError::NoAlignment { buffer });
        }
        let room = b.size.checked_add(b.align).ok_or(PackError::TooLarge)?;
        sum = sum.checked_add(room).filter(|&sum| sum <= MOST).ok_or(PackError::TooLarge)?;
    }
    let takes_room = || buffers.iter().enumerate().filter(|(_, b)| b.size > 0);
    let grain = takes_room().fold(0, |g, (_, b)| gcd(g, b.align as u64)).max(1);
    let item = |(id, b): (usize, &Buffer)| {
        let raw = b.size as u64;
        let (size, align) = (raw.next_multiple_of(grain), b.align as u64);
        Item { id, raw, size, start: b.start, end: b.end, align }
    };
    let items: Vec<Item> = takes_room().map(item).collect();
    // Alignment 1 moves nothing, so it does not make sums of sizes any finer.
    let fold = |g, i: &Item| gcd(gcd(g, i.size), if i.align > 1 { i.align } else { 0 });
    let unit = items.iter().fold(0, fold).max(1);
    let lower_bound = load(&items);
    Ok(Input { parts: split(items), grain, unit, lower_bound })
}

/// The most bytes alive at once. The highest buffer of an instant needs no rounding, so the largest is taken off.
fn load(items: &[Item]) -> u64 {
    let mut events: Vec<(u32, bool, u64, u64)> = Vec::new();
    for i in items {
        events.extend([(i.start, true, i.size, i.size - i.raw), (i.end, false, i.size, i.size - i.raw)]);
    }
    events.sort_unstable();
    let (mut now, mut most) = (0, 0);
    let mut paddings: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, begins, size, padding) in events {
        if begins {
            now += size;
            *paddings.entry(padding).or_default() += 1;
        } else {
            now -= size;
            let left = paddings.entry(padding).or_default();
            *left -= 1;
            if *left == 0 {
                paddings.remove(&padding);
            }
        }
        most = most.max(now - paddings.last_key_value().map_or(0, |(padding, _)| *padding));
    }
    most
}

/// Cuts at every instant that nothing is alive across.
fn split(mut items: Vec<Item>) -> Vec<Vec<Item>> {
    items.sort_by_key(|i| (i.start, i.id));
    let mut parts: Vec<Vec<Item>> = Vec::new();
    let mut end = 0;
    for item in items {
        match parts.last_mut() {
            Some(part) if item.start < end => part.push(item),
            _ => parts.push(vec![item]),
        }
        end = end.max(item.end);
    }
    parts
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
