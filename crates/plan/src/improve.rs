//! From the greedy packing to better ones, goal by goal.

use crate::greedy::{QUICK, portfolio};
use crate::packing::{Buffer, Effort, FoundBy, PackError, Packing};
use crate::parts::{Input, Item, read};
use crate::restarts::fits;
use crate::search::Outcome;
use crate::shape::Shape;

/// Steps for one goal in the first round; each round has four times as many.
const FIRST_ROUND: u64 = 2_000_000;
/// The lower bound is the goal that is worth most: it gets so many times the steps of another.
const FOR_THE_BOUND: u64 = 4;
/// The last round has more steps than any machine.
const ROUNDS: u64 = 20;
/// The search keeps sets of pairs; beyond so many buffers in one part they would be too large.
const LARGEST: usize = 10_000;

/// Gives each buffer an offset, in as few bytes as the effort allows.
pub fn pack(buffers: &[Buffer], effort: Effort) -> Result<Packing, PackError> {
    let mut state = State::new(read(buffers)?);
    state.improve(effort.steps);
    Ok(state.finish(buffers))
}

/// A packing in at most so many bytes. `None` says that the effort found none; if the capacity is below the load, it
/// says so at once.
pub fn pack_within(
    buffers: &[Buffer],
    capacity: usize,
    effort: Effort,
) -> Result<Option<Packing>, PackError> {
    let mut state = State::new(read(buffers)?);
    if state.input.lower_bound > capacity as u64 {
        return Ok(None);
    }
    if state.exact_bytes() > capacity as u64 {
        state.complete_portfolio(effort.steps);
        state.attempt(capacity as u64, 0, effort.steps, effort.steps);
    }
    Ok(Some(state.finish(buffers)).filter(|packing| packing.bytes <= capacity))
}

/// A part with the best packing of it so far.
struct Part {
    items: Vec<Item>,
    offsets: Vec<u64>,
    /// In whole grains.
    bytes: u64,
    /// Whether all greedy orders were tried.
    complete: bool,
    shape: Option<Shape>,
}

impl Part {
    fn take(&mut self, offsets: Vec<u64>) {
        let tops = self.items.iter().zip(&offsets).map(|(item, offset)| offset + item.size);
        self.bytes = tops.max().unwrap_or(0);
        self.offsets = offsets;
    }

    fn exact_bytes(&self) -> u64 {
        self.items.iter().zip(&self.offsets).map(|(i, offset)| offset + i.raw).max().unwrap_or(0)
    }
}

struct State {
    input: Input,
    parts: Vec<Part>,
    /// The lower bound in whole grains, lifted by proofs.
    least: u64,
    steps: u64,
    /// What found the best so far.
    found_by: FoundBy,
}

enum Attempt {
    Reached,
    Impossible,
    Missed,
}

impl State {
    fn new(mut input: Input) -> Self {
        let least = input.lower_bound.next_multiple_of(input.grain);
        let parts = std::mem::take(&mut input.parts);
        let greedy = |items: Vec<Item>| {
            let greedy = portfolio(&items, least, QUICK);
            Part {
                items,
                offsets: greedy.offsets,
                bytes: greedy.bytes,
                complete: greedy.complete,
                shape: None,
            }
        };
        let parts = parts.into_iter().map(greedy).collect();
        State { input, parts, least, steps: 0, found_by: FoundBy::Portfolio }
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).max().unwrap_or(0)
    }

    fn exact_bytes(&self) -> u64 {
        self.parts.iter().map(Part::exact_bytes).max().unwrap_or(0)
    }

    /// The orders that were left out because there are many buffers.
    fn complete_portfolio(&mut self, effort: u64) {
        for part in &mut self.parts {
            let left = effort.saturating_sub(self.steps);
            if part.bytes <= self.least || part.complete || left == 0 {
                continue;
            }
            let greedy = portfolio(&part.items, self.least, left);
            self.steps += greedy.looks;
            if greedy.bytes < part.bytes {
                (part.offsets, part.bytes) = (greedy.offsets, greedy.bytes);
            }
        }
    }

    /// Goals from the lower bound up, halving what is between; then again with more work, until it is spent.
    fn improve(&mut self, effort: u64) {
        self.complete_portfolio(effort);
        // Parts that are too large for the search stay as they are, so no goal below them is of use.
        let large = self.parts.iter().filter(|part| part.items.len() > LARGEST);
        let fixed = large.map(|part| part.bytes).max().unwrap_or(0);
        for round in 0..ROUNDS {
            let budget = FIRST_ROUND.saturating_mul(1 << (2 * round));
            // Early rounds leave the last few percent, or less, to later ones.
            let near_enough = self.least >> (7 + 2 * round);
            let bound = self.least.max(fixed);
            let mut from = bound;
            let mut goal = from;
            while from + near_enough < self.bytes() {
                if self.steps >= effort {
                    return;
                }
                let share = if goal == bound { budget.saturating_mul(FOR_THE_BOUND) } else { budget };
                match self.attempt(goal, round, share, effort) {
                    Attempt::Reached => {}
                    Attempt::Impossible => {
                        self.least = goal + self.input.unit;
                        from = self.least.max(fixed);
                    }
                    Attempt::Missed => from = goal + self.input.unit,
                }
                let between = self.bytes().saturating_sub(from) / 2;
                goal = from + between / self.input.unit * self.input.unit;
            }
            if self.least.max(fixed) >= self.bytes() {
                return;
            }
        }
    }

    /// Asks for a packing of all parts in `goal` bytes.
    fn attempt(&mut self, goal: u64, seed: u64, budget: u64, effort: u64) -> Attempt {
        for i in 0..self.parts.len() {
            let before = self.bytes();
            let part = &mut self.parts[i];
            if part.exact_bytes() <= goal {
                continue;
            }
            if part.items.len() > LARGEST {
                return Attempt::Missed;
            }
            let shape = part.shape.get_or_insert_with(|| Shape::new(part.items.clone(), self.input.grain));
            // A goal is only tried if all could be placed a few times.
            let budget = budget.max(8 * shape.pairs).min(effort.saturating_sub(self.steps));
            let (outcome, steps) = fits(shape, goal, seed, budget);
            self.steps += steps;
            match outcome {
                Outcome::Fits(offsets) => part.take(offsets),
                Outcome::Impossible => return Attempt::Impossible,
                Outcome::Stopped => return Attempt::Missed,
            }
            if self.bytes() < before {
                self.found_by = FoundBy::Search { steps: self.steps };
            }
        }
        Attempt::Reached
    }

    fn finish(self, buffers: &[Buffer]) -> Packing {
        let mut offsets = vec![0; buffers.len()];
        for part in &self.parts {
            for (item, &offset) in part.items.iter().zip(&part.offsets) {
                offsets[item.id] = offset as usize;
            }
        }
        let bytes = self.exact_bytes() as usize;
        let lower_bound = self.input.lower_bound as usize;
        let optimal = self.bytes() <= self.least;
        Packing { offsets, bytes, lower_bound, optimal, found_by: self.found_by }
    }
}
