//! The moves are made on states that are just numbers, and counted; the counts are compared with the formula and with what trying
//! every split gives.

use proptest::prelude::*;

use super::*;

/// What a way back cost.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    recomputed: u64,
    loads: u64,
    stores: u64,
}

/// Makes the moves, and fails on one that is not possible or not needed.
fn walk(mut back: Back, kept: &[(usize, usize)], n: usize, slots: usize, at_hand: bool) -> Tally {
    let mut tally = Tally::default();
    let mut held = vec![None; slots.clamp(1, n.max(1))];
    for &(state, slot) in kept {
        assert_eq!(held[slot].replace(state), None);
    }
    let mut working = if at_hand { n.checked_sub(1) } else { None };
    let mut left = n;
    while let Some(next) = back.next() {
        match next {
            Move::Load { slot, state } => {
                assert_eq!(held[slot], Some(state));
                assert_ne!(working, Some(state), "it is there already");
                working = Some(state);
                tally.loads += 1;
            }
            Move::Advance { from, steps } => {
                assert_eq!(working, Some(from));
                assert!(steps > 0 && from + steps < left);
                working = Some(from + steps);
                tally.recomputed += steps as u64;
            }
            Move::Store { slot, state } => {
                assert_eq!(working, Some(state));
                assert!(!held.contains(&Some(state)));
                // Overwriting is fine for states that are behind us only.
                assert!(held[slot].is_none_or(|old| old >= left));
                held[slot] = Some(state);
                tally.stores += 1;
            }
            Move::Reverse { step, slot } => {
                left -= 1;
                assert_eq!(step, left);
                assert_eq!(slot.map_or(working, |slot| held[slot]), Some(step));
            }
        }
    }
    assert_eq!(left, 0);
    assert_eq!(back.next(), None);
    tally
}

/// A sweep of known length and the way back.
fn known(n: usize, slots: usize) -> Tally {
    let kept = at_end(n, slots, true);
    walk(Back::new(&kept, n, slots), &kept, n, slots, true)
}

/// A sweep of unknown length that overwrites its states, and the way back.
fn online(n: usize, slots: usize) -> Tally {
    let kept = at_end(n, slots, false);
    walk(Back::overwritten(&kept, n, slots), &kept, n, slots, false)
}

/// The states and slots that a sweep fills by asking for each state.
fn fill(mut keep: impl FnMut(usize) -> Option<usize>, n: usize) -> Vec<(usize, usize)> {
    let mut held = std::collections::BTreeMap::new();
    for state in 0..n {
        if let Some(slot) = keep(state) {
            held.insert(slot, state);
        }
    }
    let mut kept: Vec<_> = held.into_iter().map(|(slot, state)| (state, slot)).collect();
    kept.sort_unstable();
    kept
}

/// `table[c][n]`: the fewest forward steps, by trying every place for the next kept state.
fn by_trying(most: usize, slots: usize) -> Vec<Vec<u64>> {
    let mut table = vec![vec![0; most + 1]; slots + 1];
    for c in 1..=slots {
        for n in 2..=most {
            let alone = (n * (n - 1) / 2) as u64;
            let splits = (1..n).map(|m| m as u64 + table[c - 1][n - m] + table[c][m]);
            table[c][n] = if c == 1 { alone } else { splits.min().unwrap().min(alone) };
        }
    }
    table
}

#[test]
fn the_formula_is_what_trying_everything_finds() {
    for (c, row) in by_trying(60, 12).iter().enumerate().skip(1) {
        for (n, &fewest) in row.iter().enumerate() {
            assert_eq!(forward_steps(n, c), fewest, "{n} steps, {c} slots");
            assert_eq!(recomputed(n, c), fewest - n.saturating_sub(1) as u64);
            assert_eq!(known(n, c).recomputed, recomputed(n, c), "{n} steps, {c} slots");
        }
    }
}

#[test]
fn runs_per_step_are_those_of_the_table() {
    let rows =
        [(1_000, [(10, 3.64), (20, 2.75), (50, 1.95)]), (100_000, [(10, 8.32), (20, 5.34), (50, 3.75)])];
    for (n, cases) in rows {
        for (c, expected) in cases {
            let runs = forward_steps(n, c) as f64 / n as f64;
            assert!((runs - expected).abs() <= 0.0051, "{n} steps, {c} slots: {runs}");
        }
    }
}

#[test]
fn long_loops_take_what_the_formula_says() {
    for n in [100, 999, 1_000, 10_000, 100_000] {
        for c in [3, 7, 10, 20, 50, 333] {
            assert_eq!(known(n, c).recomputed, recomputed(n, c), "{n} steps, {c} slots");
        }
    }
    assert_eq!(known(300, 2).recomputed, recomputed(300, 2));
}

#[test]
fn one_slot_is_quadratic_and_enough_slots_are_free() {
    for n in 0_usize..40 {
        let all = n * n.saturating_sub(1) / 2;
        assert_eq!(known(n, 1).recomputed, (all - n.saturating_sub(1)) as u64);
        assert_eq!(online(n, 1).recomputed, all as u64);
        for c in n.max(1)..n + 3 {
            assert_eq!(known(n, c), Tally::default());
            assert_eq!(online(n, c), Tally::default());
        }
        if n > 1 {
            assert_eq!(known(n, n - 1), Tally::default());
        }
    }
}

#[test]
fn no_number_is_too_large() {
    let most = usize::MAX / 4;
    assert_eq!(forward_steps(most, 1), u64::MAX);
    assert_eq!(forward_steps(most, usize::MAX), most as u64 - 1);
    assert_eq!(recomputed(most, most), 0);
    assert_eq!(recomputed(most, most - 1), 0);
    assert_eq!(recomputed(most, most - 2), 1);
    assert_eq!(recomputed(most, usize::MAX), 0);
    // C(64, 32) lies between 2^60 and 2^61: 32 repetitions for 32 slots.
    assert_eq!(repetitions(1 << 60, 32).0, 32);
    assert_eq!(repetitions(1 << 61, 32).0, 33);
    for c in [2, 3, 5, 60, 1 << 20, 1 << 40] {
        let (r, less) = repetitions(most, c);
        assert!(less < most && binomial(c as u128, r as u128, most as u128) >= most as u128);
        assert!(forward_steps(most, c) >= most as u64 - 1);
        let first = split(most, c);
        assert!(first > 0 && first < most);
        assert_eq!(
            forward_steps(most, c),
            (first as u64)
                .saturating_add(forward_steps(most - first, c - 1))
                .saturating_add(forward_steps(first, c))
        );
        assert!(at_end(most, 60, true).len() == 60);
        let mut back = Back::new(&at_end(most, 60, true), most, 60);
        assert_eq!(back.next(), Some(Move::Reverse { step: most - 1, slot: None }));
    }
}

#[test]
fn what_the_slots_hold_is_what_the_sweep_put_there() {
    for c in [1, 2, 3, 5, 8, 13] {
        for n in (0..120).chain([1_000, 3_333]) {
            let mut sweep = Known::new(n, c);
            assert_eq!(fill(|state| sweep.keep(state), n), at_end(n, c, true));
            let mut sweep = Online::new(c);
            assert_eq!(fill(|state| sweep.keep(state), n), at_end(n, c, false));
            assert_eq!(sweep.kept(), at_end(n, c, false));
        }
    }
}

/// For the sweeps of length 1 to `most`, what the way back recomputes: each gap takes as many steps as with the slots that are free by
/// then.
fn online_costs(most: usize, slots: usize) -> impl Iterator<Item = (usize, u64)> {
    let mut sweep = Online::new(slots);
    let mut kept = Vec::new();
    let mut gaps = 0;
    (0..most).map(move |state| {
        if sweep.keep(state).is_some() {
            kept = sweep.kept();
            let pairs = kept.windows(2).enumerate();
            gaps = pairs.map(|(place, pair)| forward_steps(pair[1].0 - pair[0].0, slots - place)).sum();
        }
        let n = state + 1;
        (n, gaps + forward_steps(n - kept[kept.len() - 1].0, slots + 1 - kept.len()))
    })
}

#[test]
fn unknown_length_costs_nothing_more_while_two_runs_are_enough() {
    for c in 1..=24 {
        for n in 0..(c + 1) * (c + 2) / 2 {
            // State `n` stands for the last one of a sweep of `n + 1`, which was never offered.
            assert_eq!(online(n, c).recomputed, recomputed(n + 1, c), "{n} steps, {c} slots");
            let kept = at_end(n, c, false);
            let longer = walk(Back::new(&kept, n + 1, c), &kept, n + 1, c, true);
            assert_eq!(longer.recomputed, recomputed(n + 1, c), "{n} steps, {c} slots");
            // Offered and at hand: the last state may have taken the slot of one step.
            let kept = at_end(n, c, false);
            let both = walk(Back::new(&kept, n, c), &kept, n, c, true);
            assert!(both.recomputed <= recomputed(n, c) + 1, "{n} steps, {c} slots");
        }
    }
}

#[test]
fn unknown_length_costs_little_more_beyond() {
    // The worst over all lengths to 20,000, as measured and as the documentation says.
    let bound = |c| match c {
        2 => 1.231,
        3..=4 => 1.114,
        5..=8 => 1.083,
        _ => 1.062,
    };
    for c in 2..=40 {
        for (n, steps) in online_costs(20_000, c) {
            let best = recomputed(n + 1, c);
            assert!(steps >= best, "{n} steps, {c} slots: {steps}, and {best} are possible");
            assert!(
                steps as f64 <= best as f64 * bound(c),
                "{n} steps, {c} slots: {steps}, and {best} are possible"
            );
        }
    }
}

#[test]
fn the_way_back_takes_each_gap_at_its_best() {
    for c in [2, 3, 6, 11, 19] {
        for (n, steps) in online_costs(2_500, c).filter(|(n, _)| n % 97 == 0) {
            assert_eq!(online(n, c).recomputed, steps, "{n} steps, {c} slots");
        }
    }
}

#[test]
fn few_states_are_moved() {
    // By hand: 6 steps, 2 slots. 0 and 3 are kept; 5 is at hand; 3 -> 4, 0 -> 1 (kept) -> 2.
    let kept = at_end(6, 2, true);
    assert_eq!(kept, [(0, 0), (3, 1)]);
    let mut back = Back::new(&kept, 6, 2);
    let moves: Vec<_> = std::iter::from_fn(|| back.next()).collect();
    let expected = [
        Move::Reverse { step: 5, slot: None },
        Move::Load { slot: 1, state: 3 },
        Move::Advance { from: 3, steps: 1 },
        Move::Reverse { step: 4, slot: None },
        Move::Reverse { step: 3, slot: Some(1) },
        Move::Load { slot: 0, state: 0 },
        Move::Advance { from: 0, steps: 1 },
        Move::Store { slot: 1, state: 1 },
        Move::Advance { from: 1, steps: 1 },
        Move::Reverse { step: 2, slot: None },
        Move::Reverse { step: 1, slot: Some(1) },
        Move::Reverse { step: 0, slot: Some(0) },
    ];
    assert_eq!(moves, expected);
}

proptest! {
    #[test]
    fn any_loop_goes_back(n in 0_usize..3_000, c in 1_usize..80) {
        prop_assume!(c > 2 || n < 300);
        prop_assert_eq!(known(n, c).recomputed, recomputed(n, c));
        let kept = at_end(n + 1, c, true);
        let overwritten = walk(Back::overwritten(&kept, n, c), &kept, n, c.max(kept.len()), false);
        prop_assert_eq!(overwritten.recomputed, recomputed(n + 1, c));
        let steps = online_costs(n, c).last().map_or(0, |(_, steps)| steps);
        prop_assert_eq!(online(n, c).recomputed, steps);
    }

    /// Whatever is kept, each gap takes what the formula says for the slots that are free by then.
    #[test]
    fn any_states_will_do(n in 1_usize..500, free in 0_usize..6, chosen in proptest::collection::btree_set(1_usize..500, 0..12)) {
        let states: Vec<_> = std::iter::once(0).chain(chosen.into_iter().filter(|&state| state < n)).collect();
        let count = states.len();
        // Slots in another order than states.
        let kept: Vec<_> = states.into_iter().enumerate().map(|(rank, state)| (state, count - 1 - rank)).collect();
        let slots = (count + free).min(n);
        let ends = kept.iter().skip(1).map(|&(state, _)| state).chain([n]);
        let gaps = kept.iter().zip(ends).enumerate();
        let steps: u64 = gaps.map(|(place, (&(state, _), end))| forward_steps(end - state, slots - place)).sum();
        let back = Back::overwritten(&kept, n, slots);
        prop_assert_eq!(walk(back, &kept, n, slots, false).recomputed, steps);
    }
}
