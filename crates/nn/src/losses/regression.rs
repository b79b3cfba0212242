//! Regression losses.

use super::{EPSILON, Loss, in_loss_aligned};
use taut_core::ops::binary::{add, div, less_equal, maximum, mul, squared_difference, sub, where_};
use taut_core::ops::reduce::{l2_normalize, mean, sum};
use taut_core::ops::unary::{abs, log, neg, softplus, square};
use taut_core::{Error, Result, Tensor};
use taut_memory::Location;

/// The mean of squared differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanSquaredError;

impl Loss for MeanSquaredError {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("MeanSquaredError", Location::caller(), (truth, predicted), |t, p| {
            mean(squared_difference(t, p)?, -1, false)
        })
    }
}

/// The mean of absolute differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanAbsoluteError;

impl Loss for MeanAbsoluteError {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("MeanAbsoluteError", Location::caller(), (truth, predicted), |t, p| {
            mean(abs(sub(t, p)?)?, -1, false)
        })
    }
}

/// The mean of absolute differences in percent of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanAbsolutePercentageError;

impl Loss for MeanAbsolutePercentageError {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("MeanAbsolutePercentageError", Location::caller(), (truth, predicted), |t, p| {
            let share = div(abs(sub(&t, p)?)?, maximum(abs(&t)?, EPSILON)?)?;
            mul(mean(share, -1, false)?, 100.0)
        })
    }
}

/// The mean of `(log(1 + truth) - log(1 + predicted))^2`; negative values are replaced by zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanSquaredLogarithmicError;

impl Loss for MeanSquaredLogarithmicError {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let log1p = |x| log(add(maximum(x, EPSILON)?, 1.0)?);
        in_loss_aligned("MeanSquaredLogarithmicError", Location::caller(), (truth, predicted), |t, p| {
            mean(squared_difference(log1p(t)?, log1p(p)?)?, -1, false)
        })
    }
}

/// Half the square of differences up to `delta`, linear beyond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Huber {
    /// The difference at which the loss becomes linear.
    pub delta: f64,
}

impl Default for Huber {
    fn default() -> Huber {
        Huber { delta: 1.0 }
    }
}

impl Loss for Huber {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let delta = self.delta;
        in_loss_aligned("Huber", Location::caller(), (truth, predicted), |t, p| {
            if !(delta > 0.0 && delta.is_finite()) {
                return Err(Error::value(format!("delta must be finite and > 0, got {delta}")));
            }
            let error = abs(sub(p, t)?)?;
            let linear = sub(mul(&error, delta)?, 0.5 * delta * delta)?;
            let small = less_equal(&error, delta)?;
            mean(where_(small, mul(square(error)?, 0.5)?, linear)?, -1, false)
        })
    }
}

/// The mean of `log(cosh(difference))`: about half the square of small differences, linear for large ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCosh;

impl Loss for LogCosh {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("LogCosh", Location::caller(), (truth, predicted), |t, p| {
            let error = sub(p, t)?;
            let bent = softplus(mul(&error, -2.0)?)?;
            mean(sub(add(error, bent)?, std::f64::consts::LN_2)?, -1, false)
        })
    }
}

/// `predicted - truth * log(predicted)`, the negative log likelihood of the Poisson distribution up to a constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poisson;

impl Loss for Poisson {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("Poisson", Location::caller(), (truth, predicted), |t, p| {
            let likely = mul(t, log(add(&p, EPSILON)?)?)?;
            mean(sub(p, likely)?, -1, false)
        })
    }
}

/// Minus the cosine of the angle between target and prediction: -1 for equal directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CosineSimilarity;

impl Loss for CosineSimilarity {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("CosineSimilarity", Location::caller(), (truth, predicted), |t, p| neg(cosine(t, p)?))
    }
}

/// The cosine of the angle between rows.
pub(crate) fn cosine(x: Tensor, y: Tensor) -> Result<Tensor> {
    sum(mul(l2_normalize(x, -1, 1e-12)?, l2_normalize(y, -1, 1e-12)?)?, -1, false)
}
