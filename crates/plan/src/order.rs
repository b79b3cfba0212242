//! The order in which the steps run. Several heuristics make candidate orders; [`placement`](crate::placement) keeps the
//! one that needs the fewest bytes.
//!
//! The heuristics complement each other. The graph's own order is the program's. Forward list scheduling runs the ready
//! step that grows live memory least, and so finds steps that free more than they write: an update right after its
//! gradient. Backward list scheduling does the same from the end, and computes values late instead of freeing them early.
//! Depth-first order from the outputs, the shallowest first, finishes one subgraph before it begins the next. The best
//! order is then [repaired](repair) at its peak.
//!
//! All are deterministic and take O(n log n) for n steps and O(n) reads.

mod repair;

pub(crate) use repair::repair;

use crate::lower::{AliasSetKind, LoweredGraph};
use crate::placement::rounded;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The orders to choose from, the graph's own first.
pub(crate) struct CandidateOrders {
    pub(crate) dependencies: Dependencies,
    pub(crate) list: Vec<Vec<u32>>,
}

impl CandidateOrders {
    pub(crate) fn new(lowered: &LoweredGraph<'_>, keep_order: bool) -> CandidateOrders {
        let dependencies = Dependencies::new(lowered);
        let list = candidates(&dependencies, keep_order);
        CandidateOrders { dependencies, list }
    }
}

fn candidates(dependencies: &Dependencies, keep_order: bool) -> Vec<Vec<u32>> {
    let own: Vec<u32> = (0..dependencies.reads.len() as u32).collect();
    let graph_order = dependencies.forward(&own, |_| 0);
    let mut orders = vec![graph_order];
    if keep_order || own.len() < 3 {
        return orders;
    }
    orders.push(dependencies.forward(&own, |growth| growth));
    orders.push(dependencies.forward(&own, |growth| growth.signum().max(0)));
    for deep_first in [false, true] {
        let depth_first = dependencies.depth_first(deep_first);
        let mut rank = vec![0; depth_first.len()];
        depth_first.iter().enumerate().for_each(|(i, &step)| rank[step as usize] = i as u32);
        orders.push(dependencies.forward(&rank, |growth| growth.signum().max(0)));
        orders.push(depth_first);
    }
    orders.push(dependencies.backward(|growth| growth));
    orders.push(dependencies.backward(|growth| growth.signum().max(0)));
    orders
}

/// Adjacency lists in compressed form: list i is `items[starts[i]..starts[i + 1]]`.
struct AdjacencyLists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl AdjacencyLists {
    /// Groups pairs by their first number, keeping their order.
    fn new(count: usize, pairs: &[(u32, u32)]) -> AdjacencyLists {
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
        AdjacencyLists { starts, items }
    }

    fn of(&self, list: u32) -> &[u32] {
        &self.items[self.starts[list as usize] as usize..self.starts[list as usize + 1] as usize]
    }
}

/// The dependencies between steps.
pub(crate) struct Dependencies {
    /// Per step, the alias sets it reads, each once.
    reads: Vec<SmallVec<[u32; 4]>>,
    /// Per step, the alias sets it writes.
    writes: Vec<SmallVec<[u32; 1]>>,
    /// Per alias set, the steps that read it.
    readers: AdjacencyLists,
    /// Per step, the steps that must run before it, and after it.
    predecessors: AdjacencyLists,
    successors: AdjacencyLists,
    /// Per alias set, the bytes it takes of the arena.
    weights: Vec<i64>,
}

impl Dependencies {
    fn new(lowered: &LoweredGraph<'_>) -> Dependencies {
        let (steps, alias_sets) = (&lowered.steps, &lowered.alias_sets);
        let mut made_by = vec![u32::MAX; alias_sets.len()];
        let (mut reads, mut writes) = (Vec::with_capacity(steps.len()), Vec::with_capacity(steps.len()));
        for (i, step) in steps.iter().enumerate() {
            let mut alias_sets: SmallVec<[u32; 4]> = step.operands.iter().map(|o| o.storage as u32).collect();
            alias_sets.sort_unstable();
            alias_sets.dedup();
            reads.push(alias_sets);
            writes.push(step.targets.iter().map(|t| t.storage as u32).collect::<SmallVec<[u32; 1]>>());
            step.targets.iter().for_each(|target| made_by[target.storage] = i as u32);
        }
        let (mut reads_by_set, mut edges) = (Vec::new(), lowered.ordering_edges.clone());
        for (i, read) in reads.iter().enumerate() {
            for &set in read {
                reads_by_set.push((set, i as u32));
                match made_by[set as usize] {
                    u32::MAX => {}
                    maker => edges.push((maker, i as u32)),
                }
            }
        }
        let readers = AdjacencyLists::new(alias_sets.len(), &reads_by_set);
        let weights = (alias_sets.iter().enumerate())
            .map(|(i, set)| match set.kind {
                AliasSetKind::Computed if !set.is_output && !readers.of(i as u32).is_empty() => {
                    rounded(set.bytes) as i64
                }
                _ => 0,
            })
            .collect();
        let successors = AdjacencyLists::new(steps.len(), &edges);
        edges.iter_mut().for_each(|edge| *edge = (edge.1, edge.0));
        let predecessors = AdjacencyLists::new(steps.len(), &edges);
        Dependencies { reads, writes, readers, predecessors, successors, weights }
    }

    fn sum(&self, alias_sets: &[u32]) -> i64 {
        alias_sets.iter().map(|&set| self.weights[set as usize]).sum()
    }

    /// List scheduling from the start: of the ready steps, the one whose growth has the smallest key; ties go to the lowest
    /// rank. A step grows live memory by the bytes it writes, less the bytes it reads for the last time.
    fn forward(&self, rank: &[u32], key: impl Fn(i64) -> i64) -> Vec<u32> {
        let count = self.reads.len();
        let mut waiting: Vec<u32> = (0..count as u32).map(|i| self.predecessors.of(i).len() as u32).collect();
        let mut left: Vec<u32> =
            (0..self.weights.len() as u32).map(|i| self.readers.of(i).len() as u32).collect();
        let mut growth: Vec<i64> = (0..count)
            .map(|i| {
                let last = self.reads[i].iter().filter(|&&set| left[set as usize] == 1);
                self.sum(&self.writes[i]) - last.map(|&set| self.weights[set as usize]).sum::<i64>()
            })
            .collect();
        let mut done = vec![false; count];
        let mut ready = BinaryHeap::new();
        let entry = |growth: &[i64], i: u32| Reverse((key(growth[i as usize]), rank[i as usize], i));
        ready.extend((0..count as u32).filter(|&i| waiting[i as usize] == 0).map(|i| entry(&growth, i)));
        let mut order = Vec::with_capacity(count);
        // A step is pushed again whenever its growth falls; the first pop is the smallest, and later ones are skipped.
        while let Some(Reverse((_, _, step))) = ready.pop() {
            if std::mem::replace(&mut done[step as usize], true) {
                continue;
            }
            order.push(step);
            for &set in &self.reads[step as usize] {
                left[set as usize] -= 1;
                if left[set as usize] != 1 || self.weights[set as usize] == 0 {
                    continue;
                }
                let last = self.readers.of(set).iter().find(|&&reader| !done[reader as usize]);
                if let Some(&last) = last {
                    growth[last as usize] -= self.weights[set as usize];
                    if waiting[last as usize] == 0 {
                        ready.push(entry(&growth, last));
                    }
                }
            }
            for &then in self.successors.of(step) {
                waiting[then as usize] -= 1;
                if waiting[then as usize] == 0 {
                    ready.push(entry(&growth, then));
                }
            }
        }
        order
    }

    /// List scheduling from the end: of the steps whose successors are all scheduled, the one whose growth has the smallest
    /// key; ties go to the last. In this direction a step grows live memory by the bytes it reads that no scheduled step
    /// reads, less the bytes it writes.
    fn backward(&self, key: impl Fn(i64) -> i64) -> Vec<u32> {
        let count = self.reads.len();
        let mut waiting: Vec<u32> = (0..count as u32).map(|i| self.successors.of(i).len() as u32).collect();
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
            for &set in &self.reads[step as usize] {
                let weight = self.weights[set as usize];
                if weight == 0 || std::mem::replace(&mut alive[set as usize], true) {
                    continue;
                }
                for &reader in self.readers.of(set).iter().filter(|&&reader| !done[reader as usize]) {
                    growth[reader as usize] -= weight;
                    if waiting[reader as usize] == 0 {
                        ready.push(entry(&growth, reader));
                    }
                }
            }
            for &before in self.predecessors.of(step) {
                waiting[before as usize] -= 1;
                if waiting[before as usize] == 0 {
                    ready.push(entry(&growth, before));
                }
            }
        }
        order.reverse();
        order
    }

    /// Depth-first postorder from the steps without successors, the shallowest first.
    fn depth_first(&self, deep_first: bool) -> Vec<u32> {
        let count = self.reads.len();
        let mut depth = vec![0u32; count];
        let own: Vec<u32> = (0..count as u32).collect();
        for step in self.forward(&own, |_| 0) {
            let predecessors = self.predecessors.of(step).iter().map(|&before| depth[before as usize] + 1);
            depth[step as usize] = predecessors.max().unwrap_or(0);
        }
        let mut ends: Vec<u32> = own.into_iter().filter(|&i| self.successors.of(i).is_empty()).collect();
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
            open.extend(
                self.predecessors.of(step).iter().filter(|&&i| !seen[i as usize]).map(|&i| (i, false)),
            );
            // The top of the stack is taken first.
            let key = |i: u32| if deep_first { depth[i as usize] } else { 0 };
            open[first..].sort_by_key(|&(i, _)| (key(i), Reverse(i)));
        }
        order
    }
}

#[cfg(test)]
mod tests;
