//! Losses of numbers that predict numbers.

use super::{EPSILON, Loss, paired};
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
        paired("MeanSquaredError", Location::caller(), (truth, predicted), |t, p| {
            mean(squared_difference(t, p)?, -1, false)
        })
    }
}

/// The mean of absolute differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanAbsoluteError;

impl Loss for MeanAbsoluteError {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("MeanAbsoluteError", Location::caller(), (truth, predicted), |t, p| {
            mean(abs(sub(t, p)?)?, -1, false)
        })
    }
}

/// The mean of absolute differences in percent of the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanAbsolutePercentageError;

impl Loss for MeanAbsolutePercentageError {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("MeanAbsolutePercentageError", Location::caller(), (truth, predicted), |t, p| {
            let share = div(abs(sub(&t, p)?)?, maximum(abs(&t)?, EPSILON)?)?;
            mul(mean(share, -1, false)?, 100.0)
        })
    }
}

/// The mean of squared differences of the logarithms of one more; what is negative counts as zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanSquaredLogarithmicError;

impl Loss for MeanSquaredLogarithmicError {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let more = |x| log(add(maximum(x, EPSILON)?, 1.0)?);
        paired("MeanSquaredLogarithmicError", Location::caller(), (truth, predicted), |t, p| {
            mean(squared_difference(more(t)?, more(p)?)?, -1, false)
        })
    }
}

/// Half the square of small differences, and linear from `delta` on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Huber {
    /// Where it becomes linear.
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
        paired("Huber", Location::caller(), (truth, predicted), |t, p| {
            if !(delta > 0.0 && delta.is_finite()) {
                return Err(Error::value(format!("a delta of {delta} makes no sense")).help("it is above 0"));
            }
            let error = abs(sub(p, t)?)?;
            let linear = sub(mul(&error, delta)?, 0.5 * delta * delta)?;
            let small = less_equal(&error, delta)?;
            mean(where_(small, mul(square(error)?, 0.5)?, linear)?, -1, false)
        })
    }
}

/// The mean of the logarithms of the hyperbolic cosine of the differences: about half the square of small ones, and
/// linear for large ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCosh;

impl Loss for LogCosh {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("LogCosh", Location::caller(), (truth, predicted), |t, p| {
            let error = sub(p, t)?;
            let bent = softplus(mul(&error, -2.0)?)?;
            mean(sub(add(error, bent)?, std::f64::consts::LN_2)?, -1, false)
        })
    }
}

/// `predicted - truth * log(predicted)`, the cost of counts of the Poisson distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poisson;

impl Loss for Poisson {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("Poisson", Location::caller(), (truth, predicted), |t, p| {
            let likely = mul(t, log(add(&p, EPSILON)?)?)?;
            mean(sub(p, likely)?, -1, false)
        })
    }
}

/// Minus the cosine of the angle between truth and prediction: -1 if they point the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CosineSimilarity;

impl Loss for CosineSimilarity {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("CosineSimilarity", Location::caller(), (truth, predicted), |t, p| neg(cosine(t, p)?))
    }
}

/// The cosine of the angle between rows.
pub(crate) fn cosine(x: Tensor, y: Tensor) -> Result<Tensor> {
    sum(mul(l2_normalize(x, -1, 1e-12)?, l2_normalize(y, -1, 1e-12)?)?, -1, false)
}
