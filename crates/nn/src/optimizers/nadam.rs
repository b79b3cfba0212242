//! Adam that looks ahead as Nesterov's momentum does.

use super::adam::{average, correction};
use super::{Now, Rate, Rule, Slot, within};
use taut_core::ops::binary::{add, div, mul, pow, sub};
use taut_core::ops::unary::{cast, sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// Nadam: Adam whose average of gradients is the one that the next update will see.
#[derive(Clone, Debug)]
pub struct Nadam {
    /// The learning rate.
    pub rate: Rate,
    /// How much of the average of gradients stays.
    pub beta_1: f64,
    /// How much of the average of squares stays.
    pub beta_2: f64,
    /// What is added to the root, so that nothing is divided by zero.
    pub epsilon: f64,
}

impl Default for Nadam {
    fn default() -> Nadam {
        Nadam { rate: 0.001.into(), beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
    }
}

impl Nadam {
    /// How much of the average of gradients counts at this update: little at first.
    fn weight(&self, step: &Tensor) -> Result<Tensor> {
        mul(sub(1.0, mul(pow(0.96, step)?, 0.5)?)?, self.beta_1)
    }
}

impl Rule for Nadam {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        vec![Slot::zeros("momentum", value), Slot::zeros("velocity", value)]
    }

    /// The product of the weights so far.
    fn shared(&self) -> Vec<(&'static str, f64)> {
        vec![("u_product", 1.0)]
    }

    fn advance(&self, now: &Now) -> Result<Vec<Tensor>> {
        Ok(vec![mul(&now.shared[0], self.weight(&now.step)?)?])
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        let dtype = value.dtype();
        let (this, next) = (self.weight(&now.step)?, self.weight(&add(&now.step, 1.0)?)?);
        let product = &now.shared[0];
        let of_average = mul(&now.rate, div(&next, sub(1.0, mul(product, &next)?)?)?)?;
        let of_gradient = mul(&now.rate, div(sub(1.0, this)?, sub(1.0, product)?)?)?;
        let of_square = cast(correction(self.beta_2, &now.step)?, dtype)?;
        slots[0] = average(&slots[0], gradient.clone(), self.beta_1)?;
        slots[1] = average(&slots[1], square(&gradient)?, self.beta_2)?;
        let ahead =
            add(mul(&slots[0], cast(of_average, dtype)?)?, mul(gradient, cast(of_gradient, dtype)?)?)?;
        let usual = add(sqrt(div(&slots[1], of_square)?)?, self.epsilon)?;
        sub(value, div(ahead, usual)?)
    }

    fn check(&self) -> Result<()> {
        within("beta_1", self.beta_1, 0.0, 1.0)?;
        within("beta_2", self.beta_2, 0.0, 1.0)?;
        within("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
