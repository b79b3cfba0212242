//! Observing: somebody is told of every call that any thread makes.
//!
//! Unlike [recorders](crate::record), who follow values on one thread, an observer is the process's, and sees calls alone.

use crate::apply::{Outputs, with_specs};
use crate::error::Result;
use crate::mode;
use crate::op::{Cost, Op, Spec, Specs};
use crate::tensor::Tensor;
use std::sync::{PoisonError, RwLock};
use taut_memory::Location;

/// A call that begins.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// The op.
    pub op: &'static str,
    /// The op whose gradient it is part of, if it is.
    pub gradient_of: Option<&'static str>,
    /// The line that it is made for.
    pub at: Location,
}

/// What a call made.
#[derive(Clone, Debug)]
pub struct Done {
    /// The outputs' types and shapes.
    pub outputs: Specs,
    /// The work that it was.
    pub cost: Cost,
}

/// Is told of every op call of the process that runs, on the thread that makes it. Calls that are traced do not run.
pub trait Observer: Sync {
    /// A call begins.
    fn begins(&self, call: Begun);

    /// The call that began last on this thread, and has not ended, ends. It failed if there is nothing that it made.
    fn ends(&self, done: Option<Done>);
}

static OBSERVER: RwLock<Option<&'static dyn Observer>> = RwLock::new(None);

/// Tells this observer of every call from now on; nobody with `None`. There is one at a time. Calls that are under way end
/// with the observer they began with.
pub fn observe(observer: Option<&'static dyn Observer>) {
    *OBSERVER.write().unwrap_or_else(PoisonError::into_inner) = observer;
    mode::set_everywhere(mode::OBSERVED, observer.is_some());
}

/// Whether somebody observes calls.
#[inline]
pub fn is_observed() -> bool {
    mode::is_everywhere(mode::OBSERVED)
}

/// A call that is observed. It ends with this at the latest, so that a panic leaves nothing open.
pub(crate) struct Observed {
    observer: Option<&'static dyn Observer>,
}

impl Observed {
    #[cold]
    pub(crate) fn begin(call: Begun) -> Observed {
        let observer = *OBSERVER.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(observer) = observer {
            observer.begins(call);
        }
        Observed { observer }
    }

    pub(crate) fn end(mut self, op: &dyn Op, inputs: &[Tensor], outcome: &Result<Outputs>) {
        if let Some(observer) = self.observer.take() {
            observer.ends(outcome.as_ref().ok().map(|outputs| done(op, inputs, outputs)));
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        if let Some(observer) = self.observer {
            observer.ends(None);
        }
    }
}

fn done(op: &dyn Op, inputs: &[Tensor], outputs: &[Tensor]) -> Done {
    let outputs: Vec<Spec> = outputs.iter().map(|output| output.spec().clone()).collect();
    // A view moves nothing.
    let is_view = op.kernel().is_view();
    let cost = if is_view { Cost::default() } else { with_specs(inputs, |specs| op.cost(specs, &outputs)) };
    Done { outputs: outputs.into(), cost }
}
