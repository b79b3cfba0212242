//! Random small training graphs.

use super::Builder;
use taut_plan::remat::{Problem, Residence};

/// Marsaglia's xorshift.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % count as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A forward pass with skips and a backward pass that reads some of it; with variables that are updated, scratch, steps
/// that run once, several outputs, results and computations in place.
pub fn random_training(seed: u64, layers: usize) -> Problem {
    training(seed, layers, 0)
}

/// The same with inputs that are donated, over which some steps may compute.
pub fn random_donated(seed: u64, layers: usize) -> Problem {
    training(seed, layers, 3)
}

fn training(seed: u64, layers: usize, donated: usize) -> Problem {
    let mut random = Random::new(seed);
    let mut b = Builder::default();
    let donated: Vec<u32> =
        (0..donated).map(|_| b.value(64 * (1 + random.below(4)), Residence::Donated)).collect();
    let variables: Vec<u32> = (0..layers).map(|_| b.external()).collect();
    let mut forward: Vec<u32> = Vec::new();
    for i in 0..layers {
        let mut reads = vec![variables[i]];
        if i > 0 {
            reads.push(forward[i - 1]);
        }
        if i > 1 && random.chance(30) {
            reads.push(forward[random.below(i - 1)]);
        }
        reads.extend(donated.iter().filter(|_| random.chance(20)));
        let bytes = 64 * (1 + random.below(8));
        let cost = [100.0, 1000.0, 1000.0, 3000.0][random.below(4)];
        let mut sizes = vec![bytes];
        if random.chance(10) {
            sizes.push(64 * (1 + random.below(4)));
        }
        let writes = b.step(&reads, &sizes, cost);
        let step = b.steps.last_mut().unwrap();
        step.prunable = random.chance(50);
        step.repeatable = !random.chance(5);
        if random.chance(15) {
            step.scratch = 64 * (1 + random.below(3));
        }
        alias(&mut b, &mut random);
        forward.extend(writes.last().copied());
        if writes.len() > 1 && random.chance(70) {
            b.result(&[writes[0]], 64, 50.0);
        }
    }
    let mut gradient = b.step(&[forward[layers - 1]], &[64], 100.0)[0];
    for i in (0..layers).rev() {
        let mut reads = vec![gradient, variables[i]];
        if random.chance(80) {
            reads.push(forward[i]);
        }
        if i > 0 && random.chance(70) {
            reads.push(forward[i - 1]);
        }
        reads.extend(donated.iter().filter(|_| random.chance(10)));
        let bytes = b.values[forward[i] as usize].bytes;
        gradient = b.step(&reads, &[bytes], 2000.0)[0];
        alias(&mut b, &mut random);
        if random.chance(30) {
            b.update(variables[i], gradient);
        }
    }
    b.result(&[gradient], 64, 50.0);
    b.finish()
}

/// Lets the last step compute over operands of its output's size, sometimes.
fn alias(b: &mut Builder, random: &mut Random) {
    let step = b.steps.last().unwrap();
    let mut pairs = Vec::new();
    for &read in &step.reads {
        for &write in &step.writes {
            let (operand, output) = (b.values[read as usize], b.values[write as usize]);
            let is_free = matches!(operand.residence, Residence::Arena | Residence::Donated);
            let fits = operand.bytes == output.bytes && is_free;
            if fits && random.chance(60) {
                pairs.push((read, write));
            }
        }
    }
    b.steps.last_mut().unwrap().in_place = pairs;
}
