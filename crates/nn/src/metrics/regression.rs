//! Regression metrics and perplexity.

use super::{MeanMetric, Measure, Metric, MetricSums, in_metric};
use crate::NamedVariables;
use crate::losses::{self, Loss, align, broadcast_weights};
use taut_core::ops::binary::{
    div_no_nan, equal, greater, logical_and, mul, not_equal, squared_difference, sub, where_,
};
use taut_core::ops::reduce::{mean, sum};
use taut_core::ops::shape::broadcast_to;
use taut_core::ops::unary::{cast, exp, sqrt, square};
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::Location;

/// The mean of squared differences.
pub type MeanSquaredError = MeanMetric<SquaredError>;
/// The root of the mean of squared differences.
pub type RootMeanSquaredError = MeanMetric<RootSquaredError>;
/// The mean of absolute differences.
pub type MeanAbsoluteError = MeanMetric<AbsoluteError>;

/// The squared difference.
#[derive(Clone, Copy, Debug)]
pub struct SquaredError;

impl MeanSquaredError {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<MeanSquaredError> {
        MeanMetric::of_measure(SquaredError)
    }
}

impl Measure for SquaredError {
    fn name(&self) -> &'static str {
        "mean_squared_error"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        losses::MeanSquaredError.call(truth, predicted)
    }
}

/// The squared difference; the metric is the root of its mean.
#[derive(Clone, Copy, Debug)]
pub struct RootSquaredError;

impl RootMeanSquaredError {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<RootMeanSquaredError> {
        MeanMetric::of_measure(RootSquaredError)
    }
}

impl Measure for RootSquaredError {
    fn name(&self) -> &'static str {
        "root_mean_squared_error"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        losses::MeanSquaredError.call(truth, predicted)
    }

    fn finalize(&self, mean: Tensor) -> Result<Tensor> {
        sqrt(mean)
    }
}

/// The absolute difference.
#[derive(Clone, Copy, Debug)]
pub struct AbsoluteError;

impl MeanAbsoluteError {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<MeanAbsoluteError> {
        MeanMetric::of_measure(AbsoluteError)
    }
}

impl Measure for AbsoluteError {
    fn name(&self) -> &'static str {
        "mean_absolute_error"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        losses::MeanAbsoluteError.call(truth, predicted)
    }
}

/// The coefficient of determination: the share of the targets' variance that the predictions explain. 1 is exact, 0 is as good as
/// the mean of the targets. Several outputs are averaged.
///
/// For constant targets the score is 1 if they are predicted exactly and 0 otherwise, as in scikit-learn.
#[derive(Debug)]
pub struct R2Score {
    sums: MetricSums<4>,
}

impl R2Score {
    /// The metric, for predictions `[batch, outputs]`.
    #[track_caller]
    pub fn new(outputs: usize) -> Result<R2Score> {
        Ok(R2Score { sums: MetricSums::new(["squared_sum", "sum", "residual", "count"], [outputs])? })
    }
}

impl Metric for R2Score {
    fn name(&self) -> &'static str {
        "r2_score"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        in_metric("R2Score", Location::caller(), (truth, predicted), || {
            let (truth, predicted) = align(truth, predicted)?;
            let outputs = self.sums.0[0].shape()[0];
            if truth.rank() != 2 || truth.shape()[1] != outputs {
                return Err(Error::shape(format!("expected [batch, {outputs}], got {}", truth.spec())));
            }
            let (truth, predicted) = (cast(truth, DType::F64)?, cast(predicted, DType::F64)?);
            let weights = match weights {
                Some(weights) => broadcast_to(broadcast_weights(&truth, weights)?, truth.shape())?,
                None => broadcast_to(Tensor::scalar(1.0f64)?, truth.shape())?,
            };
            let add = |i, value: Tensor| self.sums.add(i, sum(mul(value, &weights)?, 0, false)?);
            add(0, square(&truth)?)?;
            add(1, truth.clone())?;
            add(2, squared_difference(truth, predicted)?)?;
            self.sums.add(3, sum(&weights, 0, false)?)
        })
    }

    fn result(&self) -> Result<Tensor> {
        let [squares, total, residual, count] = self.sums.read();
        let variance = sub(squares, mul(&total, div_no_nan(&total, &count)?)?)?;
        // Constant targets have variance 0: the score is 1 for an exact prediction and 0 otherwise.
        let exact = logical_and(equal(&residual, 0.0)?, greater(count, 0.0)?)?;
        let constant = equal(&variance, 0.0)?;
        let scores = where_(constant, cast(exact, DType::F64)?, sub(1.0, div_no_nan(residual, variance)?)?)?;
        mean(scores, None, false)
    }

    fn reset(&self) -> Result<()> {
        self.sums.reset()
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.sums.variables(names);
    }
}

/// The exponential of the mean cross-entropy.
#[derive(Debug)]
pub struct Perplexity {
    loss: losses::SparseCategoricalCrossentropy,
    sums: MetricSums<2>,
}

impl Perplexity {
    /// The metric, for predictions and labels as this loss takes them. Labels that the loss ignores do not count.
    #[track_caller]
    pub fn new(loss: losses::SparseCategoricalCrossentropy) -> Result<Perplexity> {
        Ok(Perplexity { loss, sums: MetricSums::new(["total", "count"], ())? })
    }
}

impl Metric for Perplexity {
    fn name(&self) -> &'static str {
        "perplexity"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        in_metric("Perplexity", Location::caller(), (truth, predicted), || {
            let each = cast(self.loss.call(truth, predicted)?, DType::F64)?;
            let mut counted = match weights {
                Some(weights) => broadcast_to(broadcast_weights(&each, weights)?, each.shape())?,
                None => broadcast_to(Tensor::scalar(1.0f64)?, each.shape())?,
            };
            if let Some(class) = self.loss.ignore_class {
                let labels = super::accuracy::labels(truth, predicted)?;
                counted = mul(counted, cast(not_equal(labels, class)?, DType::F64)?)?;
            }
            self.sums.add(0, sum(mul(each, &counted)?, None, false)?)?;
            self.sums.add(1, sum(counted, None, false)?)
        })
    }

    fn result(&self) -> Result<Tensor> {
        let [total, count] = self.sums.read();
        exp(div_no_nan(total, count)?)
    }

    fn reset(&self) -> Result<()> {
        self.sums.reset()
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.sums.variables(names);
    }
}
