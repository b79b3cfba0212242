//! Finding what made the first NaN of a training step.

use super::trainer::Parts;
use crate::layer::Mode;
use taut_autodiff::GradientTape;
use taut_core::ops::random;
use taut_core::ops::reduce::all;
use taut_core::ops::unary::is_finite;
use taut_core::{Error, ErrorKind, Result, Tensor, set_checking_numerics};

/// Makes the step again op by op, each of them checked, with the random numbers it had: the error of the op that made the
/// first NaN or infinity, forward or backward, or the one that is known already if none does now.
pub(super) fn explain(parts: &Parts, (x, y): (&Tensor, &Tensor), random: (u64, u64), known: Error) -> Error {
    struct Restore(bool, (u64, u64));
    impl Drop for Restore {
        fn drop(&mut self) {
            set_checking_numerics(self.0);
            random::set_state(self.1);
        }
    }
    if let Some(error) = spoilt(parts) {
        return error;
    }
    let again = || -> Result<()> {
        let tape = GradientTape::new();
        let (loss, _) = parts.forward(x, y, Mode::Train)?;
        tape.gradient(&loss, &parts.variables)?;
        Ok(())
    };
    let _restore = Restore(set_checking_numerics(true), random::state());
    random::set_state(random);
    match again() {
        Err(found) if found.kind() == ErrorKind::Numeric => found,
        _ => known,
    }
}

/// An input or a variable that is not finite to begin with.
fn spoilt(parts: &Parts) -> Option<Error> {
    let named = parts.model.named();
    let (name, variable) = named.iter().find(|(_, variable)| !finite(&variable.value()))?;
    let message = format!("the variable '{name}' {} is not finite: an update overflowed", variable.spec());
    Some(
        Error::new(ErrorKind::Numeric, message)
            .help("a smaller learning rate, or clipped gradients, would help"),
    )
}

fn finite(x: &Tensor) -> bool {
    let check = || all(is_finite(x)?, None, false)?.item::<bool>();
    // Types that are always finite have no such question.
    !x.dtype().is_float() || check().unwrap_or(true)
}
