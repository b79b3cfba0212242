//! Eleven published instances that greedy packing misses by a third; see the README beside them.

use std::time::Instant;
use taut_plan::{Effort, FoundBy, LiveBuffer, pack, pack_within, verify};

const CAPACITY: usize = 1 << 20;

fn instance(name: char) -> Vec<LiveBuffer> {
    let path = format!("{}/tests/minimalloc/{name}.{CAPACITY}.csv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().skip(1).map(|line| {
        let mut numbers = line.split(',').skip(1).map(|word| word.parse::<u32>().unwrap());
        let mut next = || numbers.next().unwrap();
        let (start, end, size) = (next(), next(), next());
        LiveBuffer::new(size as usize, start, end)
    });
    rows.collect()
}

/// All eleven fit into their published capacity.
#[test]
fn all_reach_their_capacity() {
    for name in 'A'..='K' {
        let buffers = instance(name);
        let begun = Instant::now();
        let packing = pack_within(&buffers, CAPACITY, Effort::default()).unwrap();
        let packing = packing.unwrap_or_else(|| panic!("{name} does not reach its capacity"));
        println!("{name} within: {:.3} s, {packing}", begun.elapsed().as_secs_f64());
        assert_eq!(verify(&buffers, &packing), Ok(()), "{name}");
        assert!(packing.bytes <= CAPACITY, "{name}");
        assert!(matches!(packing.found_by, FoundBy::Search { .. }), "{name}");
    }
}

/// `pack` finds a packing of the published capacity without being given it.
#[test]
fn pack_reaches_all_capacities() {
    let mut reached = 0;
    for name in 'A'..='K' {
        let buffers = instance(name);
        let begun = Instant::now();
        let packing = pack(&buffers, Effort::default()).unwrap();
        println!("{name} pack: {:.3} s, {packing}", begun.elapsed().as_secs_f64());
        assert_eq!(verify(&buffers, &packing), Ok(()), "{name}");
        reached += usize::from(packing.bytes <= CAPACITY);
    }
    assert_eq!(reached, 11);
}
