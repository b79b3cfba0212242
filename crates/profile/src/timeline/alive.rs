//! Who is alive at a moment.

use super::{Allocation, Kind, Origin, Timeline};
use crate::outline::{Outline, Role};
use std::fmt;
use std::time::Duration;
use taut_memory::{Bytes, Category, Location};

/// Bytes that are there at a moment.
#[derive(Clone, Debug)]
pub struct Alive {
    /// How many.
    pub bytes: usize,
    /// What for.
    pub kind: Kind,
    /// The op that made them, as far as one did.
    pub op: Option<&'static str>,
    /// The op whose gradient that was part of.
    pub gradient_of: Option<&'static str>,
    /// The line that they are there for.
    pub line: Option<Location>,
    /// Why they are there.
    pub why: String,
}

impl fmt::Display for Alive {
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
    /// Everything that is alive at a moment, the largest first. The rows sum to the ledger's live bytes then.
    pub fn alive_at(&self, at: Duration) -> Vec<Alive> {
        let time = at.as_nanos() as u64;
        let mut rows = Vec::new();
        for (number, allocation) in self.allocations.iter().enumerate() {
            if !allocation.is_alive(time) || allocation.bytes == 0 {
                continue;
            }
            match self.step_in(number, time) {
                Some((outline, step)) => planned(outline, step, allocation.bytes, &mut rows),
                None => rows.push(held(allocation)),
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows
    }

    /// The step that runs in an arena at a moment.
    fn step_in(&self, allocation: usize, time: u64) -> Option<(&Outline, usize)> {
        let place = self.arenas.binary_search_by_key(&allocation, |arena| arena.0).ok()?;
        let runs = &self.arenas[place].1;
        let run = runs[..runs.partition_point(|&run| self.runs[run].start <= time)].last()?;
        let run = &self.runs[*run];
        let step = run.steps.partition_point(|&start| start <= time).checked_sub(1)?;
        (time < run.end).then_some((&*self.outlines[run.outline], step))
    }
}

fn held(allocation: &Allocation) -> Alive {
    let made_by = allocation.made_by;
    let fate = match allocation.died {
        u64::MAX => String::from("still there at the end"),
        died if allocation.origin == Origin::Before => {
            format!("gone at {:.1?}", Duration::from_nanos(died))
        }
        died => format!("gone after {:.1?}", Duration::from_nanos(died - allocation.born)),
    };
    Alive {
        bytes: allocation.bytes,
        kind: Kind::of(allocation.category),
        op: made_by.map(|made_by| made_by.op),
        gradient_of: made_by.and_then(|made_by| made_by.gradient_of),
        line: allocation.line,
        why: format!("{}; {fate}", why(allocation)),
    }
}

/// Why a buffer is there, apart from how long.
pub(crate) fn why(allocation: &Allocation) -> String {
    let text = match (allocation.origin, allocation.category) {
        (Origin::Returned(at), _) => return format!("returned by the function called at {}", at.short()),
        (_, Category::Arena) => "kept for the next run of its function",
        (Origin::Before, Category::Tensor) => "there before the recording",
        (Origin::Before, Category::Variable) => "a variable's value; there before the recording",
        (Origin::Before, _) => "there before the recording",
        (_, Category::Variable) => "a variable's value",
        (_, Category::Optimizer) => "an optimizer's state",
        (_, Category::Residual) => "kept for a backward pass",
        (_, Category::Gradient) => "a gradient",
        (_, Category::Dataset) => "a dataset's element or buffer",
        (_, Category::Scratch) => "scratch memory of this call",
        (_, Category::Tensor) if allocation.made_by.is_some() => {
            "the result of this call, which somebody holds"
        }
        (_, Category::Tensor) => "a tensor, which somebody holds",
    };
    String::from(text)
}

fn planned(outline: &Outline, step: usize, bytes: usize, rows: &mut Vec<Alive>) {
    let mut unused = bytes;
    for buffer in &outline.buffers {
        let kind = match buffer.role {
            Role::Value => Kind::ArenaValues,
            Role::Scratch => Kind::ArenaScratch,
            Role::Output => continue,
        };
        if !buffer.is_alive(step) {
            continue;
        }
        let writer = buffer.writer(step).map(|writer| &outline.steps[writer]);
        unused -= buffer.bytes.min(unused);
        rows.push(Alive {
            bytes: buffer.bytes,
            kind,
            op: writer.map(|step| step.op),
            gradient_of: None,
            line: writer.map(|step| step.at),
            why: outline.why(buffer, step),
        });
    }
    if unused > 0 {
        rows.push(Alive {
            bytes: unused,
            kind: Kind::ArenaUnused,
            op: None,
            gradient_of: None,
            line: None,
            why: String::from("for other steps; alignment and packing"),
        });
    }
}
