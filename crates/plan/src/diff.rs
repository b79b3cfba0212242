//! The difference between two plans.

use crate::program::{Home, Program};
use std::collections::HashMap;
use std::fmt;
use taut_memory::{Bytes, Location};

/// The buffers that the calls of one op at one source location write, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanChange {
    /// The op.
    pub op: &'static str,
    /// The source location of its calls.
    pub at: Location,
    /// Whether it is the op's scratch memory.
    pub scratch: bool,
    /// The number of buffers, before and after.
    pub buffers: (usize, usize),
    /// Their bytes, before and after.
    pub bytes: (usize, usize),
}

/// How one plan differs from another: each pair is before and after. `Display` prints a line for each change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanDiff {
    /// The peaks, in bytes.
    pub peak: (usize, usize),
    /// The lengths of the arenas, in bytes.
    pub arena: (usize, usize),
    /// The bytes of the output buffers.
    pub outputs: (usize, usize),
    /// Buffers that were added or removed, or whose bytes changed; in the order of the steps.
    pub changes: Vec<PlanChange>,
}

impl PlanDiff {
    /// Whether the two plans need the same memory for the same calls.
    pub fn is_empty(&self) -> bool {
        self.peak.0 == self.peak.1 && self.arena.0 == self.arena.1 && self.changes.is_empty()
    }
}

impl Program {
    /// The changes from this plan to another one.
    pub fn diff(&self, other: &Program) -> PlanDiff {
        let mut changes: Vec<PlanChange> = Vec::new();
        let mut known = HashMap::new();
        for (is_after, program) in [(false, self), (true, other)] {
            for row in program.table().rows {
                let Some(made) = row.written.first() else { continue };
                if !matches!(row.home, Home::Arena(_) | Home::Output(_)) {
                    continue;
                }
                let at = known.entry((made.op, made.at, row.scratch)).or_insert_with(|| {
                    let (op, at, scratch) = (made.op, made.at, row.scratch);
                    changes.push(PlanChange { op, at, scratch, buffers: (0, 0), bytes: (0, 0) });
                    changes.len() - 1
                });
                let PlanChange { buffers, bytes, .. } = &mut changes[*at];
                let (buffers, bytes) =
                    if is_after { (&mut buffers.1, &mut bytes.1) } else { (&mut buffers.0, &mut bytes.0) };
                *buffers += 1;
                *bytes += row.bytes;
            }
        }
        changes.retain(|change| change.buffers.0 != change.buffers.1 || change.bytes.0 != change.bytes.1);
        PlanDiff {
            peak: (self.peak_bytes(), other.peak_bytes()),
            arena: (self.arena_bytes(), other.arena_bytes()),
            outputs: (self.output_bytes(), other.output_bytes()),
            changes,
        }
    }
}

impl fmt::Display for PlanDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return writeln!(f, "no change: peak {}", Bytes(self.peak.0));
        }
        for (what, (before, after)) in [("peak", self.peak), ("arena", self.arena), ("outputs", self.outputs)]
        {
            writeln!(f, "{what:<8} {:>10} -> {:>10}", Bytes(before), Bytes(after))?;
        }
        for PlanChange { op, at, scratch, buffers, bytes } in &self.changes {
            let sign = match (buffers.0, buffers.1) {
                (0, _) => '+',
                (_, 0) => '-',
                _ => '~',
            };
            let scratch = if *scratch { "scratch of " } else { "" };
            let (before, after) = (Bytes(bytes.0), Bytes(bytes.1));
            write!(f, "{sign} {before:>10} -> {after:>10}  {scratch}{op} at {}", at.short())?;
            match (buffers.0, buffers.1) {
                (0 | 1, 0 | 1) => writeln!(f)?,
                (before, after) => writeln!(f, " ({before} -> {after} buffers)")?,
            }
        }
        Ok(())
    }
}
