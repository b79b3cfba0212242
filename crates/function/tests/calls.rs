//! Tracing, the trace cache, and its reports.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use taut_autodiff::StaticValue;
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::contract::matmul;
use taut_core::ops::reduce::{mean, sum};
use taut_core::ops::shape::{reshape, transpose};
use taut_core::ops::unary::{exp, square, tanh};
use taut_core::{DType, ErrorKind, Result, Spec, Tensor, set_warning_sink};
use taut_function::{OnRetrace, TensorSpec, TraceReason, function};
use taut_memory::testing::ledger_check;
use taut_testing::values_f32;

fn ramp(shape: &[usize]) -> Tensor {
    let len: usize = shape.iter().product();
    Tensor::from_vec((0..len).map(|i| i as f32 * 0.25 - 1.0).collect::<Vec<_>>(), shape).unwrap()
}

#[test]
fn a_call_computes_what_the_closure_computes() {
    let _ledger = ledger_check();
    let body = |x: &Tensor| tanh(matmul(x, transpose(x, None)?)?);
    let f = function(body);
    let x = ramp(&[3, 5]);
    let want = body(&x).unwrap();
    for _ in 0..3 {
        assert_eq!(values_f32(&f.call(&x).unwrap()), values_f32(&want));
    }
    assert_eq!(f.trace_count(), 1);
    assert_eq!(f.traces()[0].reason, TraceReason::First);
    assert!(f.traces()[0].time.as_nanos() > 0 && f.traces()[0].bytes > 0);
}

type Args = (BTreeMap<String, Tensor>, Vec<Tensor>, bool);

#[test]
fn arguments_and_results_nest() {
    let _ledger = ledger_check();
    let f = function(|(map, list, double): &Args| -> Result<(Option<Tensor>, Vec<Tensor>, usize)> {
        let all = list.iter().try_fold(map["a"].clone(), |all, t| add(all, t))?;
        let all = if *double { mul(all, 2.0)? } else { all };
        Ok((Some(all), vec![map["b"].clone()], list.len()))
    });
    let map = BTreeMap::from([("a".to_string(), ramp(&[2])), ("b".to_string(), ramp(&[3]))]);
    let list = vec![ramp(&[2]), ramp(&[2])];
    let (all, rest, count) = f.call((&map, &list, false)).unwrap();
    assert_eq!(values_f32(&all.unwrap()), [-3.0, -2.25]);
    assert_eq!((values_f32(&rest[0]), count), (values_f32(&map["b"]), 2));
    let (all, ..) = f.call((&map, &list, true)).unwrap();
    assert_eq!(values_f32(&all.unwrap()), [-6.0, -4.5]);
    assert_eq!(f.trace_count(), 2);
    let reason = f.traces()[1].reason.to_string();
    assert_eq!(reason, "args[2] was false and is true");
}

#[derive(Clone, Debug, PartialEq)]
enum Activation {
    Tanh,
    Exp,
}

#[test]
fn plain_values_are_known_while_tracing() {
    let _ledger = ledger_check();
    let f = function(|(x, what): &(Tensor, StaticValue<Activation>)| match what.0 {
        Activation::Tanh => tanh(x),
        Activation::Exp => exp(x),
    });
    let x = ramp(&[4]);
    assert_eq!(
        values_f32(&f.call((&x, StaticValue(Activation::Exp))).unwrap()),
        values_f32(&exp(&x).unwrap())
    );
    assert_eq!(
        values_f32(&f.call((&x, StaticValue(Activation::Tanh))).unwrap()),
        values_f32(&tanh(&x).unwrap())
    );
    f.call((&x, StaticValue(Activation::Exp))).unwrap();
    assert_eq!(f.trace_count(), 2);
}

#[test]
fn a_retrace_says_what_changed() {
    let _ledger = ledger_check();
    let f = function(|(x, y): &(Tensor, Tensor)| add(x, y)).named("plus").on_retrace(OnRetrace::Allow);
    f.call((&ramp(&[2, 3]), &ramp(&[3]))).unwrap();
    f.call((&ramp(&[4, 3]), &ramp(&[3]))).unwrap();
    let doubles = Tensor::from_vec(vec![1.0f64; 3], [3]).unwrap();
    f.call((&ramp(&[4, 3]), &doubles)).unwrap();
    let reasons: Vec<String> = f.traces().iter().map(|trace| trace.reason.to_string()).collect();
    assert_eq!(reasons[1], "args[0] was float32[2, 3] and is float32[4, 3]");
    assert_eq!(reasons[2], "args[1] was float32[3] and is float64[3]");
}

#[test]
fn a_retrace_can_be_denied() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| square(x)).named("step").on_retrace(OnRetrace::Deny);
    f.call(&ramp(&[2])).unwrap();
    let error = f.call(&ramp(&[3])).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("step must not be traced again: args was float32[2] and is float32[3]"), "{text}");
    assert_eq!(error.location().unwrap().file(), file!());
    f.call(&ramp(&[2])).unwrap();
    assert_eq!(f.trace_count(), 1);
}

/// The only test that reads warnings: the sink is that of the process.
#[test]
fn many_retraces_warn_once_and_name_the_argument() {
    let _ledger = ledger_check();
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = told.clone();
    set_warning_sink(Some(Box::new(move |message| sink.lock().unwrap().push(message.to_owned()))));
    let f = function(|(x, n): &(Tensor, i64)| mul(x, *n as f64)).named("scaled");
    for n in 0..20i64 {
        f.call((&ramp(&[2]), n)).unwrap();
    }
    let quiet = function(|(x, n): &(Tensor, i64)| mul(x, *n as f64));
    for n in 0..20i64 {
        (0..5).for_each(|_| drop(quiet.call((&ramp(&[2]), n)).unwrap()));
    }
    set_warning_sink(None);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("scaled was traced 6 times in 6 calls"), "{}", told[0]);
    assert!(told[0].contains("because of args[1]: the last time it was"), "{}", told[0]);
}

#[test]
fn sizes_of_open_dimensions_are_not_retraces() {
    let _ledger = ledger_check();
    let rows = TensorSpec::new(DType::F32, [None, Some(3)]);
    let f = function(|x: &Tensor| sum(x, 0, false)).input_signature([rows]).on_retrace(OnRetrace::Deny);
    for n in 1..6 {
        let x = ramp(&[n, 3]);
        assert_eq!(values_f32(&f.call(&x).unwrap()), values_f32(&sum(&x, 0, false).unwrap()));
    }
    let error = f.call(&ramp(&[2, 4])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(
        error
            .to_string()
            .contains("args of function must be float32[?, 3] by its input signature, got float32[2, 4]")
    );
    let error = f.call(&Tensor::from_vec(vec![1i32; 3], [1, 3]).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DType);
    let error = f.call(&ramp(&[3])).unwrap_err();
    assert_eq!(error.location().unwrap().file(), file!());
}

#[test]
fn dimensions_that_vary_are_left_open() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| square(x)).reduce_retracing(true);
    for n in 1..8 {
        f.call(&ramp(&[n, 2])).unwrap();
    }
    let changed = f.traces().iter().filter(|trace| matches!(trace.reason, TraceReason::Changed(_))).count();
    assert_eq!(changed, 1, "the first other size");
    assert!(matches!(f.traces()[6].reason, TraceReason::OpenSize(_)));
    f.call(&ramp(&[3, 5])).unwrap();
    assert!(matches!(f.traces()[7].reason, TraceReason::Changed(_)), "the other dimension had not varied");
}

#[test]
fn strided_arguments_are_not_copied() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| add(mul(x, x)?, 1.0));
    let x = ramp(&[4, 6]);
    let across = transpose(&x, None).unwrap();
    let want = values_f32(&add(mul(&across, &across).unwrap(), 1.0).unwrap());
    assert_eq!(values_f32(&f.call(&across).unwrap()), want);
    assert_eq!(f.plan(&across).unwrap().peak_bytes(), 96, "no copy of the input");
    let backwards = taut_core::ops::shape::reverse(&x, &[0]).unwrap();
    assert_eq!(values_f32(&f.call(&backwards).unwrap())[23], 1.0625);
}

#[test]
fn functions_call_functions() {
    let _ledger = ledger_check();
    let traced = Arc::new(AtomicUsize::new(0));
    let count = traced.clone();
    let inner = Arc::new(function(move |x: &Tensor| {
        count.fetch_add(1, Ordering::Relaxed);
        square(x)
    }));
    let used = inner.clone();
    let outer = function(move |x: &Tensor| add(used.call(x)?, used.call(add(x, 1.0)?)?));
    let x = ramp(&[3]);
    let want: Vec<f32> = values_f32(&x).iter().map(|x| x * x + (x + 1.0) * (x + 1.0)).collect();
    assert_eq!(values_f32(&outer.call(&x).unwrap()), want);
    assert_eq!(values_f32(&outer.call(&x).unwrap()), want);
    assert_eq!((inner.trace_count(), traced.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(outer.plan(&x).unwrap().steps.len(), 1, "fused across the call");
    assert_eq!(values_f32(&inner.call(&x).unwrap()), values_f32(&square(&x).unwrap()));
}

#[test]
fn a_function_may_capture_tensors_of_the_trace_around_it() {
    let _ledger = ledger_check();
    let outer = function(|x: &Tensor| {
        let y = exp(x)?;
        let around = y.clone();
        let inner = function(move |z: &Tensor| mul(z, &around));
        inner.call(x)
    });
    let x = ramp(&[3]);
    assert_eq!(values_f32(&outer.call(&x).unwrap()), values_f32(&mul(&x, exp(&x).unwrap()).unwrap()));
}

#[test]
fn a_function_that_calls_itself_is_rejected() {
    let _ledger = ledger_check();
    let slot: Arc<std::sync::OnceLock<taut_function::Function<Tensor, Tensor>>> = Arc::default();
    let inner = Arc::downgrade(&slot);
    let f = function(move |x: &Tensor| inner.upgrade().unwrap().get().unwrap().call(x)).named("endless");
    assert!(slot.set(f).is_ok());
    let error = slot.get().unwrap().call(&ramp(&[2])).unwrap_err();
    assert!(error.to_string().contains("endless calls itself"), "{error}");
}

#[test]
fn errors_while_tracing_name_the_users_line() {
    let _ledger = ledger_check();
    let f = function(|(x, y): &(Tensor, Tensor)| matmul(x, y));
    let line = line!() - 1;
    let error = f.call((&ramp(&[2, 3]), &ramp(&[2, 3]))).unwrap_err();
    assert_eq!((error.location().unwrap().file(), error.location().unwrap().line()), (file!(), line));
    assert!(f.call((&ramp(&[2, 3]), &ramp(&[3, 2]))).is_ok(), "still usable");
}

#[test]
fn a_tensor_that_leaks_out_of_a_trace_is_rejected() {
    let _ledger = ledger_check();
    let stolen = Arc::new(Mutex::new(None));
    let thief = stolen.clone();
    let f = function(move |x: &Tensor| {
        let y = square(x)?;
        *thief.lock().unwrap() = Some(y.clone());
        Ok(y)
    });
    f.call(&ramp(&[2])).unwrap();
    let leaked = stolen.lock().unwrap().take().unwrap();
    assert_eq!(add(&leaked, 1.0).unwrap_err().kind(), ErrorKind::Graph);
    assert_eq!(leaked.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Graph);
    let other = function(move |x: &Tensor| add(x, &leaked));
    let error = other.call(&ramp(&[2])).unwrap_err();
    assert!(error.to_string().contains("got one of a trace that has ended"), "{error}");
}

#[test]
fn plans_need_no_data() {
    let _ledger = ledger_check();
    let f = function(|(x, y): &(Tensor, Tensor)| mean(square(sub(x, y)?)?, None, false));
    let spec = || Tensor::placeholder(Spec::new(DType::F32, [1 << 20, 1 << 20]));
    let plan = f.plan((&spec(), &spec())).unwrap();
    assert_eq!(plan.buffers, [4]);
    assert!(plan.arena_bytes() <= 256 << 10, "scratch of the reduction alone: {}", plan.arena_bytes());
    assert_eq!(plan.input_bytes(), 2 << 42);
    assert!(f.call((&spec(), &spec())).is_err(), "there is no data");
}

#[test]
fn donated_memory_becomes_the_result() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| add(mul(x, 2.0)?, 1.0));
    let x = ramp(&[1000]);
    let (address, _) = x.memory().unwrap();
    assert_eq!(f.plan_donated(&x).unwrap().peak_bytes(), 0);
    let held = x.clone();
    let error = f.call_donated(x).unwrap_err();
    assert!(error.to_string().contains("other handles share its memory"), "{error}");
    let want = values_f32(&f.call(&held).unwrap());
    let y = f.call_donated(held).unwrap();
    assert_eq!((values_f32(&y), y.memory().unwrap().0), (want, address));
    let twice = function(|(a, b): &(Tensor, Tensor)| add(a, b));
    let (a, b) = (y.clone(), y);
    assert!(twice.call_donated((a, b)).is_err(), "one tensor cannot be donated twice");
}

#[test]
fn views_can_be_returned() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| Ok((reshape(x, &[-1])?, transpose(square(x)?, None)?, x.clone())));
    let x = ramp(&[2, 3]);
    let (flat, across, same) = f.call(&x).unwrap();
    assert_eq!((values_f32(&flat), values_f32(&same)), (values_f32(&x), values_f32(&x)));
    assert_eq!(values_f32(&across), values_f32(&transpose(square(&x).unwrap(), None).unwrap()));
}

#[test]
fn threads_share_a_function() {
    // No check of the ledger: it counts by thread, and an arena may be freed by another thread than the one that allocated it.
    let f = function(|x: &Tensor| sum(exp(tanh(x)?)?, None, false)).on_retrace(OnRetrace::Allow);
    let want: Vec<f32> = (1..5)
        .map(|n| sum(exp(tanh(ramp(&[n, 70])).unwrap()).unwrap(), None, false).unwrap().item().unwrap())
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..50 {
                    let n = round % 4 + 1;
                    let got: f32 = f.call(&ramp(&[n, 70])).unwrap().item().unwrap();
                    assert!((got - want[n - 1]).abs() <= 1e-5 * want[n - 1].abs());
                }
            });
        }
    });
    assert_eq!(f.trace_count(), 4);
}

#[test]
fn a_nan_is_attributed_to_the_line_that_computed_it() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| {
        let y = exp(x)?;
        let z = taut_core::ops::unary::log(sub(y, 2.0)?)?;
        add(z, 1.0)
    });
    let line = line!() - 3;
    let x = ramp(&[4]);
    assert!(f.call(&x).unwrap().to_vec::<f32>().unwrap()[0].is_nan());
    taut_core::set_checking_numerics(true);
    let error = f.call(&x).unwrap_err();
    taut_core::set_checking_numerics(false);
    assert_eq!(error.location().unwrap().line(), line, "{error}");
    assert!(error.to_string().starts_with("log"), "{error}");
}

type Power = taut_function::Function<(Tensor, StaticValue<u8>), Tensor>;

#[test]
fn a_function_may_call_itself_with_another_value() {
    let _ledger = ledger_check();
    let slot: Arc<std::sync::OnceLock<Power>> = Arc::default();
    let inner = Arc::downgrade(&slot);
    let power = function(move |(x, n): &(Tensor, StaticValue<u8>)| match n.0 {
        0 => Ok(x.clone()),
        n => mul(inner.upgrade().unwrap().get().unwrap().call((x, StaticValue(n - 1)))?, x),
    });
    assert!(slot.set(power).is_ok());
    let x = Tensor::scalar(2.0f32).unwrap();
    assert_eq!(slot.get().unwrap().call((&x, StaticValue(3))).unwrap().item::<f32>().unwrap(), 16.0);
}

#[test]
fn a_check_runs_even_if_its_result_is_unused() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| {
        let y = taut_core::ops::unary::log(x)?;
        taut_core::ops::unary::check_numerics(&y, "y")?;
        Ok(x.clone())
    });
    let line = line!() - 3;
    assert!(f.call(&Tensor::scalar(1.0f32).unwrap()).is_ok());
    let error = f.call(&Tensor::scalar(-1.0f32).unwrap()).unwrap_err();
    assert_eq!(error.location().unwrap().line(), line, "{error}");
}

#[test]
fn evicted_traces_are_made_again() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| square(x)).cache_bytes(0);
    for n in [1, 2, 1] {
        f.call(&ramp(&[n])).unwrap();
    }
    assert_eq!(f.traces()[2].reason, TraceReason::Evicted);
}
