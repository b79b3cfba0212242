//! Placing buffers one by one in a fixed order.

use crate::parts::Item;
use std::cmp::Reverse;

/// Looks at placed buffers after which no further order is tried.
const WORK: u64 = 3_000_000;

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
    Area,
    Size,
    Time,
}

/// The likely ones first: the first that reaches the load ends it.
const ORDERS: [Order; 5] = [Order::Forward, Order::Backward, Order::Area, Order::Size, Order::Time];

/// The best of all orders: an offset per item, and the bytes they take. It stops at `goal` bytes.
pub fn portfolio(items: &[Item], goal: u64) -> (Vec<u64>, u64) {
    let mut best = (Vec::new(), u64::MAX);
    let mut work = 0;
    for tie in [false, true] {
        for fit in [Fit::Lowest, Fit::Tightest] {
            for order in ORDERS {
                let must = best.0.is_empty();
                if best.1 <= goal || (work > WORK && !must) {
                    return best;
                }
                let limit = if must { u64::MAX } else { WORK };
                if let Some(found) = place(items, order, fit, tie, best.1, &mut work, limit) {
                    best = found;
                }
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
        Order::Area => list.sort_by_key(|&i| (Reverse(area(i)), late(i), i)),
        Order::Size => list.sort_by_key(|&i| (Reverse(items[i].size), Reverse(items[i].time()), late(i), i)),
        Order::Time => list.sort_by_key(|&i| (Reverse(items[i].time()), Reverse(items[i].size), late(i), i)),
    }
    list
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
    work: &mut u64,
    limit: u64,
) -> Option<(Vec<u64>, u64)> {
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
        let (offset, looks) = lowest(&slots, item, fit);
        let top = offset + item.size;
        *work += looks as u64;
        if top >= bound || *work > limit {
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
