//! The buffer observer: it is called for every buffer that is allocated, freed or recategorized.

use crate::Location;
use std::sync::{PoisonError, RwLock};

use crate::category::Category;
use crate::record;

/// A counted buffer, as a [`BufferObserver`] receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedBuffer {
    /// Its first address. No two live buffers have the same, so it pairs an allocation with its release.
    pub address: usize,
    /// Its bytes.
    pub bytes: usize,
    /// Its category.
    pub category: Category,
    /// The line that allocated it. When it is freed or recategorized, it is known only if [`record`](crate::record()) was
    /// on at its allocation.
    pub location: Option<Location>,
}

/// Is called for every counted buffer of the process, on the thread that allocates or frees it. It must not allocate or
/// free buffers itself.
pub trait BufferObserver: Sync {
    /// A buffer was allocated, and is counted.
    fn allocated(&self, buffer: ObservedBuffer);

    /// A buffer is about to be freed. It is still counted, and its address is not yet reused.
    fn freed(&self, buffer: ObservedBuffer);

    /// A buffer changes its category; `buffer` has the old one.
    fn recategorized(&self, buffer: ObservedBuffer, to: Category);
}

static OBSERVER: RwLock<Option<&'static dyn BufferObserver>> = RwLock::new(None);

/// Sets the observer of all buffers of the process, and replaces the one before; `None` removes it.
pub fn set_buffer_observer(observer: Option<&'static dyn BufferObserver>) {
    *OBSERVER.write().unwrap_or_else(PoisonError::into_inner) = observer;
    record::set(record::OBSERVED, observer.is_some());
}

/// Calls `notify` with the observer, if there is one.
pub(crate) fn notify(notify: impl FnOnce(&'static dyn BufferObserver)) {
    // The lock is released before the call, so that the observer may take locks of its own.
    let observer = *OBSERVER.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(observer) = observer {
        notify(observer);
    }
}
