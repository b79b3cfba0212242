//! Functions in which a shape depends on a value run op by op.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use taut_autodiff::{GradientTape, Variable};
use taut_core::ops::binary::{greater, mul};
use taut_core::ops::index::{boolean_mask, nonzero, unique};
use taut_core::ops::random::normal;
use taut_core::ops::reduce::sum;
use taut_core::{DType, ErrorKind, Result, Tensor};
use taut_function::function;
use taut_memory::testing::ledger_check;

fn vector(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

fn positive(x: &Tensor) -> Result<Tensor> {
    boolean_mask(x, greater(x, 0.0)?, 0)
}

#[test]
fn results_gradients_and_sizes() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| mul(positive(x)?, 2.0));
    for (x, want) in [(vec![1.0, -1.0], vec![2.0]), (vec![3.0, 4.0, -5.0], vec![6.0, 8.0])] {
        assert_eq!(f.call(&vector(&x)).unwrap().to_vec::<f32>().unwrap(), want);
    }
    let (x, tape) = (vector(&[1.0, -1.0, 2.0]), GradientTape::new());
    tape.watch(&x);
    let y = f.call(&x).unwrap();
    let g = tape.gradient(&y, &x).unwrap().unwrap().dense().unwrap();
    assert_eq!(g.to_vec::<f32>().unwrap(), [2.0, 0.0, 2.0]);
    assert_eq!((f.signature_count(), f.trace_count()), (1, 0));
}

#[test]
fn the_body_is_traced_once_and_then_called() {
    let _ledger = ledger_check();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let f = function(move |x: &Tensor| {
        counter.fetch_add(1, Ordering::Relaxed);
        nonzero(x)
    });
    for size in 1..4 {
        f.call(&vector(&vec![1.0; size])).unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 4);
}

#[test]
fn a_dropped_trace_assigns_nothing_and_draws_nothing() {
    let _ledger = ledger_check();
    let v = Variable::new(vector(&[1.0])).unwrap();
    let held = v.clone();
    taut_core::ops::random::set_seed(5);
    let f = function(move |x: &Tensor| {
        held.assign(mul(held.read(), 2.0)?)?;
        let noise = normal([2], 0.0, 1.0, DType::F32)?;
        Ok((noise, positive(x)?))
    });
    let (noise, _) = f.call(&vector(&[1.0])).unwrap();
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [2.0]);
    taut_core::ops::random::set_seed(5);
    let eager = normal([2], 0.0, 1.0, DType::F32).unwrap();
    assert_eq!(noise.to_vec::<f32>().unwrap(), eager.to_vec::<f32>().unwrap());
}

#[test]
fn plans_and_budgets_are_refused_with_the_line() {
    let _ledger = ledger_check();
    let x = vector(&[1.0]);
    let error = function(|x: &Tensor| positive(x)).named("f").plan(&x).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DynamicShape);
    assert!(error.message().contains("f has no plan"), "{error}");
    assert_eq!(error.location().unwrap().file(), file!());
    let error = function(|x: &Tensor| positive(x)).memory_budget(1 << 20).call(&x).unwrap_err();
    assert!(error.message().contains("memory budget"), "{error}");
}

#[test]
fn a_function_around_it_runs_op_by_op_and_one_inside_is_planned() {
    let _ledger = ledger_check();
    let heavy = Arc::new(function(|x: &Tensor| sum(x, None, false)));
    let inner = Arc::new(function(|x: &Tensor| positive(x)));
    let (called, planned) = (inner.clone(), heavy.clone());
    let outer = function(move |x: &Tensor| planned.call(&called.call(x)?));
    for _ in 0..2 {
        assert_eq!(outer.call(&vector(&[1.0, -1.0, 4.0])).unwrap().item::<f32>().unwrap(), 5.0);
    }
    assert_eq!((heavy.trace_count(), inner.trace_count(), outer.trace_count()), (1, 0, 0));
}

#[test]
fn values_that_are_known_while_tracing_need_no_fallback() {
    let _ledger = ledger_check();
    let known = vector(&[2.0, 0.0, 2.0]);
    let f = function(move |x: &Tensor| {
        let mask = Tensor::from_slice(&[true, false, true], [3])?;
        let (values, ..) = unique(&known)?;
        Ok((boolean_mask(x, mask, 0)?, values, nonzero(&known)?))
    });
    let (kept, values, places) = f.call(&vector(&[1.0, 2.0, 3.0])).unwrap();
    assert_eq!(kept.to_vec::<f32>().unwrap(), [1.0, 3.0]);
    assert_eq!(values.to_vec::<f32>().unwrap(), [0.0, 2.0]);
    assert_eq!(places.to_vec::<i64>().unwrap(), [0, 2]);
    assert_eq!(f.trace_count(), 1);
}
