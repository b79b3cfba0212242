//! A table of every buffer of a program.

use crate::print::PrintedHome;
use crate::program::{Home, Program, Storage};
use crate::storage_uses::StorageUses;
use std::fmt;
use taut_memory::{Bytes, Location};

/// A call that writes a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferWrite {
    /// The index of its step.
    pub step: usize,
    /// The op.
    pub op: &'static str,
    /// The source location of the call.
    pub at: Location,
}

impl fmt::Display for BufferWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.op, self.at.short())
    }
}

/// One buffer: its memory, and its live range.
#[derive(Clone, Debug)]
pub struct BufferRow {
    /// Its memory.
    pub home: Home,
    /// Its bytes.
    pub bytes: usize,
    /// The first step of its live range.
    pub first: usize,
    /// The last step of its live range; the number of steps if it is used after the run.
    pub last: usize,
    /// Whether it is a kernel's scratch memory.
    pub scratch: bool,
    /// The calls that write it: the first computes it, the others overwrite it.
    pub written: Vec<BufferWrite>,
}

/// Every buffer that a program writes. `Display` prints a row for each.
#[derive(Clone, Debug)]
pub struct BufferTable {
    /// The buffers, in the order of their first steps.
    pub rows: Vec<BufferRow>,
}

impl Program {
    /// Every buffer that a run writes: its memory, its live range, and the calls that write and overwrite it.
    pub fn table(&self) -> BufferTable {
        let uses = StorageUses::new(self);
        let written = |i: usize| BufferWrite { step: i, op: self.steps[i].name(), at: self.steps[i].at };
        let mut rows = Vec::new();
        for (i, &Storage { home, bytes, start, end, .. }) in self.storages.iter().enumerate() {
            if !uses.writers[i].is_empty() {
                let written = uses.writers[i].iter().map(|&step| written(step)).collect();
                let last = end.saturating_sub(1);
                rows.push(BufferRow { home, bytes, first: start, last, scratch: false, written });
            }
        }
        for (i, step) in self.steps.iter().enumerate().filter(|(_, step)| step.scratch.1 > 0) {
            let (home, bytes) = (Home::Arena(step.scratch.0), step.scratch.1);
            rows.push(BufferRow { home, bytes, first: i, last: i, scratch: true, written: vec![written(i)] });
        }
        rows.sort_by_key(|row| row.first);
        BufferTable { rows }
    }
}

impl fmt::Display for BufferTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let homes: Vec<String> =
            self.rows.iter().map(|row| PrintedHome(row.home, row.bytes).to_string()).collect();
        let width = homes.iter().map(String::len).max().unwrap_or(0).max("memory".len());
        writeln!(f, "{:<width$}  {:>10}  {:>11}  written by", "memory", "bytes", "live steps")?;
        for (row, home) in self.rows.iter().zip(&homes) {
            let steps = format!("{}..={}", row.first, row.last);
            write!(f, "{home:<width$}  {:>10}  {steps:>11}  ", Bytes(row.bytes))?;
            if row.scratch {
                f.write_str("scratch of ")?;
            }
            for (i, written) in row.written.iter().enumerate() {
                write!(f, "{}{written}", if i == 0 { "" } else { ", overwritten by " })?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
