//! The search for plans under memory budgets: how long it takes, how far its plans are from their lower bounds, and, on request,
//! how long plans take beside what the cost model says. `cargo xtask bench budget` runs it before the steps beside other engines.
//!
//! `[filter] [--run]`: with `--run`, plans at 0.5, 0.3, 0.1 and the smallest are called, in turns with the plan of the whole step.

#[path = "models/adam.rs"]
mod adam;
#[path = "models/dense.rs"]
mod dense;
#[path = "models/initial.rs"]
mod initial;
#[path = "models/lstm.rs"]
mod lstm;
#[expect(dead_code, reason = "the tests have small steps, too")]
#[path = "../tests/memory_budget/steps.rs"]
mod models;
#[path = "models/resnet.rs"]
mod resnet;
#[path = "budget/steps.rs"]
mod steps;
#[expect(dead_code, reason = "the other benches print rows")]
mod timing;
#[path = "models/transformer.rs"]
mod transformer;

use models::Step;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;
use steps::STEPS;
use taut::memory::Bytes;
use taut::{FrontierRow, Function, MemoryBudget, MemoryFrontier, Tensor, function};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The budgets, as shares of the fastest plan's bytes.
const SHARES: [f64; 4] = [0.7, 0.5, 0.3, 0.1];

fn main() -> Outcome {
    // `cargo bench` passes `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let runs = args.iter().any(|arg| arg == "--run");
    let filter = args.iter().find(|arg| !arg.starts_with("--")).map_or("", String::as_str);
    for (name, build) in STEPS.iter().filter(|(name, _)| name.contains(filter)) {
        let step = build()?;
        let frontier = search(name, &step)?;
        if runs {
            run(&step, &frontier)?;
        }
    }
    Ok(())
}

fn compiled(step: &Step) -> Function<Vec<Tensor>, Tensor> {
    let body = step.body.clone();
    function(move |arguments: &Vec<Tensor>| body(arguments))
}

/// Plans a step without and with its frontier, and prints what was found.
fn search(name: &str, step: &Step) -> Outcome<Arc<MemoryFrontier>> {
    let compiled = compiled(step);
    let start = Instant::now();
    let plan = compiled.plan(&step.arguments)?;
    let plain = start.elapsed();
    let start = Instant::now();
    let frontier = compiled.frontier(&step.arguments)?;
    let all = start.elapsed();
    let (fastest, bit_equal) = (frontier.fastest(), frontier.bit_equal_rows());
    println!(
        "{name}: {} steps, {}; traced and planned in {:.0} ms, frontier of {} plans in {:.0} ms",
        plan.steps.len(),
        Bytes(fastest.bytes),
        plain.as_secs_f64() * 1e3,
        frontier.rows().len(),
        all.as_secs_f64() * 1e3,
    );
    let factor = |time: u64| time as f64 / fastest.time.max(1) as f64;
    let text = |row: &FrontierRow| {
        let FrontierRow { bytes, time, time_bound, repeated_steps, micro_batches, .. } = *row;
        format!(
            "{:>10}  time {:.3} (at least {:.3}), {repeated_steps} repeated, {micro_batches} parts",
            Bytes(bytes).to_string(),
            factor(time),
            factor(time_bound)
        )
    };
    for share in SHARES {
        let bytes = (fastest.bytes as f64 * share) as usize;
        let shown = |row: Option<FrontierRow>| row.map_or("-".into(), |row| text(&row));
        println!("  {share:.1}  {}", shown(frontier.within(bytes)));
        println!("       {}", shown(frontier.within(MemoryBudget::from(bytes).bit_equal())));
    }
    println!("  min  {}", text(&frontier.smallest()));
    println!("       {}; no order needs less than {}", text(&bit_equal[0]), Bytes(frontier.bytes_bound()));
    Ok(frontier)
}

/// Calls the plans of some budgets in turns with the fastest one.
fn run(step: &Step, frontier: &MemoryFrontier) -> Outcome {
    let fastest = frontier.fastest();
    let whole = compiled(step);
    whole.plan(&step.arguments)?;
    let at_most_twice = |row: &&FrontierRow| row.time <= 2 * fastest.time;
    let rows = SHARES.iter().filter_map(|share| frontier.within((fastest.bytes as f64 * share) as usize));
    for row in rows.chain(frontier.rows().iter().find(at_most_twice).copied()) {
        let within = compiled(step).memory_budget(row.bytes);
        within.plan(&step.arguments)?;
        let call =
            |function: &Function<Vec<Tensor>, Tensor>| drop(function.call(&step.arguments).expect("runs"));
        let [plain, budgeted] = timing::race([&mut || call(&whole), &mut || call(&within)]);
        println!(
            "  run  {:>10} in {} parts: {:.3} times {:.1} ms; the cost model says {:.3} times {:.1} ms",
            Bytes(row.bytes).to_string(),
            row.micro_batches,
            budgeted / plain,
            plain * 1e3,
            row.time as f64 / fastest.time as f64,
            fastest.time as f64 / 1e9,
        );
    }
    Ok(())
}
