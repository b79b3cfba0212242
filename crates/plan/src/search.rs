//! search

use crate::shape::Shape;

/// what an attempt ended with
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Found(Vec<u64>),
    Impossible,
    OutOfSteps,
}

pub struct Bits;
pub fn ones(word: u64) -> impl Iterator<Item = usize> {
    let mut w = word;
    std::iter::from_fn(move || {
        if w == 0 {
            return None;
        }
        let i = w.trailing_zeros() as usize;
        w &= w - 1;
        Some(i)
    })
}

enum Undo {
    Off(u32, u64),
    Low(u32, u64),
    Floor(u32, u64),
    Place(u32),
}

struct Frame {
    buffer: u32,
    right: bool,
    trail: usize,
}

pub struct Search<'a> {
    shape: &'a Shape,
    capacity: u64,
    /// capacity rounded to grain
    ceiling: u64,
    off: Vec<u64>,
    floor: Vec<u64>,
    low: Vec<u64>,
    rest: Vec<u64>,
    unplaced: Vec<u64>,
    trail: Vec<Undo>,
    stack: Vec<Frame>,
    reasons: Vec<u64>,
    conflict: Vec<u64>,
    weight: Vec<u64>,
    key: Vec<u64>,
    pub steps: u64,
    pub mode: u32,
    fails: u64,
    pub maxdepth: usize,
}

impl<'a> Search<'a> {
    pub fn new(shape: &'a Shape, capacity: u64) -> Self {
        let n = shape.len();
        let m = shape.sections();
        let ceiling = capacity.next_multiple_of(shape.grain);
        Search {
            shape,
            capacity,
            ceiling,
            off: vec![0; n],
            floor: vec![0; m],
            low: vec![0; m],
            rest: shape.load.clone(),
            unplaced: vec![0; shape.words],
            trail: Vec::new(),
            stack: Vec::new(),
            reasons: Vec::new(),
            conflict: vec![0; m.div_ceil(64)],
            weight: vec![0; m],
            key: vec![0; n],
            steps: 0,
            mode: 0,
            fails: 0,
            maxdepth: 0,
        }
    }

    fn reset(&mut self) {
        self.off.fill(0);
        self.floor.fill(0);
        self.low.fill(0);
        self.rest.clone_from(&self.shape.load);
        self.unplaced.fill(0);
        for b in 0..self.shape.len() {
            self.unplaced[b / 64] |= 1 << (b % 64);
        }
        self.trail.clear();
        self.stack.clear();
        self.reasons.clear();
    }

    pub fn run(&mut self, key: &[u64], limit: u64) -> Outcome {
        self.reset();
        self.key.clear();
        self.key.extend_from_slice(key);
        if self.rest.iter().any(|&r| r > self.ceiling) {
            return Outcome::Impossible;
        }
        let stop = self.steps + limit;
        loop {
            let Some(b) = self.choose() else {
                return Outcome::Found(self.off.clone());
            };
            self.steps += 1;
            if self.steps > stop {
                return Outcome::OutOfSteps;
            }
            let words = self.conflict.len();
            let supported = self.base(b).next_multiple_of(self.shape.align[b]) == self.off[b];
            self.stack.push(Frame { buffer: b as u32, right: !supported, trail: self.trail.len() });
            self.maxdepth = self.maxdepth.max(self.stack.len());
            self.reasons.resize(self.stack.len() * words, 0);
            let at = (self.stack.len() - 1) * words;
            self.reasons[at..].fill(0);
            let good = if supported { self.place(b) } else { self.postpone(b) };
            if !good && !self.backtrack() {
                return Outcome::Impossible;
            }
        }
    }

    fn base(&self, b: usize) -> u64 {
        self.floor[self.shape.span(b)].iter().copied().max().unwrap_or(0)
    }

    fn meets(&self, b: usize) -> bool {
        self.shape.span(b).any(|s| self.conflict[s / 64] >> (s % 64) & 1 == 1)
    }

    fn backtrack(&mut self) -> bool {
        let words = self.conflict.len();
        while let Some(frame) = self.stack.last() {
            let (b, right, mark) = (frame.buffer as usize, frame.right, frame.trail);
            self.undo(mark);
            if !self.meets(b) {
                self.stack.pop();
                continue;
            }
            let at = (self.stack.len() - 1) * words;
            for w in 0..words {
                self.reasons[at + w] |= self.conflict[w];
            }
            if right {
                self.conflict.copy_from_slice(&self.reasons[at..at + words]);
                self.stack.pop();
                continue;
            }
            let top = self.stack.len() - 1;
            self.stack[top].right = true;
            if self.postpone(b) {
                return true;
            }
        }
        false
    }

    fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            match self.trail.pop() {
                Some(Undo::Off(b, v)) => self.off[b as usize] = v,
                Some(Undo::Low(s, v)) => self.low[s as usize] = v,
                Some(Undo::Floor(s, v)) => self.floor[s as usize] = v,
                Some(Undo::Place(b)) => {
                    let b = b as usize;
                    self.unplaced[b / 64] |= 1 << (b % 64);
                    for s in self.shape.span(b) {
                        self.rest[s] += self.shape.size[b];
                    }
                }
                None => {}
            }
        }
    }

    fn place(&mut self, b: usize) -> bool {
        let shape = self.shape;
        let top = self.off[b] + shape.size[b];
        if self.off[b] + shape.raw[b] > self.capacity {
            self.conflict.fill(0);
            for s in shape.span(b) {
                self.conflict[s / 64] |= 1 << (s % 64);
            }
            return false;
        }
        self.unplaced[b / 64] &= !(1 << (b % 64));
        self.trail.push(Undo::Place(b as u32));
        let mut hull = shape.span(b);
        for s in shape.span(b) {
            self.trail.push(Undo::Floor(s as u32, self.floor[s]));
            self.floor[s] = top;
            self.rest[s] -= shape.size[b];
        }
        for w in 0..shape.words {
            for i in ones(shape.overlap(b)[w] & self.unplaced[w]) {
                let d = w * 64 + i;
                if top > self.off[d] {
                    self.trail.push(Undo::Off(d as u32, self.off[d]));
                    self.off[d] = top.next_multiple_of(shape.align[d]);
                    let span = shape.span(d);
                    hull = hull.start.min(span.start)..hull.end.max(span.end);
                }
            }
        }
        self.refresh(hull)
    }

    /// b is not at off
    fn postpone(&mut self, b: usize) -> bool {
        let shape = self.shape;
        let mut next = u64::MAX;
        for w in 0..shape.words {
            for i in ones(shape.overlap(b)[w] & self.unplaced[w]) {
                let d = w * 64 + i;
                next = next.min(self.off[d] + shape.size[d]);
            }
        }
        let words = self.conflict.len();
        let at = (self.stack.len() - 1) * words;
        for s in shape.span(b) {
            self.reasons[at + s / 64] |= 1 << (s % 64);
        }
        let cap = next.min(self.ceiling - shape.size[b] + 1);
        for w in 0..shape.words {
            for i in ones(shape.overlap(b)[w] & self.unplaced[w]) {
                let d = w * 64 + i;
                let both = shape.lo[b].max(shape.lo[d]) as usize..shape.hi[b].min(shape.hi[d]) as usize;
                let near = self.floor[both].iter().copied().max().unwrap_or(0);
                if near + shape.size[d] < cap {
                    for s in shape.span(d) {
                        self.reasons[at + s / 64] |= 1 << (s % 64);
                    }
                }
            }
        }
        if next == u64::MAX || next + shape.size[b] > self.ceiling {
            self.conflict.copy_from_slice(&self.reasons[at..at + words]);
            return false;
        }
        self.trail.push(Undo::Off(b as u32, self.off[b]));
        self.off[b] = next.next_multiple_of(shape.align[b]);
        self.refresh(shape.span(b))
    }

    fn refresh(&mut self, hull: std::ops::Range<usize>) -> bool {
        let shape = self.shape;
        let mut failed = None;
        for s in hull {
            let mut low = u64::MAX;
            for (w, (&member, &un)) in shape.members(s).iter().zip(&self.unplaced).enumerate() {
                for i in ones(member & un) {
                    low = low.min(self.off[w * 64 + i]);
                }
            }
            if low != self.low[s] {
                self.trail.push(Undo::Low(s as u32, self.low[s]));
                self.low[s] = low;
                if low != u64::MAX && low + self.rest[s] > self.ceiling {
                    failed = Some(s);
                    break;
                }
            }
        }
        if let Some(s) = failed {
            self.weight[s] += 1;
            self.fails += 1;
            self.explain(s);
            return false;
        }
        true
    }

    fn explain(&mut self, s: usize) {
        let shape = self.shape;
        self.conflict.fill(0);
        self.conflict[s / 64] |= 1 << (s % 64);
        let need = self.ceiling - self.rest[s] + 1;
        if self.floor[s] >= need {
            return;
        }
        for (w, (&member, &un)) in shape.members(s).iter().zip(&self.unplaced).enumerate() {
            for i in ones(member & un) {
                let d = w * 64 + i;
                let span = shape.span(d);
                if span.clone().any(|t| self.floor[t] >= need && self.conflict[t / 64] >> (t % 64) & 1 == 1) {
                    continue;
                }
                match span.clone().find(|&t| self.floor[t] >= need) {
                    Some(t) => self.conflict[t / 64] |= 1 << (t % 64),
                    None => {
                        for t in span {
                            self.conflict[t / 64] |= 1 << (t % 64);
                        }
                    }
                }
            }
        }
    }

    fn choose(&mut self) -> Option<usize> {
        let shape = self.shape;
        let m = shape.sections();
        let start = (0..m).find(|&s| self.low[s] != u64::MAX)?;
        let mut best = start;
        let mut s = start;
        loop {
            let slack = |s: usize| self.ceiling - self.low[s] - self.rest[s];
            let better = self.low[s] < self.low[best]
                || self.low[s] == self.low[best]
                    && match self.mode & 1 {
                        0 => slack(s) < slack(best),
                        _ => (self.weight[s] + 1) * (slack(best) + 1) > (self.weight[best] + 1) * (slack(s) + 1),
                    };
            if better {
                best = s;
            }
            if s + 1 >= m {
                break;
            }
            let crosses = shape.members(s).iter().zip(shape.members(s + 1)).zip(&self.unplaced);
            if crosses.fold(0, |acc, ((a, b), u)| acc | a & b & u) == 0 {
                break;
            }
            s += 1;
        }
        let level = self.low[best];
        let mut chosen = None;
        for (w, (&member, &un)) in shape.members(best).iter().zip(&self.unplaced).enumerate() {
            for i in ones(member & un) {
                let d = w * 64 + i;
                if self.off[d] == level && chosen.is_none_or(|c: usize| self.key[d] > self.key[c]) {
                    chosen = Some(d);
                }
            }
        }
        chosen
    }
}
