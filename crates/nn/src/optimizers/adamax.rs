//! Adam with the largest gradient in place of the root of the squares.

use super::adam::{average, correction};
use super::{Now, Rate, Rule, Slot, within};
use taut_core::ops::binary::{add, div, maximum, mul, sub};
use taut_core::ops::unary::{abs, cast};
use taut_core::{Result, Spec, Tensor};

/// Adamax: a moving average of the gradients, divided by the largest one, which is forgotten slowly.
#[derive(Clone, Debug)]
pub struct Adamax {
    /// The learning rate.
    pub rate: Rate,
    /// How much of the average of gradients stays.
    pub beta_1: f64,
    /// How much of the largest gradient stays.
    pub beta_2: f64,
    /// What is added to it, so that nothing is divided by zero.
    pub epsilon: f64,
}

impl Default for Adamax {
    fn default() -> Adamax {
        Adamax { rate: 0.001.into(), beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
    }
}

impl Rule for Adamax {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        vec![Slot::zeros("momentum", value), Slot::zeros("norm", value)]
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        let rate = cast(div(&now.rate, correction(self.beta_1, &now.step)?)?, value.dtype())?;
        slots[0] = average(&slots[0], gradient.clone(), self.beta_1)?;
        slots[1] = maximum(mul(&slots[1], self.beta_2)?, abs(gradient)?)?;
        sub(value, div(mul(&slots[0], rate)?, add(&slots[1], self.epsilon)?)?)
    }

    fn check(&self) -> Result<()> {
        within("beta_1", self.beta_1, 0.0, 1.0)?;
        within("beta_2", self.beta_2, 0.0, 1.0)?;
        within("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
