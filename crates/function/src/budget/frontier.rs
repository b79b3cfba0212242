//! The plans of a traced function for every budget.

use super::spill::{SpillFile, with_spilled_values};
use crate::MemoryBudget;
use std::fmt;
use std::path::Path;
use taut_compile::Rewrites;
use taut_control::split::SplitProof;
use taut_core::{Error, ErrorKind, Graph, Result};
use taut_exec::{Executable, ExecutableOptions};
use taut_kernels::pool;
use taut_memory::Bytes;
use taut_plan::{PlanFrontier, PlanRequest, Program, with_smaller_subgraphs};

/// The most numbers of parts that are tried.
const MOST_SPLITS: usize = 8;

/// Splitting the batch counts as this part of the time more.
const SPLIT_SURCHARGE: u64 = 50;

/// The parts of their memory for which the bodies of loops and branches are planned, as divisors.
const BODY_DIVISORS: [usize; 3] = [2, 4, 16];

/// The most numbers of parts for which bodies are planned for less.
const SHRUNK_SPLITS: usize = 2;

/// The shares of the values that wait at the peak that are spilled.
const SPILLED_SHARES: [f64; 3] = [1.0 / 3.0, 2.0 / 3.0, 1.0];

/// The buffers that an error lists.
const LISTED_BUFFERS: usize = 8;

/// One plan of a [`MemoryFrontier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontierRow {
    /// The bytes that a call allocates.
    pub bytes: usize,
    /// Those bytes, and the arguments, variables and constants.
    pub total_bytes: usize,
    /// The time of a call, in picoseconds of the planner's cost model.
    pub time: u64,
    /// A lower bound on the time of a plan of this kind with so few bytes.
    pub time_bound: u64,
    /// How many steps run again, without those inside loops and branches.
    pub repeated_steps: usize,
    /// Into how many parts the batch is split.
    pub micro_batches: usize,
    /// The bytes that are written to a file and read back.
    pub spilled_bytes: usize,
    candidate: usize,
    position: usize,
}

impl FrontierRow {
    /// The bytes that a budget counts.
    fn counted_bytes(&self, budget: MemoryBudget) -> usize {
        if budget.is_total() { self.total_bytes } else { self.bytes }
    }
}

/// The plans of a function for one signature, among which a [`MemoryBudget`] chooses: with more bytes, a call takes less
/// time.
///
/// They depend on the traced graph alone. A budget takes the fastest plan that fits, so with a larger budget neither does the
/// time rise nor do the bytes fall.
#[derive(Debug)]
pub struct MemoryFrontier {
    name: String,
    /// From the fewest bytes to the least time.
    rows: Vec<FrontierRow>,
    /// The same among the plans that do not split the batch.
    bit_equal_rows: Vec<FrontierRow>,
    /// The plans of all candidates.
    all_rows: Vec<FrontierRow>,
    candidates: Vec<Candidate>,
    /// Why the batch cannot be split, if it cannot.
    unsplit: Option<String>,
}

/// The plans for one number of micro-batches.
#[derive(Debug)]
struct Candidate {
    micro_batches: usize,
    plans: PlanFrontier,
    /// The bytes of arguments, variables and constants.
    external_bytes: usize,
    /// The bytes that are written to a file.
    spilled_bytes: usize,
}

impl MemoryFrontier {
    /// Finds the plans of graphs that were traced, all of the same function. Its first `arguments` inputs may hold the rows of a
    /// batch that can be split.
    pub(crate) fn new<'a>(
        name: &str,
        graphs: impl Iterator<Item = &'a Graph>,
        arguments: usize,
        options: ExecutableOptions,
        request: &PlanRequest,
        spill_folder: Option<&Path>,
    ) -> Result<MemoryFrontier> {
        // The compiler computes constants: they are allocated here, not on the threads that search.
        let compiled = |graph: &Graph| Executable::compile_graph(graph, options);
        let (mut forms, mut unsplit) = (Vec::new(), None);
        for (number, graph) in graphs.enumerate() {
            forms.push((1, compiled(graph)?));
            if number > 0 {
                continue; // a variant of the first
            }
            // The compiler's choice of what to compute again is for the plan without a budget, and its largest kernels are the
            // floor of a small one: the step as traced competes.
            let mut as_traced = options;
            as_traced.compile.rewrites = Rewrites::None;
            let form = Executable::compile_graph(graph, as_traced)?;
            if form.nodes.len() != forms[0].1.nodes.len() {
                forms.push((1, form));
            }
            match SplitProof::new(graph, &(0..arguments).collect::<Vec<_>>()) {
                Ok(proof) => {
                    for parts in numbers_of_parts(proof.rows()) {
                        forms.push((parts, compiled(&proof.split(parts)?)?));
                    }
                }
                Err(mixed) => unsplit = Some(mixed.to_string()),
            }
        }
        let mut candidates =
            map_in_parallel(&forms, |(parts, graph)| Candidate::new(*parts, graph, request))?;
        let largest_bodies = bodies_to_shrink(&candidates);
        let smaller = map_in_parallel(&largest_bodies, |candidate| candidate.with_smaller_bodies(request))?;
        candidates.extend(smaller.into_iter().flatten());
        if let (Some(folder), Some((_, graph))) = (spill_folder, forms.first()) {
            candidates.extend(spilling_candidates(graph, folder, request)?);
        }
        let mut all_rows = rows(&candidates);
        // A budget that allows the plan of the function as it is takes that plan.
        let plain_bytes = candidates[0].plans.fastest().bytes;
        all_rows.retain(|row| row.candidate == 0 || row.bytes < plain_bytes);
        let whole = all_rows.iter().copied().filter(|row| row.micro_batches == 1).collect();
        Ok(MemoryFrontier {
            name: name.into(),
            rows: pareto(all_rows.clone()),
            bit_equal_rows: pareto(whole),
            all_rows,
            candidates,
            unsplit,
        })
    }

    /// The plans, from the fewest bytes to the least time: bytes rise and times fall from each to the next.
    pub fn rows(&self) -> &[FrontierRow] {
        &self.rows
    }

    /// As [`MemoryFrontier::rows`], without plans that split the batch: results are the same to the last bit.
    pub fn bit_equal_rows(&self) -> &[FrontierRow] {
        &self.bit_equal_rows
    }

    /// The plans among which a budget chooses.
    fn rows_for(&self, budget: MemoryBudget) -> Vec<FrontierRow> {
        let is_allowed = |row: &FrontierRow| {
            (row.micro_batches == 1 || !budget.is_bit_equal())
                && (row.spilled_bytes == 0 || budget.spill_folder().is_some())
        };
        pareto(self.all_rows.iter().copied().filter(is_allowed).collect())
    }

    /// The fastest plan that a budget allows; `None` if there is none.
    pub fn within(&self, budget: impl Into<MemoryBudget>) -> Option<FrontierRow> {
        let budget = budget.into();
        let fits = |row: &&FrontierRow| row.counted_bytes(budget) <= budget.bytes();
        self.rows_for(budget).iter().rev().find(fits).copied()
    }

    /// The plan with the fewest bytes.
    pub fn smallest(&self) -> FrontierRow {
        self.rows[0]
    }

    /// The plan with the least time.
    pub fn fastest(&self) -> FrontierRow {
        self.rows[self.rows.len() - 1]
    }

    /// No order of the steps, with any of them repeated, allocates fewer bytes than this without splitting the batch.
    pub fn bytes_bound(&self) -> usize {
        self.least_bound().map_or(0, |candidate| candidate.plans.bytes_bound())
    }

    /// Of the candidates that do not split the batch, the one with the lowest bound.
    fn least_bound(&self) -> Option<&Candidate> {
        let is_plain = |candidate: &&Candidate| candidate.micro_batches == 1 && candidate.spilled_bytes == 0;
        let whole = self.candidates.iter().filter(is_plain);
        whole.min_by_key(|candidate| candidate.plans.bytes_bound())
    }

    /// The program of a row.
    pub fn plan(&self, row: FrontierRow) -> Result<Program> {
        let Some(candidate) = self.candidates.get(row.candidate) else {
            return Err(Error::value("the row must be one of this frontier"));
        };
        candidate.plans.plan(row.position)
    }

    /// The program that a budget chooses.
    pub(crate) fn plan_within(&self, budget: MemoryBudget) -> Result<Program> {
        match self.within(budget) {
            Some(row) => self.plan(row),
            None => Err(self.out_of_budget(budget)?),
        }
    }

    /// The bytes that the frontier itself takes, without tensors.
    pub(crate) fn footprint(&self) -> usize {
        let candidates = self.candidates.iter().map(|candidate| candidate.plans.footprint());
        size_of_val(&self.all_rows[..]) + candidates.sum::<usize>()
    }

    /// The error of a budget that no plan keeps: the smallest that one keeps, and what fills it.
    fn out_of_budget(&self, budget: MemoryBudget) -> Result<Error> {
        let smallest = self.rows_for(budget)[0];
        let (needed, allowed) = (smallest.counted_bytes(budget), budget.bytes());
        let factor = smallest.time as f64 / self.fastest().time.max(1) as f64;
        let largest = self.least_bound().and_then(|candidate| candidate.plans.largest_step());
        let bound = largest.map(|(op, at)| {
            format!("; no order needs less than {} ({op} at {})", Bytes(self.bytes_bound()), at.short())
        });
        let mut lines = vec![
            format!(
                "the memory budget of {} must be at least {needed} bytes ({}), got {allowed} bytes ({budget})",
                self.name,
                Bytes(needed),
            ),
            format!(
                "smallest plan found: {} at {factor:.2} times the work{}",
                Bytes(smallest.bytes),
                bound.unwrap_or_default()
            ),
        ];
        match &self.unsplit {
            _ if budget.is_bit_equal() => {
                lines.push("the batch is not split: the budget asks for the same bits".into());
            }
            Some(reason) => lines.push(format!("the batch is not split: {reason}")),
            None => {}
        }
        let mut explanation = self.plan(smallest)?.explain_peak();
        let others: usize = explanation.rows.iter().skip(LISTED_BUFFERS).map(|row| row.bytes).sum();
        let count = explanation.rows.len().saturating_sub(LISTED_BUFFERS);
        explanation.rows.truncate(LISTED_BUFFERS);
        lines.extend(explanation.to_string().trim_end().lines().map(String::from));
        if count > 0 {
            lines.push(format!("{:>10}  {count} smaller buffers", Bytes(others)));
        }
        Ok(Error::new(ErrorKind::OutOfMemory, lines.join("\n  ")))
    }
}

/// The candidates whose loops and branches are also planned for less: all that do not split the batch, and of the others those with
/// the fewest bytes, where more parts do not help.
fn bodies_to_shrink(candidates: &[Candidate]) -> Vec<&Candidate> {
    let (mut chosen, mut split): (Vec<&Candidate>, Vec<&Candidate>) =
        candidates.iter().partition(|candidate| candidate.micro_batches == 1);
    split.sort_by_key(|candidate| (candidate.plans.smallest().bytes, candidate.micro_batches));
    chosen.extend(split.into_iter().take(SHRUNK_SPLITS));
    chosen
}

/// Candidates that write shares of the values that wait at the peak to a file.
fn spilling_candidates(graph: &Graph, folder: &Path, request: &PlanRequest) -> Result<Vec<Candidate>> {
    let file = SpillFile::new(folder)?;
    let mut candidates = Vec::new();
    for share in SPILLED_SHARES {
        if let Some((graph, spilled_bytes)) = with_spilled_values(graph, &file, share)? {
            candidates.push(Candidate { spilled_bytes, ..Candidate::new(1, &graph, request)? });
        }
    }
    Ok(candidates)
}

/// The results for all items, computed on all threads; the first error, if there is one.
fn map_in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let mut results: Vec<Option<Result<R>>> = items.iter().map(|_| None).collect();
    pool::for_each_mut(&mut results, 1, |first, results| {
        for (item, result) in items[first..].iter().zip(results) {
            *result = Some(work(item));
        }
    });
    results.into_iter().flatten().collect()
}

impl Candidate {
    /// The same with the bodies of loops and branches planned for less, step by step.
    fn with_smaller_bodies(&self, request: &PlanRequest) -> Result<Vec<Candidate>> {
        let (graph, bytes) = (self.plans.graph(), self.plans.smallest().bytes);
        let mut smaller = Vec::new();
        for divisor in BODY_DIVISORS {
            let Some(graph) = with_smaller_subgraphs(graph, bytes, divisor)? else { break };
            smaller.push(Candidate::new(self.micro_batches, &graph, request)?);
        }
        Ok(smaller)
    }

    fn new(micro_batches: usize, compiled: &Graph, request: &PlanRequest) -> Result<Candidate> {
        let plans = PlanFrontier::new(compiled, request)?;
        let smallest = plans.plan(0)?;
        let external_bytes = smallest.total_bytes() - smallest.peak_bytes();
        Ok(Candidate { micro_batches, plans, external_bytes, spilled_bytes: 0 })
    }
}

/// Into how many parts a batch of so many rows is split: powers of two, and one part per row.
fn numbers_of_parts(rows: usize) -> Vec<usize> {
    let powers = (1..=MOST_SPLITS).map(|power| 1 << power);
    let mut numbers: Vec<usize> = powers.take_while(|&parts| parts < rows).collect();
    if numbers.len() < MOST_SPLITS && rows > 1 {
        numbers.push(rows);
    }
    numbers
}

/// The time of a plan. Splitting the batch changes the rounding of results, so it never counts as faster than the fastest plan of the whole
/// batch, and at about the same time the whole batch is preferred.
fn time_of(time: u64, micro_batches: usize, fastest_whole: u64) -> u64 {
    if micro_batches == 1 {
        return time;
    }
    let time = time.max(fastest_whole);
    time.saturating_add(time / SPLIT_SURCHARGE)
}

/// The plans of all candidates.
fn rows(candidates: &[Candidate]) -> Vec<FrontierRow> {
    let mut rows = Vec::new();
    let whole = candidates.iter().filter(|candidate| candidate.micro_batches == 1);
    let fastest_whole = whole.map(|candidate| candidate.plans.fastest().time).min().unwrap_or(0);
    for (number, candidate) in candidates.iter().enumerate() {
        rows.extend(candidate.plans.points().iter().enumerate().map(|(position, point)| FrontierRow {
            bytes: point.bytes,
            total_bytes: point.bytes + candidate.external_bytes,
            time: time_of(point.time, candidate.micro_batches, fastest_whole),
            time_bound: time_of(point.time_bound, candidate.micro_batches, fastest_whole),
            repeated_steps: point.repeated_steps,
            micro_batches: candidate.micro_batches,
            spilled_bytes: candidate.spilled_bytes,
            candidate: number,
            position,
        }));
    }
    rows
}

/// The plans that no other beats in bytes and time, from the fewest bytes to the least time.
fn pareto(mut rows: Vec<FrontierRow>) -> Vec<FrontierRow> {
    rows.sort_by_key(|row| (row.time, row.bytes, row.micro_batches));
    let mut least = usize::MAX;
    rows.retain(|row| {
        let is_smaller = row.bytes < least;
        least = least.min(row.bytes);
        is_smaller
    });
    rows.reverse();
    rows
}

impl fmt::Display for MemoryFrontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fastest = self.fastest();
        let spills = self.rows.iter().any(|row| row.spilled_bytes > 0);
        let heading = if spills { "  spilled" } else { "" };
        writeln!(f, "{:>12}  {:>6}  {:>8}  {:>8}{heading}", "bytes", "time", "repeated", "parts")?;
        for row in self.rows.iter().rev() {
            let factor = row.time as f64 / fastest.time.max(1) as f64;
            let FrontierRow { bytes, repeated_steps, micro_batches, .. } = row;
            write!(
                f,
                "{:>12}  {factor:>6.3}  {repeated_steps:>8}  {micro_batches:>8}",
                Bytes(*bytes).to_string()
            )?;
            match row.spilled_bytes {
                0 => writeln!(f)?,
                spilled => writeln!(f, "  {}", Bytes(spilled))?,
            }
        }
        write!(f, "without splitting the batch, no order needs less than {}", Bytes(self.bytes_bound()))?;
        match &self.unsplit {
            Some(reason) => write!(f, "\nthe batch is not split: {reason}"),
            None => Ok(()),
        }
    }
}
