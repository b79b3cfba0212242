//! Starting and ending a recording.

use crate::recorder::{current, listen};
use crate::recording::Recording;
use crate::timeline::Timeline;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use taut_core::{Error, Result};
use taut_memory::Location;

/// How many events of each sort a recording takes, unless [`Profiler::with_capacity`] says otherwise.
pub const DEFAULT_CAPACITY: usize = 1_000_000;

/// Records what the process does, on all of its threads, until it is [finished](Profiler::finish) or dropped.
///
/// There is one at a time. What it writes down is not tensor memory, and does not show in the ledger.
///
/// ```
/// use taut_core::{DType, ops::creation::ones, ops::reduce::sum};
/// use taut_profile::Profiler;
///
/// let profiler = Profiler::start()?;
/// let x = ones([1000], DType::F32)?;
/// let total = sum(&x, None, false)?;
/// let timeline = profiler.finish();
/// assert!(timeline.peak().bytes >= 4000);
/// assert!(timeline.by_op().iter().any(|time| time.op == "sum" && time.count == 1));
/// # drop((x, total));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "recording ends when this is dropped"]
pub struct Profiler {
    generation: u64,
}

impl Profiler {
    /// Begins to record.
    ///
    /// Other threads should not be making or dropping tensors at this very moment, or what was there before is off by that
    /// much.
    #[track_caller]
    pub fn start() -> Result<Profiler> {
        Profiler::with_capacity(DEFAULT_CAPACITY)
    }

    /// As [`Profiler::start`], for at most so many changes of memory and as many calls. What does not fit is counted, and
    /// [`Profiler::finish`] warns of it. A million of each take some 150 MB.
    #[track_caller]
    pub fn with_capacity(events: usize) -> Result<Profiler> {
        static GENERATIONS: AtomicU64 = AtomicU64::new(1);
        let before = taut_memory::report().by_line;
        let mut recording = current();
        if recording.is_some() {
            return Err(Error::value("a profiler is at work already, and there is one at a time")
                .help("finish or drop the other one first")
                .at(Location::caller()));
        }
        let generation = GENERATIONS.fetch_add(1, Relaxed);
        *recording = Some(Recording::new(generation, events, before));
        drop(recording);
        listen(true);
        Ok(Profiler { generation })
    }

    /// Ends the recording, and says what happened.
    pub fn finish(self) -> Timeline {
        let recording = self.end().unwrap_or_else(|| Recording::new(0, 0, Vec::new()));
        let timeline = Timeline::new(recording);
        if timeline.dropped().any() {
            let dropped = timeline.dropped();
            taut_core::warn(&format!(
                "the profile is not complete: there was no room for {} changes of memory, {} calls and {} marks; record less, or \
                 give Profiler::with_capacity more room",
                dropped.memory, dropped.calls, dropped.marks
            ));
        }
        timeline
    }

    fn end(&self) -> Option<Recording> {
        let mut recording = current();
        if recording.as_ref().is_some_and(|recording| recording.generation == self.generation) {
            listen(false);
            return recording.take();
        }
        None
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// Records `work`: what it returns, and what happened meanwhile. If it panics, nothing is recorded any more.
///
/// ```
/// use taut_core::{DType, ops::creation::zeros};
/// let (zeros, timeline) = taut_profile::record(|| zeros([256], DType::F32))?;
/// assert_eq!(timeline.live_at_end() - timeline.live_at_start(), 1024);
/// # drop(zeros?);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn record<R>(work: impl FnOnce() -> R) -> Result<(R, Timeline)> {
    let profiler = Profiler::start()?;
    let result = work();
    Ok((result, profiler.finish()))
}

/// Names this moment, if a profiler is at work: `mark("epoch 3")`.
pub fn mark(name: impl Into<String>) {
    // The word that is read per call anyway; without a profiler, a mark costs as little.
    if taut_core::observe::has_observer()
        && let Some(recording) = current().as_mut()
    {
        recording.mark(name.into());
    }
}

/// Whether a profiler is at work.
pub fn is_recording() -> bool {
    taut_core::observe::has_observer() && current().is_some()
}
