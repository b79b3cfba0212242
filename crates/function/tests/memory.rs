//! The memory of calls, to the byte. Peak and limit are those of the process: the tests here run one at a time.

use std::sync::Arc;
use taut_autodiff::Variable;
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::ones;
use taut_core::ops::reduce::{cumsum, sum};
use taut_core::ops::shape::{concat, repeat};
use taut_core::ops::unary::{exp, relu, square, tanh};
use taut_core::{DType, ErrorKind, Spec, Tensor};
use taut_function::{Function, function};
use taut_memory::testing::{allocations_on_thread, fail_nth, ledger_check};
use taut_memory::{limit, live_bytes, peak_bytes, reset_peak};
use taut_plan::assert_peak;
use taut_testing::exclusive;

fn filled(shape: &[usize]) -> Tensor {
    ones(shape, DType::F32).unwrap()
}

/// The peak of a first call beyond the live bytes before it; checked against the plan.
fn measured(f: &Function<Tensor, Tensor>, x: &Tensor) -> usize {
    let plan = f.plan(x).unwrap();
    let before = live_bytes();
    reset_peak();
    let y = f.call(x).unwrap();
    let peak = peak_bytes() - before;
    assert_eq!(peak, plan.peak_bytes(), "{plan}");
    drop(y);
    f.release();
    assert_eq!(live_bytes(), before);
    peak
}

#[test]
fn a_chain_holds_its_result_and_nothing_else() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let f = function(|x: &Tensor| add(mul(mul(2.0, x)?, x)?, 1.0));
    let x = filled(&[4096, 4096]);
    assert_eq!(measured(&f, &x), 64 << 20);
    assert_eq!(f.plan(&x).unwrap().steps.len(), 1);
}

#[test]
fn a_sum_holds_one_number() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let y = filled(&[1024, 1024]);
    let f = function(move |x: &Tensor| sum(square(sub(x, &y)?)?, None, false));
    let x = filled(&[1024, 1024]);
    let plan = f.plan(&x).unwrap();
    assert_eq!((plan.buffers.as_slice(), plan.steps.len()), (&[4][..], 1));
    // Beside the number, partial sums for the threads.
    assert_eq!(measured(&f, &x), 4 + plan.arena_bytes());
    assert!(plan.arena_bytes() <= 256 << 10, "{}", plan.arena_bytes());
}

#[test]
fn a_sum_of_broadcast_values_makes_no_copies() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let f = function(|x: &Tensor| sum(repeat(x, &[1000], 0)?, None, false));
    let x = filled(&[2000]);
    assert_eq!(f.call(&x).unwrap().item::<f32>().unwrap(), 2e6);
    assert_peak!(f.plan(&x).unwrap(), <= 1 << 10);
}

#[test]
fn layers_add_nothing_to_a_forward_pass() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let peak = |layers: usize| {
        let w = filled(&[64, 64]);
        let f = function(move |x: &Tensor| (0..layers).try_fold(x.clone(), |h, _| relu(matmul(h, &w)?)));
        measured(&f, &filled(&[32, 64]))
    };
    let few = peak(3);
    assert_eq!(few, 2 * 32 * 64 * 4, "a layer's input and its output, in turn in the memory of the result");
    assert_eq!([peak(4), peak(33), peak(100)], [few; 3]);
}

#[test]
fn the_plan_does_not_depend_on_how_the_code_is_written() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let w = filled(&[16, 16]);
    let chained = {
        let w = w.clone();
        function(move |x: &Tensor| sum(exp(tanh(matmul(relu(matmul(x, &w)?)?, &w)?)?)?, 0, false))
    };
    let named = {
        let w = w.clone();
        function(move |x: &Tensor| {
            let product = matmul(x, &w)?;
            let hidden = relu(&product)?;
            let second = matmul(&hidden, &w)?;
            let bounded = tanh(&second)?;
            let grown = exp(&bounded)?;
            let unused = square(&grown)?;
            assert!(unused.is_traced());
            sum(&grown, 0, false)
        })
    };
    let dropped = function(move |x: &Tensor| {
        let product = matmul(x, &w)?;
        let hidden = relu(&product)?;
        drop(product);
        let second = matmul(&hidden, &w)?;
        drop(hidden);
        let bounded = tanh(&second)?;
        drop(second);
        let grown = exp(&bounded)?;
        drop(bounded);
        sum(&grown, 0, false)
    });
    let x = filled(&[8, 16]);
    let (chained, named, dropped) =
        (chained.plan(&x).unwrap(), named.plan(&x).unwrap(), dropped.plan(&x).unwrap());
    // Lines differ; offsets, order and sizes do not.
    let shape = |plan: &taut_plan::Program| {
        let homes: Vec<_> = plan.storages.iter().map(|s| (s.home, s.bytes, s.start, s.end)).collect();
        let steps: Vec<_> = plan.steps.iter().map(|s| (s.name(), s.operands.len(), s.scratch)).collect();
        format!("{homes:?} {steps:?}")
    };
    assert_eq!(shape(&chained), shape(&named));
    assert_eq!(shape(&chained), shape(&dropped));
    assert_eq!(chained.peak_bytes(), named.peak_bytes());
}

#[test]
fn a_million_calls_hold_what_one_holds() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let v = Variable::new(filled(&[4])).unwrap();
    let inside = v.clone();
    let f = function(move |x: &Tensor| {
        inside.assign_add(x)?;
        mul(&inside, 2.0)
    });
    let x = filled(&[4]);
    f.call(&x).unwrap();
    let before = live_bytes();
    for _ in 0..1_000_000 {
        f.call(&x).unwrap();
    }
    assert_eq!(live_bytes(), before);
    assert_eq!(v.read().to_vec::<f32>().unwrap()[0], 1_000_002.0);
    assert_eq!(f.trace_count(), 1);
}

#[test]
fn ten_thousand_shapes_stay_under_the_cache_limit() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let cap = 1 << 20;
    let f = function(|x: &Tensor| matmul(x, add(exp(x)?, 1.0)?)).cache_bytes(cap).reduce_retracing(true);
    let before = live_bytes();
    for i in 0..10_000 {
        let x = filled(&[i + 1, 1, 1]);
        f.call(&x).unwrap();
        assert!(f.cached_bytes() <= cap, "{} after {i}", f.cached_bytes());
    }
    assert!(live_bytes() - before <= cap);
    assert_eq!(f.trace_count(), 10_000);
    assert_eq!(f.traces().len(), 1000, "the last ones");
    drop(f);
    assert_eq!(live_bytes(), before);
}

#[test]
fn out_of_memory_is_reported_before_the_first_kernel() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let v = Variable::new(filled(&[1000])).unwrap();
    let inside = v.clone();
    let f = function(move |x: &Tensor| {
        inside.assign_add(x)?;
        matmul(add(mul(&inside, x)?, 1.0)?, filled(&[1000, 1000]))
    });
    let x = filled(&[1000]);
    let plan = f.plan(&x).unwrap();
    assert!(plan.peak_bytes() >= 4000);
    let address = v.address();
    let unlimited = limit(live_bytes() + plan.peak_bytes() - 1);
    let error = f.call(&x).unwrap_err();
    limit(unlimited);
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert_eq!(error.location().unwrap().file(), file!());
    assert_eq!((v.read().to_vec::<f32>().unwrap()[0], v.address()), (1.0, address));
    limit(live_bytes() + plan.peak_bytes());
    let y = f.call(&x).unwrap();
    limit(unlimited);
    assert_eq!((v.read().to_vec::<f32>().unwrap()[0], y.to_vec::<f32>().unwrap()[0]), (2.0, 3000.0));
}

#[test]
fn a_failure_at_any_allocation_changes_nothing() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let v = Variable::new(filled(&[50])).unwrap();
    let inside = v.clone();
    let f = function(move |x: &Tensor| {
        let y = sum(matmul(x, add(square(x)?, &inside)?)?, 0, false)?;
        inside.assign_add(&y)?;
        Ok((y.clone(), exp(y)?))
    });
    let x = filled(&[50, 50]);
    f.plan(&x).unwrap();
    f.release();
    let (before, address) = (live_bytes(), v.address());
    let count = {
        let start = allocations_on_thread();
        f.call(&x).unwrap();
        allocations_on_thread() - start
    };
    v.assign(1.0).unwrap();
    assert!(count >= 2);
    let mut failures = 0;
    for n in 0..count {
        f.release();
        let fault = fail_nth(n);
        let outcome = f.call(&x);
        let fired = fault.fired();
        drop(fault);
        match outcome {
            // The call tried again after freeing the arenas of other traces.
            Ok(results) => {
                drop(results);
                assert_eq!(v.read().to_vec::<f32>().unwrap()[7], 5001.0);
            }
            Err(error) => {
                assert!(fired && error.kind() == ErrorKind::OutOfMemory);
                assert_eq!((v.read().to_vec::<f32>().unwrap()[7], v.address()), (1.0, address));
                failures += 1;
            }
        }
        v.assign(1.0).unwrap();
        f.release();
        assert_eq!(live_bytes(), before);
    }
    assert!(failures > 0);
}

#[test]
fn the_planned_peak_is_what_the_system_measures() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let f = function(|x: &Tensor| {
        let both = concat(&[x.clone(), exp(x)?], 0)?;
        let sums = cumsum(&both, 0, false, false)?;
        cumsum(concat(&[sums, both], 0)?, 1, false, false)
    });
    let x = filled(&[4096, 2048]);
    let plan = f.plan(&x).unwrap();
    let status = |field: &str| -> usize {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    };
    // Threads and kernels allocate once.
    f.call(&filled(&[64, 64])).unwrap();
    taut_memory::trim();
    if std::fs::write("/proc/self/clear_refs", "5").is_err() {
        return;
    }
    let before = status("VmRSS");
    let y = f.call(&x).unwrap();
    let grown = status("VmHWM").saturating_sub(before);
    let planned = plan.peak_bytes();
    assert!(planned >= 256 << 20);
    let slack = planned / 100 + (4 << 20);
    assert!(grown.abs_diff(planned) <= slack, "planned {planned}, grown {grown}");
    drop(y);
}

#[test]
fn keys_of_random_numbers_take_no_memory() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let generator = Arc::new(taut_core::ops::random::Generator::from_seed(1));
    let f = function(move |x: &Tensor| add(x, generator.uniform([1000], 0.0, 1.0, DType::F32)?));
    measured(&f, &filled(&[1000]));
}

#[test]
fn arenas_of_other_traces_are_freed_before_memory_runs_out() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let f = function(|x: &Tensor| matmul(matmul(matmul(x, x)?, x)?, x));
    let (small, large) = (filled(&[500, 500]), filled(&[600, 600]));
    f.call(&small).unwrap();
    let plan = f.plan(&large).unwrap();
    assert!(plan.arena_bytes() > 0);
    f.call(&small).unwrap();
    let unlimited = limit(live_bytes() + plan.peak_bytes() - 1);
    let y = f.call(&large);
    limit(unlimited);
    assert_eq!(y.unwrap().shape(), &[600, 600]);
}

#[test]
fn placeholders_need_no_memory() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let before = live_bytes();
    let f = function(|x: &Tensor| exp(matmul(x, x)?));
    let plan = f.plan(&Tensor::placeholder(Spec::new(DType::F32, [100_000, 100_000]))).unwrap();
    assert_eq!(plan.peak_bytes(), 40_000_000_000);
    assert_eq!(live_bytes(), before);
}
