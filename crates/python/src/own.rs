//! Objects of one thread: tapes follow what their own thread does.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// Something that only the thread which made it can use. Another one that drops it, as the garbage collector does on whatever
/// thread it runs, leaves it to that thread.
pub struct Own<T: 'static> {
    thread: ThreadId,
    value: ManuallyDrop<Box<T>>,
}

// SAFETY: `get` and `drop` reach the value only on the thread that made it.
unsafe impl<T> Send for Own<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Own<T> {}

/// What another thread dropped, until its own thread comes by.
struct Left(ThreadId, Box<dyn Any>);

// SAFETY: only its own thread takes it out.
unsafe impl Send for Left {}

static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

impl<T> Own<T> {
    /// What belongs to this thread from now on.
    pub fn new(value: T) -> Own<T> {
        let thread = thread::current().id();
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        let mine: Vec<Left> = left.extract_if(.., |one| one.0 == thread).collect();
        drop(left);
        mine.into_iter().for_each(|one| drop(one.1));
        Own { thread, value: ManuallyDrop::new(Box::new(value)) }
    }

    /// It, on its own thread.
    pub fn get(&self) -> PyResult<&T> {
        if thread::current().id() == self.thread {
            return Ok(&self.value);
        }
        Err(PyRuntimeError::new_err("it belongs to the thread that made it, and this is another one"))
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        // SAFETY: it is not used any more after this.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        if thread::current().id() == self.thread {
            drop(value);
        } else {
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(Left(self.thread, value));
        }
    }
}
