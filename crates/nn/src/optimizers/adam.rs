//! Steps of about the size of the learning rate: gradients divided by their usual size.

use super::{Now, Rate, Rule, Slot, within};
use taut_core::ops::binary::{add, div, maximum, mul, pow, sub};
use taut_core::ops::unary::{cast, sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// Adam: a moving average of the gradients, divided by the root of one of their squares, both corrected for having begun at zero.
///
/// The corrections are computed in `float64`, whatever the type of the variable.
#[derive(Clone, Debug)]
pub struct Adam {
    /// The learning rate.
    pub rate: Rate,
    /// How much of the average of gradients stays.
    pub beta_1: f64,
    /// How much of the average of squares stays.
    pub beta_2: f64,
    /// What is added to the root, so that nothing is divided by zero.
    pub epsilon: f64,
    /// Whether the largest average of squares so far is used.
    pub amsgrad: bool,
}

impl Default for Adam {
    fn default() -> Adam {
        Adam { rate: 0.001.into(), beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, amsgrad: false }
    }
}

/// A moving average that keeps `beta` of itself.
pub(super) fn average(old: &Tensor, new: Tensor, beta: f64) -> Result<Tensor> {
    add(old, mul(sub(new, old)?, 1.0 - beta)?)
}

/// What a moving average that began at zero has to be divided by: `1 - beta^step`.
pub(super) fn correction(beta: f64, step: &Tensor) -> Result<Tensor> {
    sub(1.0, pow(beta, step)?)
}

impl Rule for Adam {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        let names: &[&str] =
            if self.amsgrad { &["momentum", "velocity", "velocity_hat"] } else { &["momentum", "velocity"] };
        names.iter().map(|name| Slot::zeros(name, value)).collect()
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        let scale = div(sqrt(correction(self.beta_2, &now.step)?)?, correction(self.beta_1, &now.step)?)?;
        let rate = cast(mul(&now.rate, scale)?, value.dtype())?;
        slots[0] = average(&slots[0], gradient.clone(), self.beta_1)?;
        slots[1] = average(&slots[1], square(gradient)?, self.beta_2)?;
        if self.amsgrad {
            slots[2] = maximum(&slots[2], &slots[1])?;
        }
        let usual = add(sqrt(&slots[if self.amsgrad { 2 } else { 1 }])?, self.epsilon)?;
        sub(value, div(mul(&slots[0], rate)?, usual)?)
    }

    fn check(&self) -> Result<()> {
        within("beta_1", self.beta_1, 0.0, 1.0)?;
        within("beta_2", self.beta_2, 0.0, 1.0)?;
        within("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}

/// [`Adam`] with weight decay: every update also takes away a part of the value.
#[derive(Clone, Debug)]
pub struct AdamW {
    /// The learning rate.
    pub rate: Rate,
    /// How much of a value is taken away at each update, per learning rate.
    pub weight_decay: f64,
    /// How much of the average of gradients stays.
    pub beta_1: f64,
    /// How much of the average of squares stays.
    pub beta_2: f64,
    /// What is added to the root, so that nothing is divided by zero.
    pub epsilon: f64,
    /// Whether the largest average of squares so far is used.
    pub amsgrad: bool,
}

impl Default for AdamW {
    fn default() -> AdamW {
        let Adam { rate, beta_1, beta_2, epsilon, amsgrad } = Adam::default();
        AdamW { rate, weight_decay: 0.004, beta_1, beta_2, epsilon, amsgrad }
    }
}

impl AdamW {
    fn adam(&self) -> Adam {
        let AdamW { rate, beta_1, beta_2, epsilon, amsgrad, .. } = self.clone();
        Adam { rate, beta_1, beta_2, epsilon, amsgrad }
    }
}

impl Rule for AdamW {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        self.adam().slots(value)
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        self.adam().update(now, value, gradient, slots)
    }

    fn decay(&self) -> f64 {
        self.weight_decay
    }

    fn check(&self) -> Result<()> {
        self.adam().check()
    }
}
