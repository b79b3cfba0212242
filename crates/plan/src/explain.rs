//! Explains the peak of a program: which bytes are live, why, and what would free them.

use crate::placement::rounded;
use crate::program::{Access, Home, Program, ProgramStep};
use crate::storage_uses::StorageUses;
use std::fmt;
use taut_memory::{Bytes, Location};

/// What the bytes of a [`PeakRow`] hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeakRowKind {
    /// A value in the arena.
    Value,
    /// An output buffer, allocated for the caller.
    Output,
    /// A kernel's scratch memory.
    Scratch,
    /// Bytes of the arena that alignment and packing leave unused.
    Slack,
}

/// One buffer that is live at the peak.
#[derive(Clone, Debug)]
pub struct PeakRow {
    /// Its bytes.
    pub bytes: usize,
    /// What it holds.
    pub kind: PeakRowKind,
    /// The op that wrote it, if one did.
    pub op: Option<&'static str>,
    /// The source location of that op's call.
    pub at: Option<Location>,
    /// Why it is live.
    pub why: String,
    /// The input in whose memory it would be if that input were donated.
    pub donate: Option<usize>,
    /// What would free it.
    pub remedy: Option<String>,
}

/// Every byte of a program's peak. `Display` prints a row for each buffer.
#[derive(Clone, Debug)]
pub struct PeakExplanation {
    /// The peak, in bytes: the sum of the rows.
    pub peak: usize,
    /// The first step at the peak; `None` if the program has no steps.
    pub step: Option<usize>,
    /// That step's op, and the source location of its call.
    pub op: Option<(&'static str, Location)>,
    /// The buffers that are live at the peak, the largest first.
    pub rows: Vec<PeakRow>,
}

impl Program {
    /// Lists every byte of the peak: the op that wrote it, why it is live, and what would free it.
    ///
    /// ```
    /// use taut_core::{DType, Spec, trace};
    /// use taut_plan::Program;
    /// let graph = trace(&[Spec::new(DType::F32, [256])], |x| Ok(vec![(&x[0] * 2.0)?]))?.graph;
    /// let explanation = Program::new(&graph)?.explain_peak();
    /// assert_eq!(explanation.rows.iter().map(|row| row.bytes).sum::<usize>(), 1024);
    /// assert_eq!(explanation.rows[0].remedy.as_deref(), Some("donate input 0, or do not return it"));
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    pub fn explain_peak(&self) -> PeakExplanation {
        let step = self.peak_step();
        let uses = StorageUses::new(self);
        let mut rows = Vec::new();
        // An input that is suggested for one buffer is not suggested for another.
        let mut suggested = vec![false; self.inputs.len()];
        let mut used = 0;
        for (i, storage) in self.storages.iter().enumerate() {
            let is_alive = step.is_some_and(|step| storage.start <= step && step < storage.end);
            let kind = match storage.home {
                // Values that use an output buffer before its result do not count again.
                Home::Output(_) if storage.end > self.steps.len() => PeakRowKind::Output,
                Home::Arena(_) if is_alive => PeakRowKind::Value,
                _ => continue,
            };
            if storage.bytes == 0 {
                continue;
            }
            used += if kind == PeakRowKind::Value { storage.bytes } else { 0 };
            rows.push(self.row(i, kind, step.unwrap_or(0), &uses, &mut suggested));
        }
        let mut op = None;
        if let Some(step) = step.map(|step| &self.steps[step]) {
            op = Some((step.name(), step.at));
            if step.scratch.1 > 0 {
                used += step.scratch.1;
                rows.push(PeakRow {
                    bytes: step.scratch.1,
                    kind: PeakRowKind::Scratch,
                    op: Some(step.name()),
                    at: Some(step.at),
                    why: String::from("scratch memory of this step"),
                    donate: None,
                    remedy: None,
                });
            }
        }
        if self.arena_bytes() > used {
            rows.push(PeakRow {
                bytes: self.arena_bytes() - used,
                kind: PeakRowKind::Slack,
                op: None,
                at: None,
                why: String::from("alignment and packing"),
                donate: None,
                remedy: None,
            });
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        PeakExplanation { peak: self.peak_bytes(), step, op, rows }
    }

    /// The first step at which the most bytes of the arena are live.
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
        kind: PeakRowKind,
        peak: usize,
        uses: &StorageUses,
        suggested: &mut [bool],
    ) -> PeakRow {
        let named = |i: usize| format!("{} at {}", self.steps[i].name(), self.steps[i].at.short());
        let (writers, readers) = (&uses.writers[storage], &uses.readers[storage]);
        // The last writer up to the peak, or else the first one after it.
        let writer = writers.iter().rev().find(|&&step| step <= peak).or(writers.first()).copied();
        let is_written = writer == Some(peak);
        let is_read = readers.contains(&peak);
        let next = readers.iter().find(|&&step| step > peak).copied();
        let why = match kind {
            PeakRowKind::Output if is_written => String::from("returned; written by this step"),
            PeakRowKind::Output => String::from("returned; allocated before the first step"),
            _ if is_written => String::from("written by this step"),
            _ => match (is_read, next) {
                (true, None) => String::from("read by this step"),
                (true, Some(next)) => format!("read by this step, and by {}", named(next)),
                (false, Some(next)) => format!("kept for {}", named(next)),
                (false, None) => String::from("written and never read"),
            },
        };
        let donate = self.input_to_donate(storage, uses, suggested);
        if let Some(input) = donate {
            suggested[input] = true;
        }
        let alternative = match (kind, is_written || is_read, next) {
            (PeakRowKind::Output, ..) => Some(String::from("do not return it")),
            (PeakRowKind::Value, false, Some(next)) => Some(format!("recompute it for {}", named(next))),
            _ => None,
        };
        let remedy = match (donate, alternative) {
            (Some(input), Some(alternative)) => Some(format!("donate input {input}, or {alternative}")),
            (Some(input), None) => Some(format!("donate input {input}")),
            (None, alternative) => alternative,
        };
        PeakRow {
            bytes: self.storages[storage].bytes,
            kind,
            op: writer.map(|step| self.steps[step].name()),
            at: writer.map(|step| self.steps[step].at),
            why,
            donate,
            remedy,
        }
    }

    /// An input in whose memory this storage could be if it were donated: of the same size, and read for the last time
    /// before the storage is live, or overwritten in place by the call that writes the storage.
    fn input_to_donate(&self, storage: usize, uses: &StorageUses, suggested: &[bool]) -> Option<usize> {
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

/// Whether a step could compute its output in place of an operand that it reads once.
fn overwrites(step: &ProgramStep, operand: usize, output: usize) -> bool {
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
            _ => writeln!(f, " is reached before the first step")?,
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

/// Asserts that the peak of a program is at most this many bytes. The failure message explains the peak.
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
            "the peak must be <= {most} bytes, got {}\n{}",
            program.peak_bytes(),
            program.explain_peak()
        );
    }};
}
