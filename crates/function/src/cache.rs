//! The traces of a function, the least recently used ones first to go.

use crate::concrete::Concrete;
use crate::signature::Signature;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taut_autodiff::nest::Nest;

/// A trace in the cache.
pub(crate) struct Entry<R> {
    pub(crate) signature: Arc<Signature>,
    pub(crate) concrete: Concrete,
    /// What the function returned, with tensors of the trace in place of values.
    pub(crate) template: R,
    hash: u64,
    used: AtomicU64,
}

impl<R> Entry<R> {
    pub(crate) fn new(signature: Arc<Signature>, hash: u64, concrete: Concrete, template: R) -> Entry<R> {
        Entry { signature, concrete, template, hash, used: AtomicU64::new(0) }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Entry<R>>() + self.signature.bytes() + self.concrete.bytes()
    }
}

pub(crate) struct Cache<R> {
    by_hash: HashMap<u64, Vec<Arc<Entry<R>>>>,
    /// The one used last: most calls are like the one before.
    recent: Option<Arc<Entry<R>>>,
    clock: u64,
}

impl<R> Cache<R> {
    pub(crate) fn new() -> Cache<R> {
        Cache { by_hash: HashMap::new(), recent: None, clock: 0 }
    }

    /// The trace that was used last.
    pub(crate) fn recent(&self) -> Option<Arc<Entry<R>>> {
        self.recent.clone()
    }

    /// The traces whose signatures have this hash.
    fn with_hash(&self, hash: u64) -> SmallVec<[Arc<Entry<R>>; 2]> {
        self.by_hash.get(&hash).map(|found| found.iter().cloned().collect()).unwrap_or_default()
    }

    /// Adds a trace, unless there are more with its hash than those that it was compared with.
    fn insert(&mut self, entry: &Arc<Entry<R>>, compared: usize) -> bool {
        if self.by_hash.get(&entry.hash).map_or(0, Vec::len) != compared {
            return false;
        }
        self.by_hash.entry(entry.hash).or_default().push(entry.clone());
        self.touch(entry);
        true
    }

    fn touch(&mut self, entry: &Arc<Entry<R>>) {
        self.clock += 1;
        entry.used.store(self.clock, Ordering::Relaxed);
        self.recent = Some(entry.clone());
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry<R>>> {
        self.by_hash.values().flatten()
    }

    /// Forgets until at most `cap` bytes are held: first the arenas, then the traces that were not used for longest. The
    /// one used last stays.
    pub(crate) fn shrink(&mut self, cap: usize) {
        let mut bytes: usize = self.entries().map(|entry| entry.bytes()).sum();
        if bytes <= cap {
            return;
        }
        let mut oldest: Vec<Arc<Entry<R>>> = self.entries().cloned().collect();
        oldest.sort_by_key(|entry| entry.used.load(Ordering::Relaxed));
        oldest.pop();
        for entry in &oldest {
            if bytes <= cap {
                return;
            }
            let before = entry.bytes();
            entry.concrete.release();
            bytes = bytes.saturating_sub(before.saturating_sub(entry.bytes()));
        }
        for entry in &oldest {
            if bytes <= cap {
                return;
            }
            bytes = bytes.saturating_sub(entry.bytes());
            self.forget(entry);
        }
    }

    fn forget(&mut self, entry: &Arc<Entry<R>>) {
        if self.recent.as_ref().is_some_and(|recent| Arc::ptr_eq(recent, entry)) {
            self.recent = None;
        }
        if let Some(list) = self.by_hash.get_mut(&entry.hash) {
            list.retain(|other| !Arc::ptr_eq(other, entry));
            if list.is_empty() {
                self.by_hash.remove(&entry.hash);
            }
        }
    }
}

/// The trace for these arguments. Values are compared by those who made them, which may take any time and call the function
/// again: so the cache is not locked meanwhile.
pub(crate) fn find<R, N: Nest>(cache: &Mutex<Cache<R>>, arguments: &N, given: bool) -> Option<Arc<Entry<R>>> {
    let recent = lock(cache).recent();
    if let Some(recent) = recent
        && recent.signature.fits(arguments, given)
    {
        return Some(recent);
    }
    let hash = crate::signature::hash(arguments, given);
    let alike = lock(cache).with_hash(hash);
    let found = alike.into_iter().find(|entry| entry.signature.fits(arguments, given))?;
    lock(cache).touch(&found);
    Some(found)
}

/// Adds a trace for these arguments, unless another thread was first; returns the one that stays, and whether it is this one.
pub(crate) fn insert<R, N: Nest>(
    cache: &Mutex<Cache<R>>,
    entry: Entry<R>,
    arguments: &N,
) -> (Arc<Entry<R>>, bool) {
    let entry = Arc::new(entry);
    let given = entry.signature.given();
    loop {
        let alike = lock(cache).with_hash(entry.hash);
        if let Some(first) = alike.iter().find(|entry| entry.signature.fits(arguments, given)) {
            return (first.clone(), false);
        }
        if lock(cache).insert(&entry, alike.len()) {
            return (entry, true);
        }
    }
}

/// Forgets traces that nobody can call any more.
pub(crate) fn sweep<R>(cache: &Mutex<Cache<R>>) {
    let mut orphans: Vec<Arc<Entry<R>>> = lock(cache).entries().cloned().collect();
    orphans.retain(|entry| entry.concrete.is_orphaned() || entry.signature.is_gone());
    orphans.iter().for_each(|entry| lock(cache).forget(entry));
}

/// Locks, also after a panic elsewhere: nothing here is left half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
