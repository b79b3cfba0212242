//! Observers: a hook that runs at the start and the end of every op call of the process.
//!
//! Unlike [recorders](crate::record), which track values on one thread, an observer belongs to the process and sees calls only.

use crate::apply::{Outputs, with_specs};
use crate::error::Result;
use crate::mode;
use crate::op::{Cost, Op, Spec, Specs};
use crate::tensor::Tensor;
use std::sync::{PoisonError, RwLock};
use taut_memory::Location;

/// An op call that starts.
#[derive(Clone, Copy, Debug)]
pub struct CallStart {
    /// The op.
    pub op: &'static str,
    /// The op whose gradient it is part of, if it is.
    pub gradient_of: Option<&'static str>,
    /// The line that it is attributed to.
    pub at: Location,
}

/// The result of an op call that succeeded.
#[derive(Clone, Debug)]
pub struct CallEnd {
    /// The outputs' types and shapes.
    pub outputs: Specs,
    /// How much work it was.
    pub cost: Cost,
}

/// Runs at the start and the end of every op call of the process that runs, on the calling thread. Traced calls do not run.
pub trait Observer: Sync {
    /// A call starts.
    fn call_started(&self, call: CallStart);

    /// The innermost unfinished call of this thread ends. `None` if it failed.
    fn call_finished(&self, end: Option<CallEnd>);
}

static OBSERVER: RwLock<Option<&'static dyn Observer>> = RwLock::new(None);

/// Sets the process's observer, or removes it. Calls in progress end with the observer they started with.
pub fn set_observer(observer: Option<&'static dyn Observer>) {
    *OBSERVER.write().unwrap_or_else(PoisonError::into_inner) = observer;
    mode::set_for_process(mode::OBSERVED, observer.is_some());
}

/// Whether the process has an observer.
#[inline]
pub fn has_observer() -> bool {
    mode::is_set_for_process(mode::OBSERVED)
}

/// An observed call in progress. Dropping it ends the call, so that a panic leaves no call unfinished.
pub(crate) struct ObservedCall {
    observer: Option<&'static dyn Observer>,
}

impl ObservedCall {
    #[cold]
    pub(crate) fn begin(call: CallStart) -> ObservedCall {
        let observer = *OBSERVER.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(observer) = observer {
            observer.call_started(call);
        }
        ObservedCall { observer }
    }

    pub(crate) fn end(mut self, op: &dyn Op, inputs: &[Tensor], outcome: &Result<Outputs>) {
        if let Some(observer) = self.observer.take() {
            observer.call_finished(outcome.as_ref().ok().map(|outputs| call_end(op, inputs, outputs)));
        }
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        if let Some(observer) = self.observer {
            observer.call_finished(None);
        }
    }
}

fn call_end(op: &dyn Op, inputs: &[Tensor], outputs: &[Tensor]) -> CallEnd {
    let outputs: Vec<Spec> = outputs.iter().map(|output| output.spec().clone()).collect();
    // A view moves no bytes.
    let is_view = op.kernel().is_view();
    let cost = if is_view { Cost::default() } else { with_specs(inputs, |specs| op.cost(specs, &outputs)) };
    CallEnd { outputs: outputs.into(), cost }
}
