//! Shared by the gradients of loops and branches.

use taut_core::ops::creation::zeros;
use taut_core::{Result, SavedValue, Spec, Tensor, VjpCall, record};

/// A gradient, or zeros where there is none.
pub(crate) fn or_zeros(gradient: Option<Tensor>, spec: &Spec) -> Result<Tensor> {
    match gradient {
        Some(gradient) => Ok(gradient),
        None => zeros(spec.shape.clone(), spec.dtype),
    }
}

/// Whether the backward pass of a call is itself recorded, for a gradient of the gradient. Then the saved residuals do not
/// do, since their dependence on the inputs is not recorded: the forward pass is computed again from the inputs, all of
/// which were saved.
pub(crate) fn is_backward_recorded(call: &VjpCall<'_>) -> bool {
    let is_tracked = |input: &SavedValue| input.value.as_ref().is_some_and(record::is_tracked);
    record::is_recording()
        && call.inputs.iter().all(|input| input.value.is_some())
        && call.inputs.iter().any(is_tracked)
}

/// The saved inputs of a call.
pub(crate) fn saved_inputs(call: &VjpCall<'_>) -> Result<Vec<Tensor>> {
    (0..call.inputs.len()).map(|i| call.input(i).cloned()).collect()
}
