//! Placing buffers one by one in a fixed order.

use crate::parts::Item;
use std::cmp::Reverse;

/// Looks at placed buffers that are always worth it: a few milliseconds, enough for all orders of 400 buffers.
pub const QUICK: u64 = 1_000_000;

/// Where a buffer goes among the gaps that it fits in.
#[derive(Clone, Copy, PartialEq)]
enum Fit {
    Lowest,
    Tightest,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// By start: what has ended leaves its room to those that come.
    Forward,
    /// By end, from the last: the same with time reversed.
    Backward,
    /// Those of the fullest instant first, then those of the next: what is tight is stacked without a gap.
    Peak,
    Area,
    Size,
    Time,
}

/// The likely ones first: the first that reaches the load ends it.
const ORDERS: [Order; 6] =
    [Order::Forward, Order::Backward, Order::Peak, Order::Area, Order::Size, Order::Time];

/// The best of the orders that were tried.
pub struct Greedy {
    /// Per item.
    pub offsets: Vec<u64>,
    pub bytes: u64,
    /// How often a placed buffer was looked at.
    pub looks: u64,
    /// Whether there was enough work for all orders.
    pub complete: bool,
}

/// Tries all orders. It stops at `goal` bytes, or after so many looks; the first order is always completed.
pub fn portfolio(items: &[Item], goal: u64, most: u64) -> Greedy {
    let mut best = Greedy { offsets: Vec::new(), bytes: u64::MAX, looks: 0, complete: true };
    for tie in [false, true] {
        for fit in [Fit::Lowest, Fit::Tightest] {
            for order in ORDERS {
                let most = if best.offsets.is_empty() { u64::MAX } else { most };
                if best.bytes <= goal {
                    return best;
                }
                if let Some((offsets, bytes)) =
                    place(items, order, fit, tie, best.bytes, &mut best.looks, most)
                {
                    (best.offsets, best.bytes) = (offsets, bytes);
                }
                best.complete &= best.looks <= most;
            }
        }
    }
    best
}

fn sorted(items: &[Item], order: Order, tie: bool) -> Vec<usize> {
    let mut list: Vec<usize> = (0..items.len()).collect();
    // Of equals in size or length, the earlier first or the later; of equals in time, the larger or the longer.
    let late = |i: usize| if tie { u64::from(u32::MAX - items[i].start) } else { u64::from(items[i].start) };
    let small = |i: usize| Reverse(if tie { items[i].time() } else { items[i].size });
    let area = |i: usize| u128::from(items[i].size) * u128::from(items[i].time());
    match order {
        Order::Forward => list.sort_by_key(|&i| (items[i].start, small(i), i)),
        Order::Backward => list.sort_by_key(|&i| (Reverse(items[i].end), small(i), i)),
        Order::Peak => {
            let peaks = peaks(items);
            let long = |i: usize| Reverse(if tie { items[i].size } else { items[i].time() });
            list.sort_by_key(|&i| (Reverse(peaks[i]), long(i), i));
        }
        Order::Area => list.sort_by_key(|&i| (Reverse(area(i)), late(i), i)),
        Order::Size => list.sort_by_key(|&i| (Reverse(items[i].size), Reverse(items[i].time()), late(i), i)),
        Order::Time => list.sort_by_key(|&i| (Reverse(items[i].time()), Reverse(items[i].size), late(i), i)),
    }
    list
}

/// Per item, the most bytes that are alive at some instant of its life.
fn peaks(items: &[Item]) -> Vec<u64> {
    let mut events: Vec<(u32, bool, u64)> = Vec::new();
    for i in items {
        events.extend([(i.start, true, i.size), (i.end, false, i.size)]);
    }
    events.sort_unstable();
    // The load after the last event of each instant.
    let mut loads: Vec<(u32, u64)> = Vec::new();
    let mut now = 0;
    for (time, begins, size) in events {
        now = if begins { now + size } else { now - size };
        match loads.last_mut() {
            Some(last) if last.0 == time => last.1 = now,
            _ => loads.push((time, now)),
        }
    }
    // Row k has the most of 2^k neighbours, so two of them cover any range.
    let mut rows: Vec<Vec<u64>> = vec![loads.iter().map(|load| load.1).collect()];
    let mut step = 1;
    while let Some(row) = rows.last().filter(|row| row.len() > step) {
        let next = row.iter().zip(&row[step..]).map(|(a, b)| *a.max(b)).collect();
        rows.push(next);
        step *= 2;
    }
    let at = |time: u32| loads.partition_point(|load| load.0 < time);
    let peak = |i: &Item| {
        let (from, to) = (at(i.start), at(i.end));
        let row = (to - from).ilog2() as usize;
        rows[row][from].max(rows[row][to - (1 << row)])
    };
    items.iter().map(peak).collect()
}

/// A placed buffer.
struct Slot {
    offset: u64,
    top: u64,
    start: u32,
    end: u32,
}

/// All items in one order, or none if that takes `bound` bytes or more, or too much work.
fn place(
    items: &[Item],
    order: Order,
    fit: Fit,
    tie: bool,
    bound: u64,
    looks: &mut u64,
    most: u64,
) -> Option<(Vec<u64>, u64)> {
    if *looks > most {
        return None;
    }
    let mut offsets = vec![0; items.len()];
    let mut bytes = 0;
    let mut slots: Vec<Slot> = Vec::new();
    for i in sorted(items, order, tie) {
        let item = &items[i];
        // In the order of time, what has ended meets nobody who is still to come.
        match order {
            Order::Forward => slots.retain(|slot| slot.end > item.start),
            Order::Backward => slots.retain(|slot| slot.start < item.end),
            _ => {}
        }
        let (offset, slots_seen) = lowest(&slots, item, fit);
        let top = offset + item.size;
        *looks += slots_seen as u64;
        if top >= bound || *looks > most {
            return None;
        }
        offsets[i] = offset;
        bytes = bytes.max(top);
        let at = slots.partition_point(|slot| slot.offset < offset);
        slots.insert(at, Slot { offset, top, start: item.start, end: item.end });
    }
    Some((offsets, bytes))
}

/// Where the item goes, and how many slots were looked at; they are sorted by offset.
fn lowest(slots: &[Slot], item: &Item, fit: Fit) -> (u64, usize) {
    // All slots so far that are in the way end at or below this.
    let mut floor = 0;
    let mut tightest: Option<(u64, u64)> = None;
    for (looks, slot) in slots.iter().enumerate() {
        if slot.start >= item.end || slot.end <= item.start {
            continue;
        }
        if slot.offset >= floor + item.size {
            let offset = floor.next_multiple_of(item.align);
            let gap = slot.offset - floor;
            if slot.offset >= offset + item.size && tightest.is_none_or(|(least, _)| gap < least) {
                tightest = Some((gap, offset));
                if fit == Fit::Lowest {
                    return (offset, looks + 1);
                }
            }
        }
        floor = floor.max(slot.top);
    }
    let offset = tightest.map_or(floor.next_multiple_of(item.align), |(_, offset)| offset);
    (offset, slots.len())
}
