//! The candidate orders compared with the best of all orders, on graphs small enough to try them all.

use super::{Dependencies, candidates, repair};
use crate::PlanRequest;
use crate::lower::LoweredGraph;
use crate::placement::Placement;
use taut_core::ops::binary::add;
use taut_core::ops::contract::matmul;
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::{broadcast_to, concat, slice};
use taut_core::ops::unary::relu;
use taut_core::{DType, Graph, Index, Result, Spec, Tensor, trace};
use taut_memory::Location;
use taut_memory::testing::ledger_check;

/// Pseudo-random numbers, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// A random graph of values of shape [n, 16]: some ops make larger values, some smaller ones, some keep the size.
fn random(numbers: &mut Numbers, steps: usize) -> Graph {
    let specs = [Spec::new(DType::F32, [8, 16]), Spec::new(DType::F32, [16, 16])];
    let made = trace(&specs, |inputs| {
        let mut values: Vec<Tensor> = vec![inputs[0].clone()];
        for _ in 0..steps {
            let near = values.len().saturating_sub(4);
            let mut any = || values[near + numbers.below(values.len() - near)].clone();
            let (a, b) = (any(), any());
            let value: Result<Tensor> = match numbers.below(6) {
                0 => relu(a),
                1 => matmul(a, &inputs[1]),
                2 => concat(&[a, b], 0),
                3 => sum(a, 0, true),
                4 => slice(matmul(a, &inputs[1])?, &[Index::from(..1)]),
                _ => {
                    let rows = a.shape()[0].max(b.shape()[0]);
                    let fits = |t: &Tensor| t.shape()[0] == 1 || t.shape()[0] == rows;
                    if fits(&a) && fits(&b) { add(a, b) } else { broadcast_to(sum(a, 0, true)?, [rows, 16]) }
                }
            };
            values.push(value?);
        }
        let last = values.iter().skip(1).map(|value| sum(value, None, false)).collect::<Result<Vec<_>>>()?;
        Ok(last)
    });
    made.unwrap().graph
}

/// The fewest bytes of any order.
fn fewest(
    lowered: &LoweredGraph<'_>,
    dependencies: &Dependencies,
    order: &mut Vec<u32>,
    done: &mut [bool],
    left: &mut u64,
) -> usize {
    if order.len() == done.len() {
        *left = left.saturating_sub(1);
        return Placement::new(lowered, order).bytes();
    }
    let mut best = usize::MAX;
    for step in 0..done.len() as u32 {
        let is_ready = dependencies.predecessors.of(step).iter().all(|&before| done[before as usize]);
        if *left > 0 && !done[step as usize] && is_ready {
            done[step as usize] = true;
            order.push(step);
            best = best.min(fewest(lowered, dependencies, order, done, left));
            order.pop();
            done[step as usize] = false;
        }
    }
    best
}

#[test]
fn the_best_of_these_orders_is_nearly_the_best_of_all() {
    let _ledger = ledger_check();
    let mut numbers = Numbers(7);
    let (mut graphs, mut hits) = (0, 0);
    let (mut graph_order, mut found, mut least) = (0, 0, 0);
    while graphs < 200 {
        let steps = 3 + numbers.below(3);
        let graph = random(&mut numbers, steps);
        let lowered = LoweredGraph::new(&graph, &PlanRequest::default(), Location::caller()).unwrap();
        let dependencies = Dependencies::new(&lowered);
        let mut left = 1000;
        let best = fewest(
            &lowered,
            &dependencies,
            &mut Vec::new(),
            &mut vec![false; lowered.steps.len()],
            &mut left,
        );
        if left == 0 {
            continue; // too many to try
        }
        let tried: Vec<(Vec<u32>, Placement)> = (candidates(&dependencies, false).into_iter())
            .map(|order| (order.clone(), Placement::new(&lowered, &order)))
            .collect();
        let here = tried.iter().map(|(_, placement)| placement.bytes()).min().unwrap();
        let here = repair(&lowered, &dependencies, &tried).map_or(here, |(_, placement)| placement.bytes());
        assert!(best <= here);
        graphs += 1;
        hits += usize::from(here == best);
        graph_order += tried[0].1.bytes();
        found += here;
        least += best;
    }
    assert!(hits * 100 >= graphs * 95, "the best order of {hits} of {graphs}");
    assert!(
        found * 100 <= least * 101 && found < graph_order,
        "{graph_order} in graph order, {found} found, {least} possible"
    );
}
