//! Tests that measure memory.

use std::sync::{Mutex, MutexGuard, PoisonError};
use taut_memory::{live_bytes, peak_bytes, reset_peak};

/// Lets one test at a time run: the ledger, its peak and its limit belong to the whole process.
pub fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of a computation, and its peak in bytes above the live bytes before it. The caller holds [`exclusive`].
pub fn measured<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = live_bytes();
    reset_peak();
    let result = work();
    (result, peak_bytes() - before)
}
