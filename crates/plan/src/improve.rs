//! Improves the greedy packing: searches for packings of smaller and smaller sizes.

use crate::greedy::{QUICK, portfolio};
use crate::interval_graph::IntervalGraph;
use crate::packing::{Effort, FoundBy, LiveBuffer, PackError, Packing};
use crate::problem::{Interval, PackingProblem};
use crate::restarts::fits;
use crate::search::SearchOutcome;

/// Steps for one goal in the first round; each round has four times as many as the one before.
const FIRST_ROUND: u64 = 2_000_000;
/// A packing at the lower bound is optimal, so that goal gets this many times the steps of another.
const LOWER_BOUND_SHARE: u64 = 4;
/// The last round has more steps than any machine can take.
const ROUNDS: u64 = 20;
/// The most buffers of a component that is searched: the search keeps a bit for each pair.
const MAX_SEARCHED: usize = 10_000;

/// Gives each buffer an offset, in as few bytes as the effort allows.
pub fn pack(buffers: &[LiveBuffer], effort: Effort) -> Result<Packing, PackError> {
    let mut improver = Improver::new(PackingProblem::new(buffers)?);
    improver.improve(effort.steps);
    Ok(improver.finish(buffers))
}

/// A packing in at most `capacity` bytes, or `None` if the effort found none. A capacity below the lower bound returns
/// `None` at once.
pub fn pack_within(
    buffers: &[LiveBuffer],
    capacity: usize,
    effort: Effort,
) -> Result<Option<Packing>, PackError> {
    let mut improver = Improver::new(PackingProblem::new(buffers)?);
    if improver.problem.lower_bound > capacity as u64 {
        return Ok(None);
    }
    if improver.exact_bytes() > capacity as u64 {
        improver.complete_portfolio(effort.steps);
        improver.attempt(capacity as u64, 0, effort.steps, effort.steps);
    }
    Ok(Some(improver.finish(buffers)).filter(|packing| packing.bytes <= capacity))
}

/// A connected component of the interval graph, with its best packing so far.
struct Component {
    intervals: Vec<Interval>,
    offsets: Vec<u64>,
    /// In whole grains.
    bytes: u64,
    /// Whether all greedy orders were tried.
    complete: bool,
    graph: Option<IntervalGraph>,
}

impl Component {
    fn set_offsets(&mut self, offsets: Vec<u64>) {
        let tops = self.intervals.iter().zip(&offsets).map(|(interval, offset)| offset + interval.size);
        self.bytes = tops.max().unwrap_or(0);
        self.offsets = offsets;
    }

    fn exact_bytes(&self) -> u64 {
        self.intervals.iter().zip(&self.offsets).map(|(i, offset)| offset + i.raw).max().unwrap_or(0)
    }
}

struct Improver {
    problem: PackingProblem,
    components: Vec<Component>,
    /// The lower bound in whole grains, raised when the search proves a size impossible.
    least: u64,
    steps: u64,
    /// The algorithm that found the best packing so far.
    found_by: FoundBy,
}

enum Attempt {
    Reached,
    Impossible,
    Missed,
}

impl Improver {
    fn new(mut problem: PackingProblem) -> Self {
        let least = problem.lower_bound.next_multiple_of(problem.grain);
        let components = std::mem::take(&mut problem.components);
        let greedy = |intervals: Vec<Interval>| {
            let greedy = portfolio(&intervals, least, QUICK);
            Component {
                intervals,
                offsets: greedy.offsets,
                bytes: greedy.bytes,
                complete: greedy.complete,
                graph: None,
            }
        };
        let components = components.into_iter().map(greedy).collect();
        Improver { problem, components, least, steps: 0, found_by: FoundBy::Portfolio }
    }

    fn bytes(&self) -> u64 {
        self.components.iter().map(|component| component.bytes).max().unwrap_or(0)
    }

    fn exact_bytes(&self) -> u64 {
        self.components.iter().map(Component::exact_bytes).max().unwrap_or(0)
    }

    /// Tries the greedy orders that were skipped because there are many buffers.
    fn complete_portfolio(&mut self, effort: u64) {
        for component in &mut self.components {
            let left = effort.saturating_sub(self.steps);
            if component.bytes <= self.least || component.complete || left == 0 {
                continue;
            }
            let greedy = portfolio(&component.intervals, self.least, left);
            self.steps += greedy.visits;
            if greedy.bytes < component.bytes {
                (component.offsets, component.bytes) = (greedy.offsets, greedy.bytes);
            }
        }
    }

    /// Tries goals by bisection between the lower bound and the best packing; then again with more steps per goal, until
    /// the effort is spent.
    fn improve(&mut self, effort: u64) {
        self.complete_portfolio(effort);
        // Components that are too large for the search keep their packing, so no goal below theirs is tried.
        let large = self.components.iter().filter(|component| component.intervals.len() > MAX_SEARCHED);
        let fixed = large.map(|component| component.bytes).max().unwrap_or(0);
        for round in 0..ROUNDS {
            let budget = FIRST_ROUND.saturating_mul(1 << (2 * round));
            // Early rounds leave the last percent to later ones.
            let near_enough = self.least >> (7 + 2 * round);
            let bound = self.least.max(fixed);
            let mut from = bound;
            let mut goal = from;
            while from + near_enough < self.bytes() {
                if self.steps >= effort {
                    return;
                }
                let share = if goal == bound { budget.saturating_mul(LOWER_BOUND_SHARE) } else { budget };
                match self.attempt(goal, round, share, effort) {
                    Attempt::Reached => {}
                    Attempt::Impossible => {
                        self.least = goal + self.problem.unit;
                        from = self.least.max(fixed);
                    }
                    Attempt::Missed => from = goal + self.problem.unit,
                }
                let between = self.bytes().saturating_sub(from) / 2;
                goal = from + between / self.problem.unit * self.problem.unit;
            }
            if self.least.max(fixed) >= self.bytes() {
                return;
            }
        }
    }

    /// Searches for a packing of all components in `goal` bytes.
    fn attempt(&mut self, goal: u64, seed: u64, budget: u64, effort: u64) -> Attempt {
        for i in 0..self.components.len() {
            let before = self.bytes();
            let component = &mut self.components[i];
            if component.exact_bytes() <= goal {
                continue;
            }
            if component.intervals.len() > MAX_SEARCHED {
                return Attempt::Missed;
            }
            let graph = component
                .graph
                .get_or_insert_with(|| IntervalGraph::new(component.intervals.clone(), self.problem.grain));
            // Enough steps to place every buffer a few times.
            let budget = budget.max(8 * graph.pairs).min(effort.saturating_sub(self.steps));
            let (outcome, steps) = fits(graph, goal, seed, budget);
            self.steps += steps;
            match outcome {
                SearchOutcome::Fits(offsets) => component.set_offsets(offsets),
                SearchOutcome::Impossible => return Attempt::Impossible,
                SearchOutcome::Stopped => return Attempt::Missed,
            }
            if self.bytes() < before {
                self.found_by = FoundBy::Search { steps: self.steps };
            }
        }
        Attempt::Reached
    }

    fn finish(self, buffers: &[LiveBuffer]) -> Packing {
        let mut offsets = vec![0; buffers.len()];
        for component in &self.components {
            for (interval, &offset) in component.intervals.iter().zip(&component.offsets) {
                offsets[interval.id] = offset as usize;
            }
        }
        let bytes = self.exact_bytes() as usize;
        let lower_bound = self.problem.lower_bound as usize;
        let optimal = self.bytes() <= self.least;
        Packing { offsets, bytes, lower_bound, optimal, found_by: self.found_by }
    }
}
