//! Adagrad.

use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::unary::{sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// Adagrad: gradients divided by the root of the sum of all their squares so far, so that rare features get larger steps.
#[derive(Clone, Debug)]
pub struct Adagrad {
    /// The learning rate.
    pub rate: LearningRate,
    /// The initial value of the sums.
    pub initial_accumulator: f64,
    /// Added before the root is taken; prevents division by zero.
    pub epsilon: f64,
}

impl Default for Adagrad {
    fn default() -> Adagrad {
        Adagrad { rate: 0.001.into(), initial_accumulator: 0.1, epsilon: 1e-7 }
    }
}

impl UpdateRule for Adagrad {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        vec![SlotSpec { initial: self.initial_accumulator, ..SlotSpec::zeros("accumulator", value) }]
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        slots[0] = add(&slots[0], square(&gradient)?)?;
        let rate = context.rate_as(&value)?;
        sub(value, div(mul(gradient, rate)?, sqrt(add(&slots[0], self.epsilon)?)?)?)
    }

    fn check(&self) -> Result<()> {
        check_range("initial_accumulator", self.initial_accumulator, 0.0, f64::INFINITY)?;
        check_range("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
