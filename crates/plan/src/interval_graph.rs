//! One component of a packing problem as the search needs it: which buffers are live in which section, and which
//! overlap.

use crate::bits::{add, ones};
use crate::problem::Interval;
use std::ops::Range;

/// An interval graph: vertices are buffers, edges join buffers whose live ranges overlap. Sections are its maximal
/// cliques, in the order of time.
pub struct IntervalGraph {
    pub intervals: Vec<Interval>,
    /// Per interval, the sections in which it is live.
    spans: Vec<Range<u32>>,
    /// Per section, the bytes live in it.
    pub live_bytes: Vec<u64>,
    /// Per interval, the bytes of all intervals that overlap it.
    pub overlap_bytes: Vec<u64>,
    /// The number of edges, each counted twice.
    pub pairs: u64,
    pub grain: u64,
    /// Words in a bit set of intervals.
    words: usize,
    /// Per section, the bit set of the intervals live in it.
    members: Vec<u64>,
    /// Per interval, the bit set of its neighbours.
    overlaps: Vec<u64>,
}

impl IntervalGraph {
    /// `intervals` must be sorted by start.
    pub fn new(intervals: Vec<Interval>, grain: u64) -> Self {
        let instants = sections(&intervals);
        let at = |time: u32| instants.partition_point(|&t| t < time) as u32;
        let spans: Vec<Range<u32>> = intervals.iter().map(|i| at(i.start)..at(i.end)).collect();
        let words = intervals.len().div_ceil(64);
        let mut members = vec![0; instants.len() * words];
        let mut overlaps = vec![0; intervals.len() * words];
        let mut live_bytes = vec![0; instants.len()];
        for (b, span) in spans.iter().enumerate() {
            for s in span.start as usize..span.end as usize {
                add(&mut members[s * words..(s + 1) * words], b);
                live_bytes[s] += intervals[b].size;
            }
        }
        // Intervals are sorted by start: the later ones that overlap an interval come directly after it.
        for (b, span) in spans.iter().enumerate() {
            let after = spans.iter().enumerate().skip(b + 1);
            for (d, _) in after.take_while(|(_, other)| other.start < span.end) {
                add(&mut overlaps[b * words..], d);
                add(&mut overlaps[d * words..], b);
            }
        }
        let pairs = overlaps.iter().map(|word: &u64| u64::from(word.count_ones())).sum();
        let overlap_bytes = Vec::new();
        let mut graph = IntervalGraph {
            intervals,
            spans,
            live_bytes,
            overlap_bytes,
            pairs,
            grain,
            words,
            members,
            overlaps,
        };
        graph.overlap_bytes =
            (0..graph.len()).map(|b| graph.neighbours(b).map(|d| graph.intervals[d].size).sum()).collect();
        graph
    }

    fn neighbours(&self, b: usize) -> impl Iterator<Item = usize> {
        self.overlap(b).iter().enumerate().flat_map(|(word, &bits)| ones(word, bits))
    }

    pub fn len(&self) -> usize {
        self.intervals.len()
    }

    pub fn sections(&self) -> usize {
        self.live_bytes.len()
    }

    /// The sections in which an interval is live.
    pub fn span(&self, b: usize) -> Range<usize> {
        self.spans[b].start as usize..self.spans[b].end as usize
    }

    /// The bit set of the intervals live in a section.
    pub fn members(&self, s: usize) -> &[u64] {
        &self.members[s * self.words..(s + 1) * self.words]
    }

    /// The bit set of the intervals that overlap this one.
    pub fn overlap(&self, b: usize) -> &[u64] {
        &self.overlaps[b * self.words..(b + 1) * self.words]
    }
}

/// The instants whose set of live intervals is a subset of no other's: the last start before each end.
fn sections(intervals: &[Interval]) -> Vec<u32> {
    let mut events: Vec<(u32, bool)> =
        intervals.iter().flat_map(|i| [(i.start, true), (i.end, false)]).collect();
    events.sort_unstable();
    let pairs = events.iter().zip(events.iter().skip(1));
    pairs.filter(|(this, next)| this.1 && !next.1).map(|(this, _)| this.0).collect()
}
