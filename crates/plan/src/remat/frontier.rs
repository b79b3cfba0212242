//! The frontier: sequences of which each needs fewer bytes or costs less than any other.

use std::fmt;

/// A sequence of steps with its bytes and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontierPoint {
    /// The bytes it needs, as packed.
    pub bytes: usize,
    /// Its cost, with all repetitions.
    pub cost: u64,
    /// Steps by number; some occur again.
    pub sequence: Vec<u32>,
    /// A lower bound on the cost of any sequence that needs at most `bytes` and whose steps first occur in the order from
    /// which this one was made.
    pub cost_bound: u64,
    /// The number of that order.
    pub(super) order: usize,
}

/// All sequences worth choosing from: with more bytes, the cost falls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontier {
    /// From the fewest bytes to the least cost.
    points: Vec<FrontierPoint>,
    bytes_bound: usize,
    is_smallest_proven: bool,
    work: u64,
}

impl Frontier {
    pub(super) fn new(
        points: Vec<FrontierPoint>,
        bytes_bound: usize,
        is_smallest_proven: bool,
        work: u64,
    ) -> Frontier {
        Frontier { points: Frontier::pareto(points), bytes_bound, is_smallest_proven, work }
    }

    /// The points that no other beats in bytes and cost, from the fewest bytes to the least cost.
    pub(super) fn pareto(mut points: Vec<FrontierPoint>) -> Vec<FrontierPoint> {
        points.sort_by_key(|point| (point.cost, point.bytes));
        let mut least = usize::MAX;
        points.retain(|point| {
            let is_smaller = point.bytes < least;
            least = least.min(point.bytes);
            is_smaller
        });
        points.reverse();
        points
    }

    /// The points, from the fewest bytes to the least cost: bytes rise and costs fall from each to the next.
    pub fn points(&self) -> &[FrontierPoint] {
        &self.points
    }

    /// The cheapest point that fits a budget in bytes. With a larger budget, neither does the cost rise nor do the bytes fall.
    pub fn at(&self, budget: usize) -> Option<&FrontierPoint> {
        self.points.iter().rev().find(|point| point.bytes <= budget)
    }

    /// The point of the fewest bytes; `None` only if there are no points.
    pub fn smallest(&self) -> Option<&FrontierPoint> {
        self.points.first()
    }

    /// No sequence in any order needs fewer bytes than this.
    pub fn bytes_bound(&self) -> usize {
        self.bytes_bound
    }

    /// Whether an exhaustive search showed that no sequence of the orders tried has fewer live bytes than the smallest.
    pub fn is_smallest_proven(&self) -> bool {
        self.is_smallest_proven
    }

    /// The units of work that the search took.
    pub fn work(&self) -> u64 {
        self.work
    }
}

impl fmt::Display for Frontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for point in self.points.iter().rev() {
            let FrontierPoint { bytes, cost, sequence, cost_bound, .. } = point;
            writeln!(f, "{bytes} bytes, cost {cost} (at least {cost_bound}), {} steps", sequence.len())?;
        }
        write!(f, "no order needs less than {} bytes", self.bytes_bound)
    }
}
