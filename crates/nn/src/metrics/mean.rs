//! Means over batches.

use super::{Metric, MetricSums};
use crate::NamedVariables;
use crate::losses::{Loss, broadcast_weights};
use taut_core::ops::binary::{div, div_no_nan, mul};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::broadcast_to;
use taut_core::ops::unary::cast;
use taut_core::record::without_recording;
use taut_core::{DType, Result, Tensor, source_location, with_source_location};
use taut_memory::Location;

/// The mean of values over batches, such as the losses of an epoch.
///
/// ```
/// use taut_core::Tensor;
/// use taut_nn::metrics::Mean;
/// let mean = Mean::new()?;
/// mean.add(&Tensor::new([1.0f32, 3.0])?, None)?;
/// mean.add(&Tensor::new([5.0f32])?, None)?;
/// assert_eq!(mean.value()?, 3.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Mean {
    sums: MetricSums<2>,
}

impl Mean {
    /// A mean of no values.
    #[track_caller]
    pub fn new() -> Result<Mean> {
        let at = Location::caller();
        with_source_location(None, at, || Ok(Mean { sums: MetricSums::new(["total", "count"], ())? }))
    }

    /// Accumulates values, each times its weight if there are weights; several values of a sample count as their mean.
    #[track_caller]
    pub fn add(&self, values: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        let at = Location::caller();
        let add = || {
            let samples = values.shape().first().copied().unwrap_or(1);
            let each = (values.len() / samples.max(1)).max(1) as f64;
            let values = cast(values, DType::F64)?;
            let weights = match weights {
                Some(weights) => broadcast_to(broadcast_weights(&values, weights)?, values.shape())?,
                None => {
                    self.sums.add(0, div(sum(values, None, false)?, each)?)?;
                    return self.sums.add(1, Tensor::scalar(samples as f64)?);
                }
            };
            self.sums.add(0, div(sum(mul(values, &weights)?, None, false)?, each)?)?;
            self.sums.add(1, div(sum(weights, None, false)?, each)?)
        };
        with_source_location(None, at, || without_recording(add))
            .map_err(|error| error.in_op("Mean", []).at(source_location(at)))
    }

    /// The mean, in float64; zero if there are no values.
    pub fn result(&self) -> Result<Tensor> {
        let [total, count] = self.sums.read();
        div_no_nan(total, count)
    }

    /// The mean as a number.
    #[track_caller]
    pub fn value(&self) -> Result<f64> {
        self.result()?.item()
    }

    /// Sets the sums to zero.
    pub fn reset(&self) -> Result<()> {
        self.sums.reset()
    }

    /// Adds its variables to `names`.
    pub fn variables(&self, names: &mut NamedVariables) {
        self.sums.variables(names);
    }
}

/// A value per sample, of which [`MeanMetric`] takes the mean.
pub trait Measure: Send + Sync + 'static {
    /// The name in scores and reports.
    fn name(&self) -> &str;

    /// One value per sample, or several.
    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor>;

    /// Transforms the mean; the identity by default.
    fn finalize(&self, mean: Tensor) -> Result<Tensor> {
        Ok(mean)
    }
}

/// A metric that is the mean of a [`Measure`] over all samples. [`MeanMetric::loss`] makes one from any loss.
#[derive(Debug)]
pub struct MeanMetric<M> {
    measure: M,
    mean: Mean,
}

impl<M: Measure> MeanMetric<M> {
    /// The mean of this measure.
    #[track_caller]
    pub fn of_measure(measure: M) -> Result<MeanMetric<M>> {
        Ok(MeanMetric { measure, mean: Mean::new()? })
    }
}

impl<M: Measure> Metric for MeanMetric<M> {
    fn name(&self) -> &str {
        self.measure.name()
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        let at = Location::caller();
        let work = || self.mean.add(&self.measure.per_sample(truth, predicted)?, weights);
        with_source_location(None, at, || without_recording(work))
            .map_err(|error| error.in_op("metric", [truth.spec(), predicted.spec()]).at(source_location(at)))
    }

    fn result(&self) -> Result<Tensor> {
        self.measure.finalize(self.mean.result()?)
    }

    fn reset(&self) -> Result<()> {
        self.mean.reset()
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.mean.variables(names);
    }
}

/// A loss as a measure.
#[derive(Debug)]
pub struct LossMeasure<L> {
    name: String,
    loss: L,
}

impl<L: Loss> Measure for LossMeasure<L> {
    fn name(&self) -> &str {
        &self.name
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        self.loss.call(truth, predicted)
    }
}

impl<L: Loss> MeanMetric<LossMeasure<L>> {
    /// The mean of a loss, under this name.
    #[track_caller]
    pub fn loss(name: &str, loss: L) -> Result<MeanMetric<LossMeasure<L>>> {
        MeanMetric::of_measure(LossMeasure { name: name.to_owned(), loss })
    }
}
