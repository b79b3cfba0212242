//! Why a function was traced, and what its traces cost.

use crate::signature::{Signature, SignatureChange};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::time::Duration;

/// Why a function was traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceReason {
    /// It was the first call.
    First,
    /// An argument differed from all before: the changes against the most similar trace.
    Changed(Vec<SignatureChange>),
    /// A new size of a dimension that was left open, by the input signature or by
    /// [`reduce_retracing`](crate::Function::reduce_retracing).
    OpenSize(Vec<SignatureChange>),
    /// The trace had been made before, and was evicted to keep the cache under its limit.
    Evicted,
}

impl fmt::Display for TraceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |changes: &[SignatureChange]| {
            changes.iter().map(SignatureChange::to_string).collect::<Vec<_>>().join("; ")
        };
        match self {
            TraceReason::First => f.write_str("first call"),
            TraceReason::Changed(changes) => f.write_str(&list(changes)),
            TraceReason::OpenSize(changes) => write!(f, "open dimension: {}", list(changes)),
            TraceReason::Evicted => f.write_str("evicted from the cache before"),
        }
    }
}

/// One trace of a function.
#[derive(Clone, Debug)]
pub struct FunctionTrace {
    /// The signature of the arguments.
    pub signature: String,
    /// Why it was made.
    pub reason: TraceReason,
    /// The time of tracing, compiling and planning.
    pub time: Duration,
    /// The bytes held between calls: graph, program, constants, arena.
    pub bytes: usize,
    /// The peak of a call beyond arguments and variables, in bytes.
    pub peak_bytes: usize,
}

impl fmt::Display for FunctionTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.time.as_secs_f64() * 1e3;
        write!(
            f,
            "{}: {ms:.2} ms, {} bytes held, {} bytes at the peak of a call ({})",
            self.signature, self.bytes, self.peak_bytes, self.reason
        )
    }
}

/// How many traces a report lists.
const LISTED_TRACES: usize = 1000;
/// From this many retraces on, a function may be warned about.
const MANY_RETRACES: usize = 5;

/// The traces so far.
#[derive(Default)]
pub(crate) struct TraceReport {
    pub(crate) traces: VecDeque<FunctionTrace>,
    /// How many traces were made.
    pub(crate) count: usize,
    /// How many of them were for a new signature, in which open dimensions have any size.
    pub(crate) signatures: usize,
    retraces: usize,
    pub(crate) time: Duration,
    /// The digests of all signatures so far.
    pub(crate) known: HashSet<u64>,
    /// How often each argument was the reason.
    changes_by_argument: HashMap<String, usize>,
    has_warned: bool,
}

impl TraceReport {
    /// Adds a trace. Returns a warning, once, if the function is retraced too often.
    pub(crate) fn add(&mut self, name: &str, trace: FunctionTrace, calls: u64) -> Option<String> {
        self.count += 1;
        self.signatures += usize::from(matches!(trace.reason, TraceReason::First | TraceReason::Changed(_)));
        self.time += trace.time;
        let changes = match &trace.reason {
            TraceReason::Changed(changes) => changes.clone(),
            _ => Vec::new(),
        };
        if self.traces.len() == LISTED_TRACES {
            self.traces.pop_front();
        }
        self.traces.push_back(trace);
        if changes.is_empty() {
            return None;
        }
        self.retraces += 1;
        for change in &changes {
            *self.changes_by_argument.entry(change.argument.clone()).or_default() += 1;
        }
        if self.has_warned || self.retraces < MANY_RETRACES || calls > 2 * self.count as u64 {
            return None;
        }
        self.has_warned = true;
        self.warning(name, &changes, calls)
    }

    /// The warning about the argument that changed most often.
    fn warning(&self, name: &str, changes: &[SignatureChange], calls: u64) -> Option<String> {
        let argument = self.changes_by_argument.iter().max_by_key(|(name, count)| (**count, name.len()));
        let argument = argument.map_or("an argument", |(name, _)| name);
        let last = changes.iter().find(|change| change.argument == argument).or(changes.first())?;
        let advice = if last.only_sizes {
            "leave that dimension open with input_signature, or use reduce_retracing"
        } else if last.new.contains("strides") || last.old.contains("strides") {
            "pass a contiguous tensor: copy() makes one"
        } else {
            "pass a value that changes as a tensor, or use one function per value"
        };
        Some(format!(
            "{name} was traced {} times in {calls} calls ({:.1} ms in total), mostly because of {argument}: the last time it \
             was {} and is {}; {advice}",
            self.count,
            self.time.as_secs_f64() * 1e3,
            last.old,
            last.new,
        ))
    }
}

/// The changes of a signature against the most similar known one.
pub(crate) fn changes<'a>(
    signature: &Signature,
    known: impl Iterator<Item = &'a Signature>,
) -> Option<Vec<SignatureChange>> {
    let nearest = known.min_by_key(|other| signature.distance(other).unwrap_or(usize::MAX))?;
    Some(signature.changes_from(nearest))
}
