//! What the choke point must do besides running ops: one word per thread and one for all of them, zero in the plain case.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use taut_memory::Location;

/// Ops are written into a graph instead of run.
pub(crate) const TRACING: u32 = 1;
/// Somebody follows the calls.
pub(crate) const RECORDING: u32 = 2;
/// Every result is checked for NaN and infinity.
pub(crate) const CHECKING: u32 = 4;
/// Calls are made on behalf of another line than the one that makes them.
pub(crate) const ATTRIBUTED: u32 = 8;
/// Somebody observes the calls of all threads.
pub(crate) const OBSERVED: u32 = 16;

/// What holds for all threads.
static EVERYWHERE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static MODE: Cell<u32> = const { Cell::new(0) };
    static ATTRIBUTION: Cell<Option<Attribution>> = const { Cell::new(None) };
}

/// Whose work is being done: a gradient rule works for the op and the line that it is the gradient of.
#[derive(Clone, Copy)]
pub(crate) struct Attribution {
    /// The op whose gradient it is, if it is one.
    pub(crate) op: Option<&'static str>,
    pub(crate) at: Location,
}

/// The thread's mode, and what holds for all threads.
#[inline]
pub(crate) fn get() -> u32 {
    MODE.get() | EVERYWHERE.load(Relaxed)
}

/// Whether a bit is set for all threads.
#[inline]
pub(crate) fn is_everywhere(bit: u32) -> bool {
    EVERYWHERE.load(Relaxed) & bit != 0
}

/// Sets or clears a bit for all threads.
pub(crate) fn set_everywhere(bit: u32, on: bool) {
    if on {
        EVERYWHERE.fetch_or(bit, Relaxed);
    } else {
        EVERYWHERE.fetch_and(!bit, Relaxed);
    }
}

/// Whether a bit of the thread's mode is set.
#[inline]
pub(crate) fn is(bit: u32) -> bool {
    MODE.get() & bit != 0
}

/// Sets or clears a bit of the thread's mode.
#[inline]
pub(crate) fn set(bit: u32, on: bool) {
    MODE.set(if on { MODE.get() | bit } else { MODE.get() & !bit });
}

/// Whose work is being done, if not the caller's own.
pub(crate) fn attribution() -> Option<Attribution> {
    ATTRIBUTION.get()
}

/// The line that work is done for: this one, unless it is done on behalf of another.
#[inline]
pub fn source_location(at: Location) -> Location {
    if is(ATTRIBUTED) { attribution().map_or(at, |attribution| attribution.at) } else { at }
}

/// Whether a call's line goes anywhere but into its errors: somebody traces, follows, checks or observes calls, or records
/// buffers by line. Callers for whom finding their line is work can save it.
#[inline]
pub fn needs_source_location() -> bool {
    get() & !ATTRIBUTED != 0 || taut_memory::is_recording()
}

/// Whether this thread is tracing.
pub fn is_tracing() -> bool {
    is(TRACING)
}

/// Puts back whose work was being done.
struct Restore(Option<Attribution>);

impl Drop for Restore {
    fn drop(&mut self) {
        ATTRIBUTION.set(self.0);
        set(ATTRIBUTED, self.0.is_some());
    }
}

/// Runs `work` with every op call attributed to the line `at`, and to the gradient of `op` if it is one: what it
/// allocates and what goes wrong in it is theirs.
pub fn with_source_location<R>(op: Option<&'static str>, at: Location, work: impl FnOnce() -> R) -> R {
    if op.is_none() && ATTRIBUTION.get().is_some() {
        return work(); // whoever is being worked for already
    }
    let _restore = Restore(ATTRIBUTION.replace(Some(Attribution { op, at })));
    set(ATTRIBUTED, true);
    work()
}

/// Runs `work` for itself: what it calls is attributed to its own lines, unless it is the gradient of an op. This is for
/// callers whose work is a function of somebody else's, such as a loop's body.
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

/// Checks every op's results for NaN and infinity on this thread from now on, or no longer; returns what was before.
///
/// The first op that makes one is refused with its name and the caller's line, in the forward and in the backward pass
/// alike.
pub fn set_checking_numerics(on: bool) -> bool {
    let before = is(CHECKING);
    set(CHECKING, on);
    before
}
