//! Hinge losses.

use super::{Loss, in_loss_aligned};
use taut_core::ops::binary::{add, equal, logical_or, maximum, mul, sub, where_};
use taut_core::ops::reduce::{all, max, mean, sum};
use taut_core::ops::unary::square;
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// `max(1 - truth * predicted, 0)` for labels -1 and 1. If all labels are 0 or 1, they are mapped to -1 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hinge;

impl Loss for Hinge {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("Hinge", Location::caller(), (truth, predicted), |t, p| mean(hinge(t, p)?, -1, false))
    }
}

/// The square of [`Hinge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SquaredHinge;

impl Loss for SquaredHinge {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("SquaredHinge", Location::caller(), (truth, predicted), |t, p| {
            mean(square(hinge(t, p)?)?, -1, false)
        })
    }
}

/// The elementwise hinge loss.
fn hinge(truth: Tensor, predicted: Tensor) -> Result<Tensor> {
    let binary = all(logical_or(equal(&truth, 0)?, equal(&truth, 1)?)?, None, false)?;
    let truth = where_(binary, sub(mul(&truth, 2.0)?, 1.0)?, truth)?;
    maximum(sub(1.0, mul(truth, predicted)?)?, 0.0)
}

/// `max(1 + wrong - right, 0)`: the prediction of the true class and the highest of the others. Targets are one-hot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CategoricalHinge;

impl Loss for CategoricalHinge {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("CategoricalHinge", Location::caller(), (truth, predicted), |t, p| {
            let right = sum(mul(&t, &p)?, -1, false)?;
            let wrong = max(mul(sub(1.0, t)?, p)?, -1, false)?;
            maximum(add(sub(wrong, right)?, 1.0)?, 0.0)
        })
    }
}
