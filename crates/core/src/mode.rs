//! The modes of [`apply`](crate::apply()): one word of flags per thread and one for the process, zero if ops are only run.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use taut_memory::Location;

/// Ops are appended to a graph instead of run.
pub(crate) const TRACING: u32 = 1;
/// A recorder (a tape, a forward accumulator) is active.
pub(crate) const RECORDING: u32 = 2;
/// Every result is checked for NaN and infinity.
pub(crate) const CHECKING: u32 = 4;
/// Calls are attributed to another source location than their caller's.
pub(crate) const ATTRIBUTED: u32 = 8;
/// The process has an observer.
pub(crate) const OBSERVED: u32 = 16;

/// The flags of all threads.
static PROCESS_MODE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static MODE: Cell<u32> = const { Cell::new(0) };
    static ATTRIBUTION: Cell<Option<Attribution>> = const { Cell::new(None) };
}

/// What calls are attributed to: those of a gradient rule to the op and the line whose gradient it is.
#[derive(Clone, Copy)]
pub(crate) struct Attribution {
    /// The op whose gradient it is, if it is one.
    pub(crate) op: Option<&'static str>,
    pub(crate) at: Location,
}

/// The flags of the thread and of the process.
#[inline]
pub(crate) fn get() -> u32 {
    MODE.get() | PROCESS_MODE.load(Relaxed)
}

/// Whether a flag of the process is set.
#[inline]
pub(crate) fn is_set_for_process(bit: u32) -> bool {
    PROCESS_MODE.load(Relaxed) & bit != 0
}

/// Sets or clears a flag of the process.
pub(crate) fn set_for_process(bit: u32, on: bool) {
    if on {
        PROCESS_MODE.fetch_or(bit, Relaxed);
    } else {
        PROCESS_MODE.fetch_and(!bit, Relaxed);
    }
}

/// Whether a flag of the thread is set.
#[inline]
pub(crate) fn is(bit: u32) -> bool {
    MODE.get() & bit != 0
}

/// Sets or clears a flag of the thread.
#[inline]
pub(crate) fn set(bit: u32, on: bool) {
    MODE.set(if on { MODE.get() | bit } else { MODE.get() & !bit });
}

/// What calls are attributed to, if not to their own line.
pub(crate) fn attribution() -> Option<Attribution> {
    ATTRIBUTION.get()
}

/// The line that calls are attributed to: `at`, unless [`with_source_location`] set another.
#[inline]
pub fn source_location(at: Location) -> Location {
    if is(ATTRIBUTED) { attribution().map_or(at, |attribution| attribution.at) } else { at }
}

/// Whether a call's line is used for more than errors: calls are traced, recorded, checked or observed, or buffers are
/// recorded by line. A caller for which finding its line is expensive can skip it otherwise.
#[inline]
pub fn needs_source_location() -> bool {
    get() & !ATTRIBUTED != 0 || taut_memory::is_recording()
}

/// Whether this thread is tracing.
pub fn is_tracing() -> bool {
    is(TRACING)
}

/// Restores the attribution when it is dropped.
struct Restore(Option<Attribution>);

impl Drop for Restore {
    fn drop(&mut self) {
        ATTRIBUTION.set(self.0);
        set(ATTRIBUTED, self.0.is_some());
    }
}

/// Runs `work` with every op call attributed to the line `at`, and to the gradient of `op` if there is one: its allocations
/// and errors name them. An attribution without an op does not replace an enclosing one.
pub fn with_source_location<R>(op: Option<&'static str>, at: Location, work: impl FnOnce() -> R) -> R {
    if op.is_none() && ATTRIBUTION.get().is_some() {
        return work();
    }
    let _restore = Restore(ATTRIBUTION.replace(Some(Attribution { op, at })));
    set(ATTRIBUTED, true);
    work()
}

/// Runs `work` with every op call attributed to its own line, unless it is part of an op's gradient. This is for callers that
/// run a user's function, such as a loop's body.
pub fn without_source_location<R>(work: impl FnOnce() -> R) -> R {
    match ATTRIBUTION.get() {
        Some(Attribution { op: None, .. }) => {
            let _restore = Restore(ATTRIBUTION.take());
            set(ATTRIBUTED, false);
            work()
        }
        _ => work(),
    }
}

/// Whether every op's results are checked for NaN and infinity on this thread.
pub fn is_checking_numerics() -> bool {
    is(CHECKING)
}

/// Checks every op's results for NaN and infinity on this thread from now on, or no longer; returns the old setting.
///
/// The first op whose result has one fails with its name and the caller's line, in the forward and in the backward pass.
pub fn set_checking_numerics(on: bool) -> bool {
    let before = is(CHECKING);
    set(CHECKING, on);
    before
}
