//! How far numbers are off.

use super::{MeanOf, Measure, Metric, State, named};
use crate::Names;
use crate::losses::{self, Loss, pair, spread_weights};
use taut_core::ops::binary::{
    div_no_nan, equal, greater, logical_and, mul, not_equal, squared_difference, sub, where_,
};
use taut_core::ops::reduce::{mean, sum};
use taut_core::ops::shape::broadcast_to;
use taut_core::ops::unary::{cast, exp, sqrt, square};
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::Location;

/// The mean of squared differences.
pub type MeanSquaredError = MeanOf<SquaredError>;
/// The root of the mean of squared differences.
pub type RootMeanSquaredError = MeanOf<RootOfSquaredError>;
/// The mean of absolute differences.
pub type MeanAbsoluteError = MeanOf<AbsoluteError>;

/// The squared difference.
#[derive(Clone, Copy, Debug)]
pub struct SquaredError;

impl MeanSquaredError {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<MeanSquaredError> {
        MeanOf::measuring(SquaredError)
    }
}

impl Measure for SquaredError {
    fn name(&self) -> &'static str {
        "mean_squared_error"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        losses::MeanSquaredError.call(truth, predicted)
    }
}

/// The squared difference, of whose mean the root is taken.
#[derive(Clone, Copy, Debug)]
pub struct RootOfSquaredError;

impl RootMeanSquaredError {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<RootMeanSquaredError> {
        MeanOf::measuring(RootOfSquaredError)
    }
}

impl Measure for RootOfSquaredError {
    fn name(&self) -> &'static str {
        "root_mean_squared_error"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        losses::MeanSquaredError.call(truth, predicted)
    }

    fn finish(&self, mean: Tensor) -> Result<Tensor> {
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
        MeanOf::measuring(AbsoluteError)
    }
}

impl Measure for AbsoluteError {
    fn name(&self) -> &'static str {
        "mean_absolute_error"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        losses::MeanAbsoluteError.call(truth, predicted)
    }
}

/// How much of the truth's variance the predictions explain: 1 is all of it, 0 is what its mean would. The mean over the
/// outputs, where there are several.
///
/// A truth that does not vary gives 1 where it is predicted exactly, and 0 where it is not, as scikit-learn has it.
#[derive(Debug)]
pub struct R2Score {
    state: State<4>,
}

impl R2Score {
    /// The metric, for predictions `[batch, outputs]`.
    #[track_caller]
    pub fn new(outputs: usize) -> Result<R2Score> {
        Ok(R2Score { state: State::new(["squared_sum", "sum", "residual", "count"], [outputs])? })
    }
}

impl Metric for R2Score {
    fn name(&self) -> &'static str {
        "r2_score"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        named("R2Score", Location::caller(), (truth, predicted), || {
            let (truth, predicted) = pair(truth, predicted)?;
            let outputs = self.state.0[0].shape()[0];
            if truth.rank() != 2 || truth.shape()[1] != outputs {
                return Err(Error::shape(format!("built for [batch, {outputs}], and got {}", truth.spec())));
            }
            let (truth, predicted) = (cast(truth, DType::F64)?, cast(predicted, DType::F64)?);
            let weights = match weights {
                Some(weights) => broadcast_to(spread_weights(&truth, weights)?, truth.shape())?,
                None => broadcast_to(Tensor::scalar(1.0f64)?, truth.shape())?,
            };
            let add = |i, value: Tensor| self.state.add(i, sum(mul(value, &weights)?, 0, false)?);
            add(0, square(&truth)?)?;
            add(1, truth.clone())?;
            add(2, squared_difference(truth, predicted)?)?;
            self.state.add(3, sum(&weights, 0, false)?)
        })
    }

    fn result(&self) -> Result<Tensor> {
        let [squares, total, residual, count] = self.state.read();
        let variance = sub(squares, mul(&total, div_no_nan(&total, &count)?)?)?;
        // A truth that does not vary leaves nothing to explain: all of it is, or none.
        let exact = logical_and(equal(&residual, 0.0)?, greater(count, 0.0)?)?;
        let constant = equal(&variance, 0.0)?;
        let scores = where_(constant, cast(exact, DType::F64)?, sub(1.0, div_no_nan(residual, variance)?)?)?;
        mean(scores, None, false)
    }

    fn reset(&self) -> Result<()> {
        self.state.reset()
    }

    fn variables(&self, names: &mut Names) {
        self.state.variables(names);
    }
}

/// The exponential of the mean cross-entropy: among how many classes that are equally likely a prediction hesitates.
#[derive(Debug)]
pub struct Perplexity {
    loss: losses::SparseCategoricalCrossentropy,
    state: State<2>,
}

impl Perplexity {
    /// The metric, for predictions and labels as this loss takes them. What it ignores does not count.
    #[track_caller]
    pub fn new(loss: losses::SparseCategoricalCrossentropy) -> Result<Perplexity> {
        Ok(Perplexity { loss, state: State::new(["total", "count"], ())? })
    }
}

impl Metric for Perplexity {
    fn name(&self) -> &'static str {
        "perplexity"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        named("Perplexity", Location::caller(), (truth, predicted), || {
            let each = cast(self.loss.call(truth, predicted)?, DType::F64)?;
            let mut counted = match weights {
                Some(weights) => broadcast_to(spread_weights(&each, weights)?, each.shape())?,
                None => broadcast_to(Tensor::scalar(1.0f64)?, each.shape())?,
            };
            if let Some(class) = self.loss.ignore_class {
                let labels = super::accuracy::labels(truth, predicted)?;
                counted = mul(counted, cast(not_equal(labels, class)?, DType::F64)?)?;
            }
            self.state.add(0, sum(mul(each, &counted)?, None, false)?)?;
            self.state.add(1, sum(counted, None, false)?)
        })
    }

    fn result(&self) -> Result<Tensor> {
        let [total, count] = self.state.read();
        exp(div_no_nan(total, count)?)
    }

    fn reset(&self) -> Result<()> {
        self.state.reset()
    }

    fn variables(&self, names: &mut Names) {
        self.state.variables(names);
    }
}
