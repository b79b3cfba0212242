//! Adadelta.

use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, div, mul, sub};
use taut_core::ops::unary::{sqrt, square};
use taut_core::{Result, Spec, Tensor};

/// Adadelta: the gradient times the root mean square of recent steps, divided by that of recent gradients.
#[derive(Clone, Debug)]
pub struct Adadelta {
    /// The learning rate; one in the paper.
    pub rate: LearningRate,
    /// The decay rate of the moving averages.
    pub rho: f64,
    /// Added before roots are taken.
    pub epsilon: f64,
}

impl Default for Adadelta {
    fn default() -> Adadelta {
        Adadelta { rate: 0.001.into(), rho: 0.95, epsilon: 1e-7 }
    }
}

impl UpdateRule for Adadelta {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        vec![SlotSpec::zeros("accumulated_grad", value), SlotSpec::zeros("accumulated_delta_var", value)]
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        let average = |old: &Tensor, new: Tensor| add(mul(old, self.rho)?, mul(new, 1.0 - self.rho)?);
        let rms = |x: &Tensor| sqrt(add(x, self.epsilon)?);
        slots[0] = average(&slots[0], square(&gradient)?)?;
        let step = div(mul(rms(&slots[1])?, gradient)?, rms(&slots[0])?)?;
        slots[1] = average(&slots[1], square(&step)?)?;
        let rate = context.rate_as(&value)?;
        sub(value, mul(step, rate)?)
    }

    fn check(&self) -> Result<()> {
        check_range("rho", self.rho, 0.0, 1.0)?;
        check_range("epsilon", self.epsilon, 0.0, f64::INFINITY)
    }
}
