//! Interrupts: a hook that long work calls from time to time, and that can end it with an error.

use crate::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The hook: an error ends the work that called it.
pub type InterruptCheck = fn() -> Result<()>;

/// The hook is called at most once per thread in this time.
pub const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// Short work reads the clock once in so many calls.
const CALLS_PER_CLOCK_READ: u32 = 64;

static CHECK: OnceLock<InterruptCheck> = OnceLock::new();

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
    static LAST_CHECK: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The error with which a kernel was interrupted.
    static RAISED: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Sets the hook that runs of programs and waits for data call from time to time, each on its own thread; an error from it ends
/// the run or the wait. Only the first hook that is set is used.
pub fn set_interrupt_check(check: InterruptCheck) {
    let _ = CHECK.set(check);
}

/// [`poll`] for work that may be short: reads the clock only once in many calls.
#[inline]
pub fn poll_short_work() -> Result<()> {
    if CHECK.get().is_none() {
        return Ok(());
    }
    let calls = CALLS.get().wrapping_add(1);
    CALLS.set(calls);
    if calls.is_multiple_of(CALLS_PER_CLOCK_READ) { poll() } else { Ok(()) }
}

/// Calls the hook, if there is one and [`MIN_INTERVAL`] has passed since its last call on this thread.
#[cold]
pub fn poll() -> Result<()> {
    let Some(check) = CHECK.get() else { return Ok(()) };
    let now = Instant::now();
    if LAST_CHECK.get().is_some_and(|last| now.duration_since(last) < MIN_INTERVAL) {
        return Ok(());
    }
    LAST_CHECK.set(Some(now));
    check()
}

/// Runs a kernel that may take long: the hook is called between its pieces, and an error from it ends the kernel.
#[inline(never)]
pub(crate) fn interruptible<R>(kernel: impl FnOnce() -> Result<R>) -> Result<R> {
    fn is_interrupted() -> bool {
        let raised = poll().err();
        let is_raised = raised.is_some();
        if is_raised {
            RAISED.set(raised);
        }
        is_raised
    }
    if CHECK.get().is_none() {
        return kernel();
    }
    match taut_kernels::pool::interruptible(is_interrupted, kernel) {
        Some(outcome) => outcome,
        None => Err(RAISED.take().unwrap_or_else(|| Error::value("interrupted"))),
    }
}
