//! Checks the buffers to pack, and splits them into the connected components of their interval graph.

use crate::packing::{LiveBuffer, MAX_TOTAL_BYTES, PackError};
use std::collections::BTreeMap;

/// A buffer of at least one byte: its live range `[start, end)` and its size.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    /// Its index among the buffers to pack.
    pub id: usize,
    /// Bytes before rounding.
    pub raw: u64,
    /// Bytes rounded up to the grain.
    pub size: u64,
    pub start: u32,
    pub end: u32,
    pub align: u64,
}

impl Interval {
    /// The length of the live range.
    pub fn time(&self) -> u64 {
        u64::from(self.end - self.start)
    }
}

/// The buffers to pack, without empty ones.
pub struct PackingProblem {
    /// Connected components of the interval graph, in the order of time: live ranges of different components are disjoint.
    pub components: Vec<Vec<Interval>>,
    /// The greatest common divisor of the alignments: every offset is a multiple of it.
    pub grain: u64,
    /// Packed sizes are multiples of this, up to the grain.
    pub unit: u64,
    /// The most bytes that are live at one instant.
    pub lower_bound: u64,
}

impl PackingProblem {
    pub fn new(buffers: &[LiveBuffer]) -> Result<PackingProblem, PackError> {
        check(buffers)?;
        let non_empty = || buffers.iter().enumerate().filter(|(_, b)| b.size > 0);
        let grain = non_empty().fold(0, |g, (_, b)| gcd(g, b.align as u64)).max(1);
        let interval = |(id, b): (usize, &LiveBuffer)| {
            let raw = b.size as u64;
            let (size, align) = (raw.next_multiple_of(grain), b.align as u64);
            Interval { id, raw, size, start: b.start, end: b.end, align }
        };
        let intervals: Vec<Interval> = non_empty().map(interval).collect();
        // Alignment 1 moves nothing, so it does not make sums of sizes any finer.
        let fold = |g, i: &Interval| gcd(gcd(g, i.size), if i.align > 1 { i.align } else { 0 });
        let unit = intervals.iter().fold(0, fold).max(1);
        let lower_bound = max_live_bytes(&intervals);
        Ok(PackingProblem { components: components(intervals), grain, unit, lower_bound })
    }
}

fn check(buffers: &[LiveBuffer]) -> Result<(), PackError> {
    let mut total = 0usize;
    for (buffer, b) in buffers.iter().enumerate() {
        if b.end <= b.start {
            return Err(PackError::NeverAlive { buffer });
        }
        if b.align == 0 {
            return Err(PackError::NoAlignment { buffer });
        }
        let bytes = b.size.checked_add(b.align).ok_or(PackError::TooLarge)?;
        let fits = |&total: &usize| total <= MAX_TOTAL_BYTES;
        total = total.checked_add(bytes).filter(fits).ok_or(PackError::TooLarge)?;
    }
    Ok(())
}

/// The most bytes that are live at one instant: a lower bound of every packing. The buffer that ends highest needs no
/// rounding, so the largest padding of each instant is subtracted.
fn max_live_bytes(intervals: &[Interval]) -> u64 {
    let mut events: Vec<(u32, bool, u64, u64)> = Vec::new();
    for i in intervals {
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

/// Splits at every instant that no live range spans.
fn components(mut intervals: Vec<Interval>) -> Vec<Vec<Interval>> {
    intervals.sort_by_key(|i| (i.start, i.id));
    let mut components: Vec<Vec<Interval>> = Vec::new();
    let mut end = 0;
    for interval in intervals {
        match components.last_mut() {
            Some(component) if interval.start < end => component.push(interval),
            _ => components.push(vec![interval]),
        }
        end = end.max(interval.end);
    }
    components
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
