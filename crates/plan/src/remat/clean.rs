//! Takes needless repetitions out of a sequence.

use super::liveness::Liveness;
use super::problem::{NONE, Problem};
use smallvec::SmallVec;
use std::cmp::Reverse;

/// Removing repetitions frees bytes, which lets others go; more rounds than this find next to nothing.
const ROUNDS: usize = 3;

/// Removes occurrences whose outputs are never read; then, the most expensive first, repetitions that are not needed if the
/// earlier value stays live, as far as `goal` bytes of the arena allow it.
pub(super) fn clean(problem: &Problem, sequence: &mut Vec<u32>, goal: i64, work: &mut u64) {
    drop_unread(problem, sequence);
    *work += sequence.len() as u64 * 2;
    for _ in 0..ROUNDS {
        if sequence.len() == problem.steps.len() {
            return;
        }
        let Some(mut shorter) = Extension::new(problem, sequence).extend_all(goal, work) else { return };
        drop_unread(problem, &mut shorter);
        *work += shorter.len() as u64 * 6;
        // Extending one range can end a computation in place that another range relied on.
        if Liveness::new(problem, &shorter).peak_load() > goal {
            return;
        }
        *sequence = shorter;
    }
}

/// Removes occurrences whose outputs are not read before they are written again; each step keeps one.
pub(super) fn drop_unread(problem: &Problem, sequence: &mut Vec<u32>) {
    let mut count = vec![0u32; problem.steps.len()];
    sequence.iter().for_each(|&step| count[step as usize] += 1);
    let mut is_read_later = vec![false; problem.values.len()];
    let mut kept: Vec<u32> = Vec::with_capacity(sequence.len());
    for &number in sequence.iter().rev() {
        let step = &problem.steps[number as usize];
        let is_read = step.writes.iter().any(|&v| is_read_later[v as usize]);
        if !is_read && count[number as usize] > 1 {
            count[number as usize] -= 1;
            continue;
        }
        kept.push(number);
        step.writes.iter().for_each(|&v| is_read_later[v as usize] = false);
        step.reads.iter().for_each(|&v| is_read_later[v as usize] = true);
    }
    kept.reverse();
    *sequence = kept;
}

/// An earlier range that takes over the reads of a later one of the same value.
#[derive(Clone, Copy)]
struct Merge {
    earlier: usize,
    later: usize,
    bytes: i64,
}

/// The live ranges of a sequence, and those of each value in their order.
struct Extension<'a> {
    problem: &'a Problem,
    sequence: &'a [u32],
    liveness: Liveness,
    /// Per range, the ranges of the same value before and after it, or [`NONE`].
    previous: Vec<u32>,
    next: Vec<u32>,
    /// Per place, the first range that is written there.
    first: Vec<u32>,
}

impl<'a> Extension<'a> {
    fn new(problem: &'a Problem, sequence: &'a [u32]) -> Extension<'a> {
        let liveness = Liveness::new(problem, sequence);
        let mut last = vec![NONE; problem.values.len()];
        let mut previous = vec![NONE; liveness.ranges.len()];
        let mut next = previous.clone();
        for (i, range) in liveness.ranges.iter().enumerate() {
            previous[i] = std::mem::replace(&mut last[range.value as usize], i as u32);
            if let Some(next) = next.get_mut(previous[i] as usize) {
                *next = i as u32;
            }
        }
        let mut end = liveness.ranges.len();
        let mut first = vec![0; sequence.len()];
        for (at, &step) in sequence.iter().enumerate().rev() {
            end -= problem.steps[step as usize].writes.len();
            first[at] = end as u32;
        }
        Extension { problem, sequence, liveness, previous, next, first }
    }

    /// The sequence without the repetitions that extended ranges replace; `None` if there are none.
    fn extend_all(mut self, goal: i64, work: &mut u64) -> Option<Vec<u32>> {
        let mut seen = vec![false; self.problem.steps.len()];
        let mut repeated: Vec<usize> = (0..self.sequence.len())
            .filter(|&at| std::mem::replace(&mut seen[self.sequence[at] as usize], true))
            .collect();
        repeated.sort_by_key(|&at| (Reverse(self.problem.steps[self.sequence[at] as usize].cost), at));
        let mut is_removed = vec![false; self.sequence.len()];
        for at in repeated {
            is_removed[at] = self.extend(at, goal, work);
        }
        let kept = self.sequence.iter().zip(&is_removed).filter(|(_, removed)| !**removed);
        is_removed.contains(&true).then(|| kept.map(|(&step, _)| step).collect())
    }

    /// Replaces the repetition at a place by the values written before, if that keeps the goal.
    fn extend(&mut self, at: usize, goal: i64, work: &mut u64) -> bool {
        let step = &self.problem.steps[self.sequence[at] as usize];
        let merges: SmallVec<[Merge; 4]> = (0..step.writes.len())
            .map(|i| {
                let later = self.first[at] as usize + i;
                let earlier = self.previous[later] as usize;
                Merge { earlier, later, bytes: self.problem.bytes[step.writes[i] as usize] }
            })
            .filter(|merge| self.liveness.ranges[merge.later].end > at as u32)
            .collect();
        let Some(from) = merges.iter().map(|merge| self.first_added(merge)).min() else { return true };
        // Near the repetition, memory is fullest.
        for t in (from..at).rev() {
            *work += 1;
            if self.liveness.load[t] + self.added(&merges, t) > goal {
                return false;
            }
        }
        for t in from..at {
            self.liveness.load[t] += self.added(&merges, t);
        }
        self.liveness.load[at] -= step.scratch as i64;
        for merge in &merges {
            let later = self.liveness.ranges[merge.later];
            let earlier = &mut self.liveness.ranges[merge.earlier];
            (earlier.end, earlier.is_overwritten) = (later.end, later.is_overwritten);
            earlier.bytes = merge.bytes;
        }
        for i in 0..step.writes.len() {
            self.unlink(self.first[at] as usize + i);
        }
        true
    }

    /// The first place where a merge needs bytes that are not counted yet.
    fn first_added(&self, merge: &Merge) -> usize {
        let range = &self.liveness.ranges[merge.earlier];
        if range.is_overwritten || range.bytes < merge.bytes {
            range.end as usize
        } else {
            range.end as usize + 1
        }
    }

    fn added(&self, merges: &[Merge], t: usize) -> i64 {
        merges.iter().filter(|merge| t >= self.first_added(merge)).map(|merge| merge.bytes).sum()
    }

    /// Takes a range, which is not the first, out of the list of its value.
    fn unlink(&mut self, range: usize) {
        let (previous, next) = (self.previous[range], self.next[range]);
        self.next[previous as usize] = next;
        if let Some(link) = self.previous.get_mut(next as usize) {
            *link = previous;
        }
    }
}
