//! The tape: what it records, what it saves, and the gradients it computes.

use std::collections::BTreeMap;
use std::sync::mpsc;
use taut_autodiff::{
    DenseGradient, GradientRequest, GradientTape, NoGradientReason, TapeOptions, Unconnected, Variable,
};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::{ones, zeros};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::{identity, reshape, stop_gradient};
use taut_core::ops::unary::{cast, relu};
use taut_core::{DType, ErrorKind, Gradient, Result, Tensor};
use taut_memory::testing::{fail_nth, ledger_check};
use taut_memory::thread_live_bytes;
use taut_testing::{scalar, vector};

fn values(gradient: Option<Gradient>) -> Vec<f64> {
    gradient.dense().unwrap().to_vec::<f64>().unwrap()
}

/// The cube of x.
fn cube(x: &Tensor) -> Tensor {
    mul(mul(x, x).unwrap(), x).unwrap()
}

#[test]
fn nested_tapes_give_higher_orders() {
    let _ledger = ledger_check();
    let x = scalar(2.0);
    let (first, second, third) = (GradientTape::new(), GradientTape::new(), GradientTape::new());
    for tape in [&first, &second, &third] {
        tape.watch(&x);
    }
    let y = mul(cube(&x), &x).unwrap();
    let dy = third.gradient(&y, &x).unwrap().dense().unwrap();
    assert_eq!(dy.item::<f64>().unwrap(), 32.0);
    let ddy = second.gradient(&dy, &x).unwrap().dense().unwrap();
    assert_eq!(ddy.item::<f64>().unwrap(), 48.0);
    assert_eq!(values(first.gradient(&ddy, &x).unwrap()), [48.0]);
}

#[test]
fn a_persistent_tape_records_its_own_backward_pass() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = GradientTape::persistent();
    tape.watch(&x);
    let y = cube(&x);
    let dy = tape.gradient(&y, &x).unwrap().dense().unwrap();
    let ddy = tape.gradient(&dy, &x).unwrap().dense().unwrap();
    assert_eq!(ddy.item::<f64>().unwrap(), 18.0);
    assert_eq!(values(tape.gradient(&ddy, &x).unwrap()), [6.0]);
}

/// Of two tapes that watch the same tensor, each records the other's backward pass, in either order.
#[test]
fn tapes_may_end_in_any_order() {
    let _ledger = ledger_check();
    for outer_first in [false, true] {
        let x = scalar(0.5);
        let (a, b) = (GradientTape::new(), GradientTape::new());
        a.watch(&x);
        b.watch(&x);
        let y = taut_core::ops::binary::div(1.0, &x).unwrap(); // saves its output
        let (one, other) = if outer_first { (a, b) } else { (b, a) };
        let dy = one.gradient(&y, &x).unwrap().dense().unwrap();
        assert_eq!(dy.item::<f64>().unwrap(), -4.0);
        assert_eq!(values(other.gradient(&dy, &x).unwrap()), [16.0], "outer first: {outer_first}");
    }
}

#[test]
fn gradients_have_the_structure_of_the_sources() {
    let _ledger = ledger_check();
    let (a, b, c) = (scalar(1.0), vector(&[2.0, 3.0]), Variable::new(scalar(4.0)).unwrap());
    let tape = GradientTape::new();
    tape.watch(&(&a, &b));
    let y = mul(mul(&a, &b).unwrap(), &c).unwrap();
    let z = add(&a, &c).unwrap();
    let sources = (vec![a.clone()], BTreeMap::from([("b", b.clone())]), [c.clone()], None::<Tensor>);
    let (list, map, [dc], nothing) = tape.gradient(&[y, z], &sources).unwrap();
    assert_eq!(values(list[0].clone()), [4.0 * 5.0 + 1.0]);
    assert_eq!(values(map["b"].clone()), [4.0, 4.0]);
    assert_eq!(values(dc), [5.0 + 1.0]);
    assert!(nothing.is_none());
}

#[test]
fn targets_are_summed_and_seeded() {
    let _ledger = ledger_check();
    let x = vector(&[1.0, 2.0]);
    let tape = GradientTape::persistent();
    tape.watch(&x);
    let y = mul(&x, &x).unwrap();
    assert_eq!(values(tape.gradient(&y, &x).unwrap()), [2.0, 4.0]);
    assert_eq!(values(tape.gradient(&x, &x).unwrap()), [1.0, 1.0]);
    let seeded = |seed: Tensor| {
        let request =
            GradientRequest { output_gradients: Some(vec![Some(seed)]), ..GradientRequest::default() };
        tape.gradient_with(&y, &x, request)
    };
    assert_eq!(values(seeded(vector(&[10.0, 0.0])).unwrap()), [20.0, 0.0]);
    let error = seeded(scalar(1.0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.message().contains("output gradient 0 must be float64[2], like its target, got float64[]"));
    assert_eq!(error.location().unwrap().file(), file!());
}

#[test]
fn an_intermediate_value_can_be_target_and_source() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = GradientTape::persistent();
    tape.watch(&x);
    let y = mul(&x, &x).unwrap();
    let z = mul(&y, &y).unwrap();
    let (dx, dy) = tape.gradient(&z, &(&x, &y)).unwrap();
    assert_eq!((values(dx), values(dy)), (vec![108.0], vec![18.0]));
    assert_eq!(values(tape.gradient(&y, &x).unwrap()), [6.0]);
}

/// As in TensorFlow, also if the tape has not recorded the value.
#[test]
fn the_gradient_of_a_value_for_itself_is_one() {
    let _ledger = ledger_check();
    let (x, ids) = (vector(&[1.0, 2.0]), Tensor::from_slice(&[1, 2], [2]).unwrap());
    let unread = Variable::new(scalar(1.0)).unwrap();
    let tape = GradientTape::persistent();
    assert_eq!(values(tape.gradient(&x, &x).unwrap()), [1.0, 1.0]);
    assert_eq!(values(tape.gradient(&(&x, &x), &x).unwrap()), [2.0, 2.0]);
    assert_eq!(values(tape.gradient(&unread, &unread).unwrap()), [1.0]);
    let seed = Some(vec![Some(vector(&[3.0, 4.0]))]);
    let request = GradientRequest { output_gradients: seed, ..GradientRequest::default() };
    assert_eq!(values(tape.gradient_with(&x, &x, request).unwrap()), [3.0, 4.0]);
    assert!(tape.gradient(&ids, &ids).unwrap().is_none());
    assert!(tape.gradient(&stop_gradient(&x).unwrap(), &x).unwrap().is_none());
}

#[test]
fn unwatched_values_are_not_recorded() {
    let _ledger = ledger_check();
    let (x, constant) = (vector(&[1.0, 2.0]), vector(&[3.0, 4.0]));
    let frozen = Variable::builder().trainable(false).name("frozen").build(vector(&[5.0, 6.0])).unwrap();
    let weights = Variable::new(vector(&[7.0, 8.0])).unwrap();
    let outside = identity(&weights).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x);
    let _ = mul(&constant, &constant).unwrap();
    let _ = mul(&frozen, &constant).unwrap();
    let _ = mul(&outside, &constant).unwrap();
    let _ = tape.stop_recording(|| mul(&x, &x)).unwrap();
    let _ = mul(stop_gradient(&x).unwrap(), &constant).unwrap();
    let _ = cast(&x, DType::I64).unwrap();
    assert_eq!((tape.num_entries(), tape.bytes_held()), (0, 0));
    assert!(tape.watched_variables().is_empty());
    let y = mul(&weights, &x).unwrap();
    assert_eq!(tape.num_entries(), 1);
    assert_eq!(tape.watched_variables().len(), 1);
    assert_eq!(values(tape.gradient(&y, &weights).unwrap()), [1.0, 2.0]);
}

#[test]
fn variables_are_watched_as_the_options_say() {
    let _ledger = ledger_check();
    let v = Variable::new(scalar(2.0)).unwrap();
    let frozen = Variable::builder().trainable(false).build(scalar(3.0)).unwrap();
    let tape = GradientTape::with(TapeOptions { watch_accessed_variables: false, persistent: true });
    let y = mul(&v, &v).unwrap();
    assert_eq!(tape.num_entries(), 0);
    assert!(tape.gradient(&y, &v).unwrap().is_none());
    tape.watch(&(&v, &frozen));
    let y = mul(&v, &frozen).unwrap();
    let (dv, df) = tape.gradient(&y, &(&v, &frozen)).unwrap();
    assert_eq!((values(dv), values(df)), (vec![3.0], vec![2.0]));
}

#[test]
fn reset_drops_entries_and_keeps_recording() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = cube(&x);
    tape.reset();
    assert_eq!((tape.num_entries(), tape.bytes_held()), (0, 0));
    assert!(tape.explain_none(&y, &x).is_some());
    tape.watch(&x);
    let z = mul(&x, &x).unwrap();
    let (dz, dy) = (tape.gradient(&z, &x).unwrap(), tape.gradient(&y, &x));
    assert_eq!(values(dz), [6.0]);
    assert_eq!(dy.unwrap_err().kind(), ErrorKind::Value);
}

#[test]
fn a_tape_records_its_own_thread_only() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = mul(&x, &x).unwrap();
    let (send, receive) = mpsc::channel();
    let (x2, y2) = (x.clone(), y.clone());
    std::thread::spawn(move || {
        let silent = mul(&x2, &y2).unwrap();
        drop(silent);
        let own = GradientTape::new();
        own.watch(&x2);
        let z = mul(&x2, &y2).unwrap();
        let dz = values(own.gradient(&z, &x2).unwrap());
        drop(y2); // a link dropped on another thread
        send.send(dz).unwrap();
    })
    .join()
    .unwrap();
    assert_eq!(receive.recv().unwrap(), [9.0]); // y is a constant there
    assert_eq!(tape.num_entries(), 1);
    assert_eq!(values(tape.gradient(&y, &x).unwrap()), [6.0]);
}

#[test]
fn unconnected_gradients_are_none_or_zero_and_explained() {
    let _ledger = ledger_check();
    let (x, other, unwatched) = (vector(&[1.0, 2.0]), scalar(1.0), scalar(1.0));
    let frozen = Variable::builder().trainable(false).build(scalar(1.0)).unwrap();
    let unread = Variable::new(scalar(1.0)).unwrap();
    let ids = Tensor::from_slice(&[1, 2], [2]).unwrap();
    let tape = GradientTape::persistent();
    tape.watch(&(&x, &other, &ids));
    let y = mul(&x, &x).unwrap();
    let blocked = stop_gradient(mul(&other, 2.0).unwrap()).unwrap();
    let mixed = add(&blocked, &y).unwrap();
    let why = |target: &Tensor, source: &Tensor| tape.explain_none(target, source);
    assert!(why(&y, &x).is_none());
    assert!(matches!(why(&y, &ids), Some(NoGradientReason::NotFloat(DType::I32))));
    assert!(matches!(why(&y, &unwatched), Some(NoGradientReason::NotWatched)));
    assert!(matches!(
        why(&cast(&y, DType::I32).unwrap(), &x),
        Some(NoGradientReason::TargetNotFloat(DType::I32))
    ));
    let Some(NoGradientReason::Blocked(by)) = why(&mixed, &other) else {
        panic!("stop_gradient is the reason")
    };
    assert_eq!(by[0].0, "stop_gradient");
    assert_eq!(by[0].1.file(), file!());
    let unused = scalar(2.0);
    tape.watch(&unused);
    assert!(matches!(why(&y, &unused), Some(NoGradientReason::NeverUsed)));
    assert!(matches!(tape.explain_none(&y, &frozen), Some(NoGradientReason::NotTrainable)));
    assert!(matches!(tape.explain_none(&y, &unread), Some(NoGradientReason::NotRead)));
    let _ = mul(&unused, 2.0).unwrap();
    let kept = mul(&unused, 2.0).unwrap();
    assert!(matches!(why(&y, &unused), Some(NoGradientReason::Independent)));
    assert!(kept.item::<f64>().unwrap() == 4.0);
    let zero = GradientRequest { unconnected: Unconnected::Zero, ..GradientRequest::default() };
    assert!(tape.gradient(&y, &other).unwrap().is_none());
    assert_eq!(values(tape.gradient_with(&y, &other, zero).unwrap()), [0.0]);

    // A used tape still explains its gradients.
    let once = GradientTape::new();
    once.watch(&x);
    let y = mul(&x, &x).unwrap();
    assert!(once.gradient(&y, &unwatched).unwrap().is_none());
    let why = once.explain_none(&y, &unwatched).unwrap();
    assert!(why.to_string().contains("tape.watch(&source)"), "{why}");
}

#[test]
fn a_tape_computes_gradients_once_unless_persistent() {
    let _ledger = ledger_check();
    let x = scalar(3.0);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = mul(&x, &x).unwrap();
    assert_eq!(values(tape.gradient(&y, &x).unwrap()), [6.0]);
    let error = tape.gradient(&y, &x).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert!(error.to_string().contains("make the tape persistent"), "{error}");
    assert!(error.message().contains(file!()), "{error}");
}

/// Entries that no live tensor depends on are dropped at once, however long the chain.
#[test]
fn dead_branches_are_dropped() {
    let _ledger = ledger_check();
    let x = zeros([1000], DType::F32).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x);
    let before = thread_live_bytes();
    for _ in 0..10 {
        let mut y = mul(&x, &x).unwrap();
        for _ in 0..20_000 {
            y = add(y, 1.0).unwrap();
        }
        assert_eq!(tape.num_entries(), 20_001);
        drop(y);
        assert_eq!((tape.num_entries(), tape.bytes_held()), (0, 0));
        assert_eq!(thread_live_bytes(), before);
    }
    let mut y = x.clone();
    for _ in 0..100_000 {
        y = mul(&y, &y).unwrap();
        if tape.num_entries() > 5 {
            y = stop_gradient(&y).unwrap();
            y = add(&x, y).unwrap();
        }
    }
    drop(y);
    assert_eq!(tape.num_entries(), 0);
}

fn held(record: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>, both: bool) -> usize {
    let (a, b) = (ones([8, 8], DType::F32).unwrap(), ones([8, 8], DType::F32).unwrap());
    let tape = GradientTape::new();
    tape.watch(&a);
    if both {
        tape.watch(&b);
    }
    let result = record(&a, &b).unwrap();
    assert_eq!(tape.num_entries(), 1);
    let explained = tape.explain();
    assert_eq!(explained.bytes(), tape.bytes_held());
    assert!(explained.rows.iter().all(|row| row.at.file() == file!()));
    drop(result);
    assert_eq!(tape.bytes_held(), 0);
    explained.bytes()
}

#[test]
fn bytes_held_are_the_bytes_that_gradients_need() {
    let _ledger = ledger_check();
    let whole = 8 * 8 * 4;
    assert_eq!(held(|a, b| add(a, b), true), 0);
    assert_eq!(held(|a, b| mul(a, b), true), 2 * whole);
    assert_eq!(held(|a, b| mul(a, b), false), whole);
    assert_eq!(held(|a, _| mul(a, a), true), whole);
    assert_eq!(held(|a, b| matmul(a, b), true), 2 * whole);
    assert_eq!(held(|a, b| matmul(a, b), false), whole);
    assert_eq!(held(|a, _| relu(a), true), 8 * 8 / 8);
    assert_eq!(held(|a, _| reshape(a, &[64]), true), 0);
    assert_eq!(held(|a, _| sum(a, None, false), true), 0);
}

/// 2000 products with one matrix save each state once and the matrix once.
#[test]
fn a_power_loop_saves_its_states_once() {
    let _ledger = ledger_check();
    let (n, steps) = (16, 2000);
    let state = n * n * 4;
    let matrix = Variable::new(zeros([n, n], DType::F32).unwrap()).unwrap();
    let before = thread_live_bytes();
    let tape = GradientTape::new();
    let mut x = ones([n, n], DType::F32).unwrap();
    for _ in 0..steps {
        x = matmul(&x, &matrix).unwrap();
    }
    assert_eq!(tape.bytes_held(), (steps + 1) * state);
    assert_eq!(thread_live_bytes() - before, (steps * state) as isize + state as isize); // the states, the last one included
    drop(tape);
    assert_eq!(thread_live_bytes() - before, state as isize); // x itself
    drop(x);
    assert_eq!(thread_live_bytes(), before);
}

/// An allocation failure at any point leaves variables unchanged, a persistent tape complete, and another tape used up and
/// empty.
#[test]
fn out_of_memory_in_the_backward_pass_leaks_nothing() {
    let _ledger = ledger_check();
    let w = Variable::new(ones([4, 4], DType::F32).unwrap()).unwrap();
    let x = ones([2, 4], DType::F32).unwrap();
    let forward = || sum(relu(matmul(relu(matmul(&x, &w)?)?, &w)?)?, None, false);
    for persistent in [true, false] {
        for nth in 0.. {
            let before = thread_live_bytes();
            let tape = GradientTape::with(TapeOptions { persistent, ..TapeOptions::default() });
            let loss = forward().unwrap();
            tape.stop();
            let (held, entries) = (tape.bytes_held(), tape.num_entries());
            let recorded = thread_live_bytes();
            let fault = fail_nth(nth);
            let outcome = tape.gradient(&loss, &w);
            drop(fault);
            match outcome {
                Ok(gradient) => {
                    assert!(gradient.is_some());
                    drop((gradient, tape, loss));
                    assert_eq!(thread_live_bytes(), before);
                    assert!(nth > 2);
                    break;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
                    // The first allocation is the seed's: the backward pass has not begun.
                    if persistent || nth == 0 {
                        assert_eq!((tape.bytes_held(), tape.num_entries()), (held, entries));
                        assert_eq!(thread_live_bytes(), recorded);
                        assert!(tape.gradient(&loss, &w).unwrap().is_some());
                    } else {
                        assert_eq!((tape.bytes_held(), tape.num_entries()), (0, 0));
                        assert_eq!(tape.gradient(&loss, &w).unwrap_err().kind(), ErrorKind::Value);
                    }
                    assert_eq!(w.value().to_vec::<f32>().unwrap(), [1.0; 16]);
                }
            }
        }
    }
}
