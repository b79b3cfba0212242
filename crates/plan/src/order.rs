//! In which order the steps run. Several ways to order them are tried; [`place`](crate::place) keeps the one that needs
//! the fewest bytes.
//!
//! Each way sees what its neighbours do not. The graph's own order is what somebody wrote. Going forward and taking
//! what grows least finds steps that free more than they make: an update beside its gradient. Going backward does the same
//! from the end, and makes a value late instead of freeing it early. Going down from the outputs, nearest first,
//! finishes one thing before it begins the next. The best of them is then [repaired](repair) where its peak is.
//!
//! All are deterministic and take O(n log n) for n steps and as many reads.

mod repair;

pub(crate) use repair::repair;

use crate::lower::{Draft, Kind};
use crate::place::rounded;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Orders to choose from, the graph's own first.
pub(crate) struct Orders {
    pub(crate) links: Links,
    pub(crate) list: Vec<Vec<u32>>,
}

impl Orders {
    pub(crate) fn new(draft: &Draft<'_>, as_written: bool) -> Orders {
        let links = Links::new(draft);
        let list = candidates(&links, as_written);
        Orders { links, list }
    }
}

fn candidates(links: &Links, as_written: bool) -> Vec<Vec<u32>> {
    let own: Vec<u32> = (0..links.reads.len() as u32).collect();
    let written = links.forward(&own, |_| 0);
    let mut orders = vec![written];
    if as_written || own.len() < 3 {
        return orders;
    }
    orders.push(links.forward(&own, |growth| growth));
    orders.push(links.forward(&own, |growth| growth.signum().max(0)));
    for deep_first in [false, true] {
        let down = links.down(deep_first);
        let mut rank = vec![0; down.len()];
        down.iter().enumerate().for_each(|(i, &step)| rank[step as usize] = i as u32);
        orders.push(links.forward(&rank, |growth| growth.signum().max(0)));
        orders.push(down);
    }
    orders.push(links.backward(|growth| growth));
    orders.push(links.backward(|growth| growth.signum().max(0)));
    orders
}

/// Lists of numbers, one after the other.
struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// Groups pairs by their first number, keeping their order.
    fn new(count: usize, pairs: &[(u32, u32)]) -> Lists {
        let mut starts = vec![0u32; count + 1];
        pairs.iter().for_each(|&(list, _)| starts[list as usize + 1] += 1);
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut items = vec![0; pairs.len()];
        for &(list, item) in pairs {
            items[next[list as usize] as usize] = item;
            next[list as usize] += 1;
        }
        Lists { starts, items }
    }

    fn of(&self, list: u32) -> &[u32] {
        &self.items[self.starts[list as usize] as usize..self.starts[list as usize + 1] as usize]
    }
}

/// Who reads, writes and waits for what.
pub(crate) struct Links {
    /// Per step, the pieces it reads, each once.
    reads: Vec<SmallVec<[u32; 4]>>,
    writes: Vec<SmallVec<[u32; 1]>>,
    /// Per piece, the steps that read it.
    readers: Lists,
    /// Per step, those that come before it, and after it.
    earlier: Lists,
    later: Lists,
    /// Per piece, what it takes of the arena.
    weights: Vec<i64>,
}

impl Links {
    fn new(draft: &Draft<'_>) -> Links {
        let (steps, pieces) = (&draft.steps, &draft.pieces);
        let mut made_by = vec![u32::MAX; pieces.len()];
        let (mut reads, mut writes) = (Vec::with_capacity(steps.len()), Vec::with_capacity(steps.len()));
        for (i, step) in steps.iter().enumerate() {
            let mut pieces: SmallVec<[u32; 4]> = step.operands.iter().map(|o| o.storage as u32).collect();
            pieces.sort_unstable();
            pieces.dedup();
            reads.push(pieces);
            writes.push(step.targets.iter().map(|t| t.storage as u32).collect::<SmallVec<[u32; 1]>>());
            step.targets.iter().for_each(|target| made_by[target.storage] = i as u32);
        }
        let (mut by_piece, mut edges) = (Vec::new(), draft.before.clone());
        for (i, read) in reads.iter().enumerate() {
            for &piece in read {
                by_piece.push((piece, i as u32));
                match made_by[piece as usize] {
                    u32::MAX => {}
                    maker => edges.push((maker, i as u32)),
                }
            }
        }
        let readers = Lists::new(pieces.len(), &by_piece);
        let weights = (pieces.iter().enumerate())
            .map(|(i, piece)| match piece.kind {
                Kind::Made if !piece.is_output && !readers.of(i as u32).is_empty() => {
                    rounded(piece.bytes) as i64
                }
                _ => 0,
            })
            .collect();
        let later = Lists::new(steps.len(), &edges);
        edges.iter_mut().for_each(|edge| *edge = (edge.1, edge.0));
        let earlier = Lists::new(steps.len(), &edges);
        Links { reads, writes, readers, earlier, later, weights }
    }

    fn sum(&self, pieces: &[u32]) -> i64 {
        pieces.iter().map(|&piece| self.weights[piece as usize]).sum()
    }

    /// From the start: of the steps that can run, the one whose growth has the smallest key; then the one of lowest rank.
    /// A step grows memory by what it writes, less what it reads last.
    fn forward(&self, rank: &[u32], key: impl Fn(i64) -> i64) -> Vec<u32> {
        let count = self.reads.len();
        let mut waiting: Vec<u32> = (0..count as u32).map(|i| self.earlier.of(i).len() as u32).collect();
        let mut left: Vec<u32> =
            (0..self.weights.len() as u32).map(|i| self.readers.of(i).len() as u32).collect();
        let mut growth: Vec<i64> = (0..count)
            .map(|i| {
                let last = self.reads[i].iter().filter(|&&piece| left[piece as usize] == 1);
                self.sum(&self.writes[i]) - last.map(|&piece| self.weights[piece as usize]).sum::<i64>()
            })
            .collect();
        let mut done = vec![false; count];
        let mut ready = BinaryHeap::new();
        let entry = |growth: &[i64], i: u32| Reverse((key(growth[i as usize]), rank[i as usize], i));
        ready.extend((0..count as u32).filter(|&i| waiting[i as usize] == 0).map(|i| entry(&growth, i)));
        let mut order = Vec::with_capacity(count);
        // A step is there once more whenever its growth changes; only the first time counts, which is the best.
        while let Some(Reverse((_, _, step))) = ready.pop() {
            if std::mem::replace(&mut done[step as usize], true) {
                continue;
            }
            order.push(step);
            for &piece in &self.reads[step as usize] {
                left[piece as usize] -= 1;
                if left[piece as usize] != 1 || self.weights[piece as usize] == 0 {
                    continue;
                }
                let last = self.readers.of(piece).iter().find(|&&reader| !done[reader as usize]);
                if let Some(&last) = last {
                    growth[last as usize] -= self.weights[piece as usize];
                    if waiting[last as usize] == 0 {
                        ready.push(entry(&growth, last));
                    }
                }
            }
            for &then in self.later.of(step) {
                waiting[then as usize] -= 1;
                if waiting[then as usize] == 0 {
                    ready.push(entry(&growth, then));
                }
            }
        }
        order
    }

    /// From the end: of the steps that nothing waits for, the one whose growth has the smallest key; then the last. Seen
    /// from there, a step grows memory by what it reads and nobody after it does, less what it writes.
    fn backward(&self, key: impl Fn(i64) -> i64) -> Vec<u32> {
        let count = self.reads.len();
        let mut waiting: Vec<u32> = (0..count as u32).map(|i| self.later.of(i).len() as u32).collect();
        let mut alive = vec![false; self.weights.len()];
        let mut growth: Vec<i64> =
            (0..count).map(|i| self.sum(&self.reads[i]) - self.sum(&self.writes[i])).collect();
        let mut done = vec![false; count];
        let mut ready = BinaryHeap::new();
        let entry = |growth: &[i64], i: u32| (Reverse(key(growth[i as usize])), i);
        ready.extend((0..count as u32).filter(|&i| waiting[i as usize] == 0).map(|i| entry(&growth, i)));
        let mut order = Vec::with_capacity(count);
        while let Some((_, step)) = ready.pop() {
            if std::mem::replace(&mut done[step as usize], true) {
                continue;
            }
            order.push(step);
            for &piece in &self.reads[step as usize] {
                let weight = self.weights[piece as usize];
                if weight == 0 || std::mem::replace(&mut alive[piece as usize], true) {
                    continue;
                }
                for &reader in self.readers.of(piece).iter().filter(|&&reader| !done[reader as usize]) {
                    growth[reader as usize] -= weight;
                    if waiting[reader as usize] == 0 {
                        ready.push(entry(&growth, reader));
                    }
                }
            }
            for &before in self.earlier.of(step) {
                waiting[before as usize] -= 1;
                if waiting[before as usize] == 0 {
                    ready.push(entry(&growth, before));
                }
            }
        }
        order.reverse();
        order
    }

    /// Down from the steps that nothing waits for, those with the shortest way from the start first: each after what it
    /// needs, and that in turn.
    fn down(&self, deep_first: bool) -> Vec<u32> {
        let count = self.reads.len();
        let mut depth = vec![0u32; count];
        let own: Vec<u32> = (0..count as u32).collect();
        for step in self.forward(&own, |_| 0) {
            let earlier = self.earlier.of(step).iter().map(|&before| depth[before as usize] + 1);
            depth[step as usize] = earlier.max().unwrap_or(0);
        }
        let mut ends: Vec<u32> = own.into_iter().filter(|&i| self.later.of(i).is_empty()).collect();
        ends.sort_by_key(|&i| (depth[i as usize], i));
        let mut order = Vec::with_capacity(count);
        let mut seen = vec![false; count];
        let mut open: Vec<(u32, bool)> = ends.into_iter().rev().map(|end| (end, false)).collect();
        while let Some((step, finished)) = open.pop() {
            if finished {
                order.push(step);
                continue;
            }
            if std::mem::replace(&mut seen[step as usize], true) {
                continue;
            }
            open.push((step, true));
            let first = open.len();
            open.extend(self.earlier.of(step).iter().filter(|&&i| !seen[i as usize]).map(|&i| (i, false)));
            // The last one on the pile is the first to be taken.
            let key = |i: u32| if deep_first { depth[i as usize] } else { 0 };
            open[first..].sort_by_key(|&(i, _)| (key(i), Reverse(i)));
        }
        order
    }
}

#[cfg(test)]
mod tests;
