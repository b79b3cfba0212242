//! What happened when.

mod alive;
mod build;
mod chrome;
mod memory;
mod times;

pub use alive::Alive;
pub(crate) use alive::why;
pub use memory::{Kind, Peak, Sample};
pub use times::{Call, Gap, OpTime};

use crate::outline::Outline;
use crate::recording::{CallEvent, Dropped, MarkEvent, Site};
use std::sync::Arc;
use std::time::Duration;
use taut_core::observe::CallStart;
use taut_memory::{Category, Location};

/// A recording: memory, calls, runs of programs, and marks. Times are counted from its start.
///
/// At every moment, [`Timeline::alive_at`] sums to what the ledger counted as live then. With several threads that allocate
/// at once, their changes are in one order, which may differ from the ledger's for those nanoseconds.
#[derive(Debug)]
pub struct Timeline {
    pub(crate) duration: u64,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) runs: Vec<Run>,
    /// Per allocation of an arena, the runs in it, in order: (allocation, runs).
    pub(crate) arenas: Vec<(usize, Vec<usize>)>,
    pub(crate) outlines: Vec<Arc<Outline>>,
    pub(crate) calls: Vec<CallEvent>,
    pub(crate) sites: Vec<Site>,
    pub(crate) marks: Vec<MarkEvent>,
    pub(crate) threads: Vec<(u32, String)>,
    pub(crate) dropped: Dropped,
    pub(crate) memory_until: Option<u64>,
    live_at_start: usize,
    live_at_end: usize,
}

/// A buffer, from when to when it was there.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) born: u64,
    /// `u64::MAX` if it was there at the end.
    pub(crate) died: u64,
    pub(crate) bytes: usize,
    pub(crate) category: Category,
    pub(crate) line: Option<Location>,
    /// The call that made it.
    pub(crate) made_by: Option<CallStart>,
    pub(crate) origin: Origin,
}

/// How a buffer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was there before the recording.
    Before,
    /// Somebody asked for it.
    Asked,
    /// It was made to be returned by a run, by number, that was called from this line.
    Returned(Location),
}

impl Allocation {
    pub(crate) fn is_alive(&self, time: u64) -> bool {
        self.born <= time && time < self.died
    }
}

/// The run of a program.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) outline: usize,
    pub(crate) at: Location,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The allocation that is its arena.
    pub(crate) arena: Option<usize>,
    /// When each of its steps began, as far as that was recorded.
    pub(crate) steps: Vec<u64>,
    /// Whether it ran all of its steps.
    pub(crate) is_whole: bool,
    /// The most that it held at a time beyond what was there when it began, its arena included.
    pub(crate) measured: usize,
}

/// A moment that somebody named with [`mark`](crate::mark).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Duration,
    /// The name.
    pub name: String,
    /// The ledger's live bytes then.
    pub live: usize,
}

/// The runs of one program: what was planned, and what was measured.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The line that called it first.
    pub line: Location,
    /// How many steps it has.
    pub steps: usize,
    /// How often it ran.
    pub runs: usize,
    /// The planned peak: arena and returned buffers.
    pub planned: usize,
    /// The largest peak that the ledger saw in a run.
    pub measured: usize,
    /// The smallest.
    pub least: usize,
    /// The time of all runs.
    pub time: Duration,
}

impl Planned {
    /// Whether every run held at its peak what was planned, to the byte.
    pub fn is_exact(&self) -> bool {
        self.planned == self.measured && self.planned == self.least
    }
}

impl Timeline {
    /// How long it was recorded.
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

    /// What did not fit.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// The moment up to which memory is known, if there was not room for all of it.
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

    /// The names of the threads that were heard of, in the order in which they were.
    pub fn threads(&self) -> Vec<&str> {
        self.threads.iter().map(|(_, name)| &name[..]).collect()
    }

    /// Every program that ran to its end, in the order of their first runs: planned against measured.
    pub fn planned(&self) -> Vec<Planned> {
        self.planned_by_outline().into_iter().flatten().collect()
    }

    /// As [`Timeline::planned`], by outline.
    pub(crate) fn planned_by_outline(&self) -> Vec<Option<Planned>> {
        let mut rows: Vec<Option<Planned>> = vec![None; self.outlines.len()];
        for run in self.runs.iter().filter(|run| run.is_whole) {
            let outline = &self.outlines[run.outline];
            let row = rows[run.outline].get_or_insert(Planned {
                line: run.at,
                steps: outline.steps.len(),
                runs: 0,
                planned: outline.peak,
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
