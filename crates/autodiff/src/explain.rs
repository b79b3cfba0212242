//! Explanations: what a tape holds and why, and why a gradient is missing.

use crate::record::{BlockedValue, SavedRole, TapeEntry};
use crate::structure::GradientSource;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use taut_core::record::RecordSlot;
use taut_core::{DType, Spec, Tensor};
use taut_memory::Location;

/// The bytes of the saved values, each buffer counted once.
pub(crate) fn bytes_held(entries: &[Option<Arc<TapeEntry>>]) -> usize {
    let mut seen = HashSet::new();
    let saved = entries.iter().flatten().flat_map(|entry| entry.saved());
    saved.map(|(_, tensor)| new_bytes(tensor, &mut seen)).sum()
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
    /// The saved values, in the order of the calls.
    pub rows: Vec<TapeRow>,
}

/// A value that a tape saves.
#[derive(Clone, Debug)]
pub struct TapeRow {
    /// Bytes that it adds: zero if an earlier row has the same buffer.
    pub bytes: usize,
    /// Its type and shape.
    pub spec: Spec,
    /// The op whose gradient needs it.
    pub op: &'static str,
    /// The line that called the op.
    pub at: Location,
    /// Its role in the call: `input 0`, `output 0`, or `residual`.
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

pub(crate) fn explanation(entries: &[Option<Arc<TapeEntry>>]) -> TapeExplanation {
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for entry in entries.iter().flatten() {
        let needed_for: Vec<usize> = (0..entry.inputs.len()).filter(|&i| entry.wanted.has(i)).collect();
        for (role, tensor) in entry.saved() {
            rows.push(TapeRow {
                bytes: new_bytes(tensor, &mut seen),
                spec: tensor.spec().clone(),
                op: entry.op.as_ref().map_or("", |op| op.name()),
                at: entry.at,
                role: match role {
                    SavedRole::Input(i) => format!("input {i}"),
                    SavedRole::Output(i) => format!("output {i}"),
                    SavedRole::Residual => "residual".into(),
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
pub enum NoGradientReason {
    /// The source is not a float.
    NotFloat(DType),
    /// The tape does not track the source.
    NotWatched,
    /// The variable is not trainable and was not watched.
    NotTrainable,
    /// The variable was not read while the tape recorded.
    NotRead,
    /// The target is not a float.
    TargetNotFloat(DType),
    /// The target was not computed from anything that the tape tracks.
    TargetNotTracked,
    /// No recorded call used the source.
    NeverUsed,
    /// The values computed from the source are inputs of ops without a gradient.
    Blocked(Vec<(&'static str, Location)>),
    /// The source was used, but the target does not depend on it.
    Independent,
    /// The target depends on the source, but a gradient rule between them returned no gradient.
    NoRule,
}

impl fmt::Display for NoGradientReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoGradientReason::NotFloat(dtype) => write!(f, "only floats have gradients, got a source of {dtype}"),
            NoGradientReason::NotWatched => f.write_str("the tape does not watch the source; call tape.watch(&source) before using it"),
            NoGradientReason::NotTrainable => f.write_str(
                "the variable is not trainable, so the tape does not watch it automatically; call tape.watch(&variable)",
            ),
            NoGradientReason::NotRead => f.write_str("the variable was not read while the tape recorded"),
            NoGradientReason::TargetNotFloat(dtype) => write!(f, "only floats have gradients, got a target of {dtype}"),
            NoGradientReason::TargetNotTracked => f.write_str(
                "the target was not computed from anything watched while the tape recorded",
            ),
            NoGradientReason::NeverUsed => f.write_str("no recorded call used the source"),
            NoGradientReason::Blocked(by) => {
                f.write_str("no gradient flows through the ops that use the source:")?;
                by.iter().try_for_each(|(op, at)| write!(f, "\n  {op} at {at}"))
            }
            NoGradientReason::Independent => f.write_str("the source was used, but the target does not depend on it"),
            NoGradientReason::NoRule => f.write_str("the target depends on the source, but a gradient rule between them returned no gradient"),
        }
    }
}

/// Why a target has no gradient with respect to a source; `None` if it has one.
pub(crate) fn why(
    entries: &[Option<Arc<TapeEntry>>],
    blocks: &[BlockedValue],
    targets: &[GradientSource],
    target_slots: &[Option<RecordSlot>],
    source: &GradientSource,
    slot: Option<RecordSlot>,
) -> Option<NoGradientReason> {
    let dtype = source.spec().dtype;
    if !dtype.is_inexact() {
        return Some(NoGradientReason::NotFloat(dtype));
    }
    let Some(slot) = slot else {
        return Some(match source {
            GradientSource::Tensor(_) => NoGradientReason::NotWatched,
            GradientSource::Variable(variable) if !variable.is_trainable() => NoGradientReason::NotTrainable,
            GradientSource::Variable(_) => NoGradientReason::NotRead,
        });
    };
    let depends = crate::backward::dependent(entries, &[Some(slot)]);
    let reached = |slot: RecordSlot| depends.get(slot.entry as usize).copied().unwrap_or(false);
    let slots: Vec<RecordSlot> = target_slots.iter().flatten().copied().collect();
    if slots.iter().any(|&target| reached(target)) {
        return None;
    }
    let is_alive = |block: &BlockedValue| {
        let entry = entries.get(block.from.entry as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| entry.serial == block.serial)
    };
    let stops: Vec<_> =
        blocks.iter().filter(|block| reached(block.from) && is_alive(block)).map(|b| (b.op, b.at)).collect();
    if let Some(target) = targets.iter().find(|target| !target.spec().dtype.is_inexact()) {
        return Some(NoGradientReason::TargetNotFloat(target.spec().dtype));
    }
    if !stops.is_empty() {
        return Some(NoGradientReason::Blocked(stops));
    }
    let used = depends.iter().filter(|&&depends| depends).count() > 1;
    Some(match (slots.is_empty(), used) {
        (_, false) => NoGradientReason::NeverUsed,
        (true, true) => NoGradientReason::TargetNotTracked,
        (false, true) => NoGradientReason::Independent,
    })
}
