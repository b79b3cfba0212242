//! Values that belong to one thread, such as tapes, which record the ops of their thread.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// A value that only the thread that created it can use. If another thread drops it, as the garbage collector may, the drop is
/// deferred to the owning thread.
pub struct ThreadBound<T: 'static> {
    thread: ThreadId,
    value: ManuallyDrop<Box<T>>,
}

// SAFETY: `get` and `drop` access the value only on the thread that created it.
unsafe impl<T> Send for ThreadBound<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for ThreadBound<T> {}

/// A deferred drop: a value that another thread dropped.
struct DeferredDrop(ThreadId, Box<dyn Any>);

// SAFETY: only the owning thread takes the value out.
unsafe impl Send for DeferredDrop {}

static DEFERRED: Mutex<Vec<DeferredDrop>> = Mutex::new(Vec::new());

impl<T> ThreadBound<T> {
    /// Binds a value to this thread; also runs the drops that were deferred to it.
    pub fn new(value: T) -> ThreadBound<T> {
        let thread = thread::current().id();
        let mut deferred = DEFERRED.lock().unwrap_or_else(PoisonError::into_inner);
        let mine: Vec<DeferredDrop> = deferred.extract_if(.., |one| one.0 == thread).collect();
        drop(deferred);
        mine.into_iter().for_each(|one| drop(one.1));
        ThreadBound { thread, value: ManuallyDrop::new(Box::new(value)) }
    }

    /// The value, on the owning thread; an error on another one.
    pub fn get(&self) -> PyResult<&T> {
        if thread::current().id() == self.thread {
            return Ok(&self.value);
        }
        Err(PyRuntimeError::new_err("the object can be used only on the thread that created it"))
    }
}

impl<T> Drop for ThreadBound<T> {
    fn drop(&mut self) {
        // SAFETY: the value is not used after this.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        if thread::current().id() == self.thread {
            drop(value);
        } else {
            DEFERRED.lock().unwrap_or_else(PoisonError::into_inner).push(DeferredDrop(self.thread, value));
        }
    }
}
