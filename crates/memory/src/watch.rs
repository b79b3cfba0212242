//! Watching: somebody is told of every buffer that comes, goes, or changes its purpose.

use crate::Location;
use std::sync::{PoisonError, RwLock};

use crate::category::Category;
use crate::record;

/// A counted buffer, as a [`Watcher`] is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins. No two live buffers begin at the same place, so this pairs a buffer's beginning with its end.
    pub address: usize,
    /// Its bytes.
    pub bytes: usize,
    /// What it is for.
    pub category: Category,
    /// The line that asked for it, as far as it is known: of a buffer that goes, only if [`record`](crate::record()) was on
    /// when it came.
    pub line: Option<Location>,
}

/// Is told of every counted buffer of the process, on the thread where it happens. It must not make or drop buffers itself.
pub trait Watcher: Sync {
    /// A buffer was made, and is counted.
    fn entered(&self, block: Block);

    /// A buffer is about to go. It is counted still, and nobody else can have its address yet.
    fn left(&self, block: Block);

    /// A buffer is now for something else: `block` says what it was for.
    fn moved(&self, block: Block, to: Category);
}

static WATCHER: RwLock<Option<&'static dyn Watcher>> = RwLock::new(None);

/// Tells this watcher of every buffer from now on; nobody with `None`. There is one at a time.
pub fn watch(watcher: Option<&'static dyn Watcher>) {
    *WATCHER.write().unwrap_or_else(PoisonError::into_inner) = watcher;
    record::set(record::WATCHED, watcher.is_some());
}

/// Calls `tell` with the watcher, if there is one.
pub(crate) fn tell(tell: impl FnOnce(&'static dyn Watcher)) {
    // Not under the lock: what the watcher does is its own business.
    let watcher = *WATCHER.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(watcher) = watcher {
        tell(watcher);
    }
}
