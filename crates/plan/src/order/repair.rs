//! Takes orders and lowers their peaks, move by move: what is only kept at the peak is made after it, or used up before.

use super::Links;
use crate::lower::Draft;
use crate::place::Placement;

/// How many steps may be looked at, again and again: a millisecond or two.
const WORK: usize = 30_000;

/// An order that needs fewer bytes than all the given ones, if moves lead to one. The most promising are tried first.
pub(crate) fn repair(
    draft: &Draft<'_>,
    links: &Links,
    orders: &[(Vec<u32>, Placement)],
) -> Option<(Vec<u32>, Placement)> {
    let least = orders.iter().map(|(_, placement)| placement.bytes()).min()?;
    let mut first: Vec<usize> = (0..orders.len()).collect();
    first.sort_by_key(|&i| orders[i].1.height());
    let mut search = Search { draft, links, seen: vec![false; orders[0].0.len()], left: WORK };
    let mut best: Option<(Vec<u32>, Placement)> = None;
    for i in first {
        let Some(repaired) = search.repair(&orders[i].0, &orders[i].1) else { continue };
        if repaired.1.bytes() < best.as_ref().map_or(least, |(_, best)| best.bytes()) {
            best = Some(repaired);
        }
    }
    best
}

struct Search<'a> {
    draft: &'a Draft<'a>,
    links: &'a Links,
    /// Marks of steps, cleared after each use.
    seen: Vec<bool>,
    left: usize,
}

impl Search<'_> {
    fn repair(&mut self, order: &[u32], placement: &Placement) -> Option<(Vec<u32>, Placement)> {
        let mut best = self.improve(order, placement)?;
        while let Some(better) = self.improve(&best.0, &best.1) {
            best = better;
        }
        Some(best)
    }

    /// The first move that makes the peak lower, or as high for a shorter time.
    fn improve(&mut self, order: &[u32], placement: &Placement) -> Option<(Vec<u32>, Placement)> {
        let (links, peak) = (self.links, placement.peak());
        self.spend(order.len())?;
        let mut positions = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &step)| positions[step as usize] = at);
        for kept in placement.kept_at(self.draft, order, peak) {
            let users: Vec<u32> = placement.users(self.draft, order, kept).collect();
            self.spend(users.len())?;
            let (before, after): (Vec<u32>, Vec<u32>) =
                users.into_iter().partition(|&step| positions[step as usize] < peak);
            let hoisted = self.closure(after, |step| links.earlier.of(step), |at| at >= peak, &positions)?;
            let delayed = self.closure(before, |step| links.later.of(step), |at| at <= peak, &positions)?;
            let moves = [rearranged(order, peak, &hoisted, true), rearranged(order, peak, &delayed, false)];
            for order in moves.into_iter().flatten() {
                self.spend(order.len())?;
                let other = Placement::new(self.draft, &order);
                if other.height() < placement.height() {
                    return Some((order, other));
                }
            }
        }
        None
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    /// Steps, and all that have to move with them, by their numbers. `None` if there is no time left.
    fn closure<'a>(
        &mut self,
        mut moved: Vec<u32>,
        bound: impl Fn(u32) -> &'a [u32],
        is_in_the_way: impl Fn(usize) -> bool,
        positions: &[usize],
    ) -> Option<Vec<u32>> {
        moved.iter().for_each(|&step| self.seen[step as usize] = true);
        let mut next = 0;
        while let Some(&step) = moved.get(next) {
            next += 1;
            for &other in bound(step) {
                let seen = &mut self.seen[other as usize];
                if !*seen && is_in_the_way(positions[other as usize]) {
                    *seen = true;
                    moved.push(other);
                }
            }
        }
        moved.iter().for_each(|&step| self.seen[step as usize] = false);
        moved.sort_unstable();
        self.spend(moved.len())?;
        Some(moved)
    }
}

/// The order with some steps moved before or behind the one at `peak`; `None` if that one would have to move itself.
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
