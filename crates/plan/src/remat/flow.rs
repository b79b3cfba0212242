//! Maximum flow and minimum cut in a small network (Dinic's algorithm).

use super::problem::NONE;

/// More than any sum of capacities that can be cut.
pub(super) const UNLIMITED: u64 = 1 << 63;

struct Arc {
    to: u32,
    /// The next arc from the same node.
    next: u32,
    room: u64,
}

/// A network whose node 0 is the source and whose node 1 is the sink.
pub(super) struct Network {
    /// Arcs in pairs: each is followed by its reverse.
    arcs: Vec<Arc>,
    heads: Vec<u32>,
    levels: Vec<u32>,
    /// Per node, the next arc to look at.
    cursors: Vec<u32>,
    queue: Vec<u32>,
    path: Vec<u32>,
    pub(super) work: u64,
}

pub(super) const SOURCE: u32 = 0;
pub(super) const SINK: u32 = 1;

impl Network {
    pub(super) fn new(nodes: usize) -> Network {
        Network {
            arcs: Vec::new(),
            heads: vec![NONE; nodes],
            levels: vec![NONE; nodes],
            cursors: vec![NONE; nodes],
            queue: Vec::new(),
            path: Vec::new(),
            work: 0,
        }
    }

    /// Adds an arc and returns its number.
    pub(super) fn arc(&mut self, from: u32, to: u32, capacity: u64) -> usize {
        let number = self.arcs.len();
        self.arcs.push(Arc { to, next: self.heads[from as usize], room: capacity });
        self.heads[from as usize] = number as u32;
        self.arcs.push(Arc { to: from, next: self.heads[to as usize], room: 0 });
        self.heads[to as usize] = number as u32 + 1;
        number
    }

    /// Gives an arc a capacity and takes its flow away.
    pub(super) fn reset(&mut self, arc: usize, capacity: u64) {
        self.arcs[arc].room = capacity;
        self.arcs[arc + 1].room = 0;
    }

    /// Whether a node is on the source's side of the minimum cut that [`maximise`](Self::maximise) found.
    pub(super) fn is_reached(&self, node: u32) -> bool {
        self.levels[node as usize] != NONE
    }

    /// Sends as much as possible from the source to the sink. Returns whether the units of work allowed were enough.
    pub(super) fn maximise(&mut self, most: u64) -> bool {
        while self.find_levels() {
            self.cursors.copy_from_slice(&self.heads);
            self.path.clear();
            while self.advance() {
                self.augment();
                if self.work > most {
                    return false;
                }
            }
        }
        true
    }

    /// Distances from the source; whether the sink has one.
    fn find_levels(&mut self) -> bool {
        self.levels.fill(NONE);
        self.levels[SOURCE as usize] = 0;
        self.queue.clear();
        self.queue.push(SOURCE);
        let mut i = 0;
        while let Some(&node) = self.queue.get(i) {
            i += 1;
            let mut arc = self.heads[node as usize];
            while let Some(a) = self.arcs.get(arc as usize) {
                self.work += 1;
                if a.room > 0 && self.levels[a.to as usize] == NONE {
                    self.levels[a.to as usize] = self.levels[node as usize] + 1;
                    self.queue.push(a.to);
                }
                arc = a.next;
            }
        }
        self.levels[SINK as usize] != NONE
    }

    /// Extends the path to the sink; whether that is possible.
    fn advance(&mut self) -> bool {
        let mut node = self.path.last().map_or(SOURCE, |&arc| self.arcs[arc as usize].to);
        while node != SINK {
            self.work += 1;
            let arc = self.cursors[node as usize];
            let Some(a) = self.arcs.get(arc as usize) else {
                // A dead end: go back and skip the arc that led here.
                let Some(last) = self.path.pop() else { return false };
                node = self.arcs[last as usize ^ 1].to;
                self.cursors[node as usize] = self.arcs[last as usize].next;
                continue;
            };
            if a.room > 0 && self.levels[a.to as usize] == self.levels[node as usize] + 1 {
                self.path.push(arc);
                node = a.to;
            } else {
                self.cursors[node as usize] = a.next;
            }
        }
        true
    }

    /// Sends flow along the path and cuts it off before the first arc that is full.
    fn augment(&mut self) {
        let least = self.path.iter().map(|&arc| self.arcs[arc as usize].room).min().unwrap_or(0);
        self.work += self.path.len() as u64;
        let mut full = None;
        for (i, &arc) in self.path.iter().enumerate() {
            self.arcs[arc as usize].room -= least;
            self.arcs[arc as usize ^ 1].room += least;
            if full.is_none() && self.arcs[arc as usize].room == 0 {
                full = Some(i);
            }
        }
        self.path.truncate(full.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::{Network, SINK, SOURCE};

    /// The network of Cormen, Leiserson, Rivest and Stein, whose maximum flow is 23.
    #[test]
    fn maximum_flow_and_minimum_cut() {
        let mut network = Network::new(6);
        let arcs = [
            (SOURCE, 2, 16),
            (SOURCE, 3, 13),
            (2, 4, 12),
            (3, 2, 4),
            (4, 3, 9),
            (3, 5, 14),
            (5, 4, 7),
            (4, SINK, 20),
            (5, SINK, 4),
        ];
        let numbers: Vec<usize> = arcs.iter().map(|&(a, b, capacity)| network.arc(a, b, capacity)).collect();
        for _ in 0..2 {
            assert!(network.maximise(u64::MAX));
            let is_cut = |&(a, b, _): &(u32, u32, u64)| network.is_reached(a) && !network.is_reached(b);
            assert_eq!(arcs.iter().filter(|arc| is_cut(arc)).map(|arc| arc.2).sum::<u64>(), 23);
            numbers.iter().zip(&arcs).for_each(|(&number, arc)| network.reset(number, arc.2));
        }
        assert!(!network.maximise(0));
    }
}
