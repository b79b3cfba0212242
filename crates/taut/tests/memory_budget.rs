//! Training steps under a memory budget: every budget from the plain peak to the smallest is kept to the byte, with the same bits.
//! Peaks are those of the process: the tests here run one at a time.

#[path = "../benches/models/adam.rs"]
mod adam;
#[path = "../benches/models/dense.rs"]
mod dense;
#[path = "../benches/models/initial.rs"]
mod initial;
#[path = "../benches/models/lstm.rs"]
mod lstm;
#[path = "../benches/models/resnet.rs"]
mod resnet;
#[path = "memory_budget/steps.rs"]
mod steps;

use steps::{Step, mlp};
use taut::memory::{live_bytes, peak_bytes, reset_peak};
use taut::{
    ErrorKind, FrontierRow, Function, MemoryBudget, MemoryFrontier, Result, Tensor, function, random,
};
use taut_memory::testing::{fail_nth, ledger_check};
use taut_testing::{assert_close, bits, exclusive};

/// The budgets of a sweep.
const BUDGETS: u32 = 20;

/// Compiles a step, with dead memory overwritten.
fn compiled(step: &Step, budget: Option<MemoryBudget>) -> Function<Vec<Tensor>, Tensor> {
    let body = step.body.clone();
    let compiled = function(move |arguments: &Vec<Tensor>| body(arguments)).named(step.name).verify(true);
    match budget {
        Some(budget) => compiled.memory_budget(budget),
        None => compiled,
    }
}

/// What a first and a second call compute: the losses and the variables, bit for bit. The peak of the first one must be the
/// planned one.
fn run(build: &dyn Fn() -> Result<Step>, budget: Option<MemoryBudget>) -> (usize, Vec<u64>) {
    let step = build().unwrap();
    let compiled = compiled(&step, budget);
    let planned = compiled.plan(&step.arguments).unwrap().peak_bytes();
    let before = live_bytes();
    reset_peak();
    let first = compiled.call(&step.arguments).unwrap();
    assert_eq!(peak_bytes() - before, planned, "{} under {budget:?}", step.name);
    let mut results = bits(&first);
    results.extend(bits(&compiled.call(&step.arguments).unwrap()));
    step.variables.iter().for_each(|variable| results.extend(bits(&variable.read())));
    (planned, results)
}

/// The budgets from the plain peak to the smallest, in equal ratios.
fn budgets(plain: usize, smallest: usize) -> Vec<usize> {
    let ratio = smallest as f64 / plain as f64;
    let at = |i: u32| (plain as f64 * ratio.powf(f64::from(i) / f64::from(BUDGETS - 1))) as usize;
    (0..BUDGETS).map(|i| at(i).max(smallest)).collect()
}

/// Checks every budget of a sweep; returns the smallest as a share of the plain peak.
fn sweep(build: &dyn Fn() -> Result<Step>) -> f64 {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let step = build().unwrap();
    let (plain, expected) = run(build, None);
    let frontier = compiled(&step, None).frontier(&step.arguments).unwrap();
    println!("{}: plain {plain}\n{frontier}", step.name);
    let smallest = frontier.bit_equal_rows()[0].bytes;
    let mut last: Option<FrontierRow> = None;
    for bytes in budgets(plain, smallest) {
        let budget = MemoryBudget::from(bytes).bit_equal();
        let (peak, got) = run(build, Some(budget));
        assert!(peak <= bytes, "{}: {peak} bytes planned, {bytes} allowed", step.name);
        assert!(got == expected, "{}: other bits within {bytes} bytes", step.name);
        let row = frontier.within(budget).unwrap();
        if let Some(last) = last {
            assert!(row.bytes <= last.bytes && row.time >= last.time, "{last:?} then {row:?}");
        }
        last = Some(row);
    }
    refuses_less(&step, smallest);
    splits_within(build, &frontier, &expected);
    survives_failing_allocations(build, MemoryBudget::from(smallest).bit_equal(), &expected);
    smallest as f64 / plain as f64
}

/// Budgets that split the batch are kept as well, and the results differ by rounding only.
fn splits_within(build: &dyn Fn() -> Result<Step>, frontier: &MemoryFrontier, expected: &[u64]) {
    let split: Vec<&FrontierRow> = frontier.rows().iter().filter(|row| row.micro_batches > 1).collect();
    for row in split.iter().step_by(split.len().div_ceil(4).max(1)) {
        let (peak, got) = run(build, Some(row.bytes.into()));
        assert!(peak <= row.bytes, "{peak} bytes planned, {} allowed", row.bytes);
        let numbers = |bits: &[u64]| bits.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<f64>>();
        assert_close(&numbers(&got), &numbers(expected), 2e-4);
    }
}

/// One grain less than the smallest budget is refused before anything runs.
fn refuses_less(step: &Step, smallest: usize) {
    let values = || step.variables.iter().flat_map(|variable| bits(&variable.read())).collect::<Vec<_>>();
    let (before, live) = (values(), live_bytes());
    let too_small = compiled(step, Some(MemoryBudget::from(smallest - 1).bit_equal()));
    let error = too_small.call(&step.arguments).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let text = error.to_string();
    for part in [format!("must be at least {smallest} bytes"), format!("got {} bytes", smallest - 1)] {
        assert!(text.contains(&part), "{text}");
    }
    println!("{text}");
    assert_eq!(live_bytes(), live);
    assert_eq!(values(), before);
}

/// Each allocation of a call fails in turn: the error leaves variables and live bytes as they were.
fn survives_failing_allocations(build: &dyn Fn() -> Result<Step>, budget: MemoryBudget, expected: &[u64]) {
    let step = build().unwrap();
    let compiled = compiled(&step, Some(budget));
    compiled.plan(&step.arguments).unwrap();
    let live = live_bytes();
    let mut failures = 0;
    let first = loop {
        // A failed call has drawn its random keys.
        random::set_seed(steps::SEED);
        let failing = fail_nth(failures);
        let outcome = compiled.call(&step.arguments);
        drop(failing);
        match outcome {
            Ok(loss) => break loss,
            Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfMemory),
        }
        assert_eq!(live_bytes(), live, "after failure {failures}");
        failures += 1;
        assert!(failures < 100, "a call has few allocations");
    };
    assert!(failures > 0);
    assert_eq!(bits(&first), expected[..bits(&first).len()]);
}

#[test]
fn a_deep_mlp_keeps_every_budget() {
    let share = sweep(&|| mlp(64, 32, 64));
    assert!(share < 0.25, "{share}");
}

#[test]
fn a_transformer_with_dropout_keeps_every_budget() {
    let share = sweep(&steps::transformer);
    assert!(share < 0.6, "{share}");
}

#[test]
fn a_resnet_keeps_every_budget() {
    let share = sweep(&|| steps::resnet(2, 8));
    assert!(share < 0.8, "{share}");
}

#[test]
fn an_lstm_keeps_every_budget() {
    sweep(&|| steps::lstm(16, 4, 8, 16));
}

#[test]
fn the_body_of_a_loop_is_planned_for_less() {
    let share = sweep(&steps::accumulation);
    assert!(share < 0.5, "{share}");
}

#[test]
fn an_embedding_model_keeps_every_budget() {
    sweep(&|| steps::embedding(200, 16, 24, 32));
}

#[test]
fn tied_weights_keep_every_budget() {
    let share = sweep(&|| steps::tied(64, 24, 128));
    assert!(share < 0.8, "{share}");
}

/// The peak of a forward and a backward pass under a tape, the results, and the gradients.
fn under_a_tape(layers: &[taut::Variable], budget: Option<MemoryBudget>) -> (usize, Vec<u64>) {
    let own = layers.to_vec();
    let forward = function(move |x: &Tensor| {
        let mut h = x.clone();
        for layer in &own {
            h = taut::tanh(taut::matmul(h, layer)?)?;
        }
        taut::mean(taut::square(h)?, None, false)
    })
    .verify(true);
    let forward = if let Some(budget) = budget { forward.memory_budget(budget) } else { forward };
    let x = initial::normal(3, &[64, 32], 1.0).unwrap();
    forward.plan_gradient(&x).unwrap();
    let before = live_bytes();
    reset_peak();
    let tape = taut::GradientTape::new();
    let loss = forward.call(&x).unwrap();
    let gradients = tape.gradient(&loss, &layers.to_vec()).unwrap();
    let peak = peak_bytes() - before;
    let mut results = bits(&loss);
    gradients.iter().for_each(|gradient| results.extend(bits(&gradient.clone().unwrap().dense().unwrap())));
    (peak, results)
}

#[test]
fn a_function_under_a_tape_keeps_its_budget() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let layers: Vec<taut::Variable> =
        (0..24).map(|i| taut::Variable::new(initial::normal(i, &[32, 32], 0.2).unwrap()).unwrap()).collect();
    let (plain, expected) = under_a_tape(&layers, None);
    for share in [0.9, 0.8, 0.7] {
        let budget = (plain as f64 * share) as usize;
        let (peak, got) = under_a_tape(&layers, Some(budget.into()));
        assert!(peak <= budget, "{peak} of {budget}, plain {plain}");
        assert!(got == expected, "other bits at {share}");
    }
}

#[test]
fn values_are_spilled_where_the_budget_allows_it() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let folder = std::env::temp_dir();
    // Wide enough that a product takes longer than to read its result from a disk.
    let build = || mlp(8, 1024, 128);
    let (plain, expected) = run(&build, None);
    let step = build().unwrap();
    let spilling = MemoryBudget::from(plain / 4).bit_equal().spill_to(&folder);
    let frontier = compiled(&step, Some(spilling)).frontier(&step.arguments).unwrap();
    let spilled: Vec<&FrontierRow> = frontier.rows().iter().filter(|row| row.spilled_bytes > 0).collect();
    assert!(!spilled.is_empty(), "{frontier}");
    // A plan that spills is not chosen by a budget without a folder.
    let without = MemoryBudget::from(plain / 4).bit_equal();
    assert_eq!(frontier.within(without).map_or(0, |row| row.spilled_bytes), 0);
    for row in &spilled {
        let (peak, got) = run(&build, Some(MemoryBudget::from(row.bytes).bit_equal().spill_to(&folder)));
        assert!(peak <= row.bytes && got == expected, "{row:?}");
    }
    // Fewer bytes than recomputation alone.
    let recomputed = compiled(&step, None).frontier(&step.arguments).unwrap().bit_equal_rows()[0].bytes;
    let smallest = frontier.bit_equal_rows()[0];
    assert!(smallest.bytes < recomputed || smallest.spilled_bytes == 0, "{smallest:?}, {recomputed}");
    let budget = MemoryBudget::from(spilled[0].bytes).bit_equal().spill_to(&folder);
    survives_failing_allocations(&build, budget, &expected);
}

#[test]
fn a_folder_for_spilling_must_exist() {
    let (_ledger, _turn) = (ledger_check(), exclusive());
    let step = mlp(12, 32, 128).unwrap();
    let missing = std::env::temp_dir().join("taut-no-such-folder");
    let budget = MemoryBudget::from(100_000).spill_to(missing);
    let error = compiled(&step, Some(budget)).call(&step.arguments).unwrap_err().to_string();
    assert!(error.contains("the folder of a memory budget must be writable"), "{error}");
}
