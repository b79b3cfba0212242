//! Losses.
//!
//! Names and formulas are those of Keras. A loss computes one value per sample ([`Loss::call`]) and their optionally weighted
//! mean ([`Loss::mean`]). Losses of half-precision predictions are computed in float32.
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
mod linear;
mod margin;
mod regression;

pub use entropy::{
    BinaryCrossentropy, BinaryFocalCrossentropy, CategoricalCrossentropy, CategoricalFocalCrossentropy,
    KlDivergence, SparseCategoricalCrossentropy,
};
pub use linear::linear_cross_entropy;
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

/// Keeps logarithms and quotients finite.
pub(crate) const EPSILON: f64 = 1e-7;

/// A loss function of targets (`truth`) and predictions.
///
/// A custom loss computes the loss of each sample:
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
    /// The loss of each sample, or of each position of a sample: the last axis of the predictions is reduced.
    #[track_caller]
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor>;

    /// The mean of the losses, each multiplied by its weight if there are weights. The divisor is the number of losses, not
    /// the sum of the weights. There is one weight per sample, or one per loss.
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

/// Values times weights, of which there is one per sample or one per value.
pub(crate) fn weighted(values: Tensor, weights: &Tensor) -> Result<Tensor> {
    mul(values.clone(), broadcast_weights(&values, weights)?)
}

/// Weights in a shape that broadcasts to that of the values.
pub(crate) fn broadcast_weights(values: &Tensor, weights: &Tensor) -> Result<Tensor> {
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
    Err(Error::shape(format!("weights must broadcast to the values {values}, got {weights}"))
        .help("give one weight per sample, or one per value"))
}

/// Predictions in float32 or wider: half precision cannot represent probabilities close to 1.
fn at_least_f32(predicted: &Tensor) -> Result<Tensor> {
    cast(predicted, promote(predicted.dtype(), DType::F32)?)
}

/// Targets and predictions with the same dtype and shape, of rank >= 2. A last axis of size 1 may be missing on one side.
pub(crate) fn align(truth: &Tensor, predicted: &Tensor) -> Result<(Tensor, Tensor)> {
    if !predicted.dtype().is_float() {
        return Err(Error::dtype(format!("predictions must be floating point, got {}", predicted.dtype()))
            .help("cast them to a float"));
    }
    let mut p = at_least_f32(predicted)?;
    let mut t = cast(truth, p.dtype())?;
    if t.rank() + 1 == p.rank() && p.shape().last() == Some(&1) {
        t = expand_dims(t, -1)?;
    } else if p.rank() + 1 == t.rank() && t.shape().last() == Some(&1) {
        p = expand_dims(p, -1)?;
    }
    if t.shape() != p.shape() || p.rank() == 0 {
        let message = format!(
            "targets and predictions must have the same shape, got {} and {}",
            truth.shape(),
            predicted.shape()
        );
        return Err(Error::shape(message).help("the first axis of both is the batch"));
    }
    if p.rank() == 1 { Ok((expand_dims(t, -1)?, expand_dims(p, -1)?)) } else { Ok((t, p)) }
}

/// Runs `work` with errors and allocations attributed to this loss and to the caller's line.
fn in_loss(
    name: &'static str,
    at: Location,
    (truth, predicted): (&Tensor, &Tensor),
    work: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    with_source_location(None, at, work)
        .map_err(|error| error.in_op(name, [truth.spec(), predicted.spec()]).at(source_location(at)))
}

/// As [`in_loss`], with targets and predictions brought to one shape by [`align`].
fn in_loss_aligned(
    name: &'static str,
    at: Location,
    given: (&Tensor, &Tensor),
    work: impl FnOnce(Tensor, Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    in_loss(name, at, given, || {
        let (truth, predicted) = align(given.0, given.1)?;
        work(truth, predicted)
    })
}

/// The sum of the values divided by how many of them count; zero if none does.
fn mean_of(values: Tensor, counted: Tensor) -> Result<Tensor> {
    let count = sum(cast(counted, values.dtype())?, None, false)?;
    div(sum(values, None, false)?, maximum(count, 1.0)?)
}
