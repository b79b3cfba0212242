//! Reachability between clusters of nodes, while the clusters still grow.
//!
//! Nodes are visited from the last to the first. A cluster that can still grow has a slot, one bit of a word; a node's word
//! has the slots reachable from it. When a cluster grows, more becomes reachable: `reachable` keeps that per slot, closed
//! under transitivity. When the slots run out, the oldest clusters stop growing and release theirs.

use std::num::NonZeroU64;

/// A bit set of slots.
pub(crate) type SlotSet = u64;

/// Which clusters are reachable from which nodes, along the edges from a value to its readers.
pub(crate) struct Reachability {
    /// Per node, the slots of its clusters and those reachable from it.
    nodes: Vec<SlotSet>,
    /// Per slot, the slots reachable from its cluster, and the cluster's own.
    reachable: [SlotSet; 64],
    free: SlotSet,
    /// The slots in use, oldest first.
    ages: Vec<u8>,
}

impl Reachability {
    pub(crate) fn new(nodes: usize) -> Reachability {
        Reachability { nodes: vec![0; nodes], reachable: [0; 64], free: SlotSet::MAX, ages: Vec::new() }
    }

    /// These slots, and all slots reachable from them.
    fn closure(&self, slots: SlotSet) -> SlotSet {
        bits(slots).fold(slots, |all, slot| all | self.reachable[slot])
    }

    /// The slots of a node's clusters, and those reachable from it.
    pub(crate) fn from(&self, node: usize) -> SlotSet {
        self.closure(self.nodes[node])
    }

    /// Sets the slots of a node's clusters, or those reachable from it.
    pub(crate) fn set(&mut self, node: usize, slots: SlotSet) {
        self.nodes[node] = slots;
    }

    /// A slot for a new cluster from which these are reachable, and the slots of the clusters that had to stop growing.
    pub(crate) fn open(&mut self, reachable: SlotSet) -> (SlotSet, SlotSet) {
        let reachable = self.closure(reachable);
        let stopped = if self.free == 0 { self.recycle() } else { 0 };
        let slot = self.free.trailing_zeros() as usize;
        self.free &= !(1 << slot);
        self.ages.push(slot as u8);
        self.reachable[slot] = reachable & !stopped | 1 << slot;
        (1 << slot, stopped)
    }

    /// Makes more slots reachable from a cluster, and from all clusters that reach it.
    pub(crate) fn extend(&mut self, cluster: SlotSet, reachable: SlotSet) {
        let all = self.closure(reachable | cluster);
        for slots in &mut self.reachable {
            if *slots & cluster != 0 {
                *slots |= all;
            }
        }
    }

    /// Releases the older half of the slots and returns them. What was reachable through them stays reachable.
    fn recycle(&mut self) -> SlotSet {
        let stopped = self.ages.drain(..32).fold(0, |all, slot| all | 1 << slot);
        for node in 0..self.nodes.len() {
            if let Some(slots) = NonZeroU64::new(self.nodes[node] & stopped) {
                self.nodes[node] = (self.nodes[node] | self.closure(slots.get())) & !stopped;
            }
        }
        self.reachable.iter_mut().for_each(|slots| *slots &= !stopped);
        bits(stopped).for_each(|slot| self.reachable[slot] = 0);
        self.free |= stopped;
        stopped
    }
}

fn bits(mut slots: SlotSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = NonZeroU64::new(slots)?.trailing_zeros();
        slots &= slots - 1;
        Some(slot as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of many more clusters than slots: reachability stays exact for the clusters that still grow.
    #[test]
    fn slots_are_released() {
        let _ledger = taut_memory::testing::ledger_check();
        let mut reachability = Reachability::new(200);
        let mut open: Vec<(usize, SlotSet)> = Vec::new();
        for node in (0..200).rev() {
            let reachable = if node == 199 { 0 } else { reachability.from(node + 1) };
            let (slot, stopped) = reachability.open(reachable);
            open.retain(|(_, slot)| slot & stopped == 0);
            reachability.set(node, slot);
            open.push((node, slot));
            assert!(open.len() <= 64);
            for &(_, later) in &open {
                assert_ne!(reachability.from(node) & later, 0, "all are reachable from the first");
            }
            for &(other, _) in &open[..open.len() - 1] {
                assert_eq!(reachability.from(other) & slot, 0, "the first is reachable from none");
            }
        }
    }

    /// What becomes reachable from a cluster when it grows is also reachable from the nodes before it.
    #[test]
    fn growth_is_transitive() {
        let _ledger = taut_memory::testing::ledger_check();
        let mut reachability = Reachability::new(4);
        let (far, _) = reachability.open(0);
        let (near, _) = reachability.open(0);
        reachability.set(3, far);
        reachability.set(2, near);
        reachability.set(1, reachability.from(2));
        assert_eq!(reachability.from(1), near);
        reachability.extend(near, reachability.from(3));
        assert_eq!(reachability.from(1), near | far);
        assert_eq!(reachability.from(3), far);
    }
}
