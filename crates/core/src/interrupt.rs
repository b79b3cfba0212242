//! Interrupts: a hook that long work calls from time to time, and that can end it with an error.

use crate::{Error, Result};
use std::cell::{Cell, OnceCell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use taut_kernels::pool;

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
    /// On a thread of [`on_own_thread`]: whether its result is still wanted.
    static CANCELLED: OnceCell<Arc<AtomicBool>> = const { OnceCell::new() };
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
    match pool::interruptible(is_interrupted, kernel) {
        Some(outcome) => outcome,
        None => Err(RAISED.take().unwrap_or_else(ended_early)),
    }
}

#[cold]
fn ended_early() -> Error {
    Error::value("interrupted")
}

/// Whether there is a hook, so that long work can be interrupted.
#[inline]
pub(crate) fn is_checked() -> bool {
    CHECK.get().is_some()
}

/// Runs work that makes long calls of code without checks on a thread of its own, and calls the hook meanwhile. An error from the hook is
/// returned at once. The thread then ends at its next check, and frees what the work owns: its buffers count as live until then.
pub(crate) fn on_own_thread<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    // If the system refuses the thread, the work runs on this one.
    let work = Arc::new(Mutex::new(Some(work)));
    let (shared, flag) = (Arc::clone(&work), Arc::clone(&cancelled));
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let thread = thread::Builder::new().name("taut-long-op".into()).spawn(move || {
        let _ = CANCELLED.with(|own| own.set(flag));
        let Some(work) = take(&shared) else { return };
        let outcome = catch_unwind(AssertUnwindSafe(|| pool::interruptible(is_cancelled, work)));
        // An outcome that no one receives is dropped here, with its buffers.
        let _ = sender.send(outcome);
    });
    if thread.is_err() {
        return take(&work).map_or_else(|| Err(ended_early()), |work| work());
    }
    loop {
        match receiver.recv_timeout(MIN_INTERVAL) {
            Ok(Ok(outcome)) => return outcome.unwrap_or_else(|| Err(ended_early())),
            Ok(Err(payload)) => resume_unwind(payload),
            Err(RecvTimeoutError::Disconnected) => return Err(ended_early()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(raised) = poll() {
            cancelled.store(true, Ordering::Relaxed);
            return Err(raised);
        }
    }
}

fn is_cancelled() -> bool {
    CANCELLED.with(|own| own.get().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)))
}
