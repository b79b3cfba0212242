//! What a function uses besides its arguments.

use crate::variable::Variable;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use taut_core::record::{self, RecordSlot, RecordedCall, Recorder};
use taut_core::{Result, Tensor};

/// A recorder that collects what a function uses besides its arguments.
#[derive(Default)]
struct UseRecorder(Mutex<FunctionUses>);

/// What a function uses besides its arguments: tracked tensors that it captured, and variables that it read.
#[derive(Default)]
pub(crate) struct FunctionUses {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) variables: Vec<Variable>,
}

/// Runs `work`, and returns which tracked tensors and which variables it used.
pub(crate) fn record_uses<R>(work: impl FnOnce(&dyn Recorder) -> R) -> (R, FunctionUses) {
    let recorder = Arc::new(UseRecorder::default());
    let result = record::with(&(recorder.clone() as Arc<dyn Recorder>), || work(&*recorder));
    let uses = std::mem::take(&mut *recorder.0.lock().unwrap_or_else(PoisonError::into_inner));
    (result, uses)
}

impl Recorder for UseRecorder {
    fn leaf(&self, _watch_id: u64) -> Option<RecordSlot> {
        None
    }

    fn track(&self, tensor: &Tensor) -> Option<RecordSlot> {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tensor.dtype().is_inexact() && !uses.tensors.iter().any(|other| other.is_same(tensor)) {
            uses.tensors.push(tensor.clone());
        }
        None
    }

    fn access(&self, variable: &dyn Any) -> Option<RecordSlot> {
        let variable = variable.downcast_ref::<Variable>()?;
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !uses.variables.iter().any(|other| other.untraced_id() == variable.key()) {
            uses.variables.push(variable.clone());
        }
        None
    }

    fn record_op(&self, _call: &RecordedCall<'_>) -> Result<Option<u32>> {
        Ok(None)
    }

    fn blocked(&self, _call: &RecordedCall<'_>) {}

    fn link_outputs(&self, _entry: u32, _outputs: &[Tensor]) {}

    fn retain(&self, _entry: u32) {}

    fn release(&self, _entry: u32) {}
}
