//! Greedy packing: buffers are placed one by one in a fixed order. All orders together are the portfolio.

use crate::problem::Interval;
use std::cmp::Reverse;

/// The visits to placed buffers that are always spent: a few milliseconds, enough for all orders of 400 buffers.
pub const QUICK: u64 = 1_000_000;

/// Which of the gaps that a buffer fits into it takes.
#[derive(Clone, Copy, PartialEq)]
enum Fit {
    Lowest,
    Tightest,
}

#[derive(Clone, Copy, PartialEq)]
enum PlacementOrder {
    /// By start: a buffer that has ended leaves its bytes to later ones.
    Forward,
    /// By end, the last first: the same with time reversed.
    Backward,
    /// By the most bytes live at one instant of the live range: where memory is tight, buffers are stacked without gaps.
    Peak,
    Area,
    Size,
    Time,
}

/// The orders most likely to reach the lower bound first: the portfolio ends with the first that does.
const ORDERS: [PlacementOrder; 6] = [
    PlacementOrder::Forward,
    PlacementOrder::Backward,
    PlacementOrder::Peak,
    PlacementOrder::Area,
    PlacementOrder::Size,
    PlacementOrder::Time,
];

/// The best packing of the orders that were tried.
pub struct GreedyPacking {
    /// Per interval.
    pub offsets: Vec<u64>,
    pub bytes: u64,
    /// Visits to placed buffers, over all orders.
    pub visits: u64,
    /// Whether every order was completed within the visits allowed.
    pub complete: bool,
}

/// Tries all orders. Stops at `goal` bytes or after `most` visits; the first order is always completed.
pub fn portfolio(intervals: &[Interval], goal: u64, most: u64) -> GreedyPacking {
    let mut best = GreedyPacking { offsets: Vec::new(), bytes: u64::MAX, visits: 0, complete: true };
    for tie in [false, true] {
        for fit in [Fit::Lowest, Fit::Tightest] {
            for order in ORDERS {
                let most = if best.offsets.is_empty() { u64::MAX } else { most };
                if best.bytes <= goal {
                    return best;
                }
                if let Some((offsets, bytes)) =
                    place(intervals, order, fit, tie, best.bytes, &mut best.visits, most)
                {
                    (best.offsets, best.bytes) = (offsets, bytes);
                }
                best.complete &= best.visits <= most;
            }
        }
    }
    best
}

fn sorted(intervals: &[Interval], order: PlacementOrder, tie: bool) -> Vec<usize> {
    let mut list: Vec<usize> = (0..intervals.len()).collect();
    // Ties in size or length go to the earlier or the later buffer, ties in time to the larger or the longer one.
    let late =
        |i: usize| if tie { u64::from(u32::MAX - intervals[i].start) } else { u64::from(intervals[i].start) };
    let small = |i: usize| Reverse(if tie { intervals[i].time() } else { intervals[i].size });
    let area = |i: usize| u128::from(intervals[i].size) * u128::from(intervals[i].time());
    match order {
        PlacementOrder::Forward => list.sort_by_key(|&i| (intervals[i].start, small(i), i)),
        PlacementOrder::Backward => list.sort_by_key(|&i| (Reverse(intervals[i].end), small(i), i)),
        PlacementOrder::Peak => {
            let peaks = peaks(intervals);
            let long = |i: usize| Reverse(if tie { intervals[i].size } else { intervals[i].time() });
            list.sort_by_key(|&i| (Reverse(peaks[i]), long(i), i));
        }
        PlacementOrder::Area => list.sort_by_key(|&i| (Reverse(area(i)), late(i), i)),
        PlacementOrder::Size => {
            list.sort_by_key(|&i| (Reverse(intervals[i].size), Reverse(intervals[i].time()), late(i), i));
        }
        PlacementOrder::Time => {
            list.sort_by_key(|&i| (Reverse(intervals[i].time()), Reverse(intervals[i].size), late(i), i));
        }
    }
    list
}

/// Per interval, the most bytes live at one instant of its live range.
fn peaks(intervals: &[Interval]) -> Vec<u64> {
    let mut events: Vec<(u32, bool, u64)> = Vec::new();
    for i in intervals {
        events.extend([(i.start, true, i.size), (i.end, false, i.size)]);
    }
    events.sort_unstable();
    // The bytes live after the last event of each instant.
    let mut live: Vec<(u32, u64)> = Vec::new();
    let mut now = 0;
    for (time, begins, size) in events {
        now = if begins { now + size } else { now - size };
        match live.last_mut() {
            Some(last) if last.0 == time => last.1 = now,
            _ => live.push((time, now)),
        }
    }
    // A sparse table: row k has the maximum of 2^k neighbours, so two of its entries cover any range.
    let mut rows: Vec<Vec<u64>> = vec![live.iter().map(|&(_, bytes)| bytes).collect()];
    let mut step = 1;
    while let Some(row) = rows.last().filter(|row| row.len() > step) {
        let next = row.iter().zip(&row[step..]).map(|(a, b)| *a.max(b)).collect();
        rows.push(next);
        step *= 2;
    }
    let at = |time: u32| live.partition_point(|&(instant, _)| instant < time);
    let peak = |i: &Interval| {
        let (from, to) = (at(i.start), at(i.end));
        let row = (to - from).ilog2() as usize;
        rows[row][from].max(rows[row][to - (1 << row)])
    };
    intervals.iter().map(peak).collect()
}

struct PlacedInterval {
    offset: u64,
    top: u64,
    start: u32,
    end: u32,
}

/// Places all intervals in one order; `None` if that takes `bound` bytes or more, or more than `most` visits.
fn place(
    intervals: &[Interval],
    order: PlacementOrder,
    fit: Fit,
    tie: bool,
    bound: u64,
    visits: &mut u64,
    most: u64,
) -> Option<(Vec<u64>, u64)> {
    if *visits > most {
        return None;
    }
    let mut offsets = vec![0; intervals.len()];
    let mut bytes = 0;
    let mut placed: Vec<PlacedInterval> = Vec::new();
    for i in sorted(intervals, order, tie) {
        let interval = &intervals[i];
        // In the order of time, no later interval overlaps one that has ended.
        match order {
            PlacementOrder::Forward => placed.retain(|other| other.end > interval.start),
            PlacementOrder::Backward => placed.retain(|other| other.start < interval.end),
            _ => {}
        }
        let (offset, visited) = find_gap(&placed, interval, fit);
        let top = offset + interval.size;
        *visits += visited as u64;
        if top >= bound || *visits > most {
            return None;
        }
        offsets[i] = offset;
        bytes = bytes.max(top);
        let at = placed.partition_point(|other| other.offset < offset);
        placed.insert(at, PlacedInterval { offset, top, start: interval.start, end: interval.end });
    }
    Some((offsets, bytes))
}

/// The offset of the gap that the interval takes, and how many placed intervals were visited. `placed` is sorted by
/// offset.
fn find_gap(placed: &[PlacedInterval], interval: &Interval, fit: Fit) -> (u64, usize) {
    // All overlapping intervals visited so far end at or below this.
    let mut floor = 0;
    let mut tightest: Option<(u64, u64)> = None;
    for (visits, other) in placed.iter().enumerate() {
        if other.start >= interval.end || other.end <= interval.start {
            continue;
        }
        if other.offset >= floor + interval.size {
            let offset = floor.next_multiple_of(interval.align);
            let gap = other.offset - floor;
            if other.offset >= offset + interval.size && tightest.is_none_or(|(least, _)| gap < least) {
                tightest = Some((gap, offset));
                if fit == Fit::Lowest {
                    return (offset, visits + 1);
                }
            }
        }
        floor = floor.max(other.top);
    }
    let offset = tightest.map_or(floor.next_multiple_of(interval.align), |(_, offset)| offset);
    (offset, placed.len())
}
