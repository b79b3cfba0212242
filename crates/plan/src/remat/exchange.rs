//! Exchanges neighbouring steps of an order where that lowers the peak of the two.

use super::problem::Problem;

/// An order settles after a few sweeps; this ends the rare one that does not.
const SWEEPS: usize = 60;

/// The order after exchanging neighbours that are independent of each other, as long as the pair then peaks lower: the
/// gradient of a filter before that of the input, an update before the next gradient.
pub(super) fn exchange(problem: &Problem, order: &[u32], work: &mut u64) -> Vec<u32> {
    let mut order = order.to_vec();
    let mut reads = vec![0u32; problem.values.len()];
    order.iter().flat_map(|&step| &problem.steps[step as usize].reads).for_each(|&v| reads[v as usize] += 1);
    for _ in 0..SWEEPS {
        *work += order.len() as u64 * 8;
        if !sweep(problem, &mut order, reads.clone()) {
            break;
        }
    }
    order
}

/// One sweep over all neighbours; `left` counts the reads of each value that are still to come.
fn sweep(problem: &Problem, order: &mut [u32], mut left: Vec<u32>) -> bool {
    let mut changed = false;
    for i in 0..order.len() {
        if i + 1 < order.len() {
            let (a, b) = (order[i], order[i + 1]);
            if are_independent(problem, a, b)
                && pair_peak(problem, &left, b, a) < pair_peak(problem, &left, a, b)
            {
                order.swap(i, i + 1);
                changed = true;
            }
        }
        for &v in &problem.steps[order[i] as usize].reads {
            left[v as usize] -= 1;
        }
    }
    changed
}

/// Whether two neighbours may change places.
fn are_independent(problem: &Problem, a: u32, b: u32) -> bool {
    let (first, second) = (&problem.steps[a as usize], &problem.steps[b as usize]);
    !second.reads.iter().any(|v| first.writes.contains(v)) && problem.before.binary_search(&(a, b)).is_err()
}

/// The bytes that running `a` and then `b` adds at most, and those that are left after `a`.
fn pair_peak(problem: &Problem, left: &[u32], a: u32, b: u32) -> (i64, i64) {
    let second_reads = &problem.steps[a as usize].reads;
    let is_last = |v: u32| left[v as usize] == 1;
    let is_last_for_second = |v: u32| left[v as usize] - u32::from(second_reads.contains(&v)) == 1;
    let first = added(problem, a, is_last);
    let freed: i64 = second_reads.iter().filter(|&&v| is_last(v)).map(|&v| problem.bytes[v as usize]).sum();
    let after = written(problem, a) - freed;
    (first.max(after + added(problem, b, is_last_for_second)), after)
}

fn written(problem: &Problem, step: u32) -> i64 {
    problem.steps[step as usize].writes.iter().map(|&v| problem.bytes[v as usize]).sum()
}

/// The bytes that a step adds while it runs, if these of its operands die.
fn added(problem: &Problem, step: u32, dies: impl Fn(u32) -> bool) -> i64 {
    let pairs = problem.aliases(step as usize, dies);
    let over: i64 = pairs.iter().map(|pair| problem.bytes[pair.1 as usize]).sum();
    written(problem, step) + problem.steps[step as usize].scratch as i64 - over
}
