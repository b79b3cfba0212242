//! Lion.

use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, mul, sub};
use taut_core::ops::unary::sign;
use taut_core::{Result, Spec, Tensor};

/// Lion: steps of fixed size in the direction of the sign of a moving average of gradients. It needs a learning rate three to ten times
/// smaller than [`Adam`](super::Adam), and half the state.
#[derive(Clone, Debug)]
pub struct Lion {
    /// The learning rate.
    pub rate: LearningRate,
    /// The weight of the moving average in the sign.
    pub beta_1: f64,
    /// The decay rate of the moving average.
    pub beta_2: f64,
}

impl Default for Lion {
    fn default() -> Lion {
        Lion { rate: 0.001.into(), beta_1: 0.9, beta_2: 0.99 }
    }
}

impl UpdateRule for Lion {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        vec![SlotSpec::zeros("momentum", value)]
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        // Both averages use the same difference, so one fused pass computes them.
        let difference = sub(&slots[0], &gradient)?;
        let direction = sign(add(mul(&difference, self.beta_1)?, &gradient)?)?;
        slots[0] = add(mul(difference, self.beta_2)?, gradient)?;
        let rate = context.rate_as(&value)?;
        sub(value, mul(direction, rate)?)
    }

    fn check(&self) -> Result<()> {
        check_range("beta_1", self.beta_1, 0.0, 1.0)?;
        check_range("beta_2", self.beta_2, 0.0, 1.0)
    }
}
