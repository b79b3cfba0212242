//! What a tape holds and why, and why a gradient is not there.

use crate::record::{Block, Entry, Kept};
use crate::structure::GradientSource;
use crate::tape::spec;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use taut_core::record::Slot;
use taut_core::{DType, Spec, Tensor};
use taut_memory::Location;

/// How many bytes the kept values fill, each buffer counted once.
pub(crate) fn bytes_held(entries: &[Option<Arc<Entry>>]) -> usize {
    let mut seen = HashSet::new();
    let kept = entries.iter().flatten().flat_map(|entry| entry.kept());
    kept.map(|(_, tensor)| new_bytes(tensor, &mut seen)).sum()
}

/// The length of a tensor's buffer, or zero if it was counted already.
fn new_bytes(tensor: &Tensor, seen: &mut HashSet<usize>) -> usize {
    match tensor.memory() {
        Some((address, bytes)) if bytes > 0 && seen.insert(address) => bytes,
        _ => 0,
    }
}

/// What a tape holds. Its `Display` is a table, the largest first.
#[derive(Clone, Debug)]
pub struct TapeExplanation {
    /// The values that are kept, in the order of the calls.
    pub rows: Vec<TapeRow>,
}

/// A value that a tape keeps.
#[derive(Clone, Debug)]
pub struct TapeRow {
    /// Bytes that it adds: zero if an earlier row keeps the same buffer.
    pub bytes: usize,
    /// Its type and shape.
    pub spec: Spec,
    /// The op whose gradient needs it.
    pub op: &'static str,
    /// The line that called the op.
    pub at: Location,
    /// What it is to the op: `input 0`, `output 0`, or `residual`.
    pub role: String,
    /// The inputs whose gradients need it.
    pub needed_for: Vec<usize>,
}

impl TapeExplanation {
    /// The bytes of all rows.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|row| row.bytes).sum()
    }
}

pub(crate) fn explanation(entries: &[Option<Arc<Entry>>]) -> TapeExplanation {
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for entry in entries.iter().flatten() {
        let needed_for: Vec<usize> = (0..entry.inputs.len()).filter(|&i| entry.wanted.has(i)).collect();
        for (kept, tensor) in entry.kept() {
            rows.push(TapeRow {
                bytes: new_bytes(tensor, &mut seen),
                spec: tensor.spec().clone(),
                op: entry.op.as_ref().map_or("", |op| op.name()),
                at: entry.at,
                role: match kept {
                    Kept::Input(i) => format!("input {i}"),
                    Kept::Output(i) => format!("output {i}"),
                    Kept::Residual => "residual".into(),
                },
                needed_for: needed_for.clone(),
            });
        }
    }
    TapeExplanation { rows }
}

impl fmt::Display for TapeExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} bytes in {} values", self.bytes(), self.rows.len())?;
        let mut rows: Vec<&TapeRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        for row in rows {
            let inputs: Vec<String> = row.needed_for.iter().map(ToString::to_string).collect();
            let inputs = inputs.join(", ");
            write!(f, "{:>12}  {} of {} {}", row.bytes, row.role, row.op, row.spec)?;
            writeln!(f, ", for the gradient of input {inputs}, at {}", row.at)?;
        }
        Ok(())
    }
}

/// Why a gradient is `None`. Its `Display` says what to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SavedReason {
    /// The source is not a float.
    NotFloat(DType),
    /// The tape does not follow the source.
    NotWatched,
    /// The variable is not trainable, and nobody asked to watch it.
    NotTrainable,
    /// The variable was not read while the tape recorded.
    NotRead,
    /// The target is not a float.
    TargetNotFloat(DType),
    /// The target was not computed from anything that the tape follows.
    TargetNotFollowed,
    /// No recorded call used the source.
    NeverUsed,
    /// Everything that was made of the source went into ops that have no gradient.
    Blocked(Vec<(&'static str, Location)>),
    /// The source was used, but the target does not depend on it.
    Independent,
    /// The target depends on the source, but a rule on the way gave no gradient.
    NoRule,
}

impl fmt::Display for SavedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SavedReason::NotFloat(dtype) => write!(f, "the source is {dtype}, and only floats have gradients"),
            SavedReason::NotWatched => f.write_str("the tape does not watch the source; call tape.watch(&source) before using it"),
            SavedReason::NotTrainable => f.write_str(
                "the variable is not trainable, so the tape does not follow it by itself; call tape.watch(&variable)",
            ),
            SavedReason::NotRead => f.write_str("the variable was not read while the tape recorded"),
            SavedReason::TargetNotFloat(dtype) => write!(f, "the target is {dtype}, and only floats have gradients"),
            SavedReason::TargetNotFollowed => f.write_str(
                "the target was not computed from anything watched while the tape recorded",
            ),
            SavedReason::NeverUsed => f.write_str("nothing that the tape recorded used the source"),
            SavedReason::Blocked(by) => {
                f.write_str("no gradient goes through what was made of the source:")?;
                by.iter().try_for_each(|(op, at)| write!(f, "\n  {op} at {at}"))
            }
            SavedReason::Independent => f.write_str("the source was used, but the target does not depend on it"),
            SavedReason::NoRule => f.write_str("the target depends on the source, but a rule on the way gave no gradient"),
        }
    }
}

/// Why a target has no gradient with respect to a source; `None` if it has one.
pub(crate) fn why(
    entries: &[Option<Arc<Entry>>],
    blocks: &[Block],
    targets: &[GradientSource],
    target_slots: &[Option<Slot>],
    source: &GradientSource,
    slot: Option<Slot>,
) -> Option<SavedReason> {
    let dtype = spec(source).dtype;
    if !dtype.is_float() {
        return Some(SavedReason::NotFloat(dtype));
    }
    let Some(slot) = slot else {
        return Some(match source {
            GradientSource::Tensor(_) => SavedReason::NotWatched,
            GradientSource::Variable(variable) if !variable.is_trainable() => SavedReason::NotTrainable,
            GradientSource::Variable(_) => SavedReason::NotRead,
        });
    };
    let depends = crate::backward::dependent(entries, &[Some(slot)]);
    let reached = |slot: Slot| depends.get(slot.entry as usize).copied().unwrap_or(false);
    let slots: Vec<Slot> = target_slots.iter().flatten().copied().collect();
    if slots.iter().any(|&target| reached(target)) {
        return None;
    }
    let is_alive = |block: &Block| {
        let entry = entries.get(block.from.entry as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| entry.serial == block.serial)
    };
    let stops: Vec<_> =
        blocks.iter().filter(|block| reached(block.from) && is_alive(block)).map(|b| (b.op, b.at)).collect();
    if let Some(target) = targets.iter().find(|target| !spec(target).dtype.is_float()) {
        return Some(SavedReason::TargetNotFloat(spec(target).dtype));
    }
    if !stops.is_empty() {
        return Some(SavedReason::Blocked(stops));
    }
    let used = depends.iter().filter(|&&depends| depends).count() > 1;
    Some(match (slots.is_empty(), used) {
        (_, false) => SavedReason::NeverUsed,
        (true, true) => SavedReason::TargetNotFollowed,
        (false, true) => SavedReason::Independent,
    })
}
