//! The cheapest sequence of an order within a goal, for small problems: Dijkstra's algorithm over resident sets.

use super::order::IndexedOrder;
use super::problem::{NONE, Problem, Residence};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// What the exact search says of a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExactOutcome {
    /// No sequence of this order repeats less.
    Optimal(Vec<u32>),
    /// No sequence of this order keeps the goal.
    Impossible,
    /// The work allowed was not enough, or the problem is not one for this search.
    Unknown,
}

/// The most values that take bytes; sets of them are words.
const MOST_VALUES: usize = 32;

/// The cheapest sequence whose first occurrences are in `order` and whose peak is at most `goal` bytes. It needs up to `work`
/// units, grows exponentially with the values that take bytes, and leaves alone problems in which outputs may be
/// computed over donated inputs.
pub fn exact(problem: &Problem, order: &[u32], goal: usize, work: u64) -> ExactOutcome {
    let order = IndexedOrder::new(problem, order.to_vec());
    let mut spent = 0;
    solve(problem, &order, goal as i64 - problem.results, work, &mut spent)
}

/// Whether [`solve`] can say anything about a problem with so many values.
pub(super) fn is_small(problem: &Problem, most: usize) -> bool {
    let count = problem.bytes.iter().filter(|&&bytes| bytes > 0).count();
    let is_donated = |pair: &(u32, u32)| problem.values[pair.0 as usize].residence == Residence::Donated;
    count <= most.min(MOST_VALUES) && !problem.steps.iter().flat_map(|step| &step.in_place).any(is_donated)
}

/// As [`exact()`], for a goal in bytes of the arena; adds to `spent`.
pub(super) fn solve(
    problem: &Problem,
    order: &IndexedOrder,
    goal: i64,
    work: u64,
    spent: &mut u64,
) -> ExactOutcome {
    if !is_small(problem, MOST_VALUES) {
        return ExactOutcome::Unknown;
    }
    let mut search = ResidentSets::new(problem, order, goal, work);
    let end = search.run();
    *spent += search.work;
    match end {
        _ if search.work > work => ExactOutcome::Unknown,
        Some(state) => ExactOutcome::Optimal(search.sequence_to(state)),
        None => ExactOutcome::Impossible,
    }
}

/// The steps of the order that have run, and the set of resident values.
type ResidentState = (u32, u32);

/// How a state is reached: the cost, the state before and the step between.
#[derive(Clone, Copy)]
struct Reached {
    cost: u64,
    from: ResidentState,
    step: u32,
}

struct ResidentSets<'a> {
    problem: &'a Problem,
    order: &'a IndexedOrder,
    goal: i64,
    /// The values that take bytes, by their bit in a set.
    values: Vec<u32>,
    bits: Vec<u32>,
    /// Per step, the sets of values it reads and writes.
    reads: Vec<u32>,
    writes: Vec<u32>,
    /// Per place, the values that may still be of use from there on.
    useful: Vec<u32>,
    reached: HashMap<ResidentState, Reached>,
    heap: BinaryHeap<Reverse<(u64, ResidentState)>>,
    work: u64,
    most: u64,
}

impl<'a> ResidentSets<'a> {
    fn new(problem: &'a Problem, order: &'a IndexedOrder, goal: i64, most: u64) -> ResidentSets<'a> {
        let values: Vec<u32> =
            (0..problem.values.len() as u32).filter(|&v| problem.bytes[v as usize] > 0).collect();
        let mut bits = vec![0; problem.values.len()];
        values.iter().enumerate().for_each(|(i, &v)| bits[v as usize] = 1 << i);
        let set = |list: &[u32]| list.iter().fold(0, |set, &v| set | bits[v as usize]);
        let reads: Vec<u32> = problem.steps.iter().map(|step| set(&step.reads)).collect();
        let writes: Vec<u32> = problem.steps.iter().map(|step| set(&step.writes)).collect();
        let mut useful = vec![0; order.order.len() + 1];
        let mut later = 0;
        for at in (0..order.order.len()).rev() {
            later |= reads[order.order[at] as usize];
            // What could be repeated from here on makes its operands useful.
            let mut all = later;
            for &step in order.order[..at].iter().rev() {
                if writes[step as usize] & all != 0 && order.may_repeat(problem, step, at as u32) {
                    all |= reads[step as usize];
                }
            }
            useful[at] = all;
        }
        let (reached, heap) = (HashMap::new(), BinaryHeap::new());
        ResidentSets {
            problem,
            order,
            goal,
            values,
            bits,
            reads,
            writes,
            useful,
            reached,
            heap,
            work: 0,
            most,
        }
    }

    /// The cheapest final state; `None` if there is none, or the work was not enough.
    fn run(&mut self) -> Option<ResidentState> {
        let start = (0, 0);
        self.reached.insert(start, Reached { cost: 0, from: start, step: NONE });
        self.heap.push(Reverse((0, start)));
        while let Some(Reverse((cost, state))) = self.heap.pop() {
            if self.reached.get(&state).is_some_and(|reached| reached.cost < cost) {
                continue;
            }
            let (place, set) = (state.0 as usize, state.1);
            if self.work > self.most {
                return None;
            }
            if place == self.order.order.len() {
                return Some(state);
            }
            self.expand(cost, state, self.order.order[place], place + 1);
            for i in 0..place {
                let step = self.order.order[i];
                let gives = self.writes[step as usize] & self.useful[place] & !set;
                if gives != 0 && self.order.may_repeat(self.problem, step, place as u32) {
                    let cost = cost.saturating_add(self.problem.steps[step as usize].cost);
                    self.expand(cost, state, step, place);
                }
            }
        }
        None
    }

    /// All states after running a step: for every choice of outputs to write and of operands to compute over.
    fn expand(&mut self, cost: u64, from: ResidentState, step: u32, place: usize) {
        let s = step as usize;
        self.work += 1;
        if from.1 & self.reads[s] != self.reads[s] {
            return;
        }
        let pairs = &self.problem.steps[s].in_place;
        let operands = pairs.iter().fold(0, |set, pair| set | self.bits[pair.0 as usize]);
        let optional = operands & self.useful[place];
        let dying = operands & !optional;
        let written = self.writes[s];
        let spared = if self.problem.steps[s].prunable { written } else { 0 };
        for left_out in subsets(spared) {
            for more in subsets(optional) {
                self.run_step(cost, from, step, place, written & !left_out, dying | more);
            }
        }
    }

    /// The states after running a step that writes these values and at which these operands die: for every smallest set of
    /// values that has to be evicted first.
    fn run_step(
        &mut self,
        cost: u64,
        from: ResidentState,
        step: u32,
        place: usize,
        written: u32,
        dying: u32,
    ) {
        let set = from.1;
        let aliases = self.problem.aliases(step as usize, |v| dying & self.bits[v as usize] != 0);
        let over = aliases.iter().fold(0, |over, pair| over | self.bits[pair.1 as usize]) & written;
        let scratch = self.problem.steps[step as usize].scratch as i64;
        let missing = self.size(set | written) + scratch - self.size(over) - self.goal;
        let spare = set & !self.reads[step as usize] & !written;
        let after = (set | written) & !dying & self.useful[place];
        let mut evicted = Vec::new();
        self.evictions(spare, missing, 0, &mut evicted);
        for gone in evicted {
            let state = (place as u32, after & !gone);
            if self.reached.get(&state).is_none_or(|reached| cost < reached.cost) {
                self.reached.insert(state, Reached { cost, from, step });
                self.heap.push(Reverse((cost, state)));
            }
        }
    }

    /// Sets of these values that free so many bytes, and would not without the value of the highest bit.
    fn evictions(&mut self, spare: u32, missing: i64, gone: u32, found: &mut Vec<u32>) {
        self.work += 1;
        if missing <= 0 {
            found.push(gone);
            return;
        }
        let mut left = spare;
        while self.work <= self.most && left != 0 && self.size(left) >= missing {
            let bit = left & left.wrapping_neg();
            left &= !bit;
            self.evictions(left, missing - self.size(bit), gone | bit, found);
        }
    }

    fn size(&self, mut set: u32) -> i64 {
        let mut size = 0;
        while set != 0 {
            size += self.problem.bytes[self.values[set.trailing_zeros() as usize] as usize];
            set &= set - 1;
        }
        size
    }

    fn sequence_to(&self, mut state: ResidentState) -> Vec<u32> {
        let mut sequence = Vec::new();
        while let Some(reached) = self.reached.get(&state).filter(|reached| reached.step != NONE) {
            sequence.push(reached.step);
            state = reached.from;
        }
        sequence.reverse();
        sequence
    }
}

/// All subsets of a set, the empty one first.
fn subsets(set: u32) -> impl Iterator<Item = u32> {
    let mut next = Some(0u32);
    std::iter::from_fn(move || {
        let current = next?;
        let following = current.wrapping_sub(set) & set;
        next = (following != 0).then_some(following);
        Some(current)
    })
}
