//! The search without the greedy orders before it, compared with brute force over all orders.

use super::{Search, SearchOutcome, SectionRule};
use crate::interval_graph::IntervalGraph;
use crate::packing::LiveBuffer;
use crate::problem::{Interval, PackingProblem};

const RULES: [SectionRule; 4] = [
    SectionRule { anywhere: false, weighted: false },
    SectionRule { anywhere: false, weighted: true },
    SectionRule { anywhere: true, weighted: false },
    SectionRule { anywhere: true, weighted: true },
];

/// The fewest bytes: in some order, each interval lies on the highest earlier one that overlaps it.
fn fewest(intervals: &[Interval], offsets: &mut Vec<(usize, u64)>, bytes: u64, best: &mut u64) {
    if bytes >= *best {
        return;
    }
    if offsets.len() == intervals.len() {
        *best = bytes;
    }
    for (i, interval) in intervals.iter().enumerate() {
        if offsets.iter().all(|&(j, _)| i != j) {
            let meets = |j: usize| intervals[j].start < interval.end && interval.start < intervals[j].end;
            let below =
                offsets.iter().filter(|&&(j, _)| meets(j)).map(|&(j, offset)| offset + intervals[j].size);
            let offset = below.max().unwrap_or(0).next_multiple_of(interval.align);
            offsets.push((i, offset));
            fewest(intervals, offsets, bytes.max(offset + interval.size), best);
            offsets.pop();
        }
    }
}

fn fits(offsets: &[u64], intervals: &[Interval], bytes: u64) -> bool {
    let apart = |i: usize, j: usize| {
        let (a, b) = (&intervals[i], &intervals[j]);
        let alive = a.start < b.end && b.start < a.end;
        !alive || offsets[i] + a.size <= offsets[j] || offsets[j] + b.size <= offsets[i]
    };
    let inside =
        |i: usize| offsets[i] + intervals[i].raw <= bytes && offsets[i].is_multiple_of(intervals[i].align);
    (0..intervals.len()).all(|i| inside(i) && (0..i).all(|j| apart(i, j)))
}

fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) % below
}

#[test]
fn finds_the_fewest_bytes_and_proves_it() {
    let mut state = 1;
    let mut above_bound = 0;
    for case in 0..600 {
        let aligns: [usize; 3] = [[1, 1, 1], [1, 2, 3], [4, 8, 12]][case % 3];
        let count = 6 + random(&mut state, 3);
        let buffers: Vec<LiveBuffer> = (0..count)
            .map(|_| {
                let start = random(&mut state, 6) as u32;
                let end = start + 1 + random(&mut state, 4) as u32;
                let size = 1 + random(&mut state, 7) as usize * aligns[0];
                LiveBuffer::new(size, start, end).aligned(aligns[random(&mut state, 3) as usize])
            })
            .collect();
        let problem = PackingProblem::new(&buffers).unwrap();
        for intervals in problem.components {
            let mut best = u64::MAX;
            fewest(&intervals, &mut Vec::new(), 0, &mut best);
            let graph = IntervalGraph::new(intervals, problem.grain);
            above_bound += usize::from(graph.live_bytes.iter().all(|&load| load < best));
            for rule in RULES {
                let rank: Vec<f64> = graph.intervals.iter().map(|_| random(&mut state, 100) as f64).collect();
                let found = Search::new(&graph, best).run(&rank, rule, u64::MAX, u64::MAX);
                assert!(
                    matches!(found, SearchOutcome::Fits(offsets) if fits(&offsets, &graph.intervals, best)),
                    "{buffers:?}"
                );
                // Sizes are whole grains here, so one grain less is the next smaller size.
                let less = best - problem.grain;
                let none = Search::new(&graph, less).run(&rank, rule, u64::MAX, u64::MAX);
                assert!(matches!(none, SearchOutcome::Impossible), "{buffers:?}");
            }
        }
    }
    assert!(above_bound > 100, "{above_bound} instances need more than the lower bound: too easy");
}
