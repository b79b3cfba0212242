//! Nadam.

use super::adam::{average, correction};
use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, div, mul, pow, sub};
use taut_core::ops::unary::{cast, sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// Nadam: Adam with Nesterov momentum.
#[derive(Clone, Debug)]
pub struct Nadam {
    /// The learning rate.
    pub rate: LearningRate,
    /// The decay rate of the moving average of gradients.
    pub beta_1: f64,
    /// The decay rate of the moving average of squared gradients.
    pub beta_2: f64,
    /// Added to the root; prevents division by zero.
    pub epsilon: f64,
}

impl Default for Nadam {
    fn default() -> Nadam {
        Nadam { rate: 0.001.into(), beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
    }
}

impl Nadam {
    /// The weight of the average of gradients at this update; it grows towards `beta_1`.
    fn weight(&self, step: &Tensor) -> Result<Tensor> {
        mul(sub(1.0, mul(pow(0.96, step)?, 0.5)?)?, self.beta_1)
    }
}

impl UpdateRule for Nadam {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        vec![SlotSpec::zeros("momentum", value), SlotSpec::zeros("velocity", value)]
    }

    /// The product of the weights so far.
    fn shared(&self) -> Vec<(&'static str, f64)> {
        vec![("u_product", 1.0)]
    }

    fn advance(&self, context: &UpdateContext) -> Result<Vec<Tensor>> {
        Ok(vec![mul(&context.shared[0], self.weight(&context.step)?)?])
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        let dtype = value.dtype();
        let (this, next) = (self.weight(&context.step)?, self.weight(&add(&context.step, 1.0)?)?);
        let product = &context.shared[0];
        let of_average = mul(&context.rate, div(&next, sub(1.0, mul(product, &next)?)?)?)?;
        let of_gradient = mul(&context.rate, div(sub(1.0, this)?, sub(1.0, product)?)?)?;
        let of_square = cast(correction(self.beta_2, &context.step)?, dtype)?;
        slots[0] = average(&slots[0], gradient.clone(), self.beta_1)?;
        slots[1] = average(&slots[1], square(&gradient)?, self.beta_2)?;
        let lookahead =
            add(mul(&slots[0], cast(of_average, dtype)?)?, mul(gradient, cast(of_gradient, dtype)?)?)?;
        let denominator = add(sqrt(div(&slots[1], of_square)?)?, self.epsilon)?;
        sub(value, div(lookahead, denominator)?)
    }

    fn check(&self) -> Result<()> {
        check_range("beta_1", self.beta_1, 0.0, 1.0)?;
        check_range("beta_2", self.beta_2, 0.0, 1.0)?;
        check_range("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
