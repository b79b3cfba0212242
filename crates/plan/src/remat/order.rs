//! A topological order of the steps, indexed for the searches.

use super::problem::{NONE, Problem};

/// An order in which every step occurs once.
#[derive(Clone, Debug)]
pub(super) struct IndexedOrder {
    pub(super) order: Vec<u32>,
    /// Per step, its place in the order.
    pub(super) place: Vec<u32>,
    /// Per place, the cost of all steps before it; one entry more than places.
    pub(super) time: Vec<u64>,
    /// Per step, the last place before which it may be repeated: that of the first update of a variable it reads.
    pub(super) deadline: Vec<u32>,
    /// The places that read each value, ascending, value after value.
    reads: Vec<u32>,
    /// Per value, where its places begin in `reads`.
    starts: Vec<u32>,
}

impl IndexedOrder {
    pub(super) fn new(problem: &Problem, order: Vec<u32>) -> IndexedOrder {
        let mut place = vec![0u32; problem.steps.len()];
        let mut time = Vec::with_capacity(order.len() + 1);
        let mut starts = vec![0u32; problem.values.len() + 1];
        let mut now = 0;
        for (at, &step) in order.iter().enumerate() {
            place[step as usize] = at as u32;
            time.push(now);
            now += problem.steps[step as usize].cost;
            problem.steps[step as usize].reads.iter().for_each(|&v| starts[v as usize + 1] += 1);
        }
        time.push(now);
        for v in 0..problem.values.len() {
            starts[v + 1] += starts[v];
        }
        let mut next = starts.clone();
        let mut reads = vec![0; starts[problem.values.len()] as usize];
        for (at, &step) in order.iter().enumerate() {
            for &v in &problem.steps[step as usize].reads {
                reads[next[v as usize] as usize] = at as u32;
                next[v as usize] += 1;
            }
        }
        let mut deadline = vec![NONE; problem.steps.len()];
        for &(step, later) in &problem.before {
            deadline[step as usize] = deadline[step as usize].min(place[later as usize]);
        }
        IndexedOrder { order, place, time, deadline, reads, starts }
    }

    /// The places that read a value, ascending.
    pub(super) fn reads_of(&self, value: u32) -> &[u32] {
        &self.reads[self.starts[value as usize] as usize..self.starts[value as usize + 1] as usize]
    }

    /// Whether a step may be repeated just before a place.
    pub(super) fn may_repeat(&self, problem: &Problem, step: u32, at: u32) -> bool {
        problem.steps[step as usize].repeatable && at <= self.deadline[step as usize]
    }
}
