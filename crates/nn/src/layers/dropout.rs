//! Dropout.

use super::builder::in_layer;
use crate::{Layer, Mode};
use taut_core::ops::nn::dropout;
use taut_core::ops::random::next_key;
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// While training, sets elements to zero with probability `rate` and multiplies the others by `1 / (1 - rate)`; the identity at inference.
///
/// The mask is drawn from the default generator of [`taut_core::ops::random`]; a traced function draws a new one at each call.
#[derive(Clone, Debug)]
pub struct Dropout {
    rate: f64,
    at: Location,
}

impl Dropout {
    /// Dropout with this probability, in [0, 1).
    #[track_caller]
    pub fn new(rate: f64) -> Result<Dropout> {
        let at = Location::caller();
        check_rate(rate).map_err(|error| error.in_op("Dropout", []).at(at))?;
        Ok(Dropout { rate, at })
    }
}

/// Rejects a rate outside [0, 1).
pub(super) fn check_rate(rate: f64) -> Result<()> {
    if (0.0..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::value(format!("the dropout rate must be in [0, 1), got {rate}")))
}

/// Dropout of `x` while training; otherwise `x`.
pub(super) fn apply_dropout(x: &Tensor, rate: f64, mode: Mode) -> Result<Tensor> {
    if mode.is_training() && rate > 0.0 { dropout(x, rate, next_key()?) } else { Ok(x.clone()) }
}

impl Layer for Dropout {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        in_layer("Dropout", self.at, x, || apply_dropout(x, self.rate, mode))
    }
}
