//! Finding the op that produced the first NaN or infinity of a training step.

use super::parts::{SavedValues, TrainingParts};
use crate::layer::Mode;
use taut_autodiff::GradientTape;
use taut_core::ops::random;
use taut_core::ops::reduce::{all, any};
use taut_core::ops::unary::{is_finite, is_nan};
use taut_core::{Error, ErrorKind, Result, Tensor, set_checking_numerics};

/// Runs the step again op by op, checking each result, with the same random keys. Returns the error of the op that produced the
/// first NaN or infinity, forward or backward, or the original error if no op does. The model is left unchanged.
pub(super) fn explain(
    parts: &TrainingParts,
    (x, y): (&Tensor, &Tensor),
    random: (u64, u64),
    known: Error,
) -> Error {
    struct Restore(bool, (u64, u64));
    impl Drop for Restore {
        fn drop(&mut self) {
            set_checking_numerics(self.0);
            random::set_state(self.1);
        }
    }
    if let Some(error) = non_finite_input(parts, x, y) {
        return error;
    }
    let again = || -> Result<()> {
        let _restore = Restore(set_checking_numerics(true), random::state());
        random::set_state(random);
        let tape = GradientTape::new();
        let (loss, _) = parts.forward(x, y, Mode::Train)?;
        tape.gradient(&loss, &parts.variables)?;
        Ok(())
    };
    // A forward pass updates non-trainable variables, such as the moving averages of batch normalisation.
    let states = parts.model.named_variables().into_iter().map(|(_, variable)| variable);
    let Ok(kept) = SavedValues::copy_of(states.filter(|variable| !variable.is_trainable())) else {
        return known;
    };
    match (again(), kept.restore()) {
        (Err(found), Ok(())) if found.kind() == ErrorKind::Numeric => found,
        _ => known,
    }
}

/// The error for a NaN in the batch, or for a variable that was not finite before the step: then no op of the step produced it.
fn non_finite_input(parts: &TrainingParts, x: &Tensor, y: &Tensor) -> Option<Error> {
    for (what, tensor) in [("inputs", x), ("targets", y)] {
        if float_and(tensor, || any(is_nan(tensor)?, None, false)?.item::<bool>()) {
            let message = format!("the batch must not contain NaN, got one in its {what}, {}", tensor.spec());
            return Some(Error::new(ErrorKind::Numeric, message));
        }
    }
    let named = parts.model.named_variables();
    let (name, variable) =
        named.iter().filter(|(_, variable)| variable.is_trainable()).find(|(_, variable)| {
            let value = variable.value();
            float_and(&value, || Ok(!all(is_finite(&value)?, None, false)?.item::<bool>()?))
        })?;
    let message = format!(
        "variables must be finite, got NaN or infinity in '{name}' {} before the step",
        variable.spec()
    );
    let help = "if updates produced it, lower the learning rate or clip gradients";
    Some(Error::new(ErrorKind::Numeric, message).help(help))
}

/// Whether a tensor is floating point and fulfils a condition.
fn float_and(x: &Tensor, condition: impl FnOnce() -> Result<bool>) -> bool {
    x.dtype().is_float() && condition().unwrap_or(false)
}
