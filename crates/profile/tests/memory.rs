//! Recorded memory: exact at every moment, inside and outside of programs, on any thread.

mod common;

use common::{check_sums, exclusive, network, ones};
use std::fmt;
use taut_core::ops::{self, binary::add};
use taut_core::{Effects, Op, Result, Spec, Specs, Tensor, apply};
use taut_function::function;
use taut_kernels::{Arg, ViewMut};
use taut_memory::testing::ledger_check;
use taut_memory::{Buffer, Category, live_bytes, peak_bytes, reset_peak};
use taut_profile::{MemoryKind, Profiler, mark, record};

fn sum_at(timeline: &taut_profile::Timeline, at: std::time::Duration) -> usize {
    timeline.live_at(at).iter().map(|row| row.bytes).sum()
}

#[test]
fn eager_memory_is_the_ledgers_at_every_moment() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let before = ones(&[100]);
    reset_peak();
    let ((), timeline) = record(|| {
        let x = ones(&[256]);
        mark("one");
        let y = (&x + &x).unwrap();
        mark("two");
        drop(x);
        mark("three");
        let line = y.clone();
        drop(y);
        mark("still");
        drop(line);
    })
    .unwrap();
    check_sums(&timeline);
    let start = timeline.live_at_start();
    let live: Vec<usize> = timeline.marks().iter().map(|mark| mark.live - start).collect();
    assert_eq!(live, [1024, 2048, 1024, 1024]);
    assert_eq!(timeline.peak().bytes, peak_bytes());
    assert_eq!(timeline.peak_of(MemoryKind::Category(Category::Variable)).bytes, 0);

    let rows = timeline.live_at(timeline.marks()[1].at);
    let added = rows.iter().find(|row| row.op == Some("add")).unwrap();
    assert_eq!((added.bytes, added.kind), (1024, MemoryKind::Category(Category::Tensor)));
    assert!(added.line.unwrap().file().ends_with("memory.rs"), "{added}");
    assert!(added.why.contains("the result of this call"), "{}", added.why);
    let old = rows.iter().find(|row| row.why.contains("before the recording")).unwrap();
    assert!(old.bytes >= 400);
    drop(before);
}

#[test]
fn buffers_from_before_the_recording_are_counted() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let (a, b) = (ones(&[100]), ones(&[200]));
    let mut moved = Buffer::new(300, Category::Tensor).unwrap();
    let ((), timeline) = record(|| {
        drop(a);
        mark("one gone");
        moved.recategorize(Category::Residual);
        mark("moved");
        drop(b);
        drop(moved);
    })
    .unwrap();
    check_sums(&timeline);
    assert_eq!(timeline.live_at_start() - timeline.live_at_end(), 400 + 800 + 300);
    assert_eq!(timeline.peak_of(MemoryKind::Category(Category::Residual)).bytes, 300);
}

#[test]
fn source_lines_recorded_before_are_known() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    taut_memory::record(true);
    let old = ones(&[333]);
    taut_memory::record(false);
    let ((), timeline) = record(|| {
        mark("here");
        drop(old);
    })
    .unwrap();
    check_sums(&timeline);
    let rows = timeline.live_at(timeline.marks()[0].at);
    let row = rows.iter().find(|row| row.bytes == 333 * 4).unwrap();
    assert!(row.line.is_some_and(|line| line.file().ends_with("mod.rs")));
}

/// An op that marks the moment at which it runs, with the ledger's live bytes in the middle of a program.
#[derive(Clone)]
struct MarkOp;

impl fmt::Debug for MarkOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MarkOp")
    }
}

impl Op for MarkOp {
    fn name(&self) -> &'static str {
        "mark"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(inputs[0].clone().into())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::NO_CSE
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        mark("inside");
        taut_kernels::elementwise::copy(inputs[0].view(), outputs[0].reborrow());
        Ok(())
    }
}

fn marked(x: &Tensor) -> Result<Tensor> {
    let h = network(x)?;
    let copy = apply(&MarkOp, [h.clone()])?;
    network(&(&copy + &h)?)
}

#[test]
fn an_arena_is_split_into_its_planned_buffers() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let step = function(marked);
    let x = ones(&[32, 64]);
    let program = step.plan(&x).unwrap();
    assert!(program.arena_bytes() > 0);
    reset_peak();
    let live = live_bytes();
    let (result, timeline) = record(|| {
        let y = step.call(&x).unwrap();
        mark("between");
        let z = step.call(&y).unwrap();
        mark("after");
        z
    })
    .unwrap();
    check_sums(&timeline);
    assert_eq!(timeline.peak().bytes, peak_bytes());

    let planned = timeline.planned();
    assert_eq!(planned.len(), 1);
    assert_eq!((planned[0].runs, planned[0].steps), (2, program.steps.len()));
    assert_eq!((planned[0].planned, planned[0].measured, planned[0].least), {
        let peak = program.peak_bytes();
        (peak, peak, peak)
    });
    assert!(planned[0].is_exact());

    // In the middle of the run, every planned buffer that is live at that step has a row.
    let inside = timeline.marks().iter().find(|mark| mark.name == "inside").unwrap().clone();
    assert_eq!(inside.live, live + program.peak_bytes());
    let rows = timeline.live_at(inside.at);
    let number = program.steps.iter().position(|step| step.name() == "mark").unwrap();
    let is_arena = |home| matches!(home, taut_plan::Home::Arena(_));
    let mut expected: Vec<usize> = (program.storages.iter())
        .filter(|s| is_arena(s.home) && s.start <= number && number < s.end && s.bytes > 0)
        .map(|s| s.bytes)
        .collect();
    let mut found: Vec<usize> =
        rows.iter().filter(|row| row.kind == MemoryKind::ArenaValues).map(|row| row.bytes).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    let read = rows.iter().find(|row| row.why.starts_with("read by this step")).unwrap();
    assert_eq!((read.op, read.kind), (Some("matmul"), MemoryKind::ArenaValues));
    assert!(rows.iter().any(|row| row.why.contains("returned by the function called at")));

    // Between runs the arena is one row.
    let rows = timeline.live_at(timeline.marks().iter().find(|mark| mark.name == "between").unwrap().at);
    let idle: Vec<usize> =
        rows.iter().filter(|row| row.kind == MemoryKind::ArenaIdle).map(|row| row.bytes).collect();
    assert_eq!(idle, [program.arena_bytes()]);
    drop((result, step));
}

#[test]
fn an_arena_from_before_the_recording_is_split_as_well() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let step = function(marked);
    let x = ones(&[32, 64]);
    drop(step.call(&x).unwrap());
    let (arena, peak) = (step.plan(&x).unwrap().arena_bytes(), step.plan(&x).unwrap().peak_bytes());
    let (result, timeline) = record(|| {
        let y = step.call(&x).unwrap();
        step.release();
        mark("released");
        y
    })
    .unwrap();
    check_sums(&timeline);
    assert_eq!(timeline.planned()[0].measured, peak);
    assert!(timeline.peak_of(MemoryKind::ArenaValues).bytes > 0);
    assert_eq!(timeline.live_at_start() - timeline.live_at_end(), arena - 32 * 64 * 4);
    drop(result);
}

#[test]
fn a_recording_keeps_nothing_alive() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let live = live_bytes();
    let ((), timeline) = record(|| {
        let step = function(marked); // with constants of its own
        let x = ones(&[32, 64]);
        drop(step.call(&x).unwrap());
    })
    .unwrap();
    assert_eq!(live_bytes(), live);
    assert_eq!(timeline.live_at_end(), live);
    check_sums(&timeline);
}

#[test]
fn recording_changes_neither_results_nor_the_ledger() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let x = ones(&[32, 64]);
    let work = || {
        reset_peak();
        let before = (live_bytes(), taut_memory::allocations());
        let y = network(&add(&x, 1.0f32).unwrap()).unwrap();
        let z = function(network).call(&y).unwrap();
        let made = taut_memory::allocations() - before.1;
        (z.to_vec::<f32>().unwrap(), peak_bytes() - before.0, live_bytes() - before.0, made)
    };
    let plain = work();
    let (recorded, _) = record(work).unwrap();
    assert_eq!(plain, recorded);
}

#[test]
fn failed_calls_and_allocations_leave_sums_exact() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let x = ones(&[8]);
    let step = function(marked);
    let good = ones(&[32, 64]);
    step.plan(&good).unwrap();
    let ((), timeline) = record(|| {
        add(&x, ones(&[3])).unwrap_err();
        for n in 0..3 {
            let fault = taut_memory::testing::fail_nth(n);
            let outcome = step.call(&good);
            drop(fault);
            drop(outcome);
            mark("failed");
        }
        drop(step);
    })
    .unwrap();
    check_sums(&timeline);
    assert!(timeline.calls().any(|call| call.op == "add" && call.outputs.is_empty()));
    // A run whose allocation failed is not compared with its plan.
    assert!(timeline.planned().iter().all(taut_profile::PlanComparison::is_exact));
}

#[test]
fn all_threads_are_recorded() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let ((), timeline) = record(|| {
        let handle = std::thread::Builder::new().name("worker".into());
        let handle = handle.spawn(|| {
            let x = ones(&[512]);
            ops::unary::exp(&x).unwrap()
        });
        let made = handle.unwrap().join().unwrap();
        mark("joined");
        // Freed on another thread than it was allocated on.
        std::thread::spawn(move || drop(made)).join().unwrap();
        mark("dropped");
        // Large enough for the threads of the kernels.
        drop((&ones(&[1 << 20]) + 1.0f32).unwrap());
    })
    .unwrap();
    check_sums(&timeline);
    let start = timeline.live_at_start();
    let marks = timeline.marks();
    assert_eq!(marks.iter().map(|mark| mark.live - start).collect::<Vec<_>>(), [2048, 0]);
    let exp = timeline.calls().find(|call| call.op == "exp").unwrap();
    assert_eq!(timeline.threads()[exp.thread], "worker");
    assert!(timeline.calls().any(|call| call.op == "add" && timeline.threads()[call.thread] != "worker"));
}

#[test]
fn events_beyond_the_capacity_are_counted_with_a_warning() {
    static WARNINGS: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let _ledger = ledger_check();
    let _turn = exclusive();
    taut_core::set_warning_sink(Some(Box::new(|text| WARNINGS.lock().unwrap().push(text.to_owned()))));
    let profiler = Profiler::with_capacity(5).unwrap();
    for _ in 0..10 {
        drop(ones(&[16])); // one call, one allocation, one release
    }
    let timeline = profiler.finish();
    taut_core::set_warning_sink(None);
    assert_eq!((timeline.dropped().memory, timeline.dropped().calls), (15, 5));
    assert_eq!(WARNINGS.lock().unwrap().len(), 1);
    assert!(WARNINGS.lock().unwrap()[0].contains("15 memory events, 5 calls"));
    let until = timeline.memory_until().unwrap();
    for sample in timeline.memory() {
        assert!(sample.at < until);
        assert_eq!(sum_at(&timeline, sample.at), sample.live());
    }
    assert_eq!(timeline.peak().bytes, timeline.live_at_start() + 64);
}

#[test]
fn empty_recordings_are_timelines() {
    let _ledger = ledger_check();
    let _turn = exclusive();
    let ((), timeline) = record(|| ()).unwrap();
    check_sums(&timeline);
    assert_eq!(timeline.calls().count(), 0);
    assert_eq!(timeline.time_outside_ops(), timeline.duration());
    let empty = Tensor::from_vec(Vec::<f32>::new(), [0]).unwrap();
    let (sum, timeline) = record(|| add(&empty, &empty)).unwrap();
    check_sums(&timeline);
    assert_eq!(timeline.calls().count(), 1);
    assert_eq!(sum.unwrap().shape().len(), 0);
}
