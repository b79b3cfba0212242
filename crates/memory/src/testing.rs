//! For tests: leak checks and fault injection.

use std::fmt::Write as _;
use std::marker::PhantomData;
use std::thread::panicking;

use crate::ledger::thread_live_bytes;
use crate::record;
use crate::report::{Bytes, Owner};
use crate::thread;

/// Guards must be dropped on the thread that made them.
type NotSend = PhantomData<*const ()>;

/// Checks, when dropped, that this thread freed what it allocated since. See [`ledger_check`].
#[must_use = "the check happens when this is dropped"]
#[derive(Debug)]
pub struct LedgerCheck {
    live: isize,
    lines: Vec<Owner>,
    thread: NotSend,
}

/// Begins a leak check: when the guard is dropped, this thread's [`thread_live_bytes`] must be what it is now, or the guard
/// panics with the number of leaked bytes, and with their lines while [`record`](crate::record()) is on. Other threads'
/// work on their own buffers does not affect it.
///
/// ```
/// use taut_memory::{Buffer, Category, testing::ledger_check};
///
/// let _check = ledger_check();
/// let buffer = Buffer::new(64, Category::Tensor)?;
/// // `buffer` is dropped before `_check`, which passes.
/// # Ok::<(), taut_memory::OutOfMemory>(())
/// ```
pub fn ledger_check() -> LedgerCheck {
    LedgerCheck { live: thread_live_bytes(), lines: record::owners(), thread: PhantomData }
}

impl Drop for LedgerCheck {
    fn drop(&mut self) {
        let change = thread_live_bytes().wrapping_sub(self.live);
        if change == 0 || panicking() {
            return;
        }
        let bytes = Bytes(change.unsigned_abs());
        assert!(change > 0, "this thread freed {bytes} more than it allocated");
        let mut message = format!("this thread leaked {bytes} ({change} bytes)");
        for now in record::owners() {
            let same = |owner: &&Owner| (owner.location, owner.category) == (now.location, now.category);
            let before = self.lines.iter().find(same).map_or(0, |owner| owner.bytes);
            if let Some(location) = now.location
                && now.bytes > before
            {
                let _ = write!(
                    message,
                    "\n  {} more at {location} ({})",
                    Bytes(now.bytes - before),
                    now.category
                );
            }
        }
        panic!("{message}");
    }
}

/// Keeps a fault armed. See [`fail_nth`].
#[must_use = "the fault is disarmed when this is dropped"]
#[derive(Debug)]
pub struct FaultGuard {
    at: u64,
    thread: NotSend,
}

impl FaultGuard {
    /// Whether the allocation that was to fail has been requested.
    pub fn fired(&self) -> bool {
        allocations_on_thread() > self.at
    }
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        thread::with(|thread| thread.fail_at(u64::MAX));
    }
}

/// Makes one allocation of this thread fail with [`OutOfMemory`](crate::OutOfMemory): the next for 0, the one after it
/// for 1, and so on. One fault is armed at a time, until the guard is dropped.
///
/// To check that a computation survives the failure of each of its allocations:
///
/// ```
/// use taut_memory::{Buffer, Category, OutOfMemory, testing::fail_nth};
///
/// let work = || -> Result<Buffer, OutOfMemory> {
///     let _scratch = Buffer::new(100, Category::Scratch)?;
///     Buffer::new(200, Category::Tensor)
/// };
/// let failures = (0..).take_while(|&n| {
///     let fault = fail_nth(n);
///     let result = work();
///     assert_eq!(result.is_err(), fault.fired());
///     fault.fired()
/// });
/// assert_eq!(failures.count(), 2);
/// ```
pub fn fail_nth(n: u64) -> FaultGuard {
    let at = allocations_on_thread().saturating_add(n);
    thread::with(|thread| thread.fail_at(at));
    FaultGuard { at, thread: PhantomData }
}

/// The number of allocations that this thread requested, successful or not, including those in arenas.
pub fn allocations_on_thread() -> u64 {
    thread::with(thread::Thread::requests)
}
