//! What the traces of a function cost, and why they were made.

use crate::signature::{Signature, SignatureChange};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::time::Duration;

/// Why a function was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It had never been called.
    First,
    /// An argument was unlike all before: what changed, against the trace that is most alike.
    Changed(Vec<SignatureChange>),
    /// A size that was left open, by the input signature or by [`reduce_retracing`](crate::Function::reduce_retracing).
    OpenSize(Vec<SignatureChange>),
    /// The trace had been made before, and forgotten for the sake of the cache's cap.
    Forgotten,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |changes: &[SignatureChange]| {
            changes.iter().map(SignatureChange::to_string).collect::<Vec<_>>().join("; ")
        };
        match self {
            Reason::First => f.write_str("first call"),
            Reason::Changed(changes) => f.write_str(&list(changes)),
            Reason::OpenSize(changes) => write!(f, "a size left open: {}", list(changes)),
            Reason::Forgotten => f.write_str("made before, and forgotten to keep the cache under its cap"),
        }
    }
}

/// One trace of a function.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The arguments that it is for.
    pub signature: String,
    /// Why it was made.
    pub reason: Reason,
    /// How long tracing, compiling and planning took.
    pub time: Duration,
    /// What it holds between calls: graph, program, constants, arena.
    pub bytes: usize,
    /// What a call holds at its peak beyond arguments and variables.
    pub peak_bytes: usize,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.time.as_secs_f64() * 1e3;
        write!(
            f,
            "{}: {ms:.2} ms, {} bytes held, {} bytes at the peak of a call ({})",
            self.signature, self.bytes, self.peak_bytes, self.reason
        )
    }
}

/// How many traces are remembered.
const REMEMBERED: usize = 1000;
/// From this many retraces on, the function is suspected of being traced for nothing.
const MANY: usize = 5;

/// The traces so far.
#[derive(Default)]
pub(crate) struct TraceReport {
    pub(crate) traces: VecDeque<Trace>,
    pub(crate) made: usize,
    pub(crate) retraces: usize,
    pub(crate) time: Duration,
    /// The digests of all signatures so far.
    pub(crate) known: HashSet<u64>,
    /// How often each argument was the reason.
    culprits: HashMap<String, usize>,
    warned: bool,
}

impl TraceReport {
    /// Adds a trace. Returns what people should be told, once.
    pub(crate) fn add(&mut self, name: &str, trace: Trace, calls: u64) -> Option<String> {
        self.made += 1;
        self.time += trace.time;
        let changes = match &trace.reason {
            Reason::Changed(changes) => changes.clone(),
            _ => Vec::new(),
        };
        if self.traces.len() == REMEMBERED {
            self.traces.pop_front();
        }
        self.traces.push_back(trace);
        let last = changes.first()?;
        self.retraces += 1;
        for change in &changes {
            *self.culprits.entry(change.argument.clone()).or_default() += 1;
        }
        if self.warned || self.retraces < MANY || calls > 2 * self.made as u64 {
            return None;
        }
        self.warned = true;
        let culprit = self.culprits.iter().max_by_key(|(name, count)| (**count, name.len()));
        let culprit = culprit.map_or("an argument", |(name, _)| name);
        let last = changes.iter().find(|change| change.argument == culprit).unwrap_or(last);
        let advice = if last.only_sizes {
            "leave that size open with input_signature, or use reduce_retracing"
        } else if last.new.contains("strides") || last.old.contains("strides") {
            "pass it contiguous, as copy() makes it"
        } else {
            "pass what changes as a tensor, or make one function per value"
        };
        Some(format!(
            "{name} was traced {} times in {calls} calls ({:.1} ms so far), mostly because of {culprit}: the last time it \
             was {} and is {}; {advice}",
            self.made,
            self.time.as_secs_f64() * 1e3,
            last.old,
            last.new,
        ))
    }
}

/// What of a signature is unlike the one that is most alike.
pub(crate) fn changes<'a>(
    signature: &Signature,
    known: impl Iterator<Item = &'a Signature>,
) -> Option<Vec<SignatureChange>> {
    let nearest = known.min_by_key(|other| signature.distance(other).unwrap_or(usize::MAX))?;
    Some(signature.changes_from(nearest))
}
