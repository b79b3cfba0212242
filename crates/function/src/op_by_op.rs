//! Functions that run op by op: a shape in them depends on the value of a tensor, so there is no plan before they run.
//!
//! The trace that finds out is dropped. It has run no op, and has taken no random key and no element of a dataset, so only the body's
//! own side effects have happened. The body then runs on the tensors themselves, in this call and in those that follow.

use crate::cache::lock;
use crate::function::{Function, tensors};
use crate::signature::Signature;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use taut_autodiff::nest::Nest;
use taut_core::{Error, ErrorKind, Result, is_tracing, warn};
use taut_memory::Location;

/// A signature for which a function runs op by op. It stands for all sizes of its tensors.
pub(crate) struct OpByOpSignature {
    signature: Arc<Signature>,
    /// The op, the line, and what its shape depends on.
    reason: String,
    at: Option<Location>,
    has_warned: AtomicBool,
}

/// How many signatures are remembered. Beyond that, a new one replaces the oldest.
const REMEMBERED: usize = 64;

impl OpByOpSignature {
    pub(crate) fn new(signature: Arc<Signature>, reason: &Error) -> OpByOpSignature {
        OpByOpSignature {
            signature,
            reason: reason.message().to_owned(),
            at: reason.location(),
            has_warned: AtomicBool::new(false),
        }
    }

    /// The error of what needs a trace: a plan, a budget, or the trace of another function around this one.
    pub(crate) fn error(&self, message: String) -> Error {
        let error = Error::new(ErrorKind::DynamicShape, message);
        match self.at {
            Some(at) => error.at(at),
            None => error,
        }
    }
}

impl<A, R> Function<A, R>
where
    A: Nest<Owned = A>,
    R: Nest<Owned = R>,
{
    /// The signature that makes a call with these arguments run op by op, if there is one. Sizes do not matter: which shapes depend
    /// on values is the same for all of them.
    pub(crate) fn find_op_by_op<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        donated: bool,
    ) -> Option<Arc<OpByOpSignature>> {
        let known = lock(&self.op_by_op).clone();
        if let Some(found) = known.iter().find(|known| known.signature.matches(arguments, donated)) {
            return Some(found.clone());
        }
        if known.is_empty() {
            return None;
        }
        let signature = Signature::of(arguments, donated);
        known.into_iter().find(|known| known.signature.differs_only_in_shapes(&signature))
    }

    /// Remembers that calls with this signature run op by op. Fails if the function has a memory budget, which only a plan can keep.
    pub(crate) fn add_op_by_op(
        &self,
        signature: Arc<Signature>,
        reason: &Error,
    ) -> Result<Arc<OpByOpSignature>> {
        let added = Arc::new(OpByOpSignature::new(signature, reason));
        if self.budget.is_some() {
            let message =
                format!("{} has a memory budget, which needs a plan, but {}", self.name, added.reason);
            let help = "keep shapes independent of values, or put the part that has known shapes into a function of its own";
            return Err(added.error(message).help(help));
        }
        let mut known = lock(&self.op_by_op);
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push(added.clone());
        drop(known);
        lock(&self.report).signatures += 1;
        Ok(added)
    }

    /// As [`Function::add_op_by_op`], unless calls with these arguments are known to run op by op.
    pub(crate) fn find_or_add_op_by_op<N: Nest<Owned = A>>(
        &self,
        arguments: &N,
        reason: &Error,
    ) -> Result<Arc<OpByOpSignature>> {
        match self.find_op_by_op(arguments, false) {
            Some(found) => Ok(found),
            None => self.add_op_by_op(Arc::new(Signature::of(arguments, false)), reason),
        }
    }

    /// Calls the body on the tensors themselves.
    pub(crate) fn run_op_by_op<N: Nest<Owned = A>>(
        &self,
        found: &OpByOpSignature,
        arguments: &N,
    ) -> Result<R> {
        if is_tracing() {
            return Err(found.error(found.reason.clone()));
        }
        if !found.has_warned.swap(true, Ordering::Relaxed) {
            let at = found.at.map_or(String::new(), |at| format!(" (at {at})"));
            warn(&format!(
                "{} runs op by op, without a plan and calling its code every time: {}{at}",
                self.name, found.reason
            ));
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        (self.body)(&arguments.rebuild(&mut tensors(arguments).into_iter()))
    }

    /// The error of asking for the plan of a function that has none.
    pub(crate) fn no_plan(&self, found: &OpByOpSignature) -> Error {
        let message = format!("{} has no plan, since it runs op by op: {}", self.name, found.reason);
        found.error(message)
    }
}
