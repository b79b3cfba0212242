//! Steps as large as steps usually are, for gradients as large as gradients usually are.

use super::{Now, Rate, Rule, Slot, within};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::unary::{sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// Adadelta: gradients divided by the root of the moving average of their squares, times that of the steps.
#[derive(Clone, Debug)]
pub struct Adadelta {
    /// The learning rate; one in the paper.
    pub rate: Rate,
    /// How much of the averages stays.
    pub rho: f64,
    /// What is added before roots are taken.
    pub epsilon: f64,
}

impl Default for Adadelta {
    fn default() -> Adadelta {
        Adadelta { rate: 0.001.into(), rho: 0.95, epsilon: 1e-7 }
    }
}

impl Rule for Adadelta {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        vec![Slot::zeros("accumulated_grad", value), Slot::zeros("accumulated_delta_var", value)]
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        let average = |old: &Tensor, new: Tensor| add(mul(old, self.rho)?, mul(new, 1.0 - self.rho)?);
        let usual = |x: &Tensor| sqrt(add(x, self.epsilon)?);
        slots[0] = average(&slots[0], square(&gradient)?)?;
        let step = div(mul(usual(&slots[1])?, gradient)?, usual(&slots[0])?)?;
        slots[1] = average(&slots[1], square(&step)?)?;
        let rate = now.rate_as(&value)?;
        sub(value, mul(step, rate)?)
    }

    fn check(&self) -> Result<()> {
        within("rho", self.rho, 0.0, 1.0)?;
        within("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
