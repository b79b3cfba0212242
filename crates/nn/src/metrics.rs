//! Metrics: how good predictions are, over many batches.
//!
//! A metric keeps its sums in variables that are not trained, so that it can be updated inside a traced function and
//! saved with a model. The names and the formulas are those of Keras.
//!
//! ```
//! use taut_core::Tensor;
//! use taut_nn::metrics::{Metric, SparseCategoricalAccuracy};
//! let accuracy = SparseCategoricalAccuracy::new()?;
//! accuracy.update(&Tensor::new([1i32, 0])?, &Tensor::new([[0.1f32, 0.9], [0.4, 0.6]])?)?;
//! assert_eq!(accuracy.value()?, 0.5);
//! # Ok::<(), taut_core::Error>(())
//! ```

mod accuracy;
mod area;
mod confusion;
mod mean;
mod regression;

pub use accuracy::{
    Accuracy, BinaryAccuracy, CategoricalAccuracy, SparseCategoricalAccuracy, SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
};
pub use area::{AUC, Curve, Summation};
pub use confusion::{Average, ConfusionMatrix, F1Score, Precision, Recall};
pub use mean::{Mean, MeanOf, Measure, Of};
pub use regression::{MeanAbsoluteError, MeanSquaredError, Perplexity, R2Score, RootMeanSquaredError};

/// What the metrics with names of their own measure; see [`MeanOf`].
pub mod measures {
    pub use super::accuracy::{Above, Equal, Hit, HitTop, NamedHit, NamedHitTop};
    pub use super::regression::{AbsoluteError, RootOfSquaredError, SquaredError};
}

use crate::Names;
use std::sync::Arc;
use taut_autodiff::Variable;
use taut_core::ops::creation::zeros;
use taut_core::ops::unary::cast;
use taut_core::record::without_recording;
use taut_core::{DType, Result, Shape, Tensor, source_location, with_source_location};
use taut_memory::Location;

/// How good predictions are, over many batches.
pub trait Metric: Send + Sync + 'static {
    /// What people call it.
    fn name(&self) -> &str;

    /// Takes a batch into account, where each sample counts as much as its weight. Weights are one per sample, or one per
    /// value.
    #[track_caller]
    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()>;

    /// Takes a batch into account.
    #[track_caller]
    fn update(&self, truth: &Tensor, predicted: &Tensor) -> Result<()> {
        self.update_with(truth, predicted, None)
    }

    /// What comes of all batches since the last [`reset`](Metric::reset), in float64.
    fn result(&self) -> Result<Tensor>;

    /// The result as a number, for metrics that are one.
    #[track_caller]
    fn value(&self) -> Result<f64> {
        self.result()?.item()
    }

    /// Forgets all batches.
    fn reset(&self) -> Result<()>;

    /// Names its variables, always in the same order.
    fn variables(&self, names: &mut Names);
}

macro_rules! behind {
    ($($pointer:ident)*) => {$(
        impl<M: Metric + ?Sized> Metric for $pointer<M> {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
                (**self).update_with(truth, predicted, weights)
            }

            fn result(&self) -> Result<Tensor> {
                (**self).result()
            }

            fn reset(&self) -> Result<()> {
                (**self).reset()
            }

            fn variables(&self, names: &mut Names) {
                (**self).variables(names);
            }
        }
    )*};
}

behind!(Box Arc);

/// Sums over batches, in float64: they stay exact for as many samples as there are.
#[derive(Debug)]
struct State<const N: usize>([Variable; N]);

impl<const N: usize> State<N> {
    /// Sums of this shape, all zero.
    fn new(names: [&str; N], shape: impl Into<Shape>) -> Result<State<N>> {
        let shape = shape.into();
        let variable =
            |name: &&str| Variable::builder().name(*name).trainable(false).build(zeros(&shape, DType::F64)?);
        let made = names.iter().map(variable).collect::<Result<Vec<_>>>()?;
        Ok(State(made.try_into().unwrap_or_else(|_| unreachable!("one per name"))))
    }

    /// Adds to a sum.
    fn add(&self, sum: usize, value: impl Into<Tensor>) -> Result<()> {
        self.0[sum].assign_add(cast(value, DType::F64)?)
    }

    /// The sums as they are now.
    fn read(&self) -> [Tensor; N] {
        std::array::from_fn(|i| self.0[i].value())
    }

    fn reset(&self) -> Result<()> {
        self.0.iter().try_for_each(|variable| variable.assign(0.0))
    }

    fn variables(&self, names: &mut Names) {
        self.0.iter().for_each(|variable| names.add(variable.name().unwrap_or_default(), variable));
    }
}

/// Updates in a metric's name and for the caller's line. Tapes are not told: nobody differentiates a metric.
fn named(
    name: &'static str,
    at: Location,
    (truth, predicted): (&Tensor, &Tensor),
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    with_source_location(None, at, || without_recording(work))
        .map_err(|error| error.in_op(name, [truth.spec(), predicted.spec()]).at(source_location(at)))
}
