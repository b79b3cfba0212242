//! The signs of averaged gradients.

use super::{Now, Rate, Rule, Slot, within};
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::unary::sign;
use taut_core::{Result, Spec, Tensor};

/// Lion: steps of one size, in the direction of the sign of an average of gradients. It wants a learning rate three to ten times smaller than
/// [`Adam`](super::Adam)'s, and has half its state.
#[derive(Clone, Debug)]
pub struct Lion {
    /// The learning rate.
    pub rate: Rate,
    /// How much of the average counts for the sign.
    pub beta_1: f64,
    /// How much of the average stays.
    pub beta_2: f64,
}

impl Default for Lion {
    fn default() -> Lion {
        Lion { rate: 0.001.into(), beta_1: 0.9, beta_2: 0.99 }
    }
}

impl Rule for Lion {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        vec![Slot::zeros("momentum", value)]
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        // Both averages are made of the same difference, so that one pass makes them.
        let apart = sub(&slots[0], &gradient)?;
        let direction = sign(add(mul(&apart, self.beta_1)?, &gradient)?)?;
        slots[0] = add(mul(apart, self.beta_2)?, gradient)?;
        let rate = now.rate_as(&value)?;
        sub(value, mul(direction, rate)?)
    }

    fn check(&self) -> Result<()> {
        within("beta_1", self.beta_1, 0.0, 1.0)?;
        within("beta_2", self.beta_2, 0.0, 1.0)
    }
}
