//! Why a program needs as many bytes as it does, and what would make them fewer.

use crate::place::rounded;
use crate::program::{Access, Home, Program, Step};
use crate::uses::Uses;
use std::fmt;
use taut_memory::{Bytes, Location};

/// What a row of an [`PeakExplanation`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliveReason {
    /// A value in the arena.
    Value,
    /// A buffer that is made for the caller.
    Output,
    /// A kernel's scratch memory.
    Scratch,
    /// What alignment and packing leave unused.
    Slack,
}

/// Some of the bytes of a peak.
#[derive(Clone, Debug)]
pub struct PeakRow {
    /// How many.
    pub bytes: usize,
    /// What they are.
    pub held: AliveReason,
    /// The op that made them, as far as one did.
    pub op: Option<&'static str>,
    /// The line that called it.
    pub at: Option<Location>,
    /// Why they are there.
    pub why: String,
    /// The input that would have to be given by value for these bytes to be in its memory instead.
    pub give: Option<usize>,
    /// What would free them.
    pub remedy: Option<String>,
}

/// Every byte of a program's peak. `Display` shows a row for each buffer.
#[derive(Clone, Debug)]
pub struct PeakExplanation {
    /// The peak, in bytes: the sum of the rows.
    pub peak: usize,
    /// The step at which it is reached first; `None` if the program has no steps.
    pub step: Option<usize>,
    /// That step's op, and its line.
    pub op: Option<(&'static str, Location)>,
    /// What it consists of, the largest first.
    pub rows: Vec<PeakRow>,
}

impl Program {
    /// Says of every byte of the peak whose it is, why it is there and what would free it.
    ///
    /// ```
    /// use taut_core::{DType, Spec, trace};
    /// use taut_plan::Program;
    /// let graph = trace(&[Spec::new(DType::F32, [256])], |x| Ok(vec![(&x[0] * 2.0)?]))?.graph;
    /// let explanation = Program::new(&graph)?.explain_peak();
    /// assert_eq!(explanation.rows.iter().map(|row| row.bytes).sum::<usize>(), 1024);
    /// assert_eq!(explanation.rows[0].remedy.as_deref(), Some("give input 0 by value, or do not return it"));
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn explain_peak(&self) -> PeakExplanation {
        let step = self.peak_step();
        let uses = Uses::new(self);
        let mut rows = Vec::new();
        // An input that is suggested for one buffer is not there for another.
        let mut suggested = vec![false; self.inputs.len()];
        let mut used = 0;
        for (i, storage) in self.storages.iter().enumerate() {
            let is_alive = step.is_some_and(|step| storage.start <= step && step < storage.end);
            let held = match storage.home {
                // What lies there before what is returned does not count twice.
                Home::Output(_) if storage.end > self.steps.len() => AliveReason::Output,
                Home::Arena(_) if is_alive => AliveReason::Value,
                _ => continue,
            };
            if storage.bytes == 0 {
                continue;
            }
            used += if held == AliveReason::Value { storage.bytes } else { 0 };
            rows.push(self.row(i, held, step.unwrap_or(0), &uses, &mut suggested));
        }
        let mut op = None;
        if let Some(step) = step.map(|step| &self.steps[step]) {
            op = Some((step.name(), step.at));
            if step.scratch.1 > 0 {
                used += step.scratch.1;
                rows.push(PeakRow {
                    bytes: step.scratch.1,
                    held: AliveReason::Scratch,
                    op: Some(step.name()),
                    at: Some(step.at),
                    why: String::from("scratch memory of this step"),
                    give: None,
                    remedy: None,
                });
            }
        }
        if self.arena_bytes() > used {
            rows.push(PeakRow {
                bytes: self.arena_bytes() - used,
                held: AliveReason::Slack,
                op: None,
                at: None,
                why: String::from("alignment and packing"),
                give: None,
                remedy: None,
            });
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        PeakExplanation { peak: self.peak_bytes(), step, op, rows }
    }

    /// The first step at which most bytes of the arena are needed.
    fn peak_step(&self) -> Option<usize> {
        let mut changes = vec![0isize; self.steps.len() + 2];
        for storage in self.storages.iter().filter(|storage| matches!(storage.home, Home::Arena(_))) {
            changes[storage.start] += rounded(storage.bytes) as isize;
            changes[storage.end] -= rounded(storage.bytes) as isize;
        }
        let (mut now, mut most) = (0, None);
        for (i, step) in self.steps.iter().enumerate() {
            now += changes[i];
            let here = now + rounded(step.scratch.1) as isize;
            if most.is_none_or(|(_, bytes)| here > bytes) {
                most = Some((i, here));
            }
        }
        most.map(|(step, _)| step)
    }

    fn row(
        &self,
        storage: usize,
        held: AliveReason,
        peak: usize,
        uses: &Uses,
        suggested: &mut [bool],
    ) -> PeakRow {
        let named = |i: usize| format!("{} at {}", self.steps[i].name(), self.steps[i].at.short());
        let (writers, readers) = (&uses.writers[storage], &uses.readers[storage]);
        // What lies there at the peak, or comes to lie there.
        let writer = writers.iter().rev().find(|&&step| step <= peak).or(writers.first()).copied();
        let is_made = writer == Some(peak);
        let is_read = readers.contains(&peak);
        let next = readers.iter().find(|&&step| step > peak).copied();
        let why = match held {
            AliveReason::Output if is_made => String::from("returned; made by this step"),
            AliveReason::Output => String::from("returned; there from the start"),
            _ if is_made => String::from("made by this step"),
            _ => match (is_read, next) {
                (true, None) => String::from("read by this step"),
                (true, Some(next)) => format!("read by this step, and by {}", named(next)),
                (false, Some(next)) => format!("kept for {}", named(next)),
                (false, None) => String::from("made, and not read"),
            },
        };
        let give = self.input_to_give(storage, uses, suggested);
        if let Some(input) = give {
            suggested[input] = true;
        }
        let otherwise = match (held, is_made || is_read, next) {
            (AliveReason::Output, ..) => Some(String::from("do not return it")),
            (AliveReason::Value, false, Some(next)) => Some(format!("recompute it for {}", named(next))),
            _ => None,
        };
        let remedy = match (give, otherwise) {
            (Some(input), Some(otherwise)) => Some(format!("give input {input} by value, or {otherwise}")),
            (Some(input), None) => Some(format!("give input {input} by value")),
            (None, otherwise) => otherwise,
        };
        PeakRow {
            bytes: self.storages[storage].bytes,
            held,
            op: writer.map(|step| self.steps[step].name()),
            at: writer.map(|step| self.steps[step].at),
            why,
            give,
            remedy,
        }
    }

    /// An input in whose memory this storage could be, if only it were given: of the same size, and not read any more by
    /// then, or overwritten by the same call.
    fn input_to_give(&self, storage: usize, uses: &Uses, suggested: &[bool]) -> Option<usize> {
        let wanted = &self.storages[storage];
        let maker = uses.writers[storage].first().map(|&step| &self.steps[step])?;
        (0..self.inputs.len()).find(|&input| {
            let provided = &self.inputs[input];
            let old = self.storages.iter().position(|s| s.home == Home::Input(input) && s.start == 0);
            old.is_some_and(|old| {
                !suggested[input]
                    && provided.access == Access::Read
                    && provided.strides.is_none()
                    && self.storages[old].bytes == wanted.bytes
                    && (self.storages[old].end <= wanted.start
                        || (self.storages[old].end == wanted.start + 1 && overwrites(maker, old, storage)))
            })
        })
    }
}

/// Whether a step could put its output into the storage of an operand, which nothing else reads.
fn overwrites(step: &Step, operand: usize, output: usize) -> bool {
    let Some(op) = &step.op else { return false };
    let mut outputs = step.targets.iter().enumerate().filter(|(_, target)| target.storage == output);
    let reads = step.operands.iter().filter(|o| o.storage == operand).count();
    reads == 1
        && outputs.any(|(number, target)| {
            op.aliases(number).iter().any(|&i| {
                let o = &step.operands[i];
                o.storage == operand
                    && o.dtype == target.spec.dtype
                    && o.layout.shape == target.spec.shape
                    && o.layout.is_contiguous()
            })
        })
}

impl fmt::Display for PeakExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peak of {} ({} bytes)", Bytes(self.peak), self.peak)?;
        match (self.step, self.op) {
            (Some(step), Some((op, at))) => writeln!(f, " is at step {step}, {op} at {}", at.short())?,
            _ => writeln!(f, " is there from the start")?,
        }
        for row in &self.rows {
            write!(f, "{:>10}  ", Bytes(row.bytes))?;
            if let (Some(op), Some(at)) = (row.op, row.at) {
                write!(f, "{op} at {}: ", at.short())?;
            }
            f.write_str(&row.why)?;
            match &row.remedy {
                Some(remedy) => writeln!(f, ". To free it: {remedy}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

/// Asserts that a program needs no more than so many bytes at its peak. If it does, the message shows what they are.
///
/// ```
/// use taut_core::{DType, Spec, trace};
/// use taut_plan::{Program, assert_peak};
/// let graph = trace(&[Spec::new(DType::F32, [256])], |x| Ok(vec![((&x[0] * 2.0)? + 1.0)?]))?.graph;
/// assert_peak!(Program::new(&graph)?, <= 1024);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[macro_export]
macro_rules! assert_peak {
    ($program:expr, <= $bytes:expr $(,)?) => {{
        let program: &$crate::Program = &$program;
        let most: usize = $bytes;
        assert!(
            program.peak_bytes() <= most,
            "the peak must not be above {most} bytes, and it is {}\n{}",
            program.peak_bytes(),
            program.explain_peak()
        );
    }};
}
