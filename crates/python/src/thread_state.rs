//! The interpreter's state of threads that the engine has started, such as those of datasets.
//!
//! The first call of Python on such a thread makes a thread state, and the end of the call destroys it. With a call per element,
//! that costs a mapping of memory each time, and an interrupt of all cores when it is unmapped. So the state is kept until the thread
//! ends.

use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::OnceCell;

/// The thread state of this thread, kept by one reference more than there are calls.
struct KeptThreadState;

thread_local! {
    static KEPT: OnceCell<KeptThreadState> = const { OnceCell::new() };
}

impl Drop for KeptThreadState {
    fn drop(&mut self) {
        // Without an interpreter there is no thread state any more.
        Python::try_attach(|_| {
            // SAFETY: this thread is attached, and the reference that is released is the one that `keep` took. The attachment holds
            // another, so that the state is not destroyed here, and `LOCKED` leaves the thread attached.
            unsafe { ffi::PyGILState_Release(ffi::PyGILState_STATE::PyGILState_LOCKED) }
        });
    }
}

/// Keeps the thread state that the next call of Python makes. Threads of Python have one already.
pub fn keep() {
    // SAFETY: it may be called on any thread, with or without a thread state.
    if !unsafe { ffi::PyGILState_GetThisThreadState() }.is_null() {
        return;
    }
    Python::attach(|_| {
        // SAFETY: the interpreter is there; the reference is released when the thread ends.
        let _attached_already = unsafe { ffi::PyGILState_Ensure() };
    });
    // On a thread whose local values are being destroyed, the state is left to the interpreter.
    let _ = KEPT.try_with(|kept| kept.set(KeptThreadState));
}
