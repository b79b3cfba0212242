//! Adamax.

use super::adam::{average, correction};
use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, div, maximum, mul, sub};
use taut_core::ops::unary::{abs, cast};
use taut_core::{Result, Spec, Tensor};

/// Adamax: the moving average of gradients divided by their decayed maximum (Adam with the infinity norm).
#[derive(Clone, Debug)]
pub struct Adamax {
    /// The learning rate.
    pub rate: LearningRate,
    /// The decay rate of the moving average of gradients.
    pub beta_1: f64,
    /// The decay rate of the maximum.
    pub beta_2: f64,
    /// Added to the maximum; prevents division by zero.
    pub epsilon: f64,
}

impl Default for Adamax {
    fn default() -> Adamax {
        Adamax { rate: 0.001.into(), beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
    }
}

impl UpdateRule for Adamax {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        vec![SlotSpec::zeros("momentum", value), SlotSpec::zeros("norm", value)]
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        let rate = cast(div(&context.rate, correction(self.beta_1, &context.step)?)?, value.dtype())?;
        slots[0] = average(&slots[0], gradient.clone(), self.beta_1)?;
        slots[1] = maximum(mul(&slots[1], self.beta_2)?, abs(gradient)?)?;
        sub(value, div(mul(&slots[0], rate)?, add(&slots[1], self.epsilon)?)?)
    }

    fn check(&self) -> Result<()> {
        check_range("beta_1", self.beta_1, 0.0, 1.0)?;
        check_range("beta_2", self.beta_2, 0.0, 1.0)?;
        check_range("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
