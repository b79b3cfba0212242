//! Finding what made the first NaN of a training step.

use super::trainer::{Kept, Parts};
use crate::layer::Mode;
use taut_autodiff::GradientTape;
use taut_core::ops::random;
use taut_core::ops::reduce::{all, any};
use taut_core::ops::unary::{is_finite, is_nan};
use taut_core::{Error, ErrorKind, Result, Tensor, set_checking_numerics};

/// Makes the step again op by op, each of them checked, with the random numbers it had: the error of the op that made the
/// first NaN or infinity, forward or backward, or the one that is known already if none does now. The model stays as it is.
pub(super) fn explain(parts: &Parts, (x, y): (&Tensor, &Tensor), random: (u64, u64), known: Error) -> Error {
    struct Restore(bool, (u64, u64));
    impl Drop for Restore {
        fn drop(&mut self) {
            set_checking_numerics(self.0);
            random::set_state(self.1);
        }
    }
    if let Some(error) = spoilt(parts, x, y) {
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
    // A forward pass moves the averages of batch norms and the like.
    let states = parts.model.named().into_iter().map(|(_, variable)| variable);
    let Ok(kept) = Kept::of(states.filter(|variable| !variable.is_trainable())) else {
        return known;
    };
    match (again(), kept.restore()) {
        (Err(found), Ok(())) if found.kind() == ErrorKind::Numeric => found,
        _ => known,
    }
}

/// A part of the batch that has a NaN in it, or a variable that is not finite to begin with: no op is to blame.
fn spoilt(parts: &Parts, x: &Tensor, y: &Tensor) -> Option<Error> {
    for (what, tensor) in [("inputs", x), ("targets", y)] {
        if holds(tensor, || any(is_nan(tensor)?, None, false)?.item::<bool>()) {
            let message = format!("there is a NaN in the batch's {what}, {}", tensor.spec());
            return Some(Error::new(ErrorKind::Numeric, message));
        }
    }
    let named = parts.model.named();
    let (name, variable) =
        named.iter().filter(|(_, variable)| variable.is_trainable()).find(|(_, variable)| {
            let value = variable.value();
            holds(&value, || Ok(!all(is_finite(&value)?, None, false)?.item::<bool>()?))
        })?;
    let message = format!("the variable '{name}' {} is not finite, before the step is made", variable.spec());
    let help = "if updates made it so, a smaller learning rate or clipped gradients would help";
    Some(Error::new(ErrorKind::Numeric, message).help(help))
}

/// Whether something is so of a tensor. Types that are always finite are not asked.
fn holds(x: &Tensor, ask: impl FnOnce() -> Result<bool>) -> bool {
    x.dtype().is_float() && ask().unwrap_or(false)
}
