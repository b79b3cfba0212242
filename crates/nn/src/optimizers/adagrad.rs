//! Gradients divided by the root of the sum of their squares so far.

use super::{Now, Rate, Rule, Slot, within};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::unary::{sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// Adagrad: gradients divided by the root of the sum of all their squares so far, so that rare ones count for more.
#[derive(Clone, Debug)]
pub struct Adagrad {
    /// The learning rate.
    pub rate: Rate,
    /// What the sums begin at.
    pub initial_accumulator: f64,
    /// What is added before the root is taken, so that nothing is divided by zero.
    pub epsilon: f64,
}

impl Default for Adagrad {
    fn default() -> Adagrad {
        Adagrad { rate: 0.001.into(), initial_accumulator: 0.1, epsilon: 1e-7 }
    }
}

impl Rule for Adagrad {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        vec![Slot { first: self.initial_accumulator, ..Slot::zeros("accumulator", value) }]
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        slots[0] = add(&slots[0], square(&gradient)?)?;
        let rate = now.rate_as(&value)?;
        sub(value, div(mul(gradient, rate)?, sqrt(add(&slots[0], self.epsilon)?)?)?)
    }

    fn check(&self) -> Result<()> {
        within("initial_accumulator", self.initial_accumulator, 0.0, f64::INFINITY)?;
        within("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
