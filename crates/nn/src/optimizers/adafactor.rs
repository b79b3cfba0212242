//! Adafactor.

use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule, check_range};
use taut_core::ops::binary::{add, div, maximum, minimum, mul, pow, sub};
use taut_core::ops::reduce::mean;
use taut_core::ops::shape::expand_dims;
use taut_core::ops::unary::{cast, sqrt, square};
use taut_core::{Error, Result, Spec, Tensor};

/// Adafactor: gradients divided by the root of the moving average of their squares, of which a matrix stores only the means of rows and
/// columns: `rows + columns` numbers.
///
/// Steps are relative to the root mean square of the value, and at most `1 / sqrt(step)` of it. The update of an element depends on all
/// others, so sparse gradients are converted to dense ones.
#[derive(Clone, Debug)]
pub struct Adafactor {
    /// The learning rate, relative to the root of the mean square of a value.
    pub rate: LearningRate,
    /// The exponent of the decay rate of the moving average; less than zero.
    pub beta_2_decay: f64,
    /// Added to squares.
    pub epsilon_1: f64,
    /// The minimum root mean square of a value to which steps are relative.
    pub epsilon_2: f64,
    /// Steps whose root mean square is larger are scaled down to it.
    pub clip_threshold: f64,
}

impl Default for Adafactor {
    fn default() -> Adafactor {
        Adafactor {
            rate: 0.001.into(),
            beta_2_decay: -0.8,
            epsilon_1: 1e-30,
            epsilon_2: 1e-3,
            clip_threshold: 1.0,
        }
    }
}

/// The root mean square.
fn rms(x: &Tensor) -> Result<Tensor> {
    sqrt(mean(square(x)?, None, false)?)
}

impl UpdateRule for Adafactor {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        let rank = value.shape.rank();
        if rank < 2 {
            return vec![SlotSpec::zeros("velocity", value)];
        }
        let without = |axis: usize| value.shape.clone().without(axis);
        let slot = |name, shape| SlotSpec { name, shape, initial: 0.0 };
        vec![slot("rows", without(rank - 1)), slot("columns", without(rank - 2))]
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        let dtype = value.dtype();
        let rate = cast(minimum(&context.rate, div(1.0, sqrt(&context.step)?)?)?, dtype)?;
        let rate = mul(maximum(rms(&value)?, self.epsilon_2)?, rate)?;
        let new = pow(&context.step, self.beta_2_decay)?;
        let (old, new) = (cast(sub(1.0, &new)?, dtype)?, cast(new, dtype)?);
        let average = |slot: &Tensor, x: Tensor| add(mul(slot, &old)?, mul(x, &new)?);
        let squared = add(square(&gradient)?, self.epsilon_1)?;
        let step = match slots {
            [rows, columns] => {
                *rows = average(rows, mean(&squared, -1, false)?)?;
                *columns = average(columns, mean(squared, -2, false)?)?;
                let weights = div(&*rows, mean(&*rows, -1, true)?)?;
                let (rows, columns) = (expand_dims(sqrt(weights)?, -1)?, expand_dims(sqrt(&*columns)?, -2)?);
                div(div(gradient, rows)?, columns)?
            }
            _ => {
                slots[0] = average(&slots[0], squared)?;
                div(gradient, sqrt(&slots[0])?)?
            }
        };
        let scale = div(rate, maximum(div(rms(&step)?, self.clip_threshold)?, 1.0)?)?;
        sub(value, mul(step, scale)?)
    }

    fn is_rowwise(&self) -> bool {
        false
    }

    fn check(&self) -> Result<()> {
        if !self.beta_2_decay.is_finite() || self.beta_2_decay >= 0.0 {
            let message = format!("beta_2_decay must be finite and < 0, got {}", self.beta_2_decay);
            return Err(Error::value(message));
        }
        let settings = [("epsilon_1", self.epsilon_1), ("epsilon_2", self.epsilon_2)];
        settings.into_iter().try_for_each(|(name, value)| check_range(name, value, 0.0, f64::INFINITY))?;
        check_range("clip_threshold", self.clip_threshold, f64::MIN_POSITIVE, f64::INFINITY)
    }
}
