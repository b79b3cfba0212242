//! The memory of loops and branches, to the byte. The peak is that of the process: the tests here run one at a time.

use std::sync::Arc;
use taut::memory::testing::ledger_check;
use taut::memory::{live_bytes, peak_bytes, reset_peak};
use taut::{
    Function, GradientTape, Graph, LoopReport, Loops, Result, Tensor, Variable, add, cond, fori_loop,
    function, less, matmul, mul, scan, sin, stop_gradient, sum, switch_case, tanh, while_loop,
};
use taut_testing::{exclusive, values};

/// Elements of a state of 64 bytes, the alignment of checkpoints.
const SMALL: usize = 8;
const STATE: usize = 64;

fn vector(len: usize) -> Tensor {
    let values: Vec<f64> = (0..len).map(|i| ((i * 7 + 3) % 11) as f64 / 11.0 - 0.4).collect();
    Tensor::from_vec(values, [len]).unwrap()
}

fn square(n: usize) -> Tensor {
    let values: Vec<f64> = (0..n * n).map(|i| ((i * 5 + 1) % 13) as f64 / 13.0 - 0.4).collect();
    Tensor::from_vec(values, [n, n]).unwrap()
}

/// The peak of some work beyond the live bytes before it.
fn peak<R>(work: impl FnOnce() -> R) -> (usize, R) {
    let before = live_bytes();
    reset_peak();
    let result = work();
    (peak_bytes() - before, result)
}

/// A step that is computed in place.
fn step(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    sin(mul(x, w)?)
}

/// This many steps, by a loop of fixed length or by a `while`.
fn steps(loops: &Loops, n: i64, known: bool, x: &Tensor, w: &Tensor) -> Result<Tensor> {
    if known {
        return loops.fori_loop(0..n, |_, x| step(&x, w), x.clone());
    }
    let start = (Tensor::scalar(0i64)?, x.clone());
    let (_, x) = loops.while_loop(|(i, _)| less(i, n), |(i, x)| Ok((add(i, 1i64)?, step(&x, w)?)), start)?;
    Ok(x)
}

fn stepping(loops: &Loops, n: i64, known: bool) -> Function<(Tensor, Tensor), Tensor> {
    let loops = loops.clone();
    function(move |(x, w): &(Tensor, Tensor)| steps(&loops, n, known, x, w))
}

#[test]
fn a_loop_of_any_length_holds_its_states() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (vector(SMALL), vector(SMALL));
    for known in [true, false] {
        let mut peaks = Vec::new();
        for n in [10, 1_000, 100_000] {
            let (eager, y) = peak(|| steps(&Loops::new(), n, known, &x, &w).unwrap());
            let f = stepping(&Loops::new(), n, known);
            let plan = f.plan((&x, &w)).unwrap();
            let (traced, z) = peak(|| f.call((&x, &w)).unwrap());
            assert_eq!(values(&y), values(&z));
            assert_eq!(traced, plan.peak_bytes(), "{plan}");
            peaks.push((eager, traced));
        }
        assert_eq!(peaks, [peaks[0]; 3], "{known}");
        // A body in place needs its state alone. The `while` has a counter, the result of the condition, and its operand.
        let (eager, traced) = peaks[0];
        let most = if known { STATE } else { STATE + 4 * 64 };
        assert!(eager <= most && traced <= most, "{known}: {eager} {traced}");
    }
}

#[test]
fn a_body_has_the_memory_of_one_step() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (square(16), square(16));
    let bytes = x.spec().bytes();
    let f = function(|(x, w): &(Tensor, Tensor)| fori_loop(0..100, |_, x| tanh(matmul(x, w)?), x.clone()));
    // A product cannot be computed in place: it needs a second buffer of the size of the state.
    let (eager, y) = peak(|| fori_loop(0..100, |_, y| tanh(matmul(y, &w).unwrap()), x.clone()).unwrap());
    assert!(eager <= 2 * bytes + (64 << 10), "{eager}");
    let plan = f.plan((&x, &w)).unwrap();
    let (traced, z) = peak(|| f.call((&x, &w)).unwrap());
    assert_eq!(traced, plan.peak_bytes());
    assert_eq!(values(&y), values(&z));
    // The loop needs the memory of one step, and its state.
    let one = function(|(x, w): &(Tensor, Tensor)| tanh(matmul(x, w)?));
    assert!(traced <= one.plan((&x, &w)).unwrap().peak_bytes() + bytes, "{traced}");
}

#[test]
fn states_are_updated_in_place() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let f = function(|x: &Tensor| fori_loop(0..50, |_, x| sin(x), x.clone()));
    let x = vector(1000);
    let want = values(&f.call(&x).unwrap());
    f.release();
    assert_eq!(f.plan_donated(&x).unwrap().peak_bytes(), 0, "{}", f.plan_donated(&x).unwrap());
    let address = x.memory();
    let (taken, y) = peak(|| f.call_donated(x).unwrap());
    assert_eq!(taken, 0);
    assert_eq!(y.memory(), address);
    assert_eq!(values(&y), want);

    let v = Variable::new(vector(1000)).unwrap();
    let inside = v.clone();
    let f = function(move |(): &()| {
        inside.assign(fori_loop(0..50, |_, x| sin(x), inside.read())?)?;
        Ok(())
    });
    assert_eq!(f.plan(()).unwrap().peak_bytes(), 0, "{}", f.plan(()).unwrap());
    let address = v.address();
    let (taken, ()) = peak(|| f.call(()).unwrap());
    assert_eq!((taken, v.address()), (0, address));
    assert_eq!(values(&v.read()), want);
}

#[test]
fn an_eager_loop_overwrites_states_that_are_not_shared() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let x = vector(1000);
    let address = x.memory();
    let (taken, y) = peak(|| fori_loop(0..50, |_, x| sin(x), x).unwrap());
    assert_eq!((taken, y.memory()), (0, address));
}

/// `C(n, k)`.
fn choose(n: u128, k: u128) -> u128 {
    (1..=k).fold(1, |product, i| product * (n - k + i) / i)
}

/// The fewest steps that have to be recomputed to reverse `n` steps with `c` slots, if the last state is available.
fn least(n: u64, c: u64) -> u64 {
    if n <= 1 {
        return 0;
    }
    let (n, c) = (u128::from(n), u128::from(c));
    // With as many repetitions as steps, one slot is enough.
    let r = (1..=n).find(|&r| choose(c + r, c) >= n).unwrap();
    u64::try_from(r * n - choose(c + r, r - 1) - (n - 1)).unwrap()
}

#[test]
fn the_formula_is_that_of_revolve() {
    let _ledger = ledger_check();
    // From the literature: forward steps per reversed step.
    for (n, c, ratio) in [(1_000, 10, 3.64), (1_000, 20, 2.75), (1_000, 50, 1.95), (100_000, 20, 5.34)] {
        let forward = least(n, c) + n - 1;
        assert!((forward as f64 / n as f64 - ratio).abs() < 0.005, "{n} {c}: {forward}");
    }
}

/// The gradients of the sum of a loop's result for `x` and `w`, and the peak.
fn gradients(x: &Tensor, w: &Tensor, run: &dyn Fn() -> Result<Tensor>) -> (usize, [Vec<f64>; 2]) {
    let (taken, found) = peak(|| {
        let tape = GradientTape::new();
        tape.watch(&[x, w]);
        let y = sum(run().unwrap(), None, false).unwrap();
        tape.gradient(&y, &[x, w]).unwrap().map(|g| g.unwrap().dense().unwrap())
    });
    (taken, found.map(|g| values(&g)))
}

#[test]
fn one_budget_is_one_peak_for_any_length() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (vector(SMALL), vector(SMALL));
    let slots = 20;
    for known in [true, false] {
        // The counter of the `while` is a state as well.
        let budget = slots * if known { STATE } else { 2 * STATE };
        let mut peaks = Vec::new();
        for n in [100, 1_000, 10_000, 100_000u64] {
            let report = Arc::new(LoopReport::new());
            let loops = Loops::new().grad_budget(budget).report(&report);
            let eager = gradients(&x, &w, &|| steps(&loops, n as i64, known, &x, &w));
            let check = || {
                assert_eq!(report.slots(), slots as u64, "{report}");
                assert_eq!(report.steps(), n, "{report}");
                assert!(report.bytes() <= budget as u64);
                let least = least(if known { n } else { n + 1 }, slots as u64);
                assert_eq!(report.predicted(), least, "{report}");
                // An online schedule is optimal as long as two runs of each step are enough.
                let best = known || n < (slots as u64 + 1) * (slots as u64 + 2) / 2;
                let bound = if best { least as f64 } else { 1.062 * least as f64 };
                assert!(report.recomputed() as f64 <= bound, "{known} {report}");
                assert!(report.recomputed() >= least, "{report}");
            };
            check();
            let f = stepping(&loops, n as i64, known);
            let (forward, backward) = f.plan_gradient((&x, &w)).unwrap();
            let around = gradients(&x, &w, &|| f.call((&x, &w)));
            check();
            let inside = {
                let loops = loops.clone();
                function(move |(x, w): &(Tensor, Tensor)| {
                    let tape = GradientTape::new();
                    tape.watch(&[x, w]);
                    let y = sum(steps(&loops, n as i64, known, x, w)?, None, false)?;
                    let [gx, gw] = tape.gradient(&y, &[x, w])?;
                    Ok((gx.unwrap().dense()?, gw.unwrap().dense()?))
                })
            };
            let planned = inside.plan((&x, &w)).unwrap().peak_bytes();
            let (taken, (gx, gw)) = peak(|| inside.call((&x, &w)).unwrap());
            check();
            assert_eq!(taken, planned);
            // A loop without a budget saves every step, for any limit.
            let limited = Loops::new().maximum_iterations(n as usize + 3);
            let limited = gradients(&x, &w, &|| steps(&limited, n as i64, known, &x, &w));
            let all = gradients(&x, &w, &|| steps(&Loops::new(), n as i64, known, &x, &w));
            assert_eq!(all.1, limited.1, "{known} {n}");
            assert_eq!(all.1, eager.1, "{known} {n}");
            assert_eq!(all.1, around.1, "{known} {n}");
            assert_eq!(all.1, [values(&gx), values(&gw)], "{known} {n}");
            peaks.push([eager.0, taken, forward.peak_bytes(), backward.peak_bytes(), around.0]);
        }
        assert_eq!(peaks, [peaks[0]; 4], "{known}");
        // The budget, the gradients and the memory of a step.
        assert!(peaks[0].iter().all(|&taken| taken <= budget + 16 * STATE), "{known} {:?}", peaks[0]);
    }
}

#[test]
fn a_function_under_a_tape_uses_its_budget_once() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (vector(SMALL), vector(SMALL));
    let budget = 20 * STATE;
    let f = stepping(&Loops::new().grad_budget(budget), 1_000, true);
    let (taken, _) = gradients(&x, &w, &|| f.call((&x, &w)));
    assert!(taken <= budget + 16 * STATE, "{taken}");
}

/// A scan whose stacked results are differentiated like its last state.
fn scanned(loops: &Loops, rows: &Tensor, w: &Tensor) -> Result<Tensor> {
    let body = |s: Tensor, x: Tensor| {
        let s = sin(add(mul(s, w)?, x)?)?;
        Ok((s.clone(), (sum(&s, None, false)?, mul(&s, &s)?)))
    };
    let (last, (sums, squares)) = loops.scan(body, w.clone(), rows.clone())?;
    add(sum(last, None, false)?, add(sum(mul(&sums, &sums)?, None, false)?, sum(squares, None, false)?)?)
}

#[test]
fn a_scan_under_a_budget_keeps_as_many_states_as_fit() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (rows, w) =
        (Tensor::from_vec(values(&square(40))[..800].to_vec(), [100, SMALL]).unwrap(), vector(SMALL));
    let all = gradients(&rows, &w, &|| scanned(&Loops::new(), &rows, &w)).1;
    for slots in [1, 2, 3, 7, 20] {
        let report = Arc::new(LoopReport::new());
        let loops = Loops::new().grad_budget(slots * STATE).report(&report);
        let eager = gradients(&rows, &w, &|| scanned(&loops, &rows, &w)).1;
        let again = (report.slots(), report.recomputed());
        assert_eq!(again, (slots as u64, least(100, slots as u64)), "{report}");
        let own = loops.clone();
        let f = function(move |(rows, w): &(Tensor, Tensor)| scanned(&own, rows, w)).verify(true);
        let traced = gradients(&rows, &w, &|| f.call((&rows, &w))).1;
        assert_eq!((report.slots(), report.recomputed()), again);
        for found in [eager, traced] {
            let pairs = all.iter().flatten().zip(found.iter().flatten());
            for (a, b) in pairs {
                assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{slots}: {a} {b}");
            }
        }
    }
}

#[test]
fn nested_loops_share_a_budget() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (vector(SMALL), vector(SMALL));
    let run = |loops: &Loops, n: i64, inner: [&Loops; 2]| {
        loops.fori_loop(
            0..n,
            |_, x| {
                let x = inner[0].fori_loop(0..n, |_, x| step(&x, &w), x)?;
                inner[1].fori_loop(0..n, |_, x| sin(add(x, &w)?), x)
            },
            x.clone(),
        )
    };
    let budget = 30 * STATE;
    let mut peaks = Vec::new();
    for n in [20, 40, 80] {
        let reports: Vec<Arc<LoopReport>> = (0..3).map(|_| Arc::new(LoopReport::new())).collect();
        let outer = Loops::new().grad_budget(budget).report(&reports[0]);
        let inner = [1, 2].map(|i| Loops::new().report(&reports[i]));
        let (taken, found) = gradients(&x, &w, &|| run(&outer, n, [&inner[0], &inner[1]]));
        let plain = Loops::new();
        assert_eq!(gradients(&x, &w, &|| run(&plain, n, [&plain, &plain])).1, found, "{n}");
        // A third each.
        for report in &reports {
            assert_eq!((report.slots(), report.steps()), (10, n as u64), "{report}");
            assert_eq!(report.recomputed(), least(n as u64, 10), "{report}");
        }
        peaks.push(taken);
    }
    assert_eq!(peaks, [peaks[0]; 3]);
    assert!(peaks[0] <= budget + 32 * STATE, "{}", peaks[0]);
}

#[test]
fn budgets_of_all_sizes_hold() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (vector(SMALL), vector(SMALL));
    let n = 60u64;
    let all = gradients(&x, &w, &|| steps(&Loops::new(), n as i64, true, &x, &w)).1;
    let mut before = u64::MAX;
    let mut base = None;
    for slots in 1..=64u64 {
        let report = Arc::new(LoopReport::new());
        let loops = Loops::new().grad_budget(slots as usize * STATE).report(&report);
        let (taken, found) = gradients(&x, &w, &|| steps(&loops, n as i64, true, &x, &w));
        assert_eq!(all, found, "{slots}");
        let want = if slots >= n { 0 } else { least(n, slots) };
        assert_eq!((report.recomputed(), report.predicted()), (want, want), "{slots}: {report}");
        assert!(report.recomputed() <= before);
        before = report.recomputed();
        // Each slot adds exactly its bytes to the peak.
        if slots < n {
            let beside = taken - slots as usize * STATE;
            assert_eq!(*base.get_or_insert(beside), beside, "{slots}");
        }
    }
}

#[test]
fn a_power_loop_saves_one_state_per_step() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (square(16), square(16));
    let bytes = x.spec().bytes();
    for n in [1, 10, 100] {
        for traced in [false, true] {
            let f =
                function(move |(x, w): &(Tensor, Tensor)| fori_loop(0..n, |_, x| matmul(x, w), x.clone()));
            let tape = GradientTape::new();
            tape.watch(&[&x, &w]);
            let y = if traced {
                f.call((&x, &w)).unwrap()
            } else {
                fori_loop(0..n, |_, x| matmul(x, &w), x.clone()).unwrap()
            };
            // A state per step, and `w` once.
            assert_eq!(tape.bytes_held(), (n as usize + 1) * bytes, "{n} {traced}");
            let g = tape.gradient(&y, &[&x, &w]).unwrap();
            drop((y, g));
        }
    }
}

#[test]
fn captures_are_saved_once() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w, b) = (vector(1000), vector(1000), vector(1000));
    let bytes = x.spec().bytes();
    let held = |watched: &[&Tensor]| {
        let tape = GradientTape::new();
        tape.watch(watched);
        let y = fori_loop(0..100, |_, x| add(mul(x, &w)?, &b), x.clone()).unwrap();
        let held = tape.bytes_held();
        drop(y);
        held
    };
    // The gradients of `x` and `b` need `w`, for any number of steps.
    assert_eq!(held(&[&x]), bytes);
    assert_eq!(held(&[&b]), bytes);
    assert_eq!(held(&[&x, &b]), bytes);
    // The gradient of `w` needs every state.
    assert_eq!(held(&[&w]), 101 * bytes);
}

#[test]
fn untracked_loops_save_nothing() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (vector(1000), vector(1000));
    let other = vector(3);
    let tape = GradientTape::new();
    tape.watch(&other);
    for known in [true, false] {
        let y = steps(&Loops::new(), 100, known, &x, &w).unwrap();
        let f = stepping(&Loops::new(), 100, known);
        let z = f.call((&x, &w)).unwrap();
        drop((y, z));
        assert_eq!((tape.bytes_held(), tape.num_entries()), (0, 0));
    }
    drop(tape);
    let tape = GradientTape::new();
    tape.watch(&x);
    for known in [true, false] {
        let y = steps(&Loops::new(), 100, known, &stop_gradient(&x).unwrap(), &w).unwrap();
        drop(y);
        assert_eq!(tape.bytes_held(), 0);
    }
    // Nor if no gradient flows through the body.
    let body = |_, y: Tensor| add(mul(stop_gradient(y)?, 0.5)?, stop_gradient(&x)?);
    let (taken, y) = peak(|| fori_loop(0..100, body, x.clone()).unwrap());
    assert_eq!(tape.bytes_held(), 0);
    assert!(taken <= 2 * x.spec().bytes(), "{taken}");
    let g = tape.gradient(&y, &x).unwrap().map(|g| values(&g.dense().unwrap()));
    assert!(g.is_none_or(|g| g == [0.0; 1000]));
}

#[test]
fn a_scan_saves_what_its_gradient_needs() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (rows, state, w) = (square(32), vector(32), vector(32));
    let row = state.spec().bytes();
    let tape = GradientTape::new();
    tape.watch(&w);
    let body = |s: Tensor, x: Tensor| {
        let s = tanh(add(mul(s, &w)?, x)?)?;
        Ok((s.clone(), s))
    };
    let (last, all) = scan(body, state.clone(), rows.clone()).unwrap();
    // For tanh the result, which is a returned stack; for the product the state before it, and `w`.
    assert!(tape.bytes_held() <= (32 + 32 + 1) * row, "{}", tape.bytes_held());
    drop((last, all));
}

/// The bodies of the loops and branches of a graph, nested ones included.
fn subgraphs_of(graph: &Graph) -> Vec<(String, Graph)> {
    let mut found = Vec::new();
    for node in &graph.nodes {
        for (name, body) in node.op.subgraphs().map_or_else(Vec::new, |held| held.graphs()) {
            found.push((format!("{} {name}", node.op.name()), body.clone()));
            found.extend(subgraphs_of(body));
        }
    }
    found
}

fn count(graph: &Graph, op: &str) -> usize {
    graph.nodes.iter().filter(|node| node.op.name() == op).count()
}

#[test]
fn loop_invariants_are_computed_once() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (vector(10), vector(10));
    let f = function(|(x, w): &(Tensor, Tensor)| {
        fori_loop(
            0..5,
            |_, x: Tensor| {
                fori_loop(0..5, |_, y: Tensor| add(mul(y, tanh(mul(w, 2.0)?)?)?, sin(&x)?), x.clone())
            },
            x.clone(),
        )
    });
    let graph = f.graph((&x, &w)).unwrap();
    assert_eq!((count(&graph, "tanh"), count(&graph, "sin")), (1, 0), "{graph}");
    let inside = subgraphs_of(&graph);
    assert_eq!(inside.len(), 2, "{graph}");
    assert_eq!((count(&inside[0].1, "tanh"), count(&inside[0].1, "sin")), (0, 1), "{graph}");
    assert_eq!((count(&inside[1].1, "tanh"), count(&inside[1].1, "sin")), (0, 0), "{graph}");
    assert_eq!(inside[1].1.nodes.len(), 2, "{graph}");
    let by_hand = || -> Result<Tensor> {
        let mut x = x.clone();
        for _ in 0..5 {
            let mut y = x.clone();
            for _ in 0..5 {
                y = add(mul(y, tanh(mul(&w, 2.0)?)?)?, sin(&x)?)?;
            }
            x = y;
        }
        Ok(x)
    };
    assert_eq!(values(&f.call((&x, &w)).unwrap()), values(&by_hand().unwrap()));
}

#[test]
fn unused_states_are_removed() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let (x, w) = (vector(100), square(64));
    let alone = function(|(x, _): &(Tensor, Tensor)| fori_loop(0..9, |_, x| sin(x), x.clone()));
    let both = function(|(x, w): &(Tensor, Tensor)| {
        let (x, _, _) = fori_loop(
            0..9,
            |i, (x, m, n): (Tensor, Tensor, Tensor)| Ok((sin(x)?, matmul(m, w)?, add(n, i)?)),
            (x.clone(), w.clone(), Tensor::scalar(0i64)?),
        )?;
        Ok(x)
    });
    let (one, other) = (alone.plan((&x, &w)).unwrap(), both.plan((&x, &w)).unwrap());
    assert_eq!(one.peak_bytes(), other.peak_bytes(), "{other}");
    assert_eq!(one.arena_bytes(), other.arena_bytes(), "{other}");
    assert_eq!(values(&alone.call((&x, &w)).unwrap()), values(&both.call((&x, &w)).unwrap()));
    // States that the condition reads stay, and those that a used state depends on.
    let needed = function(|x: &Tensor| {
        let start = (Tensor::scalar(0i64)?, x.clone(), x.clone());
        let body = |(i, x, y): (Tensor, Tensor, Tensor)| Ok((add(i, 1i64)?, add(x, &y)?, sin(y)?));
        let (_, x, _) = while_loop(|(i, _, _)| less(i, 3i64), body, start)?;
        Ok(x)
    });
    let want: Vec<f64> = values(&x).iter().map(|x| x + x + x.sin() + x.sin().sin()).collect();
    let got = values(&needed.call(&x).unwrap());
    assert!(want.iter().zip(&got).all(|(w, g)| (w - g).abs() < 1e-14), "{want:?} {got:?}");
}

fn narrow(x: &Tensor) -> Result<Tensor> {
    sum(matmul(x, tanh(matmul(x, x)?)?)?, None, false)
}

fn wide(x: &Tensor) -> Result<Tensor> {
    let rows = taut::concat(&[x.clone(), x.clone(), x.clone(), x.clone()], 0)?;
    sum(tanh(matmul(matmul(rows, x)?, x)?)?, None, false)
}

#[test]
fn a_branch_op_needs_the_memory_of_its_largest_branch() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let x = square(32);
    let alone = [function(narrow), function(wide)].map(|f| f.plan(&x).unwrap().arena_bytes());
    assert!(alone[0] > 0 && alone[1] > alone[0]);
    let both = function(|(x, flag): &(Tensor, Tensor)| cond(flag, || narrow(x), || wide(x)));
    let yes = Tensor::scalar(true).unwrap();
    let plan = both.plan((&x, &yes)).unwrap();
    assert_eq!(plan.arena_bytes().next_multiple_of(64), alone[1].next_multiple_of(64), "{plan}");
    let twice = function(|(x, flag): &(Tensor, Tensor)| {
        add(cond(flag, || narrow(x), || wide(x))?, cond(flag, || wide(x), || narrow(x))?)
    });
    assert!(twice.plan((&x, &yes)).unwrap().arena_bytes() <= alone[1] + 4 * 64);
    let many = function(|(x, n): &(Tensor, Tensor)| {
        switch_case(
            n,
            vec![Box::new(|| narrow(x)), Box::new(|| wide(x)), Box::new(|| narrow(x)), Box::new(|| wide(x))],
        )
    });
    let number = Tensor::scalar(1i64).unwrap();
    assert_eq!(many.plan((&x, &number)).unwrap().arena_bytes(), plan.arena_bytes());
    for flag in [true, false] {
        let flag = Tensor::scalar(flag).unwrap();
        let (taken, y) = peak(|| both.call((&x, &flag)).unwrap());
        assert_eq!(taken, plan.peak_bytes());
        both.release();
        drop(y);
    }
}

fn deep(x: &Tensor) -> Result<Tensor> {
    tanh(matmul(tanh(matmul(tanh(matmul(x, x)?)?, x)?)?, x)?)
}

#[test]
fn the_gradient_of_a_branch_op_needs_the_memory_of_its_largest_branch() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let x = square(32);
    let bytes = x.spec().bytes();
    let held = |run: &dyn Fn() -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = run().unwrap();
        let held = tape.bytes_held();
        drop(y);
        held
    };
    let alone = function(deep);
    let alone = held(&|| alone.call(&x));
    assert!(alone >= 3 * bytes, "{alone}");
    let choice =
        function(|(x, flag): &(Tensor, Tensor)| cond(flag, || deep(x), || mul(deep(&mul(x, 0.5)?)?, x)));
    for flag in [true, false] {
        let flag = Tensor::scalar(flag).unwrap();
        // The other branch saves two more values, its scaled input and a factor; and the condition is saved.
        let held = held(&|| choice.call((&x, &flag)));
        assert!(held <= alone + 2 * bytes + 64, "{held} {alone}");
    }
}
