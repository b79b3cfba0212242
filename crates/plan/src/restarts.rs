//! Restarts: many short searches, each with another ranking of the buffers. Most instances are easy under some ranking
//! and hopeless under others.

use crate::interval_graph::IntervalGraph;
use crate::search::{Search, SearchOutcome, SectionRule};

/// Failures allowed in the shortest run. Few are enough: a good ranking hardly fails, and a bad one never finishes.
const SHORTEST: u64 = 50;

const RULES: [SectionRule; 3] = [
    SectionRule { anywhere: false, weighted: false },
    SectionRule { anywhere: false, weighted: true },
    SectionRule { anywhere: true, weighted: true },
];

/// Which intervals are placed early: those with the highest value of this.
#[derive(Clone, Copy)]
enum RankBy {
    Sections,
    /// Time multiplied by bytes.
    Area,
    Time,
    /// Sections multiplied by bytes.
    SectionArea,
    OverlapBytes,
    /// Sections multiplied by the square root of the bytes.
    Slender,
}

const RANKINGS: [RankBy; 6] = [
    RankBy::Sections,
    RankBy::Area,
    RankBy::Time,
    RankBy::SectionArea,
    RankBy::OverlapBytes,
    RankBy::Slender,
];

/// Whether the graph fits into `capacity` bytes, decided in at most `steps` steps, and the steps taken. Another `seed`
/// tries other rankings.
pub fn fits(graph: &IntervalGraph, capacity: u64, seed: u64, steps: u64) -> (SearchOutcome, u64) {
    let mut search = Search::new(graph, capacity);
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for run in 0.. {
        let round = run / RANKINGS.len();
        let rank_by = RANKINGS[run % RANKINGS.len()];
        let rule = RULES[(run + round) % RULES.len()];
        // The first rounds combine each ranking with each rule, without noise.
        let noise = if round < RULES.len() && seed == 0 { 0.0 } else { [0.1, 0.5][round % 2] };
        let rank: Vec<f64> =
            (0..graph.len()).map(|b| rank_of(graph, b, rank_by) * (1.0 + noise * random.next())).collect();
        let left = steps.saturating_sub(search.steps);
        match search.run(&rank, rule, SHORTEST * luby(run as u64 + 1), left) {
            SearchOutcome::Stopped if search.steps < steps => {}
            outcome => return (outcome, search.steps),
        }
    }
    (SearchOutcome::Stopped, search.steps)
}

fn rank_of(graph: &IntervalGraph, b: usize, rank_by: RankBy) -> f64 {
    let interval = &graph.intervals[b];
    let (size, time, sections) = (interval.size as f64, interval.time() as f64, graph.span(b).len() as f64);
    match rank_by {
        RankBy::Sections => sections,
        RankBy::Area => time * size,
        RankBy::Time => time,
        RankBy::SectionArea => sections * size,
        RankBy::OverlapBytes => graph.overlap_bytes[b] as f64,
        RankBy::Slender => sections * size.sqrt(),
    }
}

/// The Luby sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 …: within a logarithmic factor of the best run length, which is
/// unknown.
fn luby(mut i: u64) -> u64 {
    loop {
        let length = (i + 1).next_power_of_two();
        if length == i + 1 {
            return length / 2;
        }
        i -= length / 2 - 1;
    }
}

/// Marsaglia's xorshift: the same numbers on every machine.
struct Random(u64);

impl Random {
    /// In [0, 1).
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::luby;

    #[test]
    fn run_lengths() {
        let lengths: Vec<u64> = (1..=15).map(luby).collect();
        assert_eq!(lengths, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
