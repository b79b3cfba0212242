//! Recorded calls: their names, nesting and times.

mod common;

use common::{check_sums, exclusive, network, ones};
use std::time::Duration;
use taut_autodiff::{GradientTape, Variable};
use taut_control::fori_loop;
use taut_core::Tensor;
use taut_core::ops::binary::mul;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{exp, sin};
use taut_function::function;
use taut_memory::testing::ledger_check;
use taut_profile::{Profiler, TimedCall, Timeline, is_recording, mark, record};

/// Nested calls end before the outer one, and own times add up.
fn check_nesting(timeline: &Timeline) {
    let mut open: Vec<Vec<TimedCall<'_>>> = vec![Vec::new(); timeline.threads().len()];
    for call in timeline.calls() {
        let open = &mut open[call.thread];
        open.truncate(call.depth);
        // The run of a loop's body is a level without a call of its own.
        if let Some(outer) = open.last().filter(|outer| outer.depth < call.depth && outer.end > call.start) {
            assert!(outer.start <= call.start && call.end <= outer.end, "{call:?} in {outer:?}");
        }
        assert!(call.own <= call.time());
        open.push(call);
    }
    let own: Duration = timeline.by_op().iter().map(|row| row.own).sum();
    let threads = timeline.threads().len().max(1) as u32;
    assert!(own <= timeline.duration() * threads);
    let shares: f64 = timeline.by_op().iter().map(|row| row.share).sum();
    assert!(timeline.calls().count() == 0 || (shares - 1.0).abs() < 1e-9);
}

#[test]
fn eager_calls_have_names_lines_and_shapes() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let x = ones(&[3, 1]);
    let line = line!() + 2;
    let (result, timeline) = record(|| {
        let y = exp(&x).unwrap();
        mul(&y, ones(&[4])).unwrap()
    })
    .unwrap();
    check_nesting(&timeline);
    let calls: Vec<_> = timeline.calls().collect();
    assert_eq!(calls.iter().map(|call| call.op).collect::<Vec<_>>(), ["exp", "full", "mul"]);
    assert_eq!(calls[0].line.unwrap().line(), line);
    assert_eq!(calls[2].line.unwrap().line(), line + 1);
    assert_eq!(calls[2].outputs[0].to_string(), "float32[3, 4]");
    assert!(calls.iter().all(|call| call.depth == 0 && !call.is_run));
    let times = timeline.by_op();
    let product = times.iter().find(|row| row.op == "mul").unwrap();
    assert_eq!((product.count, product.flops), (1, 12));
    assert!(product.gflops().unwrap() > 0.0 && product.gigabytes().unwrap() > 0.0);
    assert_eq!(timeline.by_line().iter().map(|row| row.count).sum::<u64>(), 3);
    drop(result);
}

#[test]
fn gradient_calls_name_the_op_that_they_differentiate() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let x = ones(&[8]);
    let (gradient, timeline) = record(|| {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = sin(&x).unwrap();
        tape.gradient(&y, &x).unwrap()
    })
    .unwrap();
    check_sums(&timeline);
    check_nesting(&timeline);
    let back: Vec<_> = timeline.calls().filter(|call| call.gradient_of == Some("sin")).collect();
    assert!(back.iter().any(|call| call.op == "cos"), "{back:?}");
    let forward = timeline.calls().find(|call| call.op == "sin").unwrap();
    assert!(back.iter().all(|call| call.line == forward.line));
    drop(gradient);
}

#[test]
fn a_function_is_a_run_of_its_steps() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let step = function(network);
    let x = ones(&[32, 64]);
    let program = step.plan(&x).unwrap();
    let (result, timeline) = record(|| step.call(&x).unwrap()).unwrap();
    check_sums(&timeline);
    check_nesting(&timeline);
    let calls: Vec<_> = timeline.calls().collect();
    let names: Vec<_> = calls.iter().map(|call| call.op).collect();
    let mut expected = vec!["function"];
    expected.extend(program.steps.iter().map(taut_plan::ProgramStep::name));
    assert_eq!(names, expected);
    assert!(calls[0].is_run && calls[1..].iter().all(|call| call.depth == 1 && !call.is_run));
    let inside: Duration = calls[1..].iter().map(TimedCall::time).sum();
    assert_eq!(calls[0].own, calls[0].time().saturating_sub(inside));
    for (call, step) in calls[1..].iter().zip(&program.steps) {
        assert_eq!(call.line, Some(step.at));
        assert_eq!(call.outputs[0], step.targets[0].spec);
    }
    assert!(timeline.time_outside_ops() >= calls[0].own);
    drop(result);
}

#[test]
fn traced_ops_are_not_calls() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let x = ones(&[16]);
    let (result, timeline) = record(|| {
        let step = function(|x: &Tensor| exp(sin(x)?));
        step.call(&x).unwrap()
    })
    .unwrap();
    // Fused into one step; the traced ops are not calls.
    let program = function(|x: &Tensor| exp(sin(x)?)).plan(&x).unwrap();
    assert_eq!(timeline.calls().filter(|call| !call.is_run).count(), program.steps.len());
    check_sums(&timeline);
    drop(result);
}

#[test]
fn a_loops_body_is_nested_in_its_call() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let start = ones(&[64]);
    let body = |_: Tensor, x: Tensor| sum(&x, 0, false)? + &x;
    let (result, timeline) = record(|| fori_loop(0..5, body, start.clone()).unwrap()).unwrap();
    check_sums(&timeline);
    check_nesting(&timeline);
    let calls: Vec<_> = timeline.calls().collect();
    let outer = calls.iter().position(|call| call.depth == 0 && call.op.contains("loop")).unwrap();
    let inner: Vec<_> = calls.iter().filter(|call| call.depth > 0).collect();
    assert!(!inner.is_empty() && inner.len().is_multiple_of(5), "{inner:?}");
    let inside: Duration = inner.iter().map(|call| call.time()).sum();
    assert_eq!(calls[outer].own, calls[outer].time().saturating_sub(inside));
    drop(result);
}

#[test]
fn a_training_step_is_planned_to_the_byte() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let weights = Variable::new(ones(&[64, 64])).unwrap();
    let step = {
        let weights = weights.clone();
        function(move |x: &Tensor| {
            let tape = GradientTape::new();
            let h = exp(taut_core::ops::contract::matmul(x, &weights)?)?;
            let loss = sum(&h, None, false)?;
            let gradient = tape.gradient(&loss, &weights)?.unwrap().dense()?;
            weights.assign_sub((gradient * 1e-3f32)?)?;
            Ok(loss)
        })
    };
    let x = ones(&[16, 64]);
    let (losses, timeline) = record(|| {
        let mut losses = Vec::new();
        for i in 0..3 {
            mark(format!("step {i}"));
            losses.push(step.call(&x).unwrap());
        }
        losses
    })
    .unwrap();
    check_sums(&timeline);
    check_nesting(&timeline);
    let planned = timeline.planned();
    assert_eq!((planned.len(), planned[0].runs), (1, 3));
    assert!(planned[0].is_exact(), "{planned:?}");
    let marks: Vec<_> = timeline.marks().into_iter().map(|mark| mark.name).collect();
    assert_eq!(marks, ["step 0", "step 1", "step 2"]);
    drop((losses, step, weights));
}

#[test]
fn one_profiler_at_a_time() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    assert!(!is_recording());
    let first = Profiler::start().unwrap();
    assert!(is_recording());
    let error = Profiler::start().unwrap_err();
    assert!(error.to_string().contains("at most one at a time"), "{error}");
    assert!(error.location().unwrap().file().ends_with("calls.rs"));
    assert!(record(|| ()).is_err());
    // The failed start has not ended the other recording.
    drop(ones(&[4]));
    assert_eq!(first.finish().calls().count(), 1);
    assert!(!is_recording());
    drop(Profiler::start().unwrap());
    assert!(!is_recording());
    mark("not recorded");
}

#[test]
fn a_panic_ends_the_recording() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let x = ones(&[4]);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        record(|| {
            let _y = exp(&x).unwrap();
            panic!("on purpose");
        })
    }));
    assert!(outcome.is_err());
    assert!(!is_recording());
    let (y, timeline) = record(|| exp(&x).unwrap()).unwrap();
    let depths: Vec<_> = timeline.calls().map(|call| (call.op, call.depth)).collect();
    assert_eq!(depths, [("exp", 0)]);
    drop(y);
}

#[test]
fn a_recording_may_end_or_begin_in_the_middle_of_a_run() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let x = ones(&[1 << 16]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The arena is allocated and dropped on this thread.
            let step = function(|x: &Tensor| network(&taut_core::ops::shape::reshape(x, &[1024, 64])?));
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                drop(step.call(&x).unwrap());
                drop(network(&ones(&[16, 64])).unwrap());
            }
        });
        for _ in 0..50 {
            let profiler = Profiler::start().unwrap();
            std::thread::yield_now();
            let timeline = profiler.finish();
            check_nesting(&timeline);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let (y, timeline) = record(|| exp(&x).unwrap()).unwrap();
    assert_eq!(timeline.calls().map(|call| call.depth).collect::<Vec<_>>(), [0]);
    drop(y);
}

#[test]
fn chrome_traces_have_all_calls_marks_and_memory() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let step = function(network);
    let x = ones(&[32, 64]);
    let (result, timeline) = record(|| {
        mark("\"quoted\" </script>");
        step.call(&x).unwrap()
    })
    .unwrap();
    let trace: serde_json::Value = serde_json::from_str(&timeline.to_chrome_trace()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    assert_eq!(of("X").len(), timeline.calls().count());
    assert!(of("X").iter().any(|event| event["name"] == "function" && event["cat"] == "run"));
    assert_eq!(of("i")[0]["name"], "\"quoted\" </script>");
    let most = of("C").into_iter().map(|event| {
        event["args"].as_object().unwrap().values().map(|bytes| bytes.as_u64().unwrap()).sum::<u64>()
    });
    assert_eq!(most.max().unwrap() as usize, timeline.peak().bytes);
    drop(result);
}
