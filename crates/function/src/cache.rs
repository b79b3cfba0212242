//! The traces of a function: a least-recently-used cache, bounded in bytes.

use crate::concrete::ConcreteFunction;
use crate::signature::{Signature, hash};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taut_autodiff::nest::{Leaf, Nest};

/// A trace in the cache.
pub(crate) struct CachedTrace<R> {
    pub(crate) signature: Arc<Signature>,
    pub(crate) concrete: ConcreteFunction,
    /// The structure of the results, with traced tensors in place of values.
    pub(crate) template: R,
    hash: u64,
    last_used: AtomicU64,
}

impl<R> CachedTrace<R> {
    pub(crate) fn new(
        signature: Arc<Signature>,
        hash: u64,
        concrete: ConcreteFunction,
        template: R,
    ) -> CachedTrace<R> {
        CachedTrace { signature, concrete, template, hash, last_used: AtomicU64::new(0) }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<CachedTrace<R>>() + self.signature.bytes() + self.concrete.bytes()
    }
}

pub(crate) struct TraceCache<R> {
    by_hash: HashMap<u64, Vec<Arc<CachedTrace<R>>>>,
    /// The one used last: most calls are like the one before.
    recent: Option<Arc<CachedTrace<R>>>,
    clock: u64,
}

impl<R> TraceCache<R> {
    pub(crate) fn new() -> TraceCache<R> {
        TraceCache { by_hash: HashMap::new(), recent: None, clock: 0 }
    }

    /// The traces whose signatures have this hash.
    fn with_hash(&self, hash: u64) -> SmallVec<[Arc<CachedTrace<R>>; 2]> {
        self.by_hash.get(&hash).map(|found| found.iter().cloned().collect()).unwrap_or_default()
    }

    /// Adds a trace, unless there are more with its hash than the `compared` ones.
    fn insert(&mut self, trace: &Arc<CachedTrace<R>>, compared: usize) -> bool {
        if self.by_hash.get(&trace.hash).map_or(0, Vec::len) != compared {
            return false;
        }
        self.by_hash.entry(trace.hash).or_default().push(trace.clone());
        self.touch(trace);
        true
    }

    fn touch(&mut self, trace: &Arc<CachedTrace<R>>) {
        self.clock += 1;
        trace.last_used.store(self.clock, Ordering::Relaxed);
        self.recent = Some(trace.clone());
    }

    pub(crate) fn traces(&self) -> impl Iterator<Item = &Arc<CachedTrace<R>>> {
        self.by_hash.values().flatten()
    }

    /// Frees memory until at most `limit` bytes are held: first arenas, then the least recently used traces. The most recently
    /// used one stays.
    pub(crate) fn shrink(&mut self, limit: usize) {
        let mut bytes: usize = self.traces().map(|trace| trace.bytes()).sum();
        if bytes <= limit {
            return;
        }
        let mut oldest: Vec<Arc<CachedTrace<R>>> = self.traces().cloned().collect();
        oldest.sort_by_key(|trace| trace.last_used.load(Ordering::Relaxed));
        oldest.pop();
        for trace in &oldest {
            if bytes <= limit {
                return;
            }
            let before = trace.bytes();
            trace.concrete.release_arenas();
            bytes = bytes.saturating_sub(before.saturating_sub(trace.bytes()));
        }
        for trace in &oldest {
            if bytes <= limit {
                return;
            }
            bytes = bytes.saturating_sub(trace.bytes());
            self.remove(trace);
        }
    }

    fn remove(&mut self, trace: &Arc<CachedTrace<R>>) {
        if self.recent.as_ref().is_some_and(|recent| Arc::ptr_eq(recent, trace)) {
            self.recent = None;
        }
        if let Some(list) = self.by_hash.get_mut(&trace.hash) {
            list.retain(|other| !Arc::ptr_eq(other, trace));
            if list.is_empty() {
                self.by_hash.remove(&trace.hash);
            }
        }
    }
}

/// The trace for these arguments. Plain values are hashed and compared by code of the caller, which may take long or call the function again:
/// the cache is not locked meanwhile.
pub(crate) fn find<R, N: Nest>(
    cache: &Mutex<TraceCache<R>>,
    arguments: &N,
    donated: bool,
) -> Option<Arc<CachedTrace<R>>> {
    let recent = lock(cache).recent.clone();
    if let Some(recent) = recent
        && recent.signature.matches(arguments, donated)
    {
        return Some(recent);
    }
    let with_hash = |by_identity| {
        let hash = hash(arguments, donated, by_identity);
        let candidates = lock(cache).with_hash(hash);
        candidates.into_iter().find(|trace| trace.signature.matches(arguments, donated))
    };
    let has_variables = || has_variables(arguments);
    let found = with_hash(false).or_else(|| has_variables().then(|| with_hash(true)).flatten())?;
    lock(cache).touch(&found);
    Some(found)
}

/// Whether there are variables among the arguments for which one trace may serve.
pub(crate) fn has_variables<N: Nest>(arguments: &N) -> bool {
    let mut found = false;
    arguments.leaves(&mut |leaf| found |= matches!(leaf, Leaf::Variable(_)));
    found
}

/// Adds a trace for these arguments, unless another thread was first. Returns the one that stays, and whether it is this one.
pub(crate) fn insert<R, N: Nest>(
    cache: &Mutex<TraceCache<R>>,
    trace: CachedTrace<R>,
    arguments: &N,
) -> (Arc<CachedTrace<R>>, bool) {
    let trace = Arc::new(trace);
    let donated = trace.signature.is_donated();
    loop {
        let candidates = lock(cache).with_hash(trace.hash);
        if let Some(first) = candidates.iter().find(|other| other.signature.matches(arguments, donated)) {
            return (first.clone(), false);
        }
        if lock(cache).insert(&trace, candidates.len()) {
            return (trace, true);
        }
    }
}

/// Removes traces that cannot be called any more.
pub(crate) fn remove_orphans<R>(cache: &Mutex<TraceCache<R>>) {
    let mut orphans: Vec<Arc<CachedTrace<R>>> = lock(cache).traces().cloned().collect();
    orphans.retain(|trace| trace.concrete.is_orphaned() || trace.signature.is_gone());
    orphans.iter().for_each(|trace| lock(cache).remove(trace));
}

/// Locks, also after a panic of another thread: no lock here protects an invariant that a panic could break.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
