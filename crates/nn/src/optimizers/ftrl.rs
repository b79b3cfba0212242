//! FTRL.

use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, clip_by_value, div, mul, pow, sub};
use taut_core::ops::unary::square;
use taut_core::{Error, Result, Spec, Tensor};

/// FTRL ("follow the regularized leader"), for large, sparse linear models; with `l1`, many weights become exactly zero.
#[derive(Clone, Debug)]
pub struct Ftrl {
    /// The learning rate.
    pub rate: LearningRate,
    /// The exponent of the sum of squares in the learning rate; at most zero.
    pub rate_power: f64,
    /// The initial value of the sums of squares.
    pub initial_accumulator: f64,
    /// The L1 penalty.
    pub l1: f64,
    /// The L2 penalty.
    pub l2: f64,
    /// The L2 shrinkage: an L2 penalty that is added only to gradients.
    pub l2_shrinkage: f64,
    /// Added to the denominator of the learning rate.
    pub beta: f64,
}

impl Default for Ftrl {
    fn default() -> Ftrl {
        Ftrl {
            rate: 0.001.into(),
            rate_power: -0.5,
            initial_accumulator: 0.1,
            l1: 0.0,
            l2: 0.0,
            l2_shrinkage: 0.0,
            beta: 0.0,
        }
    }
}

impl UpdateRule for Ftrl {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        let initial = self.initial_accumulator;
        vec![SlotSpec { initial, ..SlotSpec::zeros("accumulator", value) }, SlotSpec::zeros("linear", value)]
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        let rate = context.rate_as(&value)?;
        let l2 = add(div(self.beta / 2.0, &rate)?, self.l2)?;
        let accumulator = add(&slots[0], square(&gradient)?)?;
        let grown = pow(&accumulator, -self.rate_power)?;
        let growth = div(sub(&grown, pow(&slots[0], -self.rate_power)?)?, &rate)?;
        let shrunk = add(gradient, mul(&value, 2.0 * self.l2_shrinkage)?)?;
        slots[1] = add(&slots[1], sub(shrunk, mul(growth, value)?)?)?;
        slots[0] = accumulator;
        let curvature = add(div(grown, rate)?, mul(l2, 2.0)?)?;
        let bounded = clip_by_value(&slots[1], -self.l1, self.l1)?;
        div(sub(bounded, &slots[1])?, curvature)
    }

    fn check(&self) -> Result<()> {
        if !self.rate_power.is_finite() || self.rate_power > 0.0 {
            let message = format!("rate_power must be finite and <= 0, got {}", self.rate_power);
            return Err(Error::value(message));
        }
        let settings = [
            ("initial_accumulator", self.initial_accumulator),
            ("l1", self.l1),
            ("l2", self.l2),
            ("l2_shrinkage", self.l2_shrinkage),
            ("beta", self.beta),
        ];
        settings.into_iter().try_for_each(|(name, value)| check_range(name, value, 0.0, f64::INFINITY))
    }
}
