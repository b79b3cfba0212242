//! The actions are executed on states that are just numbers, and counted; the counts are compared with the formula and with an
//! exhaustive search over all splits.

use super::checkpoint::Checkpoint;
use super::formula::{binomial, forward_steps, repetitions, split};
use super::{BackwardAction, BackwardSchedule, FixedLengthSchedule, OnlineSchedule, recomputed_steps};
use proptest::prelude::*;

/// What a backward pass cost.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    recomputed: u64,
    loads: u64,
    stores: u64,
}

/// Executes the actions, and fails on one that is impossible or unnecessary. `working` says whether state `n - 1` is the working state.
fn execute(
    mut schedule: BackwardSchedule,
    checkpoints: &[Checkpoint],
    n: usize,
    slots: usize,
    working: bool,
) -> Tally {
    let mut tally = Tally::default();
    let mut held = vec![None; slots.clamp(1, n.max(1))];
    for &Checkpoint { state, slot } in checkpoints {
        assert_eq!(held[slot].replace(state), None);
    }
    let mut working = if working { n.checked_sub(1) } else { None };
    let mut left = n;
    while let Some(next) = schedule.next() {
        match next {
            BackwardAction::Load(Checkpoint { slot, state }) => {
                assert_eq!(held[slot], Some(state));
                assert_ne!(working, Some(state), "it is the working state already");
                working = Some(state);
                tally.loads += 1;
            }
            BackwardAction::Advance { from, steps } => {
                assert_eq!(working, Some(from));
                assert!(steps > 0 && from + steps < left);
                working = Some(from + steps);
                tally.recomputed += steps as u64;
            }
            BackwardAction::Store(Checkpoint { slot, state }) => {
                assert_eq!(working, Some(state));
                assert!(!held.contains(&Some(state)));
                // Only states of reversed steps may be overwritten.
                assert!(held[slot].is_none_or(|old| old >= left));
                held[slot] = Some(state);
                tally.stores += 1;
            }
            BackwardAction::Reverse { step, slot } => {
                left -= 1;
                assert_eq!(step, left);
                assert_eq!(slot.map_or(working, |slot| held[slot]), Some(step));
            }
        }
    }
    assert_eq!(left, 0);
    assert_eq!(schedule.next(), None);
    tally
}

/// A forward pass of known length, and the backward pass.
fn known(n: usize, slots: usize) -> Tally {
    let kept = FixedLengthSchedule::checkpoints(n, slots);
    execute(BackwardSchedule::new(&kept, n, slots), &kept, n, slots, true)
}

/// A forward pass of unknown length that overwrites its states, and the backward pass.
fn online(n: usize, slots: usize) -> Tally {
    let kept = OnlineSchedule::checkpoints_after(n, slots);
    execute(BackwardSchedule::after_overwrite(&kept, n, slots), &kept, n, slots, false)
}

/// The checkpoints that a forward pass stores, state by state.
fn stored(mut slot_for: impl FnMut(usize) -> Option<usize>, n: usize) -> Vec<Checkpoint> {
    let mut held = std::collections::BTreeMap::new();
    for state in 0..n {
        if let Some(slot) = slot_for(state) {
            held.insert(slot, state);
        }
    }
    let mut kept: Vec<_> = held.into_iter().map(|(slot, state)| Checkpoint { state, slot }).collect();
    kept.sort_unstable();
    kept
}

/// `table[c][n]`: the fewest forward steps, by an exhaustive search over the next checkpoint.
fn exhaustive(most: usize, slots: usize) -> Vec<Vec<u64>> {
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
fn the_formula_is_what_an_exhaustive_search_finds() {
    for (c, row) in exhaustive(60, 12).iter().enumerate().skip(1) {
        for (n, &fewest) in row.iter().enumerate() {
            assert_eq!(forward_steps(n, c), fewest, "{n} steps, {c} slots");
            assert_eq!(recomputed_steps(n, c), fewest - n.saturating_sub(1) as u64);
            assert_eq!(known(n, c).recomputed, recomputed_steps(n, c), "{n} steps, {c} slots");
        }
    }
}

#[test]
fn forward_steps_per_step_match_the_published_table() {
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
fn long_loops_recompute_what_the_formula_says() {
    for n in [100, 999, 1_000, 10_000, 100_000] {
        for c in [3, 7, 10, 20, 50, 333] {
            assert_eq!(known(n, c).recomputed, recomputed_steps(n, c), "{n} steps, {c} slots");
        }
    }
    assert_eq!(known(300, 2).recomputed, recomputed_steps(300, 2));
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
fn large_numbers_saturate() {
    let most = usize::MAX / 4;
    assert_eq!(forward_steps(most, 1), u64::MAX);
    assert_eq!(forward_steps(most, usize::MAX), most as u64 - 1);
    assert_eq!(recomputed_steps(most, most), 0);
    assert_eq!(recomputed_steps(most, most - 1), 0);
    assert_eq!(recomputed_steps(most, most - 2), 1);
    assert_eq!(recomputed_steps(most, usize::MAX), 0);
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
        let kept = FixedLengthSchedule::checkpoints(most, 60);
        assert_eq!(kept.len(), 60);
        let mut schedule = BackwardSchedule::new(&kept, most, 60);
        assert_eq!(schedule.next(), Some(BackwardAction::Reverse { step: most - 1, slot: None }));
    }
}

#[test]
fn checkpoints_are_those_that_the_forward_pass_stored() {
    for c in [1, 2, 3, 5, 8, 13] {
        for n in (0..120).chain([1_000, 3_333]) {
            let mut schedule = FixedLengthSchedule::new(n, c);
            assert_eq!(stored(|state| schedule.slot_for(state), n), FixedLengthSchedule::checkpoints(n, c));
            let mut schedule = OnlineSchedule::new(c);
            let expected = OnlineSchedule::checkpoints_after(n, c);
            assert_eq!(stored(|state| schedule.slot_for(state), n), expected);
            assert_eq!(schedule.checkpoints(), expected);
        }
    }
}

/// For forward passes of length 1 to `most`, the recomputed steps: each gap takes as many as with the slots that are free by then.
fn online_costs(most: usize, slots: usize) -> impl Iterator<Item = (usize, u64)> {
    let mut schedule = OnlineSchedule::new(slots);
    let mut kept: Vec<Checkpoint> = Vec::new();
    let mut gaps = 0;
    (0..most).map(move |state| {
        if schedule.slot_for(state).is_some() {
            kept = schedule.checkpoints();
            let pairs = kept.windows(2).enumerate();
            gaps = pairs.map(|(rank, pair)| forward_steps(pair[1].state - pair[0].state, slots - rank)).sum();
        }
        let n = state + 1;
        (n, gaps + forward_steps(n - kept[kept.len() - 1].state, slots + 1 - kept.len()))
    })
}

#[test]
fn an_unknown_length_is_free_while_two_runs_of_each_step_are_enough() {
    for c in 1..=24 {
        for n in 0..(c + 1) * (c + 2) / 2 {
            // State `n` is the last one of a forward pass of `n + 1`, which `slot_for` was not called with.
            assert_eq!(online(n, c).recomputed, recomputed_steps(n + 1, c), "{n} steps, {c} slots");
            let kept = OnlineSchedule::checkpoints_after(n, c);
            let longer = execute(BackwardSchedule::new(&kept, n + 1, c), &kept, n + 1, c, true);
            assert_eq!(longer.recomputed, recomputed_steps(n + 1, c), "{n} steps, {c} slots");
            // The last state is a checkpoint and the working state: its slot may be missing for one step.
            let both = execute(BackwardSchedule::new(&kept, n, c), &kept, n, c, true);
            assert!(both.recomputed <= recomputed_steps(n, c) + 1, "{n} steps, {c} slots");
        }
    }
}

#[test]
fn an_unknown_length_costs_little_beyond_that() {
    // The worst over all lengths to 20,000, as measured and as the documentation says.
    let bound = |c| match c {
        2 => 1.231,
        3..=4 => 1.114,
        5..=8 => 1.083,
        _ => 1.062,
    };
    for c in 2..=40 {
        for (n, steps) in online_costs(20_000, c) {
            let best = recomputed_steps(n + 1, c);
            assert!(steps >= best, "{n} steps, {c} slots: {steps}, and {best} are possible");
            assert!(
                steps as f64 <= best as f64 * bound(c),
                "{n} steps, {c} slots: {steps}, and {best} are possible"
            );
        }
    }
}

#[test]
fn the_backward_pass_is_optimal_in_each_gap() {
    for c in [2, 3, 6, 11, 19] {
        for (n, steps) in online_costs(2_500, c).filter(|(n, _)| n % 97 == 0) {
            assert_eq!(online(n, c).recomputed, steps, "{n} steps, {c} slots");
        }
    }
}

#[test]
fn six_steps_in_two_slots_are_reversed_as_by_hand() {
    // Checkpoints are 0 and 3, the working state is 5; then 3 -> 4, 0 -> 1 (stored) -> 2.
    let checkpoint = |state, slot| Checkpoint { state, slot };
    let kept = FixedLengthSchedule::checkpoints(6, 2);
    assert_eq!(kept, [checkpoint(0, 0), checkpoint(3, 1)]);
    let mut schedule = BackwardSchedule::new(&kept, 6, 2);
    let actions: Vec<_> = std::iter::from_fn(|| schedule.next()).collect();
    let expected = [
        BackwardAction::Reverse { step: 5, slot: None },
        BackwardAction::Load(checkpoint(3, 1)),
        BackwardAction::Advance { from: 3, steps: 1 },
        BackwardAction::Reverse { step: 4, slot: None },
        BackwardAction::Reverse { step: 3, slot: Some(1) },
        BackwardAction::Load(checkpoint(0, 0)),
        BackwardAction::Advance { from: 0, steps: 1 },
        BackwardAction::Store(checkpoint(1, 1)),
        BackwardAction::Advance { from: 1, steps: 1 },
        BackwardAction::Reverse { step: 2, slot: None },
        BackwardAction::Reverse { step: 1, slot: Some(1) },
        BackwardAction::Reverse { step: 0, slot: Some(0) },
    ];
    assert_eq!(actions, expected);
}

proptest! {
    #[test]
    fn any_loop_is_reversed_optimally(n in 0_usize..3_000, c in 1_usize..80) {
        prop_assume!(c > 2 || n < 300);
        prop_assert_eq!(known(n, c).recomputed, recomputed_steps(n, c));
        let kept = FixedLengthSchedule::checkpoints(n + 1, c);
        let schedule = BackwardSchedule::after_overwrite(&kept, n, c);
        let overwritten = execute(schedule, &kept, n, c.max(kept.len()), false);
        prop_assert_eq!(overwritten.recomputed, recomputed_steps(n + 1, c));
        let steps = online_costs(n, c).last().map_or(0, |(_, steps)| steps);
        prop_assert_eq!(online(n, c).recomputed, steps);
    }

    /// From any checkpoints, each gap takes what the formula says for the slots that are free by then.
    #[test]
    fn any_checkpoints_are_reversed_optimally(n in 1_usize..500, free in 0_usize..6, chosen in proptest::collection::btree_set(1_usize..500, 0..12)) {
        let states: Vec<_> = std::iter::once(0).chain(chosen.into_iter().filter(|&state| state < n)).collect();
        let count = states.len();
        // Slots in another order than states.
        let kept: Vec<_> =
            states.into_iter().enumerate().map(|(rank, state)| Checkpoint { state, slot: count - 1 - rank }).collect();
        let slots = (count + free).min(n);
        let ends = kept.iter().skip(1).map(|kept| kept.state).chain([n]);
        let gaps = kept.iter().zip(ends).enumerate();
        let steps: u64 = gaps.map(|(rank, (kept, end))| forward_steps(end - kept.state, slots - rank)).sum();
        let schedule = BackwardSchedule::after_overwrite(&kept, n, slots);
        prop_assert_eq!(execute(schedule, &kept, n, slots, false).recomputed, steps);
    }
}
