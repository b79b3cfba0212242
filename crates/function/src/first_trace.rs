//! The first trace of a function, which may create variables.

use crate::signature::Signature;
use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use taut_autodiff::Variable;

thread_local! {
    /// The traces in progress on this thread: the function's address, and the signature.
    static IN_PROGRESS: RefCell<Vec<(usize, Arc<Signature>)>> = const { RefCell::new(Vec::new()) };
}

/// A trace in progress; drop ends it.
pub(crate) struct TraceInProgress;

impl TraceInProgress {
    /// Whether this thread is tracing the function at this address for the same signature.
    pub(crate) fn exists(function: usize, signature: &Signature) -> bool {
        let is_same =
            |(other, traced): &(usize, Arc<Signature>)| *other == function && traced.is_same(signature);
        // A copy: comparing values may trace.
        IN_PROGRESS.with_borrow(Vec::clone).iter().any(is_same)
    }

    pub(crate) fn begin(function: usize, signature: &Arc<Signature>) -> TraceInProgress {
        IN_PROGRESS.with_borrow_mut(|traces| traces.push((function, signature.clone())));
        TraceInProgress
    }
}

impl Drop for TraceInProgress {
    fn drop(&mut self) {
        IN_PROGRESS.with_borrow_mut(Vec::pop);
    }
}

/// The state of the first trace.
#[derive(Default)]
pub(crate) struct FirstTrace {
    state: Mutex<FirstTraceState>,
    /// Notified when a first trace ends.
    ended: Condvar,
}

#[derive(Default)]
enum FirstTraceState {
    #[default]
    NotStarted,
    /// A thread is making it.
    InProgress,
    /// It created these variables.
    Done(Vec<Variable>),
}

impl FirstTrace {
    /// The variables that it created.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        match &*self.state() {
            FirstTraceState::Done(variables) => variables.clone(),
            FirstTraceState::NotStarted | FirstTraceState::InProgress => Vec::new(),
        }
    }

    /// Begins the first trace, if this is it; waits while another thread is making it. A thread that is tracing another
    /// function does not wait, since two threads could wait for each other.
    pub(crate) fn begin(&self) -> Option<FirstTraceGuard<'_>> {
        let mut state = self.state();
        let may_wait = IN_PROGRESS.with_borrow(Vec::is_empty);
        while matches!(*state, FirstTraceState::InProgress) && may_wait {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !matches!(*state, FirstTraceState::NotStarted) {
            return None;
        }
        *state = FirstTraceState::InProgress;
        Some(FirstTraceGuard { first: self })
    }

    fn state(&self) -> MutexGuard<'_, FirstTraceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first trace while it is made. If it is dropped before [`FirstTraceGuard::end`], the next trace is the first.
pub(crate) struct FirstTraceGuard<'a> {
    first: &'a FirstTrace,
}

impl FirstTraceGuard<'_> {
    pub(crate) fn end(self, variables: Vec<Variable>) {
        *self.first.state() = FirstTraceState::Done(variables);
    }
}

impl Drop for FirstTraceGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.first.state();
        if matches!(*state, FirstTraceState::InProgress) {
            *state = FirstTraceState::NotStarted;
        }
        drop(state);
        self.first.ended.notify_all();
    }
}
