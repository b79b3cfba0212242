//! Dropping at random while training.

use super::builder::work;
use crate::{Layer, Mode};
use taut_core::ops::nn::dropout;
use taut_core::ops::random::next_key;
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// While training, sets elements to zero with some probability and scales the others, so that the mean stays; otherwise
/// does nothing.
///
/// Which elements are dropped is drawn from the module's own generator of [`taut_core::ops::random`]; in a traced
/// function, each call draws anew.
#[derive(Clone, Debug)]
pub struct Dropout {
    rate: f64,
    at: Location,
}

impl Dropout {
    /// Drops with this probability, from 0 up to but not 1.
    #[track_caller]
    pub fn new(rate: f64) -> Result<Dropout> {
        let at = Location::caller();
        check_rate(rate).map_err(|error| error.in_op("Dropout", []).at(at))?;
        Ok(Dropout { rate, at })
    }
}

/// Refuses what is no probability, or would drop everything.
pub(super) fn check_rate(rate: f64) -> Result<()> {
    if (0.0..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::value(format!("a rate of {rate} does not lie between 0 and 1"))
        .help("0 drops nothing; 1 would drop everything"))
}

/// `x` with elements dropped, if it is training and there is anything to drop.
pub(super) fn dropped(x: &Tensor, rate: f64, mode: Mode) -> Result<Tensor> {
    if mode.is_training() && rate > 0.0 { dropout(x, rate, next_key()?) } else { Ok(x.clone()) }
}

impl Layer for Dropout {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        work("Dropout", self.at, x, || dropped(x, self.rate, mode))
    }
}
