//! Being asked to stop: somebody may look at times whether long work is still wanted.

use crate::Result;
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Says whether work is still wanted: an error ends it.
pub type Ask = fn() -> Result<()>;

/// How long nobody is asked after somebody was.
pub const PAUSE: Duration = Duration::from_millis(50);
/// Short runs look at the clock once in so many.
const EVERY: u32 = 64;

static ASK: OnceLock<Ask> = OnceLock::new();

thread_local! {
    static RUNS: Cell<u32> = const { Cell::new(0) };
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// From now on, runs of programs and those who wait for data ask at times whether they are still wanted, each on its own
/// thread; what comes back as an error ends the run, or the waiting. Only the first to be set counts.
pub fn set_interrupt_check(ask: Ask) {
    let _ = ASK.set(ask);
}

/// Asks, if somebody wants to be asked, and many short runs or some time have passed.
#[inline]
pub fn short() -> Result<()> {
    if ASK.get().is_none() {
        return Ok(());
    }
    let runs = RUNS.get().wrapping_add(1);
    RUNS.set(runs);
    if runs.is_multiple_of(EVERY) { long() } else { Ok(()) }
}

/// Asks, if somebody wants to be asked and some time has passed.
#[cold]
pub fn long() -> Result<()> {
    let Some(ask) = ASK.get() else { return Ok(()) };
    let now = Instant::now();
    if ASKED.get().is_some_and(|asked| now.duration_since(asked) < PAUSE) {
        return Ok(());
    }
    ASKED.set(Some(now));
    ask()
}
