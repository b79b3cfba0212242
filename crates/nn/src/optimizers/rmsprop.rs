//! `RMSprop`.

use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::unary::{sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// `RMSprop`: gradients divided by the root of the moving average of their squares.
#[derive(Clone, Debug)]
pub struct RmsProp {
    /// The learning rate.
    pub rate: LearningRate,
    /// The decay rate of the moving average of squared gradients.
    pub rho: f64,
    /// The share of the previous step that is added to the next one.
    pub momentum: f64,
    /// Added before the root is taken; prevents division by zero.
    pub epsilon: f64,
    /// Whether the square of the average gradient is subtracted, so that gradients are divided by their standard deviation.
    pub centered: bool,
}

impl Default for RmsProp {
    fn default() -> RmsProp {
        RmsProp { rate: 0.001.into(), rho: 0.9, momentum: 0.0, epsilon: 1e-7, centered: false }
    }
}

impl UpdateRule for RmsProp {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        let mut slots = vec![SlotSpec::zeros("velocity", value)];
        if self.momentum > 0.0 {
            slots.push(SlotSpec::zeros("momentum", value));
        }
        if self.centered {
            slots.push(SlotSpec::zeros("average_gradient", value));
        }
        slots
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        let average = |old: &Tensor, new: Tensor| add(mul(old, self.rho)?, mul(new, 1.0 - self.rho)?);
        slots[0] = average(&slots[0], square(&gradient)?)?;
        let second_moment = if let Some(mean) = slots.last_mut().filter(|_| self.centered) {
            *mean = average(mean, gradient.clone())?;
            let squared = square(&*mean)?;
            sub(&slots[0], squared)?
        } else {
            slots[0].clone()
        };
        let rate = context.rate_as(&value)?;
        let step = div(mul(gradient, rate)?, sqrt(add(second_moment, self.epsilon)?)?)?;
        if self.momentum > 0.0 {
            slots[1] = add(mul(&slots[1], self.momentum)?, step)?;
            return sub(value, &slots[1]);
        }
        sub(value, step)
    }

    fn check(&self) -> Result<()> {
        check_range("rho", self.rho, 0.0, 1.0)?;
        check_range("momentum", self.momentum, 0.0, 1.0)?;
        check_range("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
