//! `Adam` and `AdamW`.

use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, div, maximum, mul, pow, sub};
use taut_core::ops::unary::{cast, sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// Adam: the moving average of gradients divided by the root of the moving average of their squares, both with bias correction.
///
/// The corrections are computed in `float64` for every dtype of the variable.
#[derive(Clone, Debug)]
pub struct Adam {
    /// The learning rate.
    pub rate: LearningRate,
    /// The decay rate of the moving average of gradients.
    pub beta_1: f64,
    /// The decay rate of the moving average of squared gradients.
    pub beta_2: f64,
    /// Added to the root; prevents division by zero.
    pub epsilon: f64,
    /// Whether the maximum of the averages of squares so far is used (`AMSGrad`).
    pub amsgrad: bool,
}

impl Default for Adam {
    fn default() -> Adam {
        Adam { rate: 0.001.into(), beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, amsgrad: false }
    }
}

/// An exponential moving average with decay rate `beta`.
pub(super) fn average(old: &Tensor, new: Tensor, beta: f64) -> Result<Tensor> {
    add(old, mul(sub(new, old)?, 1.0 - beta)?)
}

/// The bias correction of a moving average that started at zero: `1 - beta^step`.
pub(super) fn correction(beta: f64, step: &Tensor) -> Result<Tensor> {
    sub(1.0, pow(beta, step)?)
}

impl UpdateRule for Adam {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        let names: &[&str] =
            if self.amsgrad { &["momentum", "velocity", "velocity_hat"] } else { &["momentum", "velocity"] };
        names.iter().map(|name| SlotSpec::zeros(name, value)).collect()
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        let scale =
            div(sqrt(correction(self.beta_2, &context.step)?)?, correction(self.beta_1, &context.step)?)?;
        let rate = cast(mul(&context.rate, scale)?, value.dtype())?;
        slots[0] = average(&slots[0], gradient.clone(), self.beta_1)?;
        slots[1] = average(&slots[1], square(gradient)?, self.beta_2)?;
        if self.amsgrad {
            slots[2] = maximum(&slots[2], &slots[1])?;
        }
        let denominator = add(sqrt(&slots[if self.amsgrad { 2 } else { 1 }])?, self.epsilon)?;
        sub(value, div(mul(&slots[0], rate)?, denominator)?)
    }

    fn check(&self) -> Result<()> {
        check_range("beta_1", self.beta_1, 0.0, 1.0)?;
        check_range("beta_2", self.beta_2, 0.0, 1.0)?;
        check_range("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}

/// [`Adam`] with decoupled weight decay.
#[derive(Clone, Debug)]
pub struct AdamW {
    /// The learning rate.
    pub rate: LearningRate,
    /// The weight decay: each update subtracts `weight_decay * rate * value`.
    pub weight_decay: f64,
    /// The decay rate of the moving average of gradients.
    pub beta_1: f64,
    /// The decay rate of the moving average of squared gradients.
    pub beta_2: f64,
    /// Added to the root; prevents division by zero.
    pub epsilon: f64,
    /// Whether the maximum of the averages of squares so far is used (`AMSGrad`).
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

impl UpdateRule for AdamW {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        self.adam().slots(value)
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        self.adam().update(context, value, gradient, slots)
    }

    fn decay(&self) -> f64 {
        self.weight_decay
    }

    fn check(&self) -> Result<()> {
        self.adam().check()
    }
}
