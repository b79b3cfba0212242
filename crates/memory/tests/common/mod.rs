//! What the tests of this crate share. `taut-testing` depends on it, so they cannot use that.
#![allow(dead_code)]

use std::sync::{Mutex, PoisonError};
use taut_memory::{Buffer, Category};

/// Runs a test while no other test of the file runs, on a thread of its own: counters and limits belong to the process, and
/// the pool keeps freed blocks per thread.
pub fn exclusive(test: impl FnOnce() + Send + 'static) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(panic) = std::thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

/// A buffer of the category that tensors have.
#[track_caller]
pub fn tensor(bytes: usize) -> Buffer {
    Buffer::new(bytes, Category::Tensor).unwrap()
}
