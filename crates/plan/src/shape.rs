//! A part in the form the search works on: who is alive in which section, who overlaps whom.

use crate::bits::{add, ones};
use crate::parts::Item;
use std::ops::Range;

pub struct Shape {
    pub items: Vec<Item>,
    /// The sections in which each item is alive.
    spans: Vec<Range<u32>>,
    /// Bytes alive in each section.
    pub load: Vec<u64>,
    /// Per item, the bytes of those that overlap it.
    pub crowd: Vec<u64>,
    /// How many pairs overlap, each counted twice.
    pub pairs: u64,
    pub grain: u64,
    /// Words in a set of items.
    words: usize,
    members: Vec<u64>,
    overlaps: Vec<u64>,
}

impl Shape {
    /// For items in the order of their starts.
    pub fn new(items: Vec<Item>, grain: u64) -> Self {
        let instants = sections(&items);
        let at = |time: u32| instants.partition_point(|&t| t < time) as u32;
        let spans: Vec<Range<u32>> = items.iter().map(|i| at(i.start)..at(i.end)).collect();
        let words = items.len().div_ceil(64);
        let mut members = vec![0; instants.len() * words];
        let mut overlaps = vec![0; items.len() * words];
        let mut load = vec![0; instants.len()];
        for (b, span) in spans.iter().enumerate() {
            for s in span.start as usize..span.end as usize {
                add(&mut members[s * words..(s + 1) * words], b);
                load[s] += items[b].size;
            }
        }
        // Items come in the order of their starts: whoever overlaps one and comes after it follows at once.
        for (b, span) in spans.iter().enumerate() {
            let after = spans.iter().enumerate().skip(b + 1);
            for (d, _) in after.take_while(|(_, other)| other.start < span.end) {
                add(&mut overlaps[b * words..], d);
                add(&mut overlaps[d * words..], b);
            }
        }
        let pairs = overlaps.iter().map(|word: &u64| u64::from(word.count_ones())).sum();
        let crowd = Vec::new();
        let mut shape = Shape { items, spans, load, crowd, pairs, grain, words, members, overlaps };
        shape.crowd =
            (0..shape.len()).map(|b| shape.neighbours(b).map(|d| shape.items[d].size).sum()).collect();
        shape
    }

    fn neighbours(&self, b: usize) -> impl Iterator<Item = usize> {
        self.overlap(b).iter().enumerate().flat_map(|(word, &bits)| ones(word, bits))
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn sections(&self) -> usize {
        self.load.len()
    }

    /// The sections in which an item is alive.
    pub fn span(&self, b: usize) -> Range<usize> {
        self.spans[b].start as usize..self.spans[b].end as usize
    }

    /// The items alive in a section.
    pub fn members(&self, s: usize) -> &[u64] {
        &self.members[s * self.words..(s + 1) * self.words]
    }

    /// The items alive together with this one.
    pub fn overlap(&self, b: usize) -> &[u64] {
        &self.overlaps[b * self.words..(b + 1) * self.words]
    }
}

/// The instants whose sets of live items are contained in no other's: the last start before each end.
fn sections(items: &[Item]) -> Vec<u32> {
    let mut events: Vec<(u32, bool)> = items.iter().flat_map(|i| [(i.start, true), (i.end, false)]).collect();
    events.sort_unstable();
    let pairs = events.iter().zip(events.iter().skip(1));
    pairs.filter(|(this, next)| this.1 && !next.1).map(|(this, _)| this.0).collect()
}
