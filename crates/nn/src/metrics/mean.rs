//! Means of values over batches.

use super::{Metric, State};
use crate::Names;
use crate::losses::{Loss, spread_weights};
use taut_core::ops::binary::{div, div_no_nan, mul};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::broadcast_to;
use taut_core::ops::unary::cast;
use taut_core::record::without_recording;
use taut_core::{DType, Result, Tensor, source_location, with_source_location};
use taut_memory::Location;

/// The mean of values: of the losses of an epoch, say.
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
    state: State<2>,
}

impl Mean {
    /// Of nothing yet.
    #[track_caller]
    pub fn new() -> Result<Mean> {
        let at = Location::caller();
        with_source_location(None, at, || Ok(Mean { state: State::new(["total", "count"], ())? }))
    }

    /// Takes values into account, those of a sample as their mean, each times its weight if there are weights.
    #[track_caller]
    pub fn add(&self, values: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        let at = Location::caller();
        let add = || {
            let samples = values.shape().first().copied().unwrap_or(1);
            let each = (values.len() / samples.max(1)).max(1) as f64;
            let values = cast(values, DType::F64)?;
            let weights = match weights {
                Some(weights) => broadcast_to(spread_weights(&values, weights)?, values.shape())?,
                None => {
                    self.state.add(0, div(sum(values, None, false)?, each)?)?;
                    return self.state.add(1, Tensor::scalar(samples as f64)?);
                }
            };
            self.state.add(0, div(sum(mul(values, &weights)?, None, false)?, each)?)?;
            self.state.add(1, div(sum(weights, None, false)?, each)?)
        };
        with_source_location(None, at, || without_recording(add))
            .map_err(|error| error.in_op("Mean", []).at(source_location(at)))
    }

    /// The mean, in float64; zero of nothing.
    pub fn result(&self) -> Result<Tensor> {
        let [total, count] = self.state.read();
        div_no_nan(total, count)
    }

    /// The mean as a number.
    #[track_caller]
    pub fn value(&self) -> Result<f64> {
        self.result()?.item()
    }

    /// Forgets all values.
    pub fn reset(&self) -> Result<()> {
        self.state.reset()
    }

    /// Names its variables.
    pub fn variables(&self, names: &mut Names) {
        self.state.variables(names);
    }
}

/// What [`MeanOf`] takes the mean of.
pub trait Measure: Send + Sync + 'static {
    /// What people call it.
    fn name(&self) -> &str;

    /// A value per sample, or several.
    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor>;

    /// What is made of the mean. Nothing, for most.
    fn finish(&self, mean: Tensor) -> Result<Tensor> {
        Ok(mean)
    }
}

/// A metric that is the mean of something over all samples. Most are; see [`Measure`] for one of your own, and
/// [`MeanOf::loss`] for any loss.
#[derive(Debug)]
pub struct MeanOf<M> {
    measure: M,
    mean: Mean,
}

impl<M: Measure> MeanOf<M> {
    /// The mean of this.
    #[track_caller]
    pub fn measuring(measure: M) -> Result<MeanOf<M>> {
        Ok(MeanOf { measure, mean: Mean::new()? })
    }
}

impl<M: Measure> Metric for MeanOf<M> {
    fn name(&self) -> &str {
        self.measure.name()
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        let at = Location::caller();
        let work = || self.mean.add(&self.measure.each(truth, predicted)?, weights);
        with_source_location(None, at, || without_recording(work))
            .map_err(|error| error.in_op("metric", [truth.spec(), predicted.spec()]).at(source_location(at)))
    }

    fn result(&self) -> Result<Tensor> {
        self.measure.finish(self.mean.result()?)
    }

    fn reset(&self) -> Result<()> {
        self.mean.reset()
    }

    fn variables(&self, names: &mut Names) {
        self.mean.variables(names);
    }
}

/// A loss as a measure.
#[derive(Debug)]
pub struct Of<L> {
    name: String,
    loss: L,
}

impl<L: Loss> Measure for Of<L> {
    fn name(&self) -> &str {
        &self.name
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        self.loss.call(truth, predicted)
    }
}

impl<L: Loss> MeanOf<Of<L>> {
    /// The mean of a loss, under this name.
    #[track_caller]
    pub fn loss(name: &str, loss: L) -> Result<MeanOf<Of<L>>> {
        MeanOf::measuring(Of { name: name.to_owned(), loss })
    }
}
