//! The profiler: starts and ends a recording.

use crate::recorder::{current, set_observers};
use crate::recording::Recording;
use crate::timeline::Timeline;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use taut_core::{Error, Result};
use taut_memory::Location;

/// The most events of each kind in a recording, unless [`Profiler::with_capacity`] sets another number.
pub const DEFAULT_CAPACITY: usize = 1_000_000;

/// Records buffers, calls and program steps on all threads of the process, until it is [finished](Profiler::finish) or
/// dropped.
///
/// There is at most one at a time. Its own memory is not tensor memory, and is not in the ledger.
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
    /// Starts recording.
    ///
    /// If other threads allocate or free tensors during this call, the memory recorded as live before is off by that much.
    #[track_caller]
    pub fn start() -> Result<Profiler> {
        Profiler::with_capacity(DEFAULT_CAPACITY)
    }

    /// As [`Profiler::start`], for at most `events` memory events and as many calls. Further events are counted but not
    /// kept, and [`Profiler::finish`] warns of them. A million of each take about 150 MB.
    #[track_caller]
    pub fn with_capacity(events: usize) -> Result<Profiler> {
        static GENERATIONS: AtomicU64 = AtomicU64::new(1);
        let before = taut_memory::report().by_line;
        let mut recording = current();
        if recording.is_some() {
            return Err(Error::value("another profiler is active; there must be at most one at a time")
                .help("finish or drop the other one first")
                .at(Location::caller()));
        }
        let generation = GENERATIONS.fetch_add(1, Relaxed);
        *recording = Some(Recording::new(generation, events, before));
        drop(recording);
        set_observers(true);
        Ok(Profiler { generation })
    }

    /// Ends the recording, and returns it.
    pub fn finish(self) -> Timeline {
        let recording = self.end().unwrap_or_else(|| Recording::new(0, 0, Vec::new()));
        let timeline = Timeline::new(recording);
        if timeline.dropped().any() {
            let dropped = timeline.dropped();
            taut_core::warn(&format!(
                "the profile is incomplete: {} memory events, {} calls and {} marks exceeded its capacity; record less, or pass \
                 a larger number to Profiler::with_capacity",
                dropped.memory, dropped.calls, dropped.marks
            ));
        }
        timeline
    }

    fn end(&self) -> Option<Recording> {
        let mut recording = current();
        if recording.as_ref().is_some_and(|recording| recording.generation == self.generation) {
            set_observers(false);
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

/// Records `work`: returns its result and the timeline. If it panics, the recording ends.
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

/// Marks this moment with a name, if a profiler is active: `mark("epoch 3")`.
pub fn mark(name: impl Into<String>) {
    // The word that every call reads: without a profiler, a mark costs no more.
    if taut_core::observe::has_observer()
        && let Some(recording) = current().as_mut()
    {
        recording.mark(name.into());
    }
}

/// Whether a profiler is active.
pub fn is_recording() -> bool {
    taut_core::observe::has_observer() && current().is_some()
}
