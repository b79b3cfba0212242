//! The plans for every memory budget, as the page draws them.

use serde::Serialize;
use std::collections::BTreeMap;
use taut_core::Result;
use taut_function::{FrontierRow, MemoryBudget, MemoryFrontier};
use taut_plan::Program;

/// The calls that a row names.
const NAMED_CALLS: usize = 3;

/// The chart of a frontier.
#[derive(Debug, Serialize)]
pub(super) struct BudgetChart {
    /// The bytes that are allowed.
    allowed: Option<usize>,
    /// A lower bound on the bytes of any plan that does not split the batch.
    bytes_bound: usize,
    /// From the fewest bytes to the least time.
    rows: Vec<BudgetRow>,
}

#[derive(Debug, Serialize)]
struct BudgetRow {
    bytes: usize,
    /// Relative to the fastest plan.
    time: f64,
    bound: f64,
    repeated: usize,
    parts: usize,
    chosen: bool,
    /// What is repeated most.
    lines: String,
}

impl BudgetChart {
    pub(super) fn new(frontier: &MemoryFrontier, budget: Option<MemoryBudget>) -> Result<BudgetChart> {
        let fastest = frontier.fastest().time.max(1) as f64;
        let chosen = budget.and_then(|budget| frontier.within(budget));
        let row = |row: &FrontierRow| {
            Ok(BudgetRow {
                bytes: row.bytes,
                time: row.time as f64 / fastest,
                bound: row.time_bound as f64 / fastest,
                repeated: row.repeated_steps,
                parts: row.micro_batches,
                chosen: chosen == Some(*row),
                lines: most_repeated(&frontier.plan(*row)?),
            })
        };
        let rows = frontier.rows().iter().map(row).collect::<Result<_>>()?;
        let allowed = budget.map(MemoryBudget::bytes);
        Ok(BudgetChart { allowed, bytes_bound: frontier.bytes_bound(), rows })
    }
}

/// The calls that a program repeats most often, with their source locations.
fn most_repeated(program: &Program) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for step in program.repeated_steps() {
        *counts.entry(format!("{} at {}", step.name(), step.at.short())).or_default() += 1;
    }
    let mut calls: Vec<(String, usize)> = counts.into_iter().collect();
    calls.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = calls.iter().take(NAMED_CALLS).map(|(call, count)| format!("{call} ×{count}"));
    named.collect::<Vec<_>>().join(", ")
}
