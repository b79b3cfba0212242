//! The search for one goal: many decoders with different guides, then perturbations of the best.

use super::clean::clean;
use super::cut::Cuts;
use super::decode::{Decoded, Guide, Limits, decode};
use super::exact::{self, ExactOutcome};
use super::liveness::Liveness;
use super::order::IndexedOrder;
use super::problem::Problem;
use super::score::{EvictionScore, Power};
use super::xorshift::Xorshift;

/// Perturbations of one goal; small problems stop here, large ones at the work allowed.
const MOST_PERTURBATIONS: usize = 120;

/// Guides that are perturbed.
const PERTURBED: usize = 3;

/// Kept sets that are tried for each instant: the largest ones that fit the goal.
const RANKS: usize = 6;

/// A sequence may cost so many times what it costs without repetitions.
const MOST_TIMES: u64 = 16;

/// Values that are rematerialised earlier than needed, where a decoder gets stuck.
const MOST_PREFETCHES: usize = 6;

/// The factor of the scores of values that a minimum cut keeps.
const KEPT: f64 = 1e-6;

/// The rank of a candidate before its first goal: behind those that were good on the previous goal.
const UNTRIED: f64 = 1.02;

/// A sequence that keeps a goal.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    pub(super) sequence: Vec<u32>,
    /// The cost of its repetitions.
    pub(super) extra: u64,
    /// The order of its first occurrences.
    pub(super) order: usize,
    /// Whether no sequence of this order that keeps the goal costs less.
    pub(super) is_least: bool,
}

/// How a decoder is guided.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    order: usize,
    score: EvictionScore,
    /// The instant whose cuts guide it, and which of the kept sets that fit.
    set: Option<(usize, usize)>,
    /// Its extra cost on the previous goal, relative to the best.
    rank: f64,
}

/// A guide with its weights, and the extra cost it led to.
struct Trial {
    candidate: Candidate,
    weights: Vec<f64>,
    retained: Vec<(u32, u32)>,
    extra: u64,
}

pub(super) struct GoalSearch<'a> {
    pub(super) problem: &'a Problem,
    pub(super) orders: &'a [IndexedOrder],
    /// Per order, the cuts at its fullest instants.
    cuts: &'a [Vec<Cuts>],
    /// Per order, its peak without repetitions.
    plain: Vec<i64>,
    candidates: Vec<Candidate>,
    /// The same in another order: the best for the smallest goal first.
    lean_candidates: Vec<Candidate>,
    /// The most values for which the exact search is tried.
    exact_values: usize,
    pub(super) work: u64,
}

impl<'a> GoalSearch<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        orders: &'a [IndexedOrder],
        cuts: &'a [Vec<Cuts>],
        exact_values: usize,
    ) -> GoalSearch<'a> {
        let plain = orders.iter().map(|order| Liveness::new(problem, &order.order).peak_load()).collect();
        let candidates = interleave(unguided(orders.len()), guided(cuts));
        let lean_candidates = candidates.clone();
        GoalSearch { problem, orders, cuts, plain, candidates, lean_candidates, exact_values, work: 0 }
    }

    /// The cheapest sequence found within a goal in bytes of the arena.
    pub(super) fn solve(&mut self, goal: i64, work: u64) -> Option<Solution> {
        if let Some(found) = self.without_repetitions(goal) {
            return Some(found);
        }
        let end = self.work + work;
        let (found, is_proven) = self.solve_exactly(goal, work / 2);
        if is_proven {
            return found;
        }
        let mut trials = Vec::new();
        let best = self.try_candidates(goal, self.work + work * 2 / 3, &mut trials);
        let best = self.perturb(goal, end, best, trials);
        cheaper(found, best)
    }

    /// Any sequence within a goal in bytes of the arena; or none, and whether there is none in the orders tried.
    pub(super) fn solve_any(&mut self, goal: i64, work: u64) -> (Option<Solution>, bool) {
        if let Some(found) = self.without_repetitions(goal) {
            return (Some(found), false);
        }
        let (found, is_proven) = self.solve_exactly(goal, work);
        if is_proven || found.is_some() {
            return (found, is_proven);
        }
        (self.try_any(goal, self.work + work), false)
    }

    /// Whether goals are solved exactly, as far as the work allows it.
    pub(super) fn is_exact(&self) -> bool {
        exact::is_small(self.problem, self.exact_values)
    }

    fn without_repetitions(&self, goal: i64) -> Option<Solution> {
        let order = self.plain.iter().position(|&peak| peak <= goal)?;
        Some(Solution { sequence: self.orders[order].order.clone(), extra: 0, order, is_least: true })
    }

    /// The cheapest of the exact sequences of all orders, and whether every order was solved.
    fn solve_exactly(&mut self, goal: i64, work: u64) -> (Option<Solution>, bool) {
        let mut best: Option<Solution> = None;
        if !self.is_exact() {
            return (best, false);
        }
        let mut is_proven = true;
        for (number, order) in self.orders.iter().enumerate() {
            let share = work / self.orders.len() as u64;
            match exact::solve(self.problem, order, goal, share, &mut self.work) {
                ExactOutcome::Optimal(sequence) => {
                    let extra = self.problem.cost(&sequence) - self.problem.cost;
                    best = cheaper(best, Some(Solution { sequence, extra, order: number, is_least: true }));
                }
                ExactOutcome::Impossible => {}
                ExactOutcome::Unknown => is_proven = false,
            }
        }
        (best, is_proven)
    }

    /// The peak of an order without repetitions.
    pub(super) fn plain_peak(&self, order: usize) -> i64 {
        self.plain[order]
    }

    /// Runs the candidates, the best on the previous goal first, until the work is used up.
    fn try_candidates(&mut self, goal: i64, end: u64, trials: &mut Vec<Trial>) -> Option<Solution> {
        let mut candidates = std::mem::take(&mut self.candidates);
        let mut best: Option<Solution> = None;
        let mut tried = 0;
        for candidate in &mut candidates {
            if self.work > end || self.is_least(best.as_ref(), goal) {
                break;
            }
            tried += 1;
            candidate.rank = f64::INFINITY;
            let Some((weights, retained)) = self.guide(candidate, goal) else { continue };
            let Ok(found) = self.decode(candidate, &weights, &retained, goal, best.as_ref(), end) else {
                continue;
            };
            candidate.rank = found.extra as f64;
            trials.push(Trial { candidate: *candidate, weights, retained, extra: found.extra });
            best = cheaper(best, Some(found));
        }
        if let Some(best) = &best {
            candidates[..tried].iter_mut().for_each(|c| c.rank /= (best.extra + 1) as f64);
            candidates.sort_by(|a, b| a.rank.total_cmp(&b.rank));
        }
        self.candidates = candidates;
        best
    }

    /// Runs the candidates until one keeps the goal; those first that came furthest with the previous goal.
    fn try_any(&mut self, goal: i64, end: u64) -> Option<Solution> {
        let mut candidates = std::mem::take(&mut self.lean_candidates);
        let mut found = None;
        for candidate in &mut candidates {
            if self.work > end {
                break;
            }
            let Some((weights, retained)) = self.guide(candidate, goal) else { continue };
            match self.decode(candidate, &weights, &retained, goal, None, end) {
                Ok(sequence) => {
                    found = Some(sequence);
                    candidate.rank = f64::NEG_INFINITY;
                    break;
                }
                Err(place) => candidate.rank = -f64::from(place),
            }
        }
        candidates.sort_by(|a, b| a.rank.total_cmp(&b.rank));
        self.lean_candidates = candidates;
        found
    }

    /// Whether the lower bound says that nothing cheaper exists in this order.
    fn is_least(&self, best: Option<&Solution>, goal: i64) -> bool {
        best.is_some_and(|best| best.extra <= self.bound(best.order, goal))
    }

    /// The least cost of repetitions in an order within a goal in bytes of the arena.
    pub(super) fn bound(&self, order: usize, goal: i64) -> u64 {
        self.cuts[order].iter().map(|cuts| cuts.bound(goal)).max().unwrap_or(0)
    }

    /// The weights and the retained values of a candidate for a goal; `None` if it has no kept set of this rank.
    fn guide(&self, candidate: &Candidate, goal: i64) -> Option<(Vec<f64>, Vec<(u32, u32)>)> {
        let Some((instant, rank)) = candidate.set else { return Some((Vec::new(), Vec::new())) };
        let sets = &self.cuts[candidate.order][instant].sets;
        let set = sets.iter().filter(|set| set.bytes <= goal).nth(rank)?;
        let mut weights = vec![1.0; self.problem.values.len()];
        set.kept.iter().for_each(|&v| weights[v as usize] = KEPT);
        Some((weights, set.retained.clone()))
    }

    /// Decodes a candidate. Where it gets stuck, it tries again and rematerialises the missing value one step earlier. If it
    /// fails, returns how far it came.
    fn decode(
        &mut self,
        candidate: &Candidate,
        weights: &[f64],
        retained: &[(u32, u32)],
        goal: i64,
        best: Option<&Solution>,
        end: u64,
    ) -> Result<Solution, u32> {
        let worst = self.problem.cost.saturating_mul(MOST_TIMES);
        let extra = best.map_or(worst, |best| best.extra + best.extra / 2);
        let order = &self.orders[candidate.order];
        let mut prefetches: Vec<(u32, u32)> = Vec::new();
        loop {
            let limits = Limits { goal, extra, work: end.saturating_sub(self.work) };
            let guide = Guide { score: candidate.score, weights, retained, prefetches: &prefetches };
            let (place, value) = match decode(self.problem, order, &guide, &limits, &mut self.work) {
                Decoded::Done(mut sequence) => {
                    clean(self.problem, &mut sequence, goal, &mut self.work);
                    // A computation that the decoder counted as in place may not be so once later steps are known.
                    if Liveness::new(self.problem, &sequence).peak_load() > goal {
                        return Err(order.order.len() as u32);
                    }
                    let extra = self.problem.cost(&sequence) - self.problem.cost;
                    return Ok(Solution { sequence, extra, order: candidate.order, is_least: false });
                }
                Decoded::Stuck { place, value } => (place, value),
                Decoded::Failed { place } => return Err(place),
            };
            let made = order.place[self.problem.makers[value as usize] as usize];
            let mut earlier = place;
            while earlier > made + 2 && prefetches.contains(&(earlier - 1, value)) {
                earlier -= 1;
            }
            if earlier <= made + 2 || prefetches.len() == MOST_PREFETCHES {
                return Err(place);
            }
            prefetches.push((earlier - 1, value));
            prefetches.sort_unstable();
        }
    }

    /// Decodes again with perturbed weights, and keeps what is better.
    fn perturb(
        &mut self,
        goal: i64,
        end: u64,
        best: Option<Solution>,
        mut trials: Vec<Trial>,
    ) -> Option<Solution> {
        let mut best = best?;
        trials.sort_by_key(|trial| trial.extra);
        trials.truncate(PERTURBED);
        for trial in trials.iter_mut().filter(|trial| trial.weights.is_empty()) {
            trial.weights = vec![1.0; self.problem.values.len()];
        }
        let mut random = Xorshift::new(1);
        for round in 0..MOST_PERTURBATIONS {
            if self.work > end || self.is_least(Some(&best), goal) {
                break;
            }
            let count = trials.len();
            let trial = &mut trials[round % count];
            let share = [0.02, 0.1, 0.5][(round / count) % 3];
            let weights: Vec<f64> = trial.weights.iter().map(|&w| w * noise(&mut random, share)).collect();
            self.work += weights.len() as u64;
            let Trial { candidate, retained, .. } = trial;
            let Ok(found) = self.decode(candidate, &weights, retained, goal, Some(&best), end) else {
                continue;
            };
            if found.extra <= trial.extra {
                (trial.weights, trial.extra) = (weights, found.extra);
            }
            if found.extra < best.extra {
                best = found;
            }
        }
        Some(best)
    }
}

/// Candidates that only a score guides.
fn unguided(orders: usize) -> Vec<Candidate> {
    let scores = EvictionScore::all().into_iter();
    let of_score = |score| (0..orders).map(move |order| Candidate { order, score, set: None, rank: UNTRIED });
    scores.flat_map(of_score).collect()
}

/// Candidates that the cuts of an instant guide.
fn guided(cuts: &[Vec<Cuts>]) -> Vec<Candidate> {
    let powers = [(Power::Half, Power::One), (Power::Zero, Power::One), (Power::Half, Power::Half)];
    let mut candidates = Vec::new();
    for set in 0..RANKS {
        for (distance, cost) in powers {
            let score = EvictionScore { size: Power::One, distance, cost, in_time: true };
            for (order, cuts) in cuts.iter().enumerate() {
                let of_instant =
                    |instant| Candidate { order, score, set: Some((instant, set)), rank: UNTRIED };
                candidates.extend((0..cuts.len()).map(of_instant));
            }
        }
    }
    candidates
}

/// The cheaper of two; the first, if both cost the same.
pub(super) fn cheaper(a: Option<Solution>, b: Option<Solution>) -> Option<Solution> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.extra < a.extra { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// A factor from 1/4 to 4, for a share of all calls; else 1.
fn noise(random: &mut Xorshift, share: f64) -> f64 {
    if random.next() >= share {
        return 1.0;
    }
    let x = 6.0 * random.next() - 3.0;
    if x < 0.0 { 1.0 / (1.0 - x) } else { 1.0 + x }
}

/// One of the first list, one of the second, and so on.
fn interleave<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let (a, b) = (first.next(), second.next());
        if a.is_none() && b.is_none() {
            return merged;
        }
        merged.extend(a);
        merged.extend(b);
    }
}
