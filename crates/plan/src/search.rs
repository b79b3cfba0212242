//! Whether a part fits below a ceiling: depth-first, with reasons for every failure.

use crate::bits::{add, both, has, ones, remove};
use crate::shape::Shape;
use std::ops::Range;

/// No item is left in this section.
const DONE: u64 = u64::MAX;

pub enum Outcome {
    /// An offset per item.
    Fits(Vec<u64>),
    /// No packing is this small.
    Impossible,
    /// So many failures, or steps, that another order is worth more.
    Stopped,
}

/// Which section is filled next.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Any section that nothing can come below, not only the lowest.
    pub anywhere: bool,
    /// Prefer sections that have failed often.
    pub weighted: bool,
}

/// A value to put back.
enum Undo {
    Offset(usize, u64),
    Low(usize, u64),
    Floor(usize, u64),
    Placed(usize),
}

/// A choice: the item was placed; when that failed, it was lifted.
struct Choice {
    item: usize,
    lifted: bool,
    trail: usize,
}

pub struct Search<'a> {
    shape: &'a Shape,
    capacity: u64,
    /// The capacity rounded up to the grain, as sizes are.
    ceiling: u64,
    /// The lowest offset each item can still have, or the one it has.
    offset: Vec<u64>,
    unplaced: Vec<u64>,
    /// Per section: where the highest placed item ends.
    floor: Vec<u64>,
    /// Per section: the lowest offset of those unplaced.
    low: Vec<u64>,
    /// Per section: an unplaced item at that offset, if it has not moved since.
    witness: Vec<usize>,
    /// Per section: bytes unplaced.
    rest: Vec<u64>,
    /// Per section: unplaced items that are alive in the next one, too.
    crossing: Vec<u32>,
    /// Per section: how often it has failed.
    weight: Vec<u64>,
    trail: Vec<Undo>,
    choices: Vec<Choice>,
    /// Per choice: the sections that explain why its tries failed.
    reasons: Vec<u64>,
    /// The sections that explain the latest failure.
    conflict: Vec<u64>,
    /// What this search has done so far, in looks at items.
    pub steps: u64,
}

impl<'a> Search<'a> {
    pub fn new(shape: &'a Shape, capacity: u64) -> Self {
        let (items, sections) = (shape.len(), shape.sections());
        Search {
            shape,
            capacity,
            ceiling: capacity.next_multiple_of(shape.grain),
            offset: vec![0; items],
            unplaced: vec![0; items.div_ceil(64)],
            floor: vec![0; sections],
            low: vec![0; sections],
            witness: vec![0; sections],
            rest: vec![0; sections],
            crossing: vec![0; sections],
            weight: vec![1; sections],
            trail: Vec::new(),
            choices: Vec::new(),
            reasons: Vec::new(),
            conflict: vec![0; sections.div_ceil(64)],
            steps: 0,
        }
    }

    /// Searches from the start; items with a higher rank are tried first. It stops after so many failures or steps.
    pub fn run(&mut self, rank: &[f64], rule: Rule, mut failures: u64, steps: u64) -> Outcome {
        if self.shape.load.iter().any(|&load| load > self.ceiling) {
            return Outcome::Impossible;
        }
        self.reset();
        let stop = self.steps.saturating_add(steps);
        while let Some(b) = self.choose(rank, rule) {
            if self.steps >= stop || failures == 0 {
                return Outcome::Stopped;
            }
            let rests = self.ground(b).next_multiple_of(self.shape.items[b].align) == self.offset[b];
            self.choices.push(Choice { item: b, lifted: !rests, trail: self.trail.len() });
            self.reasons.extend(self.conflict.iter().map(|_| 0));
            // An item that was lifted and has nothing to rest on here lies higher.
            let goes_on = if rests { self.place(b) } else { self.lift(b) };
            if !goes_on {
                failures -= 1;
                if !self.back() {
                    return Outcome::Impossible;
                }
            }
        }
        Outcome::Fits(self.offset.clone())
    }

    fn reset(&mut self) {
        let shape = self.shape;
        self.offset.fill(0);
        self.floor.fill(0);
        self.low.fill(0);
        self.rest.copy_from_slice(&shape.load);
        self.crossing.fill(0);
        for b in 0..shape.len() {
            add(&mut self.unplaced, b);
            let span = shape.span(b);
            self.witness[span.clone()].fill(b);
            for s in span.start..span.end - 1 {
                self.crossing[s] += 1;
            }
        }
        self.trail.clear();
        self.choices.clear();
        self.reasons.clear();
    }

    /// The item to decide on next: none if all are placed.
    fn choose(&mut self, rank: &[f64], rule: Rule) -> Option<usize> {
        let shape = self.shape;
        let first = self.low.iter().position(|&low| low != DONE)?;
        // What nothing crosses falls apart; the earliest piece is finished first.
        let mut last = first;
        while self.crossing[last] > 0 {
            last += 1;
        }
        self.steps += (last - first) as u64 / 4;
        let below = if rule.anywhere { self.lowest_top(last) } else { self.lowest(first..last + 1) + 1 };
        let open = (first..=last).filter(|&s| self.low[s] < below);
        let s = open.reduce(|best, s| if self.before(s, best, rule) { s } else { best })?;
        let ready = both(shape.members(s), &self.unplaced).filter(|&b| self.offset[b] == self.low[s]);
        ready.reduce(|best, b| if rank[b] > rank[best] { b } else { best })
    }

    fn lowest(&self, sections: Range<usize>) -> u64 {
        self.low[sections].iter().copied().min().unwrap_or(0)
    }

    /// Nothing that is unplaced up to this section can end below this.
    fn lowest_top(&mut self, last: usize) -> u64 {
        let shape = self.shape;
        self.steps += shape.len() as u64 / 2;
        let all = self.unplaced.iter().enumerate().flat_map(|(word, &bits)| ones(word, bits));
        let near = all.filter(|&b| shape.span(b).start <= last);
        near.map(|b| self.offset[b] + shape.items[b].size).min().unwrap_or(DONE)
    }

    /// Whether section `s` is filled before `best`: the least room to spare first.
    fn before(&self, s: usize, best: usize, rule: Rule) -> bool {
        let spare = |s: usize| self.ceiling - self.low[s] - self.rest[s];
        if !rule.weighted {
            return (spare(s), self.low[s]) < (spare(best), self.low[best]);
        }
        let scaled = |spare: u64, weight: u64| u128::from(spare + 1) * u128::from(weight);
        scaled(spare(s), self.weight[best]) < scaled(spare(best), self.weight[s])
    }

    /// Where the highest placed item below this one ends.
    fn ground(&self, b: usize) -> u64 {
        self.floor[self.shape.span(b)].iter().copied().max().unwrap_or(0)
    }

    /// Places an item at its lowest offset. False if that leaves too little room somewhere.
    fn place(&mut self, b: usize) -> bool {
        let shape = self.shape;
        let item = &shape.items[b];
        if self.offset[b] + item.raw > self.capacity {
            self.conflict.fill(0);
            shape.span(b).for_each(|s| add(&mut self.conflict, s));
            return false;
        }
        let top = self.offset[b] + item.size;
        remove(&mut self.unplaced, b);
        self.trail.push(Undo::Placed(b));
        let mut touched = shape.span(b);
        for s in shape.span(b) {
            self.trail.push(Undo::Floor(s, self.floor[s]));
            self.floor[s] = top;
            self.rest[s] -= item.size;
            self.crossing[s] -= u32::from(s + 1 < touched.end);
        }
        let mut looks = 0;
        for d in both(shape.overlap(b), &self.unplaced) {
            looks += 1;
            if self.offset[d] < top {
                self.trail.push(Undo::Offset(d, self.offset[d]));
                self.offset[d] = top.next_multiple_of(shape.items[d].align);
                let span = shape.span(d);
                touched = touched.start.min(span.start)..touched.end.max(span.end);
            }
        }
        self.steps += looks;
        self.update(touched)
    }

    /// An item that is not at its lowest offset lies on one that is not placed yet. False if that is too high.
    fn lift(&mut self, b: usize) -> bool {
        let shape = self.shape;
        let top = |d: usize| self.offset[d] + shape.items[d].size;
        let onto = both(shape.overlap(b), &self.unplaced).map(top).min();
        let too_high = self.ceiling - shape.items[b].size + 1;
        let least = onto.unwrap_or(DONE).min(too_high);
        let words = self.conflict.len();
        let at = self.reasons.len() - words;
        let reason = &mut self.reasons[at..];
        shape.span(b).for_each(|s| add(reason, s));
        let mut looks = 0;
        for d in both(shape.overlap(b), &self.unplaced) {
            looks += 2;
            // If the floors in both spans hold `d` up enough, its other sections have no part in this.
            let (x, y) = (shape.span(b), shape.span(d));
            let shared = &self.floor[x.start.max(y.start)..x.end.min(y.end)];
            if shared.iter().max().unwrap_or(&0) + shape.items[d].size < least {
                y.for_each(|s| add(reason, s));
            }
        }
        self.steps += looks;
        if least == too_high {
            self.conflict.copy_from_slice(reason);
            return false;
        }
        self.trail.push(Undo::Offset(b, self.offset[b]));
        self.offset[b] = least.next_multiple_of(shape.items[b].align);
        self.update(shape.span(b))
    }

    /// Finds the lowest offsets in sections anew. False if what is left does not fit above one of them.
    fn update(&mut self, sections: Range<usize>) -> bool {
        self.steps += sections.len() as u64 / 4;
        for s in sections {
            let known = self.witness[s];
            if self.offset[known] == self.low[s] && has(&self.unplaced, known) {
                continue;
            }
            let mut low = DONE;
            let mut looks = 0;
            for b in both(self.shape.members(s), &self.unplaced) {
                looks += 1;
                if self.offset[b] < low {
                    low = self.offset[b];
                    self.witness[s] = b;
                }
            }
            self.steps += looks;
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

    /// Which sections are why this one has too little room: all its unplaced items lie too high.
    fn explain(&mut self, s: usize) {
        let shape = self.shape;
        let too_high = self.ceiling - self.rest[s] + 1;
        let conflict = &mut self.conflict;
        conflict.fill(0);
        add(conflict, s);
        if self.floor[s] >= too_high {
            return;
        }
        let mut looks = 0;
        for b in both(shape.members(s), &self.unplaced) {
            looks += 1;
            let high = || shape.span(b).filter(|&t| self.floor[t] >= too_high);
            if high().any(|t| has(conflict, t)) {
                continue;
            }
            match high().next() {
                Some(t) => add(conflict, t),
                // It was lifted; its choice knows the rest of the reason.
                None => shape.span(b).for_each(|t| add(conflict, t)),
            }
        }
        self.steps += looks;
    }

    /// Takes choices back until one of them can be made otherwise. False if none is left.
    fn back(&mut self) -> bool {
        let words = self.conflict.len();
        while let Some(choice) = self.choices.last_mut() {
            let (b, lifted, trail) = (choice.item, choice.lifted, choice.trail);
            choice.lifted = true;
            self.undo(trail);
            let at = self.reasons.len() - words;
            // A choice in other sections has not caused this, and no other choice there would help.
            if self.shape.span(b).any(|s| has(&self.conflict, s)) {
                for (reason, conflict) in self.reasons[at..].iter_mut().zip(&self.conflict) {
                    *reason |= conflict;
                }
                if !lifted {
                    if self.lift(b) {
                        return true;
                    }
                    continue;
                }
                self.conflict.copy_from_slice(&self.reasons[at..]);
            }
            self.choices.pop();
            self.reasons.truncate(at);
        }
        false
    }

    fn undo(&mut self, mark: usize) {
        let shape = self.shape;
        for undo in self.trail.drain(mark..).rev() {
            match undo {
                Undo::Offset(b, offset) => self.offset[b] = offset,
                Undo::Low(s, low) => self.low[s] = low,
                Undo::Floor(s, floor) => self.floor[s] = floor,
                Undo::Placed(b) => {
                    add(&mut self.unplaced, b);
                    let span = shape.span(b);
                    for s in span.clone() {
                        self.rest[s] += shape.items[b].size;
                        self.crossing[s] += u32::from(s + 1 < span.end);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
