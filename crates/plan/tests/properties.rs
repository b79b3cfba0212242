//! Properties of packings of random instances.

use proptest::prelude::*;
use taut_plan::{Effort, FoundBy, LiveBuffer, PackError, Packing, PackingFlaw, pack, pack_within, verify};

const LITTLE: Effort = Effort { steps: 200_000 };

fn buffer(size: usize, times: u32) -> impl Strategy<Value = LiveBuffer> {
    (0..=size, 0..times, 1..=times).prop_map(|(size, start, time)| LiveBuffer::new(size, start, start + time))
}

fn buffers(most: usize) -> impl Strategy<Value = Vec<LiveBuffer>> {
    let plain = prop::collection::vec(buffer(40, 12), 0..=most);
    let aligned = prop::collection::vec((buffer(900, 30), 0..4u32), 0..=most)
        .prop_map(|list| list.into_iter().map(|(b, power)| b.aligned(32 << power)).collect::<Vec<_>>());
    let mixed = prop::collection::vec((buffer(50, 9), 1..7usize), 0..=most)
        .prop_map(|list| list.into_iter().map(|(b, align)| b.aligned(align)).collect::<Vec<_>>());
    prop_oneof![plain, aligned, mixed]
}

/// The fewest bytes: in some order, each buffer lies on the highest earlier one whose live range overlaps its own.
fn brute_force(buffers: &[LiveBuffer]) -> usize {
    fn go(buffers: &[LiveBuffer], placed: &mut Vec<(usize, usize)>, bytes: usize, best: &mut usize) {
        if bytes >= *best {
            return;
        }
        if placed.len() == buffers.len() {
            *best = bytes;
            return;
        }
        for (i, b) in buffers.iter().enumerate().filter(|(_, b)| b.start < b.end) {
            if placed.iter().any(|&(j, _)| i == j) {
                continue;
            }
            let meets =
                |j: usize| buffers[j].start < b.end && b.start < buffers[j].end && buffers[j].size > 0;
            let floor = placed.iter().filter(|&&(j, _)| meets(j)).map(|&(_, top)| top).max().unwrap_or(0);
            let offset = if b.size == 0 { 0 } else { floor.next_multiple_of(b.align) };
            placed.push((i, offset + b.size));
            go(buffers, placed, bytes.max(offset + b.size), best);
            placed.pop();
        }
    }
    let mut best = usize::MAX;
    go(buffers, &mut Vec::new(), 0, &mut best);
    best
}

fn max_live_bytes(buffers: &[LiveBuffer]) -> usize {
    let live = |t: u32| buffers.iter().filter(|b| b.start <= t && t < b.end).map(|b| b.size).sum();
    (0..64).map(live).max().unwrap_or(0)
}

/// The greatest common divisor of the alignments of all non-empty buffers.
fn grain(buffers: &[LiveBuffer]) -> usize {
    let common = |d: &usize| buffers.iter().all(|b| b.size == 0 || b.align % d == 0);
    (1..=256).rev().find(common).unwrap_or(1)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_packing_verifies(list in buffers(60)) {
        let packing = pack(&list, LITTLE).unwrap();
        prop_assert_eq!(verify(&list, &packing), Ok(()));
        prop_assert!(packing.lower_bound >= max_live_bytes(&list));
        prop_assert!(packing.bytes >= packing.lower_bound);
        prop_assert_eq!(&packing, &pack(&list, LITTLE).unwrap());
    }

    #[test]
    fn more_effort_is_never_worse(list in buffers(40)) {
        let mut bytes = usize::MAX;
        for steps in [0, 100, 3_000, 50_000, 1_000_000] {
            let packing = pack(&list, Effort { steps }).unwrap();
            prop_assert_eq!(verify(&list, &packing), Ok(()));
            prop_assert!(packing.bytes <= bytes);
            bytes = packing.bytes;
        }
    }

    #[test]
    fn any_order_of_the_input_packs(list in buffers(40).prop_shuffle()) {
        let packing = pack(&list, LITTLE).unwrap();
        prop_assert_eq!(verify(&list, &packing), Ok(()));
        let reversed: Vec<LiveBuffer> = list.iter().rev().copied().collect();
        let again = pack(&reversed, LITTLE).unwrap();
        prop_assert_eq!(verify(&reversed, &again), Ok(()));
        prop_assert_eq!(packing.lower_bound, again.lower_bound);
    }

    /// `pack_within` reaches the bytes that `pack` reaches, and never one byte below the lower bound.
    #[test]
    fn a_capacity_is_kept(list in buffers(30)) {
        let packing = pack(&list, LITTLE).unwrap();
        let within = pack_within(&list, packing.bytes, Effort::default()).unwrap().unwrap();
        prop_assert_eq!(verify(&list, &within), Ok(()));
        prop_assert!(within.bytes <= packing.bytes);
        if packing.lower_bound > 0 {
            prop_assert_eq!(pack_within(&list, packing.lower_bound - 1, LITTLE).unwrap(), None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn small_instances_are_optimal(list in buffers(7)) {
        let packing = pack(&list, Effort::default()).unwrap();
        let best = brute_force(&list);
        prop_assert_eq!(verify(&list, &packing), Ok(()));
        prop_assert!(packing.optimal);
        prop_assert!(packing.lower_bound <= best && best <= packing.bytes);
        let grain = grain(&list);
        prop_assert_eq!(packing.bytes.next_multiple_of(grain), best.next_multiple_of(grain));
        // With a capacity, exact to the byte.
        let within = pack_within(&list, best, Effort::default()).unwrap();
        prop_assert!(within.is_some_and(|packing| packing.bytes == best));
        if best > 0 {
            prop_assert_eq!(pack_within(&list, best - 1, Effort::default()).unwrap(), None);
        }
    }
}

#[test]
fn empty_instances_need_no_bytes() {
    let packing = pack(&[], Effort::default()).unwrap();
    assert_eq!((packing.bytes, packing.lower_bound, packing.gap(), packing.optimal), (0, 0, 0.0, true));
    let empty = [LiveBuffer::new(0, 0, 5), LiveBuffer::new(0, 2, 9).aligned(64)];
    let packing = pack(&empty, Effort::default()).unwrap();
    assert_eq!((packing.bytes, &packing.offsets[..]), (0, &[0, 0][..]));
    assert_eq!(verify(&empty, &packing), Ok(()));
}

#[test]
fn equal_live_ranges_stack() {
    let list: Vec<LiveBuffer> = (1..=100).map(|size| LiveBuffer::new(size, 3, 4)).collect();
    let packing = pack(&list, Effort::PORTFOLIO).unwrap();
    assert_eq!((packing.bytes, packing.found_by), (5050, FoundBy::Portfolio));
    assert_eq!(verify(&list, &packing), Ok(()));
    assert_eq!(packing.to_string(), "5050 bytes packed, lower bound 5050, gap 0.00 %, by portfolio, optimal");
}

#[test]
fn bad_input_is_refused() {
    let huge = [LiveBuffer::new(usize::MAX / 2, 0, 1), LiveBuffer::new(usize::MAX / 2, 0, 1)];
    assert_eq!(pack(&huge, Effort::default()), Err(PackError::TooLarge));
    assert_eq!(pack(&[LiveBuffer::new(usize::MAX, 0, 1)], Effort::default()), Err(PackError::TooLarge));
    assert_eq!(
        pack(&[LiveBuffer::new(1, 0, 1).aligned(usize::MAX)], Effort::default()),
        Err(PackError::TooLarge)
    );
    let backwards = [LiveBuffer::new(1, 0, 1), LiveBuffer::new(1, 5, 4)];
    assert_eq!(pack_within(&backwards, 9, Effort::default()), Err(PackError::NeverAlive { buffer: 1 }));
    let zero = [LiveBuffer::new(1, 0, 1).aligned(0)];
    assert_eq!(pack(&zero, Effort::default()), Err(PackError::NoAlignment { buffer: 0 }));
    assert_eq!(PackError::NeverAlive { buffer: 1 }.to_string(), "buffer 1: end must be > start");
    assert_eq!(PackError::NoAlignment { buffer: 0 }.to_string(), "buffer 0: alignment must be >= 1, got 0");
    assert!(PackError::TooLarge.to_string().starts_with("the sum of all sizes and alignments must be <= "));
}

#[test]
fn the_largest_accepted_sizes_pack() {
    let size = usize::MAX / 32;
    let list =
        [LiveBuffer::new(size, 0, 2), LiveBuffer::new(size, 1, 3).aligned(4096), LiveBuffer::new(size, 2, 4)];
    let packing = pack(&list, Effort::default()).unwrap();
    assert_eq!(verify(&list, &packing), Ok(()));
    assert!(packing.bytes < 2 * size + 4096);
}

#[test]
fn verify_finds_flaws() {
    let list = [LiveBuffer::new(10, 0, 4), LiveBuffer::new(10, 2, 6).aligned(2), LiveBuffer::new(5, 4, 9)];
    let with = |offsets: &[usize], bytes: usize| Packing {
        offsets: offsets.to_vec(),
        bytes,
        lower_bound: 20,
        optimal: false,
        found_by: FoundBy::Portfolio,
    };
    assert_eq!(verify(&list, &with(&[0, 10, 0], 20)), Ok(()));
    assert_eq!(verify(&list, &with(&[0, 10], 20)), Err(PackingFlaw::Count { buffers: 3, offsets: 2 }));
    assert_eq!(verify(&list, &with(&[0, 11, 0], 21)), Err(PackingFlaw::Misaligned { buffer: 1 }));
    assert_eq!(verify(&list, &with(&[0, 10, 16], 20)), Err(PackingFlaw::Outside { buffer: 2 }));
    assert_eq!(verify(&list, &with(&[0, 10, usize::MAX], 20)), Err(PackingFlaw::Outside { buffer: 2 }));
    assert_eq!(verify(&list, &with(&[0, 8, 0], 20)), Err(PackingFlaw::Overlap { first: 0, second: 1 }));
    assert_eq!(verify(&list, &with(&[8, 0, 10], 20)), Err(PackingFlaw::Overlap { first: 0, second: 1 }));
    assert_eq!(verify(&list, &with(&[0, 10, 6], 20)), Err(PackingFlaw::Overlap { first: 1, second: 2 }));
    assert_eq!(verify(&list, &with(&[0, 10, 12], 20)), Err(PackingFlaw::Overlap { first: 1, second: 2 }));
}
