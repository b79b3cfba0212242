//! Many short searches in different orders: most instances are easy in some order, and hopeless in others.

use crate::search::{Outcome, Rule, Search};
use crate::shape::Shape;

/// Failures in the shortest run: few, since a good order hardly fails and a bad one never ends.
const SHORTEST: u64 = 50;

const RULES: [Rule; 3] = [
    Rule { anywhere: false, weighted: false },
    Rule { anywhere: false, weighted: true },
    Rule { anywhere: true, weighted: true },
];

/// What makes an item worth placing early.
#[derive(Clone, Copy)]
enum Taste {
    Sections,
    Area,
    Time,
    SectionArea,
    Crowd,
    Slender,
}

const TASTES: [Taste; 6] =
    [Taste::Sections, Taste::Area, Taste::Time, Taste::SectionArea, Taste::Crowd, Taste::Slender];

/// Asks whether the shape fits, for at most so many steps; tells how many it took. Another `seed` tries other orders.
pub fn fits(shape: &Shape, capacity: u64, seed: u64, steps: u64) -> (Outcome, u64) {
    let mut search = Search::new(shape, capacity);
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for run in 0.. {
        let lap = run / TASTES.len();
        let taste = TASTES[run % TASTES.len()];
        let rule = RULES[(run + lap) % RULES.len()];
        // The first time, each order comes with each rule as it is.
        let noise = if lap < RULES.len() && seed == 0 { 0.0 } else { [0.1, 0.5][lap % 2] };
        let rank: Vec<f64> =
            (0..shape.len()).map(|b| worth(shape, b, taste) * (1.0 + noise * random.next())).collect();
        let left = steps.saturating_sub(search.steps);
        match search.run(&rank, rule, SHORTEST * luby(run as u64 + 1), left) {
            Outcome::Stopped if search.steps < steps => {}
            outcome => return (outcome, search.steps),
        }
    }
    (Outcome::Stopped, search.steps)
}

fn worth(shape: &Shape, b: usize, taste: Taste) -> f64 {
    let item = &shape.items[b];
    let (size, time, sections) = (item.size as f64, item.time() as f64, shape.span(b).len() as f64);
    match taste {
        Taste::Sections => sections,
        Taste::Area => time * size,
        Taste::Time => time,
        Taste::SectionArea => sections * size,
        Taste::Crowd => shape.crowd[b] as f64,
        Taste::Slender => sections * size.sqrt(),
    }
}

/// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 …: close to the best run length, whatever that is.
fn luby(mut i: u64) -> u64 {
    loop {
        let length = (i + 1).next_power_of_two();
        if length == i + 1 {
            return length / 2;
        }
        i -= length / 2 - 1;
    }
}

/// Marsaglia's xorshift: the same numbers everywhere.
struct Random(u64);

impl Random {
    /// From 0 to 1.
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
