//! Which groups of nodes depend on which, while the groups still grow.
//!
//! Nodes are met from the last to the first. A group that can still grow has a slot, a bit of a word; a node's word says
//! which slots lie behind it. When a group grows, more may lie behind it: `behind` keeps that per slot, closed under
//! "and what lies behind those". When the slots run out, the oldest groups stop growing and give theirs back.

use std::num::NonZeroU64;

/// A set of slots.
pub(crate) type Slots = u64;

/// Keeps track of what lies behind what.
pub(crate) struct Reach {
    /// Per node, the slots that it belongs to or that lie behind it.
    nodes: Vec<Slots>,
    /// Per slot, what lies behind the group, and the group's own slots.
    behind: [Slots; 64],
    free: Slots,
    /// The slots in use, oldest first.
    ages: Vec<u8>,
}

impl Reach {
    pub(crate) fn new(nodes: usize) -> Reach {
        Reach { nodes: vec![0; nodes], behind: [0; 64], free: Slots::MAX, ages: Vec::new() }
    }

    /// All slots that lie behind these, and these.
    fn closed(&self, slots: Slots) -> Slots {
        bits(slots).fold(slots, |all, slot| all | self.behind[slot])
    }

    /// The slots that a node belongs to, and those behind it.
    pub(crate) fn from(&self, node: usize) -> Slots {
        self.closed(self.nodes[node])
    }

    /// Puts a node before others.
    pub(crate) fn set(&mut self, node: usize, slots: Slots) {
        self.nodes[node] = slots;
    }

    /// A slot for a new group, with what lies behind it. The second result are the slots of groups that had to stop.
    pub(crate) fn open(&mut self, behind: Slots) -> (Slots, Slots) {
        let behind = self.closed(behind);
        let stopped = if self.free == 0 { self.recycle() } else { 0 };
        let slot = self.free.trailing_zeros() as usize;
        self.free &= !(1 << slot);
        self.ages.push(slot as u8);
        self.behind[slot] = behind & !stopped | 1 << slot;
        (1 << slot, stopped)
    }

    /// More lies behind a group.
    pub(crate) fn extend(&mut self, group: Slots, behind: Slots) {
        let all = self.closed(behind | group);
        for slots in &mut self.behind {
            if *slots & group != 0 {
                *slots |= all;
            }
        }
    }

    /// Gives half of the slots back, and says which. What lay behind them lies behind those that they lay behind.
    fn recycle(&mut self) -> Slots {
        let stopped = self.ages.drain(..32).fold(0, |all, slot| all | 1 << slot);
        for node in 0..self.nodes.len() {
            if let Some(slots) = NonZeroU64::new(self.nodes[node] & stopped) {
                self.nodes[node] = (self.nodes[node] | self.closed(slots.get())) & !stopped;
            }
        }
        self.behind.iter_mut().for_each(|slots| *slots &= !stopped);
        bits(stopped).for_each(|slot| self.behind[slot] = 0);
        self.free |= stopped;
        stopped
    }
}

fn bits(mut slots: Slots) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = NonZeroU64::new(slots)?.trailing_zeros();
        slots &= slots - 1;
        Some(slot as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chains of groups, many more than there are slots: what lies behind a node is known as long as its groups grow.
    #[test]
    fn slots_are_given_back() {
        let _ledger = taut_memory::testing::ledger_check();
        let mut reach = Reach::new(200);
        let mut open: Vec<(usize, Slots)> = Vec::new();
        for node in (0..200).rev() {
            let behind = if node == 199 { 0 } else { reach.from(node + 1) };
            let (slot, stopped) = reach.open(behind);
            open.retain(|(_, slot)| slot & stopped == 0);
            reach.set(node, slot);
            open.push((node, slot));
            assert!(open.len() <= 64);
            for &(_, later) in &open {
                assert_ne!(reach.from(node) & later, 0, "all lie behind the first");
            }
            for &(other, _) in &open[..open.len() - 1] {
                assert_eq!(reach.from(other) & slot, 0, "the first lies behind none");
            }
        }
    }

    /// What a group gets behind it when it grows lies behind those before it, too.
    #[test]
    fn growth_is_passed_on() {
        let _ledger = taut_memory::testing::ledger_check();
        let mut reach = Reach::new(4);
        let (far, _) = reach.open(0);
        let (near, _) = reach.open(0);
        reach.set(3, far);
        reach.set(2, near);
        reach.set(1, reach.from(2));
        assert_eq!(reach.from(1), near);
        reach.extend(near, reach.from(3));
        assert_eq!(reach.from(1), near | far);
        assert_eq!(reach.from(3), far);
    }
}
