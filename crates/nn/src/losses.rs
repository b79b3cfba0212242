//! Losses: how far predictions are from the truth.
//!
//! The names and the formulas are those of Keras. Every loss gives a number per sample ([`Loss::call`]), and their mean,
//! perhaps weighted ([`Loss::mean`]). Losses of half-precision predictions are float32.
//!
//! ```
//! use taut_core::Tensor;
//! use taut_nn::losses::{Loss, SparseCategoricalCrossentropy};
//! let loss = SparseCategoricalCrossentropy::from_logits();
//! let (labels, logits) = (Tensor::new([1i32])?, Tensor::new([[0.0f32, 0.0]])?);
//! assert!((loss.mean(&labels, &logits, None)?.item::<f32>()? - 2f32.ln()).abs() < 1e-6);
//! # Ok::<(), taut_core::Error>(())
//! ```

mod entropy;
mod margin;
mod regression;

pub use entropy::{
    BinaryCrossentropy, BinaryFocalCrossentropy, CategoricalCrossentropy, CategoricalFocalCrossentropy,
    KlDivergence, SparseCategoricalCrossentropy,
};
pub use margin::{CategoricalHinge, Hinge, SquaredHinge};
pub use regression::{
    CosineSimilarity, Huber, LogCosh, MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredError,
    MeanSquaredLogarithmicError, Poisson,
};

use std::sync::Arc;
use taut_core::ops::binary::{div, maximum, mul};
use taut_core::ops::reduce::{mean, sum};
use taut_core::ops::shape::{expand_dims, squeeze};
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, Result, Tensor, promote, source_location, with_source_location};
use taut_memory::Location;

/// What keeps logarithms and quotients finite.
pub(crate) const EPSILON: f64 = 1e-7;

/// How far predictions are from the truth.
///
/// A loss of your own says what each sample costs:
///
/// ```
/// use taut_core::{Result, Tensor, ops::{binary::sub, reduce::max, unary::abs}};
/// use taut_nn::losses::Loss;
/// struct LargestError;
/// impl Loss for LargestError {
///     fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
///         max(abs(sub(truth, predicted)?)?, -1, false)
///     }
/// }
/// let (truth, predicted) = (Tensor::new([[1.0f32, 2.0]])?, Tensor::new([[1.5f32, 5.0]])?);
/// assert_eq!(LargestError.mean(&truth, &predicted, None)?.item::<f32>()?, 3.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub trait Loss: Send + Sync + 'static {
    /// The loss of each sample, or of each of its parts: the last axis of the predictions is gone.
    #[track_caller]
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor>;

    /// The mean of the losses, each times its weight if there are weights. It is divided by the number of losses, not by
    /// the sum of the weights. Weights are one per sample, or one per loss.
    #[track_caller]
    fn mean(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
        let at = Location::caller();
        let work = || {
            let losses = self.call(truth, predicted)?;
            match weights {
                None => mean(losses, None, false),
                Some(weights) => mean(weighted(losses, weights)?, None, false),
            }
        };
        with_source_location(None, at, work).map_err(|error| error.at(source_location(at)))
    }
}

impl<L: Loss + ?Sized> Loss for Box<L> {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        (**self).call(truth, predicted)
    }

    fn mean(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
        (**self).mean(truth, predicted, weights)
    }
}

impl<L: Loss + ?Sized> Loss for Arc<L> {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        (**self).call(truth, predicted)
    }

    fn mean(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
        (**self).mean(truth, predicted, weights)
    }
}

/// Values times weights, of which there are as many as samples, or as values.
pub(crate) fn weighted(values: Tensor, weights: &Tensor) -> Result<Tensor> {
    mul(values.clone(), spread_weights(&values, weights)?)
}

/// Weights in the shape that goes with values.
pub(crate) fn spread_weights(values: &Tensor, weights: &Tensor) -> Result<Tensor> {
    let mut spread = cast(weights, values.dtype())?;
    if spread.rank() == values.rank() + 1 && spread.shape().last() == Some(&1) {
        spread = squeeze(spread, &[-1][..])?;
    }
    while spread.rank() > 0 && spread.rank() < values.rank() {
        spread = expand_dims(spread, -1)?;
    }
    if values.shape().broadcast(spread.shape()).ok().as_ref() == Some(values.shape()) {
        return Ok(spread);
    }
    let (weights, values) = (weights.spec(), values.shape());
    Err(Error::shape(format!("weights {weights} do not go with values {values}"))
        .help("there is one per sample, or one per value"))
}

/// Predictions in a type that has digits for what is nearly 1: halves have not.
fn wide(predicted: &Tensor) -> Result<Tensor> {
    cast(predicted, promote(predicted.dtype(), DType::F32))
}

/// Truth and predictions in one type and one shape, of rank 2 at least: the samples, and the parts of each. A last axis of
/// size 1 may be missing on one side.
pub(crate) fn pair(truth: &Tensor, predicted: &Tensor) -> Result<(Tensor, Tensor)> {
    if !predicted.dtype().is_float() {
        return Err(Error::dtype(format!("predictions of type {} are not supported", predicted.dtype()))
            .help("cast them to a float"));
    }
    let mut p = wide(predicted)?;
    let mut t = cast(truth, p.dtype())?;
    if t.rank() + 1 == p.rank() && p.shape().last() == Some(&1) {
        t = expand_dims(t, -1)?;
    } else if p.rank() + 1 == t.rank() && t.shape().last() == Some(&1) {
        p = expand_dims(p, -1)?;
    }
    if t.shape() != p.shape() || p.rank() == 0 {
        let message =
            format!("truth {} and predictions {} differ in shape", truth.shape(), predicted.shape());
        return Err(Error::shape(message).help("a sample is a row of both"));
    }
    if p.rank() == 1 { Ok((expand_dims(t, -1)?, expand_dims(p, -1)?)) } else { Ok((t, p)) }
}

/// Computes in a loss's name and for the caller's line.
fn named(
    name: &'static str,
    at: Location,
    (truth, predicted): (&Tensor, &Tensor),
    work: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    with_source_location(None, at, work)
        .map_err(|error| error.in_op(name, [truth.spec(), predicted.spec()]).at(source_location(at)))
}

/// As [`named`], with truth and predictions as a [`pair`].
fn paired(
    name: &'static str,
    at: Location,
    given: (&Tensor, &Tensor),
    work: impl FnOnce(Tensor, Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    named(name, at, given, || {
        let (truth, predicted) = pair(given.0, given.1)?;
        work(truth, predicted)
    })
}

/// The sum of some values divided by how many count; zero if none does.
fn mean_of(values: Tensor, counted: Tensor) -> Result<Tensor> {
    let count = sum(cast(counted, values.dtype())?, None, false)?;
    div(sum(values, None, false)?, maximum(count, 1.0)?)
}
