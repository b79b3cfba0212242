//! What must hold for every frontier: monotone, deterministic, packed, within the work allowed.

mod remat_models;

use remat_models::random::{Random, random_donated, random_training};
use remat_models::{Builder, chain, mlp, own_order, resnet, transformer};
use taut_plan::remat::{Frontier, Problem, RematEffort, SequenceFlaw, frontier, peak, verify};

fn frontier_of(problem: &Problem) -> Frontier {
    let effort = RematEffort::for_problem(problem);
    frontier(problem, &[own_order(problem)], effort, &mut |s| peak(problem, s).bytes).unwrap()
}

/// Every sequence verifies, and with a larger budget, neither does the cost rise nor do the bytes fall.
fn check(problem: &Problem, front: &Frontier) {
    for point in front.points() {
        assert!(verify(problem, &point.sequence).unwrap().bytes <= point.bytes);
        assert_eq!(problem.cost(&point.sequence), point.cost);
        assert!(point.cost_bound <= point.cost && front.bytes_bound() <= point.bytes);
    }
    for pair in front.points().windows(2) {
        assert!(pair[0].bytes < pair[1].bytes && pair[0].cost > pair[1].cost);
    }
    let plain = peak(problem, &own_order(problem)).bytes;
    let mut last: Option<(usize, u64)> = None;
    for budget in (0..=200).map(|i| plain * i / 180) {
        let Some(point) = front.at(budget) else {
            assert!(last.is_none());
            continue;
        };
        assert!(point.bytes <= budget);
        assert!(last.is_none_or(|(bytes, cost)| point.bytes >= bytes && point.cost <= cost));
        last = Some((point.bytes, point.cost));
    }
    let all = problem.steps().iter().map(|step| step.cost).sum::<u64>();
    assert_eq!(last.map(|(_, cost)| cost), Some(all), "the plain peak needs no repetition");
    let smallest = front.smallest().unwrap().bytes;
    assert!(front.at(smallest).is_some() && front.at(smallest - 1).is_none());
}

#[test]
fn frontiers_are_monotone() {
    for problem in [mlp(12, 256, 64), transformer(2, 128, 64, 32), resnet(1, 8), chain(40)] {
        check(&problem, &frontier_of(&problem));
    }
    for seed in 1000..1040 {
        let problem = random_training(seed, 2 + seed as usize % 12);
        check(&problem, &frontier_of(&problem));
        let problem = random_donated(seed, 2 + seed as usize % 12);
        check(&problem, &frontier_of(&problem));
    }
}

/// A value made from a variable cannot be rematerialised after the variable's update.
#[test]
fn deadlines_are_kept() {
    for is_updated in [false, true] {
        let mut b = Builder::default();
        let variable = b.external();
        let v = b.step(&[variable], &[100], 10.0)[0];
        let w = b.step(&[v], &[10], 10.0)[0];
        if is_updated {
            b.update(variable, w);
        }
        let x = b.step(&[w], &[10], 10.0)[0];
        b.steps.last_mut().unwrap().scratch = 150;
        b.result(&[v, x], 0, 10.0);
        let problem = b.finish();
        for exact_values in [0, 24] {
            let effort = RematEffort { work: 1_000_000, exact_values };
            let front = frontier(&problem, &[], effort, &mut |s| peak(&problem, s).bytes).unwrap();
            let smallest = front.smallest().unwrap();
            assert_eq!(smallest.bytes, if is_updated { 270 } else { 170 });
            // Four steps and a repetition, or five steps.
            assert_eq!(smallest.sequence.len(), 5);
            verify(&problem, &smallest.sequence).unwrap();
        }
    }
}

#[test]
fn frontiers_are_deterministic() {
    let problem = transformer(3, 128, 64, 32);
    let front = frontier_of(&problem);
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..8).map(|_| scope.spawn(|| frontier_of(&problem))).collect();
        for other in others {
            assert_eq!(other.join().unwrap(), front);
        }
    });
}

/// A packing that exceeds the live bytes is counted as packed, and goals are solved again with fewer bytes.
#[test]
fn packed_bytes_decide() {
    let problem = mlp(12, 256, 64);
    let own = own_order(&problem);
    let mut calls = 0;
    let loose = |sequence: &[u32]| {
        let bytes = peak(&problem, sequence).bytes;
        // Some sequences pack badly, always the same ones.
        if sequence.len().is_multiple_of(3) { bytes + bytes / 16 } else { bytes }
    };
    let mut pack = |sequence: &[u32]| {
        calls += 1;
        loose(sequence)
    };
    let effort = RematEffort::for_problem(&problem);
    let front = frontier(&problem, std::slice::from_ref(&own), effort, &mut pack).unwrap();
    for point in front.points() {
        assert_eq!(point.bytes, loose(&point.sequence));
    }
    assert!(front.points().len() > 8);
    // Goals that lead to the same sequence pack it once.
    assert!((8..=3 * 36 + 40).contains(&calls), "{calls}");
    // Without a packing, only the plain order is left.
    let plain_only = &mut |s: &[u32]| if s.len() > own.len() { usize::MAX } else { peak(&problem, s).bytes };
    let front = frontier(&problem, std::slice::from_ref(&own), effort, plain_only).unwrap();
    assert!(front.points().iter().all(|point| point.sequence.len() == own.len()));
}

#[test]
fn orders_are_checked() {
    let problem = mlp(3, 8, 8);
    let effort = RematEffort::for_problem(&problem);
    let mut pack = |_: &[u32]| 0;
    let mut order = own_order(&problem);
    order.swap(0, 1);
    let flaw = frontier(&problem, &[order], effort, &mut pack).unwrap_err();
    assert!(matches!(flaw, SequenceFlaw::ReadTooEarly { step: 1, at: 0, .. }));
    let mut order = own_order(&problem);
    order.insert(1, 0);
    let flaw = frontier(&problem, &[order], effort, &mut pack).unwrap_err();
    assert_eq!(flaw, SequenceFlaw::Repeated { step: 0, at: 1 });
    // Without orders, steps run in the order of their numbers.
    assert!(frontier(&problem, &[], effort, &mut |s| peak(&problem, s).bytes).is_ok());
}

#[test]
fn nothing_to_do() {
    let problem = Problem::new(Vec::new(), Vec::new(), Vec::new()).unwrap();
    let front = frontier_of(&problem);
    assert_eq!((front.points().len(), front.at(0).map(|point| point.cost)), (1, Some(0)));
}

/// Other topological orders of the same problem give other frontiers, which hold as well.
#[test]
fn any_topological_order_will_do() {
    for seed in 0..20 {
        let problem = random_training(seed, 10);
        let mut random = Random::new(seed + 77);
        let mut order = own_order(&problem);
        for _ in 0..200 {
            let i = random.below(order.len() - 1);
            order.swap(i, i + 1);
            if verify(&problem, &order).is_err() {
                order.swap(i, i + 1);
            }
        }
        let effort = RematEffort { work: 2_000_000, exact_values: 0 };
        let orders = [order, own_order(&problem)];
        let front = frontier(&problem, &orders, effort, &mut |s| peak(&problem, s).bytes).unwrap();
        assert!(front.points().iter().all(|point| verify(&problem, &point.sequence).is_ok()));
    }
}

/// Added time at a share of the plain peak, against the lower bound.
fn added(problem: &Problem, front: &Frontier, share: f64) -> (f64, f64) {
    let own = own_order(problem);
    let (plain, cost) = (peak(problem, &own).bytes as f64, problem.cost(&own) as f64);
    let point = front.at((plain * share) as usize).unwrap();
    (point.cost as f64 / cost - 1.0, point.cost_bound as f64 / cost - 1.0)
}

/// Graphs of the size of real training steps, within a fixed count of work.
#[test]
fn training_steps_keep_the_work_allowed() {
    let cases = [
        ("mlp of 450 steps", mlp(90, 4096, 1024), [(0.7, 0.12), (0.5, 0.18), (0.3, 0.25)]),
        (
            "transformer of 450 steps",
            transformer(16, 2048, 256, 256),
            [(0.7, 0.05), (0.5, 0.11), (0.3, 0.19)],
        ),
        ("resnet of 1000 steps", resnet(18, 128), [(0.7, 0.04), (0.5, 0.075), (0.3, 0.15)]),
        (
            "transformer of 2500 steps",
            transformer(90, 2048, 256, 256),
            [(0.7, 0.07), (0.5, 0.13), (0.3, 0.19)],
        ),
    ];
    for (name, problem, limits) in cases {
        let effort = RematEffort::for_problem(&problem);
        let front = frontier_of(&problem);
        check(&problem, &front);
        assert!(front.work() <= effort.work * 5 / 4, "{name}: {} of {}", front.work(), effort.work);
        for (share, most) in limits {
            let (cost, bound) = added(&problem, &front, share);
            assert!(cost <= most, "{name}: {cost:.3} at {share}");
            assert!(cost - bound <= 0.03, "{name}: {cost:.3} at {share}, at least {bound:.3}");
        }
    }
}
