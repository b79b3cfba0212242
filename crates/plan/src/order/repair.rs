//! Local search that lowers the peaks of orders: a value that is live but unused at the peak is computed after it, or its
//! reads are hoisted before it.

use super::Dependencies;
use crate::lower::LoweredGraph;
use crate::placement::Placement;

/// The most visits to steps: a millisecond or two.
const MAX_VISITS: usize = 30_000;

/// An order that needs fewer bytes than all the given ones, if the local search finds one. The best orders are tried
/// first.
pub(crate) fn repair(
    lowered: &LoweredGraph<'_>,
    dependencies: &Dependencies,
    orders: &[(Vec<u32>, Placement)],
) -> Option<(Vec<u32>, Placement)> {
    let least = orders.iter().map(|(_, placement)| placement.bytes()).min()?;
    let mut first: Vec<usize> = (0..orders.len()).collect();
    first.sort_by_key(|&i| orders[i].1.cost_key());
    let mut search = OrderRepair {
        lowered,
        dependencies,
        visited: vec![false; orders[0].0.len()],
        visits_left: MAX_VISITS,
    };
    let mut best: Option<(Vec<u32>, Placement)> = None;
    for i in first {
        let Some(repaired) = search.repair(&orders[i].0, &orders[i].1) else { continue };
        if repaired.1.bytes() < best.as_ref().map_or(least, |(_, best)| best.bytes()) {
            best = Some(repaired);
        }
    }
    best
}

struct OrderRepair<'a> {
    lowered: &'a LoweredGraph<'a>,
    dependencies: &'a Dependencies,
    /// Marks of steps, cleared after each use.
    visited: Vec<bool>,
    visits_left: usize,
}

impl OrderRepair<'_> {
    fn repair(&mut self, order: &[u32], placement: &Placement) -> Option<(Vec<u32>, Placement)> {
        let mut best = self.improve(order, placement)?;
        while let Some(better) = self.improve(&best.0, &best.1) {
            best = better;
        }
        Some(best)
    }

    /// The first move that lowers the peak, or shortens it.
    fn improve(&mut self, order: &[u32], placement: &Placement) -> Option<(Vec<u32>, Placement)> {
        let (dependencies, peak) = (self.dependencies, placement.peak());
        self.spend(order.len())?;
        let mut positions = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &step)| positions[step as usize] = at);
        for idle in placement.idle_at(self.lowered, order, peak) {
            let users: Vec<u32> = placement.users(self.lowered, order, idle).collect();
            self.spend(users.len())?;
            let (before, after): (Vec<u32>, Vec<u32>) =
                users.into_iter().partition(|&step| positions[step as usize] < peak);
            let hoisted =
                self.closure(after, |step| dependencies.predecessors.of(step), |at| at >= peak, &positions)?;
            let delayed =
                self.closure(before, |step| dependencies.successors.of(step), |at| at <= peak, &positions)?;
            let moves = [rearranged(order, peak, &hoisted, true), rearranged(order, peak, &delayed, false)];
            for order in moves.into_iter().flatten() {
                self.spend(order.len())?;
                let other = Placement::new(self.lowered, &order);
                if other.cost_key() < placement.cost_key() {
                    return Some((order, other));
                }
            }
        }
        None
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.visits_left = self.visits_left.checked_sub(steps)?;
        Some(())
    }

    /// Steps and all steps that must move with them, sorted by number. `None` if no visits are left.
    fn closure<'a>(
        &mut self,
        mut moved: Vec<u32>,
        neighbours: impl Fn(u32) -> &'a [u32],
        must_move: impl Fn(usize) -> bool,
        positions: &[usize],
    ) -> Option<Vec<u32>> {
        moved.iter().for_each(|&step| self.visited[step as usize] = true);
        let mut next = 0;
        while let Some(&step) = moved.get(next) {
            next += 1;
            for &other in neighbours(step) {
                let visited = &mut self.visited[other as usize];
                if !*visited && must_move(positions[other as usize]) {
                    *visited = true;
                    moved.push(other);
                }
            }
        }
        moved.iter().for_each(|&step| self.visited[step as usize] = false);
        moved.sort_unstable();
        self.spend(moved.len())?;
        Some(moved)
    }
}

/// The order with some steps moved before or after the one at `peak`; `None` if that one would have to move too.
fn rearranged(order: &[u32], peak: usize, moved: &[u32], before: bool) -> Option<Vec<u32>> {
    let is_moved = |step: &u32| moved.binary_search(step).is_ok();
    if is_moved(&order[peak]) {
        return None;
    }
    let cut = if before { peak } else { peak + 1 };
    let mut new = Vec::with_capacity(order.len());
    new.extend(order[..cut].iter().filter(|step| !is_moved(step)));
    new.extend(order.iter().filter(|step| is_moved(step)));
    new.extend(order[cut..].iter().filter(|step| !is_moved(step)));
    Some(new)
}
