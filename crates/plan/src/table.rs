//! Every buffer of a program, row by row.

use crate::print::Place;
use crate::program::{Home, Program, Storage};
use crate::uses::Uses;
use std::fmt;
use taut_memory::{Bytes, Location};

/// A call that writes a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Which step it is.
    pub step: usize,
    /// The op.
    pub op: &'static str,
    /// The line that called it.
    pub at: Location,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.op, self.at.short())
    }
}

/// One buffer: where it lies, and when.
#[derive(Clone, Debug)]
pub struct BufferRow {
    /// Where it is.
    pub home: Home,
    /// Its bytes.
    pub bytes: usize,
    /// The first step that needs it.
    pub first: usize,
    /// The last step that needs it; as many as there are steps if it is needed after the run.
    pub last: usize,
    /// Whether it is a kernel's scratch memory.
    pub scratch: bool,
    /// The calls that write it: one makes it, the others overwrite it. None for what is there before the run.
    pub written: Vec<Written>,
}

/// Every buffer of a program. `Display` shows a row for each.
#[derive(Clone, Debug)]
pub struct Table {
    /// What lies in the arena and what is made for the caller, in the order of their first steps.
    pub rows: Vec<BufferRow>,
}

impl Program {
    /// Every buffer that a run uses, apart from what it only reads: where it lies, from when to when, what makes it and
    /// what overwrites it.
    pub fn table(&self) -> Table {
        let uses = Uses::new(self);
        let written = |i: usize| Written { step: i, op: self.steps[i].name(), at: self.steps[i].at };
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
        Table { rows }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<String> =
            self.rows.iter().map(|row| Place(row.home, row.bytes).to_string()).collect();
        let width = places.iter().map(String::len).max().unwrap_or(0).max("place".len());
        writeln!(f, "{:<width$}  {:>10}  {:>11}  written by", "place", "bytes", "steps")?;
        for (row, place) in self.rows.iter().zip(&places) {
            let steps = format!("{}..={}", row.first, row.last);
            write!(f, "{place:<width$}  {:>10}  {steps:>11}  ", Bytes(row.bytes))?;
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
