//! Losses that ask for a distance between right and wrong.

use super::{Loss, paired};
use taut_core::ops::binary::{add, equal, logical_or, maximum, mul, sub, where_};
use taut_core::ops::reduce::{all, max, mean, sum};
use taut_core::ops::unary::square;
use taut_core::{Result, Tensor};
use taut_memory::Location;

/// `max(1 - truth * predicted, 0)`, where the truth is -1 or 1. Labels that are all 0 or 1 are taken as -1 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hinge;

impl Loss for Hinge {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("Hinge", Location::caller(), (truth, predicted), |t, p| mean(missing(t, p)?, -1, false))
    }
}

/// The square of [`Hinge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SquaredHinge;

impl Loss for SquaredHinge {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("SquaredHinge", Location::caller(), (truth, predicted), |t, p| {
            mean(square(missing(t, p)?)?, -1, false)
        })
    }
}

/// What is missing to a distance of 1.
fn missing(truth: Tensor, predicted: Tensor) -> Result<Tensor> {
    let binary = all(logical_or(equal(&truth, 0)?, equal(&truth, 1)?)?, None, false)?;
    let truth = where_(binary, sub(mul(&truth, 2.0)?, 1.0)?, truth)?;
    maximum(sub(1.0, mul(truth, predicted)?)?, 0.0)
}

/// How much the best wrong class lacks to be 1 below the right one. The truth has a 1 for the right class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CategoricalHinge;

impl Loss for CategoricalHinge {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("CategoricalHinge", Location::caller(), (truth, predicted), |t, p| {
            let right = sum(mul(&t, &p)?, -1, false)?;
            let wrong = max(mul(sub(1.0, t)?, p)?, -1, false)?;
            maximum(add(sub(wrong, right)?, 1.0)?, 0.0)
        })
    }
}
