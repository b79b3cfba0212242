//! Minimum cuts: what is best kept at an instant, and the least cost of what is not.
//!
//! While a step of an order runs, every value that later steps read is either kept or rematerialised later, from
//! operands that are kept or rematerialised in turn. With a price for a byte, the cheapest choice is a minimum cut.
//! Prices from low to high give a ladder of kept sets, each of which guides the decoder. And since any sequence in this order
//! makes such a choice at this instant, `cut(price) − price · room` is a lower bound on what it repeats (Lagrange).

use super::flow::{Network, SINK, SOURCE, UNLIMITED};
use super::order::IndexedOrder;
use super::problem::{NONE, Problem, RematStep};

/// Prices of a byte for which [`kept_sets`] solves, and the units of work it may take.
const KEPT_PRICES: usize = 12;
const KEPT_WORK: u64 = 20_000_000;

/// A choice at an instant.
#[derive(Clone, Debug)]
pub(super) struct KeptSet {
    /// The values that are kept although their bytes could be freed.
    pub(super) kept: Vec<u32>,
    /// Operands of what is rematerialised later, and the places until which they are retained for it.
    pub(super) retained: Vec<(u32, u32)>,
    /// The bytes of all kept values, with what the step itself needs.
    pub(super) bytes: i64,
    /// The cost of what is rematerialised.
    pub(super) cost: u64,
}

/// A lower bound on the cost of repetitions that falls with the bytes that are allowed.
#[derive(Clone, Copy, Debug)]
struct BoundLine {
    /// Scaled cost at 0 bytes, and per byte.
    cost: u64,
    price: u64,
}

/// The minimum cuts at one instant of an order.
#[derive(Clone, Debug)]
pub(super) struct Cuts {
    /// From the largest to the smallest.
    pub(super) sets: Vec<KeptSet>,
    lines: Vec<BoundLine>,
    /// The bytes that the running step needs itself.
    own: i64,
    scale: Scale,
}

impl Cuts {
    /// Solves cuts for at most so many prices, with at most so many units of work, at the instant where the step at `place`
    /// runs.
    pub(super) fn new(
        problem: &Problem,
        order: &IndexedOrder,
        place: usize,
        prices: usize,
        most: u64,
        work: &mut u64,
    ) -> Cuts {
        let scale = Scale::new(problem.cost);
        let own = problem.working_set(order.order[place] as usize);
        let mut instant = CutNetwork::new(problem, order, place, scale);
        let mut cuts = Cuts { sets: Vec::new(), lines: Vec::new(), own, scale };
        cuts.explore(&mut instant, prices, most);
        cuts.sets = instant.kept_sets(own);
        *work += instant.network.work;
        cuts
    }

    /// The least cost of repetitions in any sequence of this order that needs at most so many bytes of the arena.
    pub(super) fn bound(&self, goal: i64) -> u64 {
        let room = (goal - self.own).max(0) as u64;
        let at = |line: &BoundLine| {
            let credit = u128::from(line.price) * u128::from(room);
            u128::from(line.cost).saturating_sub(credit) as u64
        };
        self.scale.cost_of(self.lines.iter().map(at).max().unwrap_or(0))
    }

    /// Solves first for the highest price, then where the lines of two neighbouring choices meet, the widest gap first.
    fn explore(&mut self, instant: &mut CutNetwork<'_>, prices: usize, most: u64) {
        let all = instant.keep_all();
        let Some(highest) = instant.highest_price() else { return };
        let Some(last) = self.solve(instant, highest, most) else { return };
        let mut gaps = vec![(all, last)];
        for _ in 1..prices {
            let widest = (0..gaps.len()).max_by_key(|&i| (gaps[i].0.bytes - gaps[i].1.bytes, gaps.len() - i));
            let Some((low, high)) = widest.map(|i| gaps.swap_remove(i)) else { return };
            if low.bytes <= high.bytes || high.cost <= low.cost {
                continue;
            }
            let price = (high.cost - low.cost) / (low.bytes - high.bytes) as u64;
            if price == 0 || price >= highest {
                continue;
            }
            let Some(between) = self.solve(instant, price, most) else { return };
            if between.bytes < low.bytes && between.bytes > high.bytes {
                gaps.extend([(low, between), (between, high)]);
            }
        }
    }

    fn solve(&mut self, instant: &mut CutNetwork<'_>, price: u64, most: u64) -> Option<Choice> {
        let choice = instant.solve(price, most)?;
        self.lines.push(BoundLine { cost: choice.cost + price * choice.bytes as u64, price });
        Some(choice)
    }
}

/// Bytes kept and scaled cost of what is rematerialised.
#[derive(Clone, Copy, Debug)]
struct Choice {
    bytes: i64,
    cost: u64,
}

/// Costs as integers that leave room for sums and for small prices of a byte. Rounding down keeps bounds valid.
#[derive(Clone, Copy, Debug)]
struct Scale {
    left: u32,
    right: u32,
}

impl Scale {
    fn new(total: u64) -> Scale {
        let spare = total.leading_zeros();
        Scale { left: spare.saturating_sub(8).min(12), right: 8u32.saturating_sub(spare) }
    }

    fn scaled(self, cost: u64) -> u64 {
        cost << self.left >> self.right
    }

    fn cost_of(self, scaled: u64) -> u64 {
        scaled << self.right >> self.left
    }
}

/// The network of one instant. Each value has a node that is reached if the value is available later; each step that may
/// be repeated has one that is reached if it is repeated. Keeping a value cuts the arc between the two.
struct CutNetwork<'a> {
    problem: &'a Problem,
    order: &'a IndexedOrder,
    place: usize,
    scale: Scale,
    network: Network,
    /// Values written before the instant that take bytes, and their nodes.
    values: Vec<u32>,
    value_nodes: Vec<u32>,
    /// Steps before the instant that may be repeated after it, and their nodes.
    steps: Vec<u32>,
    step_nodes: Vec<u32>,
    /// Arcs and their capacities, as far as they do not depend on the price.
    fixed: Vec<(usize, u64)>,
    /// Arcs whose capacity is a value's bytes times the price.
    priced: Vec<(usize, u64)>,
    /// The first later place that reads each value.
    needed: Vec<u32>,
    /// Per price solved, the values kept and the steps repeated.
    solved: Vec<(Vec<u32>, Vec<u32>)>,
}

impl<'a> CutNetwork<'a> {
    fn new(problem: &'a Problem, order: &'a IndexedOrder, place: usize, scale: Scale) -> CutNetwork<'a> {
        let is_early = |step: u32| step != NONE && (order.place[step as usize] as usize) < place;
        let running = &problem.steps[order.order[place] as usize];
        let takes_bytes = |v: &u32| {
            let is_made = is_early(problem.makers[*v as usize]) && problem.least[*v as usize] > 0;
            is_made && !running.reads.contains(v)
        };
        let values: Vec<u32> = (0..problem.values.len() as u32).filter(takes_bytes).collect();
        // The first repetition runs after the instant.
        let may_repeat = |&s: &u32| order.may_repeat(problem, s, place as u32 + 1);
        let steps: Vec<u32> = order.order[..place].iter().copied().filter(may_repeat).collect();
        let number = |list: &[u32], first: usize, count: usize| {
            let mut nodes = vec![NONE; count];
            list.iter().enumerate().for_each(|(i, &x)| nodes[x as usize] = (first + i) as u32);
            nodes
        };
        let value_nodes = number(&values, 2, problem.values.len());
        let step_nodes = number(&steps, 2 + values.len(), problem.steps.len());
        let later = |v: u32| {
            let reads = order.reads_of(v);
            reads.get(reads.partition_point(|&at| at as usize <= place)).copied().unwrap_or(NONE)
        };
        let needed = values.iter().map(|&v| later(v)).collect();
        let network = Network::new(2 + values.len() + steps.len());
        let mut instant = CutNetwork {
            problem,
            order,
            place,
            scale,
            network,
            values,
            value_nodes,
            steps,
            step_nodes,
            fixed: Vec::new(),
            priced: Vec::new(),
            needed,
            solved: Vec::new(),
        };
        instant.connect();
        instant
    }

    fn connect(&mut self) {
        let CutNetwork { problem, network, fixed, priced, .. } = self;
        for (&v, &needed) in self.values.iter().zip(&self.needed) {
            let node = self.value_nodes[v as usize];
            if needed != NONE {
                fixed.push((network.arc(SOURCE, node, 0), UNLIMITED));
            }
            let maker = self.step_nodes[problem.makers[v as usize] as usize];
            let other = if maker == NONE { SINK } else { maker };
            priced.push((network.arc(node, other, 0), problem.least[v as usize] as u64));
        }
        for &step in &self.steps {
            let node = self.step_nodes[step as usize];
            let RematStep { cost, reads, .. } = &problem.steps[step as usize];
            fixed.push((network.arc(node, SINK, 0), self.scale.scaled(*cost)));
            for &v in reads.iter().filter(|&&v| self.value_nodes[v as usize] != NONE) {
                fixed.push((network.arc(node, self.value_nodes[v as usize], 0), UNLIMITED));
            }
        }
    }

    /// The choice at price 0: every value that is needed later is kept.
    fn keep_all(&self) -> Choice {
        let needed = self.values.iter().zip(&self.needed).filter(|(_, needed)| **needed != NONE);
        Choice { bytes: needed.map(|(&v, _)| self.problem.least[v as usize]).sum(), cost: 0 }
    }

    /// A price at which as few bytes as possible are kept and no sum overflows; `None` if nothing takes bytes.
    fn highest_price(&self) -> Option<u64> {
        let bytes: u64 = self.priced.iter().map(|&(_, bytes)| bytes).sum();
        let total: u64 =
            self.steps.iter().map(|&s| self.scale.scaled(self.problem.steps[s as usize].cost)).sum();
        let least = self.priced.iter().map(|&(_, bytes)| bytes).min()?;
        Some((total / least + 1).min((1 << 61) / bytes))
    }

    /// The cheapest choice at a price; `None` if the work allowed is not enough.
    fn solve(&mut self, price: u64, most: u64) -> Option<Choice> {
        self.fixed.iter().for_each(|&(arc, capacity)| self.network.reset(arc, capacity));
        self.priced.iter().for_each(|&(arc, bytes)| self.network.reset(arc, bytes * price));
        if !self.network.maximise(most) {
            return None;
        }
        let is_repeated = |step: u32| {
            let node = self.step_nodes[step as usize];
            node != NONE && self.network.is_reached(node)
        };
        let is_kept = |&v: &u32| {
            self.network.is_reached(self.value_nodes[v as usize])
                && !is_repeated(self.problem.makers[v as usize])
        };
        let kept: Vec<u32> = self.values.iter().copied().filter(is_kept).collect();
        let repeated: Vec<u32> = self.steps.iter().copied().filter(|&step| is_repeated(step)).collect();
        let bytes = kept.iter().map(|&v| self.problem.least[v as usize]).sum();
        let cost = repeated.iter().map(|&s| self.scale.scaled(self.problem.steps[s as usize].cost)).sum();
        self.solved.push((kept, repeated));
        Some(Choice { bytes, cost })
    }

    /// All choices that were found, the largest first.
    fn kept_sets(&mut self, own: i64) -> Vec<KeptSet> {
        let solved = std::mem::take(&mut self.solved);
        let mut sets: Vec<KeptSet> = Vec::new();
        for (kept, repeated) in solved {
            let bytes = own + kept.iter().map(|&v| self.problem.least[v as usize]).sum::<i64>();
            let cost = repeated.iter().map(|&s| self.problem.steps[s as usize].cost).sum();
            let retained = self.retained_for(&repeated);
            sets.push(KeptSet { kept, retained, bytes, cost });
        }
        sets.sort_by_key(|set| (std::cmp::Reverse(set.bytes), set.cost));
        sets.dedup_by(|a, b| a.kept == b.kept);
        sets
    }

    /// The operands of repeated steps, each with the first place that needs what is repeated.
    fn retained_for(&self, repeated: &[u32]) -> Vec<(u32, u32)> {
        let problem = self.problem;
        let mut needed = vec![NONE; problem.values.len()];
        for (at, &step) in self.order.order.iter().enumerate().skip(self.place + 1) {
            for &v in &problem.steps[step as usize].reads {
                needed[v as usize] = needed[v as usize].min(at as u32);
            }
        }
        let mut retained = Vec::new();
        for &step in repeated.iter().rev() {
            let step = &problem.steps[step as usize];
            let at = step.writes.iter().map(|&v| needed[v as usize]).min().unwrap_or(NONE);
            if at == NONE {
                continue;
            }
            for &v in step.reads.iter().filter(|&&v| problem.bytes[v as usize] > 0) {
                needed[v as usize] = needed[v as usize].min(at);
                retained.push((v, at));
            }
        }
        retained.sort_unstable();
        retained.dedup();
        retained
    }
}

/// What is best kept while the step at a place of an order runs, for a ladder of prices: the values that are kept, with those that the
/// step reads, from the most bytes to the fewest.
///
/// The order must be topological.
pub fn kept_sets(problem: &Problem, order: &[u32], place: usize) -> Vec<Vec<u32>> {
    let Some(&running) = order.get(place) else { return Vec::new() };
    let order = IndexedOrder::new(problem, order.to_vec());
    let is_made = |v: &u32| {
        let maker = problem.makers[*v as usize];
        maker != NONE && (order.place[maker as usize] as usize) < place
    };
    let read: Vec<u32> = problem.steps[running as usize].reads.iter().copied().filter(is_made).collect();
    let cuts = Cuts::new(problem, &order, place, KEPT_PRICES, KEPT_WORK, &mut 0);
    cuts.sets.into_iter().map(|set| [set.kept, read.clone()].concat()).collect()
}
