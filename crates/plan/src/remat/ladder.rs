//! The ladder of goals from the plain peak to the smallest that is found, and the frontier they make.

use super::clean::clean;
use super::cut::Cuts;
use super::exchange::exchange;
use super::frontier::{Frontier, FrontierPoint};
use super::liveness::{Liveness, SequenceFlaw, verify};
use super::order::IndexedOrder;
use super::problem::Problem;
use super::search::{GoalSearch, Solution};
use std::collections::HashMap;

/// Goals of a ladder, in equal ratios; and goals that are then put into its widest gaps.
const RUNGS: u32 = 24;
const REFINEMENTS: u32 = 12;

/// Packings of one goal: each time, the goal shrinks by what the packing was above it.
const PACKINGS: u32 = 3;

/// Prices of a byte for which cuts are solved at one instant, and instants of an order.
const PRICES: usize = 20;
const INSTANTS: usize = 2;

/// The most orders that are searched.
const MOST_ORDERS: usize = 4;

/// The smallest goal is searched to within this part of it, where it is not searched exactly.
const PRECISION: i64 = 128;

/// Units of work that a problem gets, those it gets for each of its first steps, and for each of the others.
const WORK: u64 = 5_000_000;
const WORK_PER_STEP: u64 = 32_000;
const FIRST_STEPS: u64 = 2_500;
const WORK_PER_FURTHER_STEP: u64 = 6_000;

/// What a search may take. It is counted in units of work, not in seconds, so the result is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RematEffort {
    /// Units of work for the whole frontier; a unit takes some 10 to 20 nanoseconds.
    pub work: u64,
    /// Problems with at most so many values in the arena are solved exactly, as far as the work allows it.
    pub exact_values: usize,
}

impl RematEffort {
    /// What a problem of this size is worth: some 0.2 s for 450 steps, 1 s for 2,500.
    pub fn for_problem(problem: &Problem) -> RematEffort {
        let steps = problem.steps.len() as u64;
        let first = steps.min(FIRST_STEPS);
        let work = WORK + WORK_PER_STEP * first + WORK_PER_FURTHER_STEP * (steps - first);
        RematEffort { work, exact_values: 24 }
    }
}

/// Finds sequences for all budgets.
///
/// `orders` are topological orders of the steps, the best for memory first; the search adds its own. `pack` says how many
/// bytes a sequence needs once its values have offsets, results included; `usize::MAX` if it cannot be packed. Fails if
/// an order does not verify or repeats a step.
pub fn frontier(
    problem: &Problem,
    orders: &[Vec<u32>],
    effort: RematEffort,
    pack: &mut dyn FnMut(&[u32]) -> usize,
) -> Result<Frontier, SequenceFlaw> {
    let mut work = 0;
    let orders = all_orders(problem, orders, &mut work)?;
    let most = effort.work / 5 / orders.len() as u64;
    let cuts: Vec<Vec<Cuts>> = orders.iter().map(|order| cuts_of(problem, order, most, &mut work)).collect();
    let mut search = GoalSearch::new(problem, &orders, &cuts, effort.exact_values);
    search.work = work;
    let mut ladder =
        Ladder { problem, search, pack, packed: HashMap::new(), points: Vec::new(), goals: Vec::new() };
    let peak = ladder.add_plain();
    let (floor, is_proven) = ladder.add_smallest(peak, effort.work / 4);
    ladder.climb(peak, floor, effort.work / 4 * 3);
    ladder.refine(effort.work);
    ladder.extend_ranges(effort.work / 8 * 9);
    let Ladder { search, points, .. } = ladder;
    Ok(Frontier::new(points, problem.lower_bound(), is_proven, search.work))
}

/// The orders given and those after exchanging neighbours, without duplicates.
fn all_orders(
    problem: &Problem,
    orders: &[Vec<u32>],
    work: &mut u64,
) -> Result<Vec<IndexedOrder>, SequenceFlaw> {
    let mut all: Vec<Vec<u32>> = Vec::new();
    let own: Vec<u32> = (0..problem.steps.len() as u32).collect();
    let orders = if orders.is_empty() { std::slice::from_ref(&own) } else { orders };
    for order in orders {
        verify(problem, order)?;
        let mut seen = vec![false; problem.steps.len()];
        let repeated = order.iter().position(|&step| std::mem::replace(&mut seen[step as usize], true));
        if let Some(at) = repeated {
            return Err(SequenceFlaw::Repeated { step: order[at], at });
        }
        for order in [order.clone(), exchange(problem, order, work)] {
            if !all.contains(&order) {
                all.push(order);
            }
        }
    }
    all.truncate(MOST_ORDERS);
    Ok(all.into_iter().map(|order| IndexedOrder::new(problem, order)).collect())
}

/// The cuts at the fullest instants of an order, some steps apart.
fn cuts_of(problem: &Problem, order: &IndexedOrder, most: u64, work: &mut u64) -> Vec<Cuts> {
    let load = Liveness::new(problem, &order.order).load;
    let mut places: Vec<usize> = (0..load.len()).collect();
    places.sort_by_key(|&at| (std::cmp::Reverse(load[at]), at));
    let mut chosen: Vec<usize> = Vec::new();
    for at in places {
        if chosen.len() < INSTANTS && chosen.iter().all(|&other| at.abs_diff(other) > 2) {
            chosen.push(at);
        }
    }
    chosen.iter().map(|&at| Cuts::new(problem, order, at, PRICES, most / INSTANTS as u64, work)).collect()
}

struct Ladder<'a> {
    problem: &'a Problem,
    search: GoalSearch<'a>,
    pack: &'a mut dyn FnMut(&[u32]) -> usize,
    /// The bytes of the sequences that were packed.
    packed: HashMap<Vec<u32>, usize>,
    points: Vec<FrontierPoint>,
    /// The goals that were solved, in bytes of the arena.
    goals: Vec<i64>,
}

impl Ladder<'_> {
    /// Adds the first order and the one of the lowest peak, as they are. Returns that peak, in bytes of the arena.
    fn add_plain(&mut self) -> i64 {
        let peaks: Vec<i64> =
            (0..self.search.orders.len()).map(|order| self.search.plain_peak(order)).collect();
        let lowest = (0..peaks.len()).min_by_key(|&order| peaks[order]).unwrap_or(0);
        let mut chosen = vec![0, lowest];
        chosen.dedup();
        for order in chosen {
            let sequence = self.search.orders[order].order.clone();
            self.add(Solution { sequence, extra: 0, order, is_least: true }, i64::MAX);
        }
        peaks[lowest]
    }

    /// Packs a sequence that was found for a goal and makes it a point. Returns the packed bytes of the arena.
    fn add(&mut self, found: Solution, goal: i64) -> i64 {
        let Solution { sequence, extra, order, is_least } = found;
        let known = self.packed.get(&sequence).copied();
        let bytes = known.unwrap_or_else(|| (self.pack)(&sequence));
        if known.is_none() {
            self.packed.insert(sequence.clone(), bytes);
        }
        if bytes == usize::MAX {
            return i64::MAX;
        }
        let arena = bytes as i64 - self.problem.results;
        let is_least = is_least && arena <= goal;
        let bound = if is_least { extra } else { self.search.bound(order, arena).min(extra) };
        let (cost, cost_bound) = (self.problem.cost + extra, self.problem.cost + bound);
        self.points.push(FrontierPoint { bytes, cost, sequence, cost_bound, order });
        arena
    }

    /// Halves the distance between a goal that was reached and one that was not. Adds the smallest found and returns its peak,
    /// and whether no order tried has a lower one.
    fn add_smallest(&mut self, peak: i64, work: u64) -> (i64, bool) {
        let end = self.search.work + work;
        let (mut low, mut high) = (self.problem.lower_bound() as i64 - self.problem.results, peak);
        let (mut best, mut is_proven) = (None, true);
        while low < high && self.search.work < end {
            if !self.search.is_exact() && high - low <= high / PRECISION {
                break;
            }
            // In a deep network, the smallest is far below half of the peak.
            let goal = if high > 2 * low { geometric_mean(low.max(1), high) } else { low + (high - low) / 2 };
            let goal = goal.clamp(low, high - 1);
            match self.search.solve_any(goal, (end - self.search.work) / 4) {
                (Some(found), _) => {
                    high = Liveness::new(self.problem, &found.sequence).peak_load().min(goal);
                    best = Some(found);
                }
                (None, is_impossible) => {
                    is_proven &= is_impossible;
                    low = goal + 1;
                }
            }
        }
        if let Some(found) = best {
            self.add(found, high);
        }
        (high, is_proven && low >= high)
    }

    /// Solves the goals from the peak to the floor.
    fn climb(&mut self, peak: i64, floor: i64, end: u64) {
        let ratio = root(floor as f64 / peak.max(1) as f64);
        let mut goal = peak as f64;
        for rung in 0..RUNGS {
            goal *= ratio;
            let left = end.saturating_sub(self.search.work) / u64::from(RUNGS - rung);
            // Beyond twice the time, sequences only show what the smallest budgets cost.
            let is_slow = self.points.last().is_some_and(|point| point.cost > 2 * self.problem.cost);
            self.solve_and_pack((goal.round() as i64).max(floor), if is_slow { left / 2 } else { left });
        }
    }

    /// Solves a goal, until the packed bytes keep it.
    fn solve_and_pack(&mut self, rung: i64, work: u64) {
        let mut goal = rung;
        let end = self.search.work + work;
        self.goals.push(rung);
        for _ in 0..PACKINGS {
            let left = end.saturating_sub(self.search.work);
            let Some(found) = self.search.solve(goal, left / 3 * 2) else { return };
            let excess = self.add(found, goal).saturating_sub(rung);
            if excess <= 0 || excess >= goal {
                return;
            }
            goal -= excess;
        }
    }

    /// Solves goals between neighbouring points, where more bytes save most time.
    fn refine(&mut self, end: u64) {
        for refinement in 0..REFINEMENTS {
            self.points = Frontier::pareto(std::mem::take(&mut self.points));
            let left = end.saturating_sub(self.search.work) / u64::from(REFINEMENTS - refinement);
            match self.widest_gap() {
                Some(goal) if left > 0 => self.solve_and_pack(goal, left),
                _ => return,
            }
        }
    }

    /// A goal in the middle of the gap between points in which bytes and time together differ most.
    fn widest_gap(&self) -> Option<i64> {
        let Problem { cost, results, .. } = self.problem;
        let mut widest = (0.0, None);
        for pair in self.points.windows(2) {
            let (low, high) = (pair[0].bytes as i64 - results, pair[1].bytes as i64 - results);
            let goal = geometric_mean(low.max(1), high);
            // A goal above it that led to a point below it says that there is nothing between.
            let is_new = low < goal && !self.goals.iter().any(|&solved| goal <= solved && solved < high);
            let time = pair[0].cost.min(2 * cost).saturating_sub(pair[1].cost);
            let gain = (pair[1].bytes as f64 / pair[0].bytes.max(1) as f64 - 1.0) * time as f64;
            if is_new && gain > widest.0 {
                widest = (gain, Some(goal));
            }
        }
        widest.1
    }

    /// Lets each goal start from the best sequence with fewer bytes, and drops repetitions that it makes needless.
    fn extend_ranges(&mut self, end: u64) {
        let mut goals = std::mem::take(&mut self.goals);
        goals.sort_unstable();
        for goal in goals {
            if self.search.work > end {
                return;
            }
            self.points = Frontier::pareto(std::mem::take(&mut self.points));
            let budget = (goal + self.problem.results) as usize;
            let Some(point) = self.points.iter().rev().find(|point| point.bytes <= budget) else { continue };
            let (mut sequence, order, cost) = (point.sequence.clone(), point.order, point.cost);
            clean(self.problem, &mut sequence, goal, &mut self.search.work);
            let extra = self.problem.cost(&sequence) - self.problem.cost;
            if self.problem.cost + extra < cost {
                self.add(Solution { sequence, extra, order, is_least: false }, goal);
            }
        }
    }
}

fn geometric_mean(a: i64, b: i64) -> i64 {
    (a as f64 * b as f64).sqrt() as i64
}

/// The ratio whose [`RUNGS`]-th power this is, by operations that round the same on every machine.
fn root(power: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if (0..RUNGS).fold(1.0, |product, _| product * middle) < power {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
