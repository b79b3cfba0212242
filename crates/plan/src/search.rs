//! Whether a component fits into a capacity: depth-first search with conflict-directed backjumping.

use crate::bits::{add, both, has, ones, remove};
use crate::interval_graph::IntervalGraph;
use std::ops::Range;

/// No interval is left in this section.
const DONE: u64 = u64::MAX;

pub enum SearchOutcome {
    /// An offset per interval.
    Fits(Vec<u64>),
    /// No packing is this small.
    Impossible,
    /// The limit of failures or steps is reached.
    Stopped,
}

/// Which section is filled next.
#[derive(Clone, Copy)]
pub struct SectionRule {
    /// Any section whose lowest offset is final, not only the lowest section.
    pub anywhere: bool,
    /// Prefer sections that have failed often.
    pub weighted: bool,
}

/// A change to undo when the search backtracks: what changed, and its old value.
enum Undo {
    Offset(usize, u64),
    Low(usize, u64),
    Floor(usize, u64),
    Placed(usize),
}

/// A decision about one interval: it is placed first, and raised when that failed.
struct Decision {
    interval: usize,
    raised: bool,
    trail: usize,
}

pub struct Search<'a> {
    graph: &'a IntervalGraph,
    capacity: u64,
    /// The capacity rounded up to the grain, as sizes are.
    ceiling: u64,
    /// The lowest offset each interval can still have, or the one it has.
    offset: Vec<u64>,
    unplaced: Vec<u64>,
    /// Per section: where the highest placed interval ends.
    floor: Vec<u64>,
    /// Per section: the lowest offset of its unplaced intervals.
    low: Vec<u64>,
    /// Per section: an unplaced interval at that offset, unless it has moved since.
    witness: Vec<usize>,
    /// Per section: bytes of its unplaced intervals.
    rest: Vec<u64>,
    /// Per section: unplaced intervals that are also live in the next section.
    crossing: Vec<u32>,
    /// Per section: how often it has failed.
    weight: Vec<u64>,
    trail: Vec<Undo>,
    decisions: Vec<Decision>,
    /// Per decision: the bit set of the sections that caused its failures.
    reasons: Vec<u64>,
    /// The bit set of the sections that caused the latest failure.
    conflict: Vec<u64>,
    /// Visits to intervals so far.
    pub steps: u64,
}

impl<'a> Search<'a> {
    pub fn new(graph: &'a IntervalGraph, capacity: u64) -> Self {
        let (intervals, sections) = (graph.len(), graph.sections());
        Search {
            graph,
            capacity,
            ceiling: capacity.next_multiple_of(graph.grain),
            offset: vec![0; intervals],
            unplaced: vec![0; intervals.div_ceil(64)],
            floor: vec![0; sections],
            low: vec![0; sections],
            witness: vec![0; sections],
            rest: vec![0; sections],
            crossing: vec![0; sections],
            weight: vec![1; sections],
            trail: Vec::new(),
            decisions: Vec::new(),
            reasons: Vec::new(),
            conflict: vec![0; sections.div_ceil(64)],
            steps: 0,
        }
    }

    /// Searches from the start; intervals of a higher rank are tried first. Stops after this many failures or steps.
    pub fn run(&mut self, rank: &[f64], rule: SectionRule, mut failures: u64, steps: u64) -> SearchOutcome {
        if self.graph.live_bytes.iter().any(|&bytes| bytes > self.ceiling) {
            return SearchOutcome::Impossible;
        }
        self.reset();
        let stop = self.steps.saturating_add(steps);
        while let Some(b) = self.choose(rank, rule) {
            if self.steps >= stop || failures == 0 {
                return SearchOutcome::Stopped;
            }
            let rests = self.ground(b).next_multiple_of(self.graph.intervals[b].align) == self.offset[b];
            self.decisions.push(Decision { interval: b, raised: !rests, trail: self.trail.len() });
            self.reasons.extend(self.conflict.iter().map(|_| 0));
            // An interval that was raised and rests on no placed one lies higher.
            let is_feasible = if rests { self.place(b) } else { self.raise(b) };
            if !is_feasible {
                failures -= 1;
                if !self.backtrack() {
                    return SearchOutcome::Impossible;
                }
            }
        }
        SearchOutcome::Fits(self.offset.clone())
    }

    fn reset(&mut self) {
        let graph = self.graph;
        self.offset.fill(0);
        self.floor.fill(0);
        self.low.fill(0);
        self.rest.copy_from_slice(&graph.live_bytes);
        self.crossing.fill(0);
        for b in 0..graph.len() {
            add(&mut self.unplaced, b);
            let span = graph.span(b);
            self.witness[span.clone()].fill(b);
            for s in span.start..span.end - 1 {
                self.crossing[s] += 1;
            }
        }
        self.trail.clear();
        self.decisions.clear();
        self.reasons.clear();
    }

    /// The interval to decide on next; `None` if all are placed.
    fn choose(&mut self, rank: &[f64], rule: SectionRule) -> Option<usize> {
        let graph = self.graph;
        let first = self.low.iter().position(|&low| low != DONE)?;
        // Sections that no unplaced interval crosses are independent; the earliest group is finished first.
        let mut last = first;
        while self.crossing[last] > 0 {
            last += 1;
        }
        self.steps += (last - first) as u64 / 4;
        let below = if rule.anywhere { self.lowest_top(last) } else { self.lowest(first..last + 1) + 1 };
        let open = (first..=last).filter(|&s| self.low[s] < below);
        let s = open.reduce(|best, s| if self.before(s, best, rule) { s } else { best })?;
        let ready = both(graph.members(s), &self.unplaced).filter(|&b| self.offset[b] == self.low[s]);
        ready.reduce(|best, b| if rank[b] > rank[best] { b } else { best })
    }

    fn lowest(&self, sections: Range<usize>) -> u64 {
        self.low[sections].iter().copied().min().unwrap_or(0)
    }

    /// The lowest end that an unplaced interval which starts up to this section can have.
    fn lowest_top(&mut self, last: usize) -> u64 {
        let graph = self.graph;
        self.steps += graph.len() as u64 / 2;
        let all = self.unplaced.iter().enumerate().flat_map(|(word, &bits)| ones(word, bits));
        let near = all.filter(|&b| graph.span(b).start <= last);
        near.map(|b| self.offset[b] + graph.intervals[b].size).min().unwrap_or(DONE)
    }

    /// Whether section `s` is filled before `best`: the section with the fewest spare bytes first.
    fn before(&self, s: usize, best: usize, rule: SectionRule) -> bool {
        let spare = |s: usize| self.ceiling - self.low[s] - self.rest[s];
        if !rule.weighted {
            return (spare(s), self.low[s]) < (spare(best), self.low[best]);
        }
        let scaled = |spare: u64, weight: u64| u128::from(spare + 1) * u128::from(weight);
        scaled(spare(s), self.weight[best]) < scaled(spare(best), self.weight[s])
    }

    /// Where the highest placed interval that overlaps this one ends.
    fn ground(&self, b: usize) -> u64 {
        self.floor[self.graph.span(b)].iter().copied().max().unwrap_or(0)
    }

    /// Places an interval at its lowest offset. False if the rest of some section no longer fits.
    fn place(&mut self, b: usize) -> bool {
        let graph = self.graph;
        let interval = &graph.intervals[b];
        if self.offset[b] + interval.raw > self.capacity {
            self.conflict.fill(0);
            graph.span(b).for_each(|s| add(&mut self.conflict, s));
            return false;
        }
        let top = self.offset[b] + interval.size;
        remove(&mut self.unplaced, b);
        self.trail.push(Undo::Placed(b));
        let mut touched = graph.span(b);
        for s in graph.span(b) {
            self.trail.push(Undo::Floor(s, self.floor[s]));
            self.floor[s] = top;
            self.rest[s] -= interval.size;
            self.crossing[s] -= u32::from(s + 1 < touched.end);
        }
        let mut visits = 0;
        for d in both(graph.overlap(b), &self.unplaced) {
            visits += 1;
            if self.offset[d] < top {
                self.trail.push(Undo::Offset(d, self.offset[d]));
                self.offset[d] = top.next_multiple_of(graph.intervals[d].align);
                let span = graph.span(d);
                touched = touched.start.min(span.start)..touched.end.max(span.end);
            }
        }
        self.steps += visits;
        self.update(touched)
    }

    /// Raises the lowest offset of an interval: it lies on one that is not placed yet. False if that is too high.
    fn raise(&mut self, b: usize) -> bool {
        let graph = self.graph;
        let top = |d: usize| self.offset[d] + graph.intervals[d].size;
        let onto = both(graph.overlap(b), &self.unplaced).map(top).min();
        let too_high = self.ceiling - graph.intervals[b].size + 1;
        let least = onto.unwrap_or(DONE).min(too_high);
        let words = self.conflict.len();
        let at = self.reasons.len() - words;
        let reason = &mut self.reasons[at..];
        graph.span(b).for_each(|s| add(reason, s));
        let mut visits = 0;
        for d in both(graph.overlap(b), &self.unplaced) {
            visits += 2;
            // If the floors of the shared sections already raise `d` enough, its other sections are no cause.
            let (x, y) = (graph.span(b), graph.span(d));
            let shared = &self.floor[x.start.max(y.start)..x.end.min(y.end)];
            if shared.iter().max().unwrap_or(&0) + graph.intervals[d].size < least {
                y.for_each(|s| add(reason, s));
            }
        }
        self.steps += visits;
        if least == too_high {
            self.conflict.copy_from_slice(reason);
            return false;
        }
        self.trail.push(Undo::Offset(b, self.offset[b]));
        self.offset[b] = least.next_multiple_of(graph.intervals[b].align);
        self.update(graph.span(b))
    }

    /// Recomputes the lowest offsets in sections. False if the unplaced bytes of one do not fit above its lowest offset.
    fn update(&mut self, sections: Range<usize>) -> bool {
        self.steps += sections.len() as u64 / 4;
        for s in sections {
            let known = self.witness[s];
            if self.offset[known] == self.low[s] && has(&self.unplaced, known) {
                continue;
            }
            let mut low = DONE;
            let mut visits = 0;
            for b in both(self.graph.members(s), &self.unplaced) {
                visits += 1;
                if self.offset[b] < low {
                    low = self.offset[b];
                    self.witness[s] = b;
                }
            }
            self.steps += visits;
            if low == self.low[s] {
                continue;
            }
            self.trail.push(Undo::Low(s, self.low[s]));
            self.low[s] = low;
            if low != DONE && low + self.rest[s] > self.ceiling {
                self.weight[s] += 1;
                self.explain(s);
                return false;
            }
        }
        true
    }

    /// Sets the conflict to the sections that cause this one to fail: all its unplaced intervals lie too high.
    fn explain(&mut self, s: usize) {
        let graph = self.graph;
        let too_high = self.ceiling - self.rest[s] + 1;
        let conflict = &mut self.conflict;
        conflict.fill(0);
        add(conflict, s);
        if self.floor[s] >= too_high {
            return;
        }
        let mut visits = 0;
        for b in both(graph.members(s), &self.unplaced) {
            visits += 1;
            let high = || graph.span(b).filter(|&t| self.floor[t] >= too_high);
            if high().any(|t| has(conflict, t)) {
                continue;
            }
            match high().next() {
                Some(t) => add(conflict, t),
                // It was raised; its decision holds the rest of the cause.
                None => graph.span(b).for_each(|t| add(conflict, t)),
            }
        }
        self.steps += visits;
    }

    /// Undoes decisions until one of them has an alternative left. False if none has.
    fn backtrack(&mut self) -> bool {
        let words = self.conflict.len();
        while let Some(decision) = self.decisions.last_mut() {
            let (b, raised, trail) = (decision.interval, decision.raised, decision.trail);
            decision.raised = true;
            self.undo(trail);
            let at = self.reasons.len() - words;
            // Backjumping: a decision in other sections did not cause the conflict, so its alternative cannot resolve it.
            if self.graph.span(b).any(|s| has(&self.conflict, s)) {
                for (reason, conflict) in self.reasons[at..].iter_mut().zip(&self.conflict) {
                    *reason |= conflict;
                }
                if !raised {
                    if self.raise(b) {
                        return true;
                    }
                    continue;
                }
                self.conflict.copy_from_slice(&self.reasons[at..]);
            }
            self.decisions.pop();
            self.reasons.truncate(at);
        }
        false
    }

    fn undo(&mut self, mark: usize) {
        let graph = self.graph;
        for undo in self.trail.drain(mark..).rev() {
            match undo {
                Undo::Offset(b, offset) => self.offset[b] = offset,
                Undo::Low(s, low) => self.low[s] = low,
                Undo::Floor(s, floor) => self.floor[s] = floor,
                Undo::Placed(b) => {
                    add(&mut self.unplaced, b);
                    let span = graph.span(b);
                    for s in span.clone() {
                        self.rest[s] += graph.intervals[b].size;
                        self.crossing[s] += u32::from(s + 1 < span.end);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
