//! Gradients divided by the root of the moving average of their squares.

use super::{Now, Rate, Rule, Slot, within};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::unary::{sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// `RMSprop`: gradients divided by the root of the moving average of their squares.
#[derive(Clone, Debug)]
pub struct RmsProp {
    /// The learning rate.
    pub rate: Rate,
    /// How much of the average of squares stays.
    pub rho: f64,
    /// How much of the last step is added to the next one.
    pub momentum: f64,
    /// What is added before the root is taken, so that nothing is divided by zero.
    pub epsilon: f64,
    /// Whether the square of the average gradient is subtracted: then it is a variance that gradients are divided by the root of.
    pub centered: bool,
}

impl Default for RmsProp {
    fn default() -> RmsProp {
        RmsProp { rate: 0.001.into(), rho: 0.9, momentum: 0.0, epsilon: 1e-7, centered: false }
    }
}

impl Rule for RmsProp {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        let mut slots = vec![Slot::zeros("velocity", value)];
        if self.momentum > 0.0 {
            slots.push(Slot::zeros("momentum", value));
        }
        if self.centered {
            slots.push(Slot::zeros("average_gradient", value));
        }
        slots
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        let average = |old: &Tensor, new: Tensor| add(mul(old, self.rho)?, mul(new, 1.0 - self.rho)?);
        slots[0] = average(&slots[0], square(&gradient)?)?;
        let spread = if let Some(mean) = slots.last_mut().filter(|_| self.centered) {
            *mean = average(mean, gradient.clone())?;
            let squared = square(&*mean)?;
            sub(&slots[0], squared)?
        } else {
            slots[0].clone()
        };
        let rate = now.rate_as(&value)?;
        let step = div(mul(gradient, rate)?, sqrt(add(spread, self.epsilon)?)?)?;
        if self.momentum > 0.0 {
            slots[1] = add(mul(&slots[1], self.momentum)?, step)?;
            return sub(value, &slots[1]);
        }
        sub(value, step)
    }

    fn check(&self) -> Result<()> {
        within("rho", self.rho, 0.0, 1.0)?;
        within("momentum", self.momentum, 0.0, 1.0)?;
        within("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
