//! What the choke point must do besides running ops: one word per thread and one for all of them, zero in the plain case.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use taut_memory::Line;

/// Ops are written into a graph instead of run.
pub(crate) const TRACING: u32 = 1;
/// Somebody follows the calls.
pub(crate) const RECORDING: u32 = 2;
/// Every result is checked for NaN and infinity.
pub(crate) const CHECKING: u32 = 4;
/// Calls are made on behalf of another line than the one that makes them.
pub(crate) const ON_BEHALF: u32 = 8;
/// Somebody observes the calls of all threads.
pub(crate) const OBSERVED: u32 = 16;

/// What holds for all threads.
static EVERYWHERE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static MODE: Cell<u32> = const { Cell::new(0) };
    static BEHALF: Cell<Option<Behalf>> = const { Cell::new(None) };
}

/// Whose work is being done: a gradient rule works for the op and the line that it is the gradient of.
#[derive(Clone, Copy)]
pub(crate) struct Behalf {
    /// The op whose gradient it is, if it is one.
    pub(crate) op: Option<&'static str>,
    pub(crate) at: Line,
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
pub(crate) fn behalf() -> Option<Behalf> {
    BEHALF.get()
}

/// The line that work is done for: this one, unless it is done on behalf of another.
#[inline]
pub fn behalf_of(at: Line) -> Line {
    if is(ON_BEHALF) { behalf().map_or(at, |behalf| behalf.at) } else { at }
}

/// Whether a call's line goes anywhere but into its errors: somebody traces, follows, checks or observes calls, or records
/// buffers by line. Callers for whom finding their line is work can save it.
#[inline]
pub fn lines_matter() -> bool {
    get() & !ON_BEHALF != 0 || taut_memory::is_recording()
}

/// Whether this thread is tracing.
pub fn is_tracing() -> bool {
    is(TRACING)
}

/// Puts back whose work was being done.
struct Restore(Option<Behalf>);

impl Drop for Restore {
    fn drop(&mut self) {
        BEHALF.set(self.0);
        set(ON_BEHALF, self.0.is_some());
    }
}

/// Runs `work` with every op call attributed to the line `at`, and to the gradient of `op` if it is one: what it
/// allocates and what goes wrong in it is theirs.
pub fn on_behalf<R>(op: Option<&'static str>, at: Line, work: impl FnOnce() -> R) -> R {
    if op.is_none() && BEHALF.get().is_some() {
        return work(); // whoever is being worked for already
    }
    let _restore = Restore(BEHALF.replace(Some(Behalf { op, at })));
    set(ON_BEHALF, true);
    work()
}

/// Runs `work` for itself: what it calls is attributed to its own lines, unless it is the gradient of an op. This is for
/// callers whose work is a function of somebody else's, such as a loop's body.
pub fn for_itself<R>(work: impl FnOnce() -> R) -> R {
    match BEHALF.get() {
        Some(Behalf { op: None, .. }) => {
            let _restore = Restore(BEHALF.take());
            set(ON_BEHALF, false);
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
