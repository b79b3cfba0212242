//! The timeline: what a recording found, over time.

mod build;
mod chrome;
mod live;
mod memory;
mod times;

pub use live::LiveRow;
pub(crate) use live::why;
pub use memory::{MemoryKind, MemoryPeak, MemorySample};
pub use times::{Gap, OpTime, TimedCall};

use crate::plan_summary::PlanSummary;
use crate::recording::{CallEvent, CallSite, DroppedEvents, MarkEvent};
use std::sync::Arc;
use std::time::Duration;
use taut_core::observe::CallStart;
use taut_memory::{Category, Location};

/// A recording: memory, calls, runs of programs, and marks. Times are counted from its start.
///
/// At every moment, the rows of [`Timeline::live_at`] sum to the ledger's live bytes. If several threads allocate at once,
/// the order of their events may differ from the ledger's for those nanoseconds.
#[derive(Debug)]
pub struct Timeline {
    pub(crate) duration: u64,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) runs: Vec<Run>,
    /// Per allocation of an arena, the runs in it, in order: (allocation, runs).
    pub(crate) arenas: Vec<(usize, Vec<usize>)>,
    pub(crate) summaries: Vec<Arc<PlanSummary>>,
    pub(crate) calls: Vec<CallEvent>,
    pub(crate) sites: Vec<CallSite>,
    pub(crate) marks: Vec<MarkEvent>,
    pub(crate) threads: Vec<(u32, String)>,
    pub(crate) dropped: DroppedEvents,
    pub(crate) memory_until: Option<u64>,
    live_at_start: usize,
    live_at_end: usize,
}

/// A buffer, and when it was allocated and freed.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) born: u64,
    /// `u64::MAX` if it was live at the end.
    pub(crate) died: u64,
    pub(crate) bytes: usize,
    pub(crate) category: Category,
    pub(crate) line: Option<Location>,
    /// The call that allocated it.
    pub(crate) made_by: Option<CallStart>,
    pub(crate) origin: AllocationOrigin,
}

/// Why a buffer was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationOrigin {
    /// It was live before the recording.
    Before,
    /// A call allocated it.
    Allocated,
    /// It is an output buffer of a run that was called from this line.
    Returned(Location),
}

impl Allocation {
    pub(crate) fn is_live(&self, time: u64) -> bool {
        self.born <= time && time < self.died
    }
}

/// The run of a program.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) summary: usize,
    pub(crate) at: Location,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The allocation that is its arena.
    pub(crate) arena: Option<usize>,
    /// When each of its steps began; empty if not all of them were recorded.
    pub(crate) steps: Vec<u64>,
    /// Whether it ran all of its steps.
    pub(crate) is_whole: bool,
    /// The most bytes that were live beyond those at its beginning, plus its arena.
    pub(crate) measured: usize,
}

/// A moment named with [`mark`](crate::mark).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The time since the start of the recording.
    pub at: Duration,
    /// The name.
    pub name: String,
    /// The ledger's live bytes.
    pub live: usize,
}

/// The runs of one program: the planned peak, and the measured ones.
#[derive(Clone, Debug)]
pub struct PlanComparison {
    /// The source location of its first call.
    pub line: Location,
    /// Its number of steps.
    pub steps: usize,
    /// Its number of runs.
    pub runs: usize,
    /// The planned peak in bytes: arena and output buffers.
    pub planned: usize,
    /// The largest peak of a run, by the ledger.
    pub measured: usize,
    /// The smallest peak of a run.
    pub least: usize,
    /// The total time of its runs.
    pub time: Duration,
}

impl PlanComparison {
    /// Whether the peak of every run was the planned one, to the byte.
    pub fn is_exact(&self) -> bool {
        self.planned == self.measured && self.planned == self.least
    }
}

impl Timeline {
    /// The length of the recording.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.duration)
    }

    /// The ledger's live bytes when recording began.
    pub fn live_at_start(&self) -> usize {
        self.live_at_start
    }

    /// The ledger's live bytes when recording ended.
    pub fn live_at_end(&self) -> usize {
        self.live_at_end
    }

    /// The events that exceeded the capacity.
    pub fn dropped(&self) -> DroppedEvents {
        self.dropped
    }

    /// The moment up to which memory is known, if memory events exceeded the capacity.
    pub fn memory_until(&self) -> Option<Duration> {
        self.memory_until.map(Duration::from_nanos)
    }

    /// The marks, in order.
    pub fn marks(&self) -> Vec<Mark> {
        let mark = |mark: &MarkEvent| Mark {
            at: Duration::from_nanos(mark.time),
            name: mark.name.clone(),
            live: mark.live,
        };
        self.marks.iter().map(mark).collect()
    }

    /// The names of the recorded threads, in the order of their first events.
    pub fn threads(&self) -> Vec<&str> {
        self.threads.iter().map(|(_, name)| &name[..]).collect()
    }

    /// Every program that ran to its end, in the order of first runs: planned and measured peaks.
    pub fn planned(&self) -> Vec<PlanComparison> {
        self.planned_by_summary().into_iter().flatten().collect()
    }

    /// As [`Timeline::planned`], by summary.
    pub(crate) fn planned_by_summary(&self) -> Vec<Option<PlanComparison>> {
        let mut rows: Vec<Option<PlanComparison>> = vec![None; self.summaries.len()];
        for run in self.runs.iter().filter(|run| run.is_whole) {
            let summary = &self.summaries[run.summary];
            let row = rows[run.summary].get_or_insert(PlanComparison {
                line: run.at,
                steps: summary.steps.len(),
                runs: 0,
                planned: summary.peak,
                measured: 0,
                least: usize::MAX,
                time: Duration::ZERO,
            });
            row.runs += 1;
            row.measured = row.measured.max(run.measured);
            row.least = row.least.min(run.measured);
            row.time += Duration::from_nanos(run.end - run.start);
        }
        rows
    }
}
