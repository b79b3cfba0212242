//! The search against the exact one, on random small graphs.

mod remat_models;

use remat_models::own_order;
use remat_models::random::random_training;
use taut_plan::remat::{ExactOutcome, Frontier, Problem, RematEffort, exact, frontier, peak, verify};

const WORK: u64 = 50_000_000;

/// The frontier without the exact search.
fn searched(problem: &Problem) -> Frontier {
    let effort = RematEffort { work: 3_000_000, exact_values: 0 };
    frontier(problem, &[own_order(problem)], effort, &mut |s| peak(problem, s).bytes).unwrap()
}

/// The least cost of an order within a goal.
fn least(problem: &Problem, order: &[u32], goal: usize) -> Option<u64> {
    match exact(problem, order, goal, WORK) {
        ExactOutcome::Optimal(sequence) => {
            assert!(verify(problem, &sequence).unwrap().bytes <= goal);
            Some(problem.cost(&sequence))
        }
        ExactOutcome::Impossible => None,
        ExactOutcome::Unknown => panic!("the exact search did not end"),
    }
}

/// The steps in the order of their first occurrences.
fn first_occurrences(sequence: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = Vec::new();
    for &step in sequence {
        if !order.contains(&step) {
            order.push(step);
        }
    }
    order
}

/// The smallest goal that some sequence of an order keeps, by bisection over multiples of 64.
fn exact_smallest(problem: &Problem, order: &[u32], low: usize, high: usize) -> usize {
    let (mut low, mut high) = (low / 64, high / 64);
    while low < high {
        let middle = low.midpoint(high);
        if least(problem, order, middle * 64).is_some() { high = middle } else { low = middle + 1 }
    }
    high * 64
}

/// Never better than the exact search, and hardly worse; bounds are below both.
#[test]
fn close_to_the_exact_search() {
    let (mut points, mut optimal, mut sum, mut worst) = (0, 0, 0.0, 1.0f64);
    let (mut equal, mut floor_sum, mut floor_worst) = (0, 0.0, 1.0f64);
    for seed in 0..500 {
        let problem = random_training(seed, 3 + seed as usize % 5);
        let own = own_order(&problem);
        let front = searched(&problem);
        for point in front.points() {
            assert!(verify(&problem, &point.sequence).unwrap().bytes <= point.bytes);
            let same_order = least(&problem, &first_occurrences(&point.sequence), point.bytes).unwrap();
            assert!(same_order <= point.cost, "{seed}: better than the exact search");
            assert!(point.cost_bound <= same_order, "{seed}: {} is no lower bound", point.cost_bound);
            assert!(front.bytes_bound() <= point.bytes);
            let best = least(&problem, &own, point.bytes).unwrap_or(same_order).min(same_order);
            let ratio = point.cost as f64 / best as f64;
            points += 1;
            optimal += usize::from(point.cost == best);
            sum += ratio;
            worst = worst.max(ratio);
        }
        let plain = peak(&problem, &own).bytes;
        let floor = exact_smallest(&problem, &own, front.bytes_bound(), plain);
        let ratio = front.smallest().unwrap().bytes as f64 / floor as f64;
        equal += usize::from(ratio <= 1.0);
        floor_sum += ratio;
        floor_worst = floor_worst.max(ratio);
    }
    let (mean, floor_mean) = (sum / f64::from(points), floor_sum / 500.0);
    println!("{optimal} of {points} optimal, mean {mean:.4}, worst {worst:.3}");
    println!("smallest: {equal} of 500 equal, mean {floor_mean:.4}, worst {floor_worst:.3}");
    assert!(mean <= 1.005 && worst <= 1.25);
    assert!(equal >= 470 && floor_mean <= 1.01);
}

/// Small problems get the exact search itself, which proves the smallest budget.
#[test]
fn small_problems_are_solved_exactly() {
    let mut proven = 0;
    for seed in 0..60 {
        let problem = random_training(seed, 3 + seed as usize % 4);
        let own = own_order(&problem);
        let effort = RematEffort::for_problem(&problem);
        let front =
            frontier(&problem, std::slice::from_ref(&own), effort, &mut |s| peak(&problem, s).bytes).unwrap();
        for point in front.points() {
            let best = least(&problem, &own, point.bytes);
            assert!(best.is_none_or(|best| point.cost <= best), "{seed}");
            assert_eq!(point.cost_bound, point.cost, "{seed}");
        }
        if front.is_smallest_proven() {
            proven += 1;
            let smallest = front.smallest().unwrap().bytes;
            assert_eq!(least(&problem, &own, smallest - 1), None, "{seed}");
        }
    }
    assert!(proven >= 55, "{proven}");
}

#[test]
fn large_problems_are_left_alone() {
    let problem = remat_models::mlp(40, 64, 64);
    let own = own_order(&problem);
    assert_eq!(exact(&problem, &own, usize::MAX / 4, WORK), ExactOutcome::Unknown);
    let small = random_training(1, 5);
    let own = own_order(&small);
    let goal = peak(&small, &own).bytes * 2 / 3;
    assert_eq!(exact(&small, &own, goal, 10), ExactOutcome::Unknown);
}
