//! The memory that is live at a moment, and why.

use super::{Allocation, AllocationOrigin, MemoryKind, Timeline};
use crate::plan_summary::{PlanSummary, PlannedRole};
use std::fmt;
use std::time::Duration;
use taut_memory::{Bytes, Category, Location};

/// A buffer, or a part of an arena, that is live at a moment.
#[derive(Clone, Debug)]
pub struct LiveRow {
    /// Its bytes.
    pub bytes: usize,
    /// What it is used for.
    pub kind: MemoryKind,
    /// The op that allocated or wrote it, if one did.
    pub op: Option<&'static str>,
    /// The op whose gradient that op is part of.
    pub gradient_of: Option<&'static str>,
    /// The source location that it is attributed to.
    pub line: Option<Location>,
    /// Why it is live.
    pub why: String,
}

impl fmt::Display for LiveRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10}  {:<14}  ", Bytes(self.bytes), self.kind)?;
        if let Some(op) = self.op {
            write!(f, "{op} ")?;
        }
        if let Some(line) = self.line {
            write!(f, "at {}: ", line.short())?;
        }
        f.write_str(&self.why)
    }
}

impl Timeline {
    /// All memory that is live at a moment, the largest first. The rows sum to the ledger's live bytes.
    pub fn live_at(&self, at: Duration) -> Vec<LiveRow> {
        let time = at.as_nanos() as u64;
        let mut rows = Vec::new();
        for (number, allocation) in self.allocations.iter().enumerate() {
            if !allocation.is_live(time) || allocation.bytes == 0 {
                continue;
            }
            match self.step_in(number, time) {
                Some((summary, step)) => arena_rows(summary, step, allocation.bytes, &mut rows),
                None => rows.push(allocation_row(allocation)),
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows
    }

    /// The step that runs in an arena at a moment.
    fn step_in(&self, allocation: usize, time: u64) -> Option<(&PlanSummary, usize)> {
        let place = self.arenas.binary_search_by_key(&allocation, |arena| arena.0).ok()?;
        let runs = &self.arenas[place].1;
        let run = runs[..runs.partition_point(|&run| self.runs[run].start <= time)].last()?;
        let run = &self.runs[*run];
        let step = run.steps.partition_point(|&start| start <= time).checked_sub(1)?;
        (time < run.end).then_some((&*self.summaries[run.summary], step))
    }
}

fn allocation_row(allocation: &Allocation) -> LiveRow {
    let made_by = allocation.made_by;
    let end = match allocation.died {
        u64::MAX => String::from("live at the end"),
        died if allocation.origin == AllocationOrigin::Before => {
            format!("freed at {:.1?}", Duration::from_nanos(died))
        }
        died => format!("freed after {:.1?}", Duration::from_nanos(died - allocation.born)),
    };
    LiveRow {
        bytes: allocation.bytes,
        kind: MemoryKind::of(allocation.category),
        op: made_by.map(|made_by| made_by.op),
        gradient_of: made_by.and_then(|made_by| made_by.gradient_of),
        line: allocation.line,
        why: format!("{}; {end}", why(allocation)),
    }
}

/// Why a buffer is live, without when it is freed.
pub(crate) fn why(allocation: &Allocation) -> String {
    let text = match (allocation.origin, allocation.category) {
        (AllocationOrigin::Returned(at), _) => {
            return format!("returned by the function called at {}", at.short());
        }
        (_, Category::Arena) => "kept for the next run of its function",
        (AllocationOrigin::Before, Category::Tensor) => "allocated before the recording",
        (AllocationOrigin::Before, Category::Variable) => {
            "a variable's value; allocated before the recording"
        }
        (AllocationOrigin::Before, _) => "allocated before the recording",
        (_, Category::Variable) => "a variable's value",
        (_, Category::Optimizer) => "an optimizer's state",
        (_, Category::Residual) => "saved for the backward pass",
        (_, Category::Gradient) => "a gradient",
        (_, Category::Dataset) => "a dataset's element or buffer",
        (_, Category::Scratch) => "scratch memory of this call",
        (_, Category::Tensor) if allocation.made_by.is_some() => "the result of this call, still referenced",
        (_, Category::Tensor) => "a tensor, still referenced",
    };
    String::from(text)
}

/// The buffers of an arena of this many bytes at a step, and its unused rest.
fn arena_rows(summary: &PlanSummary, step: usize, bytes: usize, rows: &mut Vec<LiveRow>) {
    let mut unused = bytes;
    for buffer in &summary.buffers {
        let kind = match buffer.role {
            PlannedRole::Value => MemoryKind::ArenaValues,
            PlannedRole::Scratch => MemoryKind::ArenaScratch,
            PlannedRole::Output => continue,
        };
        if !buffer.is_live(step) {
            continue;
        }
        let writer = buffer.writer(step).map(|writer| &summary.steps[writer]);
        unused -= buffer.bytes.min(unused);
        rows.push(LiveRow {
            bytes: buffer.bytes,
            kind,
            op: writer.map(|step| step.op),
            gradient_of: None,
            line: writer.map(|step| step.at),
            why: summary.why(buffer, step),
        });
    }
    if unused > 0 {
        rows.push(LiveRow {
            bytes: unused,
            kind: MemoryKind::ArenaUnused,
            op: None,
            gradient_of: None,
            line: None,
            why: String::from("used by other steps; alignment and packing"),
        });
    }
}
