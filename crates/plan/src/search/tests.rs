//! The search alone, without the greedy orders before it, beside every order by brute force.

use super::{Outcome, Rule, Search};
use crate::packing::Buffer;
use crate::parts::{Item, read};
use crate::shape::Shape;

const RULES: [Rule; 4] = [
    Rule { anywhere: false, weighted: false },
    Rule { anywhere: false, weighted: true },
    Rule { anywhere: true, weighted: false },
    Rule { anywhere: true, weighted: true },
];

/// The fewest bytes: in some order, each item lies on the highest of those before it that are alive with it.
fn fewest(items: &[Item], offsets: &mut Vec<(usize, u64)>, bytes: u64, best: &mut u64) {
    if bytes >= *best {
        return;
    }
    if offsets.len() == items.len() {
        *best = bytes;
    }
    for (i, item) in items.iter().enumerate() {
        if offsets.iter().all(|&(j, _)| i != j) {
            let meets = |j: usize| items[j].start < item.end && item.start < items[j].end;
            let below = offsets.iter().filter(|&&(j, _)| meets(j)).map(|&(j, offset)| offset + items[j].size);
            let offset = below.max().unwrap_or(0).next_multiple_of(item.align);
            offsets.push((i, offset));
            fewest(items, offsets, bytes.max(offset + item.size), best);
            offsets.pop();
        }
    }
}

fn fits(offsets: &[u64], items: &[Item], bytes: u64) -> bool {
    let apart = |i: usize, j: usize| {
        let (a, b) = (&items[i], &items[j]);
        let alive = a.start < b.end && b.start < a.end;
        !alive || offsets[i] + a.size <= offsets[j] || offsets[j] + b.size <= offsets[i]
    };
    let inside = |i: usize| offsets[i] + items[i].raw <= bytes && offsets[i].is_multiple_of(items[i].align);
    (0..items.len()).all(|i| inside(i) && (0..i).all(|j| apart(i, j)))
}

fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) % below
}

#[test]
fn finds_the_fewest_bytes_and_proves_it() {
    let mut state = 1;
    let mut above_load = 0;
    for case in 0..600 {
        let aligns: [usize; 3] = [[1, 1, 1], [1, 2, 3], [4, 8, 12]][case % 3];
        let count = 6 + random(&mut state, 3);
        let buffers: Vec<Buffer> = (0..count)
            .map(|_| {
                let start = random(&mut state, 6) as u32;
                let end = start + 1 + random(&mut state, 4) as u32;
                let size = 1 + random(&mut state, 7) as usize * aligns[0];
                Buffer::new(size, start, end).aligned(aligns[random(&mut state, 3) as usize])
            })
            .collect();
        let input = read(&buffers).unwrap();
        for items in input.parts {
            let mut best = u64::MAX;
            fewest(&items, &mut Vec::new(), 0, &mut best);
            let shape = Shape::new(items, input.grain);
            above_load += usize::from(shape.load.iter().all(|&load| load < best));
            for rule in RULES {
                let rank: Vec<f64> = shape.items.iter().map(|_| random(&mut state, 100) as f64).collect();
                let found = Search::new(&shape, best).run(&rank, rule, u64::MAX, u64::MAX);
                assert!(
                    matches!(found, Outcome::Fits(offsets) if fits(&offsets, &shape.items, best)),
                    "{buffers:?}"
                );
                // Sizes are whole grains here, so a grain less is the next that could be.
                let less = best - input.grain;
                let none = Search::new(&shape, less).run(&rank, rule, u64::MAX, u64::MAX);
                assert!(matches!(none, Outcome::Impossible), "{buffers:?}");
            }
        }
    }
    assert!(above_load > 100, "{above_load} instances where the load is not enough: too easy");
}
