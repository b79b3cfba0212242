//! The data of the page as JSON: lists of numbers, and each text once.

use super::ProfileReport;
use super::budget::BudgetChart;
use crate::plan_summary::{PlanSummary, PlannedRole, PlannedStep};
use crate::timeline::{MemoryKind, OpTime, PlanComparison, Timeline, why};
use serde::Serialize;
use std::collections::HashMap;
use taut_memory::{Bytes, Location};

/// The most buffers of a page. With more, memory over time ends earlier than the recording, and the page warns of it.
const MAX_BUFFERS: usize = 60_000;
/// The most steps whose times a page has. The arenas of further runs are not split into buffers.
const MAX_STEPS: usize = 250_000;
/// The most characters of a step's description.
const MAX_DETAIL_CHARS: usize = 240;
/// The most plans that a page shows, the largest ones.
const MAX_PLANS: usize = 12;

#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    notes: &'a [String],
    figures: &'a [(String, String)],
    columns: &'a [String],
    rows: Vec<Vec<Option<f64>>>,
    kinds: Vec<&'static str>,
    plans: Vec<Plan>,
    budget: Option<&'a BudgetChart>,
    memory: Option<Memory>,
    ops: Vec<Time>,
    lines: Vec<Time>,
    warnings: Vec<String>,
    texts: Vec<String>,
}

/// Interned texts.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }

    fn line(&mut self, at: Option<Location>) -> usize {
        self.number(&at.map(|at| at.short().to_string()).unwrap_or_default())
    }
}

#[derive(Serialize)]
struct Plan {
    name: String,
    peak: usize,
    arena: usize,
    lower_bound: usize,
    peak_step: Option<usize>,
    /// Per step: op, line, and its outputs and attributes.
    steps: Vec<(usize, usize, usize)>,
    /// Per buffer: offset, bytes, first step, the step after the last, role (0 value, 1 scratch, 2 output).
    buffers: Vec<(usize, usize, usize, usize, u8)>,
    writers: Vec<Vec<usize>>,
    readers: Vec<Vec<usize>>,
    /// Measurements of its runs.
    runs: usize,
    measured: Option<usize>,
    exact: bool,
    nanos: u64,
}

/// Memory over time.
#[derive(Serialize)]
struct Memory {
    duration: u64,
    /// Until when all buffers are listed.
    until: u64,
    live_at_start: usize,
    live_at_end: usize,
    outside: u64,
    /// Kind, op, line and reason that several buffers share.
    owners: Vec<(usize, usize, usize, usize)>,
    /// Per buffer, in the order of allocation: nanoseconds since the one before, lifetime (-1: live at the end), bytes, owner.
    born: Vec<u64>,
    life: Vec<i64>,
    bytes: Vec<usize>,
    owner: Vec<usize>,
    runs: Vec<Run>,
    marks: Vec<(u64, String, usize)>,
}

/// A run: its plan (-1 if it is not shown), the buffer that is its arena (-1 if it has none), its start and end, and the
/// starts of its steps: nanoseconds from the start of the run to the first, then from each to the next.
#[derive(Serialize)]
struct Run {
    plan: i64,
    arena: i64,
    start: u64,
    end: u64,
    steps: Vec<u64>,
}

#[derive(Serialize)]
struct Time {
    op: String,
    line: usize,
    count: u64,
    total: u64,
    own: u64,
    share: f64,
    gflops: Option<f64>,
    gbytes: Option<f64>,
}

pub(super) fn of(report: &ProfileReport<'_>) -> String {
    let mut texts = Texts::default();
    let mut warnings = Vec::new();
    let (plans, numbers) = plans(report, &mut texts, &mut warnings);
    let memory = report.timeline.map(|timeline| memory(timeline, &numbers, &mut texts, &mut warnings));
    let mut times = |rows: Vec<OpTime>| rows.iter().map(|row| time(row, &mut texts)).collect();
    let ops = report.timeline.map(|timeline| times(timeline.by_op())).unwrap_or_default();
    let lines = report.timeline.map(|timeline| times(timeline.by_line())).unwrap_or_default();
    let finite = |row: &Vec<f64>| row.iter().map(|value| Some(*value).filter(|v| v.is_finite())).collect();
    let data = Data {
        title: &report.title,
        notes: &report.notes,
        figures: &report.figures,
        columns: &report.columns,
        rows: report.rows.iter().map(finite).collect(),
        kinds: MemoryKind::ALL.iter().map(|kind| kind.name()).collect(),
        plans,
        budget: report.budget.as_ref(),
        memory,
        ops,
        lines,
        warnings,
        texts: texts.list,
    };
    serde_json::to_string(&data).unwrap_or_else(|error| format!("{{\"failed\":\"{error}\"}}"))
}

fn time(row: &OpTime, texts: &mut Texts) -> Time {
    let op = match row.gradient_of {
        Some(of) => format!("{} (gradient of {of})", row.op),
        None => row.op.to_owned(),
    };
    Time {
        op,
        line: texts.line(row.line),
        count: row.count,
        total: row.total.as_nanos() as u64,
        own: row.own.as_nanos() as u64,
        share: row.share,
        gflops: row.gflops(),
        gbytes: row.gigabytes(),
    }
}

/// The plans, and per program of the timeline the index of its plan.
fn plans(
    report: &ProfileReport<'_>,
    texts: &mut Texts,
    warnings: &mut Vec<String>,
) -> (Vec<Plan>, Vec<Option<usize>>) {
    let mut plans: Vec<Plan> = Vec::new();
    let Some(timeline) = report.timeline else {
        plans.extend(report.plans.iter().map(|(name, summary)| plan(name, summary, None, texts)));
        return (plans, Vec::new());
    };
    let measured = timeline.planned_by_summary();
    let mut numbers: Vec<Option<usize>> = vec![None; timeline.summaries.len()];
    for (name, summary) in &report.plans {
        let known = timeline.summaries.iter().position(|other| summary.is_same(other));
        if let Some(known) = known {
            numbers[known] = Some(plans.len());
        }
        plans.push(plan(name, summary, known.and_then(|known| measured[known].as_ref()), texts));
    }
    let mut others: Vec<usize> =
        (0..numbers.len()).filter(|&i| numbers[i].is_none() && measured[i].is_some()).collect();
    others.sort_by_key(|&i| std::cmp::Reverse(timeline.summaries[i].peak));
    let room = MAX_PLANS.saturating_sub(plans.len());
    if others.len() > room {
        warnings.push(format!(
            "{} of {} further plans are not shown; the largest of them has a peak of {}.",
            others.len() - room,
            others.len(),
            Bytes(timeline.summaries[others[room]].peak)
        ));
    }
    for &other in others.iter().take(room) {
        let Some(row) = &measured[other] else { continue };
        numbers[other] = Some(plans.len());
        let name = format!("function at {}", row.line.short());
        plans.push(plan(&name, &timeline.summaries[other], Some(row), texts));
    }
    (plans, numbers)
}

fn plan(name: &str, summary: &PlanSummary, measured: Option<&PlanComparison>, texts: &mut Texts) -> Plan {
    let role = |role: PlannedRole| match role {
        PlannedRole::Value => 0,
        PlannedRole::Scratch => 1,
        PlannedRole::Output => 2,
    };
    let buffers = summary.buffers.iter();
    Plan {
        name: name.to_owned(),
        peak: summary.peak,
        arena: summary.arena,
        lower_bound: summary.lower_bound,
        peak_step: summary.peak_step(),
        steps: (summary.steps.iter())
            .map(|step| (texts.number(step.op), texts.line(Some(step.at)), texts.number(&details(step))))
            .collect(),
        buffers: buffers.clone().map(|b| (b.offset, b.bytes, b.start, b.end, role(b.role))).collect(),
        writers: buffers.clone().map(|buffer| buffer.writers.clone()).collect(),
        readers: buffers.map(|buffer| buffer.readers.clone()).collect(),
        runs: measured.map_or(0, |row| row.runs),
        measured: measured.map(|row| row.measured),
        exact: measured.is_some_and(PlanComparison::is_exact),
        nanos: measured.map_or(0, |row| row.time.as_nanos() as u64),
    }
}

/// A step's outputs and attributes, shortened.
fn details(step: &PlannedStep) -> String {
    let outputs: Vec<String> = step.outputs.iter().map(ToString::to_string).collect();
    let mut text = outputs.join(", ");
    if !step.attributes.is_empty() {
        text.push_str("; ");
        text.push_str(&step.attributes);
    }
    if text.chars().count() > MAX_DETAIL_CHARS {
        text = text.chars().take(MAX_DETAIL_CHARS).chain("…".chars()).collect();
    }
    text
}

fn memory(
    timeline: &Timeline,
    plans: &[Option<usize>],
    texts: &mut Texts,
    warnings: &mut Vec<String>,
) -> Memory {
    let mut order: Vec<usize> = (0..timeline.allocations.len()).collect();
    order.sort_by_key(|&i| timeline.allocations[i].born);
    let mut until = timeline.memory_until.unwrap_or(timeline.duration);
    if order.len() > MAX_BUFFERS {
        until = until.min(timeline.allocations[order[MAX_BUFFERS]].born);
        order.truncate(MAX_BUFFERS);
    }
    if until < timeline.duration {
        warnings.push(format!(
            "Memory is shown for the first {:.1?} of {:.1?}: further buffers exceed the capacity.",
            std::time::Duration::from_nanos(until),
            timeline.duration()
        ));
    }
    if timeline.dropped.calls > 0 {
        warnings.push(format!(
            "{} calls exceeded the capacity and were not recorded ({} of them inside loops and branches).",
            timeline.dropped.calls, timeline.dropped.inner
        ));
    }
    let mut owners: Vec<(usize, usize, usize, usize)> = Vec::new();
    let mut known: HashMap<(usize, usize, usize, usize), usize> = HashMap::new();
    let (mut born, mut life, mut bytes, mut owner) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut place = vec![-1i64; timeline.allocations.len()];
    let mut last = 0;
    for &i in &order {
        let allocation = &timeline.allocations[i];
        let op = match allocation.made_by {
            None => String::new(),
            Some(begun) => match begun.gradient_of {
                None => begun.op.to_owned(),
                Some(of) => format!("{} (gradient of {of})", begun.op),
            },
        };
        let kind = MemoryKind::of(allocation.category).index();
        let row = (kind, texts.number(&op), texts.line(allocation.line), texts.number(&why(allocation)));
        let number = *known.entry(row).or_insert_with(|| {
            owners.push(row);
            owners.len() - 1
        });
        place[i] = born.len() as i64;
        born.push(allocation.born - last);
        last = allocation.born;
        let died = allocation.died;
        life.push(if died == u64::MAX { -1 } else { (died - allocation.born) as i64 });
        bytes.push(allocation.bytes);
        owner.push(number);
    }
    let mut room = MAX_STEPS;
    let mut runs = Vec::new();
    for run in timeline.runs.iter().filter(|run| run.start < until) {
        let plan = plans[run.summary].map_or(-1, |plan| plan as i64);
        let fits = plan >= 0 && run.steps.len() <= room;
        let mut steps = Vec::new();
        if fits {
            room -= run.steps.len();
            let before = std::iter::once(&run.start).chain(&run.steps);
            steps = run.steps.iter().zip(before).map(|(step, before)| step - before).collect();
        }
        let arena = run.arena.map_or(-1, |arena| place[arena]);
        runs.push(Run { plan, arena, start: run.start, end: run.end.min(timeline.duration), steps });
    }
    Memory {
        duration: timeline.duration,
        until,
        live_at_start: timeline.live_at_start(),
        live_at_end: timeline.live_at_end(),
        outside: timeline.time_outside_ops().as_nanos() as u64,
        owners,
        born,
        life,
        bytes,
        owner,
        runs,
        marks: (timeline.marks.iter()).map(|mark| (mark.time, mark.name.clone(), mark.live)).collect(),
    }
}
