//! Which value the decoder evicts: the one of the highest score.

use super::decode::Decoder;
use super::problem::NONE;

/// The best candidates when all were last scored. The others are scored again once they may be better than these.
const SHORTLIST: usize = 48;

/// Steps that the cost of rematerialising one value adds up at most; beyond, it is an estimate from below.
const LONGEST_CHAIN: usize = 256;

impl Decoder<'_> {
    /// The value of the highest score among those that no waiting step relies on, and `own`: operands of the step that
    /// is about to run, whose memory an output could take, and outputs that it could leave out.
    pub(super) fn victim(&mut self, own: &[u32]) -> Option<u32> {
        if self.shortlist.len() > 2 * SHORTLIST {
            self.cutoff = f64::INFINITY;
        }
        let mut best = self.best_listed();
        if best.is_none_or(|(score, _)| score < self.cutoff) && self.refill() {
            best = self.best_listed();
        }
        for &value in own {
            if let Some(score) = self.score(value)
                && best.is_none_or(|best| is_higher((score, value), best))
            {
                best = Some((score, value));
            }
        }
        best.map(|(_, value)| value)
    }

    /// The best of the shortlist, which loses what is no longer resident. Scores there are those of earlier evictions. Since
    /// most only fall, the best is scored again until it stays the best.
    fn best_listed(&mut self) -> Option<(f64, u32)> {
        self.shortlist.retain(|&(_, value)| self.slot[value as usize] != NONE);
        self.work += self.shortlist.len() as u64 / 8;
        let mut fresh: Option<(f64, u32)> = None;
        loop {
            let mut top: Option<usize> = None;
            for (i, &(score, value)) in self.shortlist.iter().enumerate() {
                let is_free = self.pins[value as usize] == 0 && score > f64::NEG_INFINITY;
                if is_free && top.is_none_or(|top| is_higher((score, value), self.shortlist[top])) {
                    top = Some(i);
                }
            }
            let Some(top) = top else { return fresh };
            if fresh == Some(self.shortlist[top]) {
                return fresh;
            }
            let value = self.shortlist[top].1;
            let score = self.score(value).unwrap_or(f64::NEG_INFINITY);
            self.shortlist[top].0 = score;
            if score > f64::NEG_INFINITY && fresh.is_none_or(|fresh| is_higher((score, value), fresh)) {
                fresh = Some((score, value));
            }
        }
    }

    /// Scores all candidates and keeps the best in the shortlist. Returns whether the shortlist changed.
    fn refill(&mut self) -> bool {
        if self.cutoff == f64::NEG_INFINITY {
            return false;
        }
        let mut scored = std::mem::take(&mut self.shortlist);
        scored.clear();
        for i in 0..self.list.len() {
            let value = self.list[i];
            scored.push((self.score(value).unwrap_or(f64::NEG_INFINITY), value));
        }
        self.cutoff = f64::NEG_INFINITY;
        if scored.len() > SHORTLIST {
            scored.select_nth_unstable_by(SHORTLIST, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            self.cutoff = scored[SHORTLIST].0;
            scored.truncate(SHORTLIST);
        }
        self.shortlist = scored;
        true
    }

    /// How much evicting a value gains; `None` if it could not be rematerialised when it is needed.
    fn score(&mut self, value: u32) -> Option<f64> {
        self.work += 2;
        let v = value as usize;
        let next = if self.pending[v] > 0 { self.at } else { self.future(value) };
        if next == NONE {
            return Some(f64::INFINITY);
        }
        let cost = self.cost_of(value, next)?;
        let rule = self.guide.score;
        let distance = if rule.in_time {
            self.order.time[next as usize] - self.order.time[self.at as usize]
        } else {
            u64::from(next - self.at)
        };
        let weight = self.guide.weights.get(v).copied().unwrap_or(1.0);
        Some(weight * rule.of(self.problem.bytes[v] as f64, (distance + 1) as f64, (cost + 1) as f64))
    }

    /// The cost of rematerialising a value at a place of the order, from what is resident now.
    pub(super) fn cost_of(&mut self, value: u32, at: u32) -> Option<u64> {
        let problem = self.problem;
        self.stamp += 1;
        self.open.clear();
        self.open.push(value);
        let (mut cost, mut count) = (0, 0);
        while let Some(v) = self.open.pop() {
            let step = problem.makers[v as usize];
            if step == NONE || !self.order.may_repeat(problem, step, at) {
                return None;
            }
            if std::mem::replace(&mut self.marks[step as usize], self.stamp) == self.stamp {
                continue;
            }
            let step = &problem.steps[step as usize];
            cost += step.cost;
            count += 1;
            if count == LONGEST_CHAIN {
                break;
            }
            let missing = step.reads.iter().copied().filter(|&operand| !self.resident[operand as usize]);
            self.open.extend(missing);
        }
        self.work += count as u64;
        Some(cost)
    }
}

/// Whether a score comes before another; the lower number, if they are equal.
fn is_higher(a: (f64, u32), b: (f64, u32)) -> bool {
    a.0 > b.0 || (a.0 == b.0 && a.1 < b.1)
}
