//! Metrics, accumulated over batches.
//!
//! A metric keeps its sums in non-trainable variables, so it can be updated inside a traced function and saved with a model.
//! Names and formulas are those of Keras.
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
pub use mean::{LossMeasure, Mean, MeanMetric, Measure};
pub use regression::{MeanAbsoluteError, MeanSquaredError, Perplexity, R2Score, RootMeanSquaredError};

/// The per-sample measures of the named metrics; see [`MeanMetric`].
pub mod measures {
    pub use super::accuracy::{
        BinaryMatch, CategoricalMatch, ExactMatch, SparseCategoricalMatch, SparseTopKMatch, TopKMatch,
    };
    pub use super::regression::{AbsoluteError, RootSquaredError, SquaredError};
}

use crate::NamedVariables;
use std::sync::Arc;
use taut_autodiff::Variable;
use taut_core::ops::creation::zeros;
use taut_core::ops::unary::cast;
use taut_core::record::without_recording;
use taut_core::{DType, Result, Shape, Tensor, source_location, with_source_location};
use taut_memory::Location;

/// A measure of predictions, accumulated over batches.
pub trait Metric: Send + Sync + 'static {
    /// The name in scores and reports.
    fn name(&self) -> &str;

    /// Accumulates a batch with weights: one per sample, or one per value.
    #[track_caller]
    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()>;

    /// Accumulates a batch.
    #[track_caller]
    fn update(&self, truth: &Tensor, predicted: &Tensor) -> Result<()> {
        self.update_with(truth, predicted, None)
    }

    /// The result over all batches since the last [`reset`](Metric::reset), in float64.
    fn result(&self) -> Result<Tensor>;

    /// The result as a number, for metrics with a scalar result.
    #[track_caller]
    fn value(&self) -> Result<f64> {
        self.result()?.item()
    }

    /// Sets the sums to zero.
    fn reset(&self) -> Result<()>;

    /// Adds its variables to `names`, always in the same order.
    fn variables(&self, names: &mut NamedVariables);
}

macro_rules! delegate {
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

            fn variables(&self, names: &mut NamedVariables) {
                (**self).variables(names);
            }
        }
    )*};
}

delegate!(Box Arc);

/// Sums over batches, in float64, so that counts stay exact up to 2^53.
#[derive(Debug)]
struct MetricSums<const N: usize>([Variable; N]);

impl<const N: usize> MetricSums<N> {
    /// Zero sums of this shape.
    fn new(names: [&str; N], shape: impl Into<Shape>) -> Result<MetricSums<N>> {
        let shape = shape.into();
        let variable =
            |name: &&str| Variable::builder().name(*name).trainable(false).build(zeros(&shape, DType::F64)?);
        let made = names.iter().map(variable).collect::<Result<Vec<_>>>()?;
        Ok(MetricSums(made.try_into().unwrap_or_else(|_| unreachable!("one per name"))))
    }

    /// Adds to a sum.
    fn add(&self, sum: usize, value: impl Into<Tensor>) -> Result<()> {
        self.0[sum].assign_add(cast(value, DType::F64)?)
    }

    /// The current sums.
    fn read(&self) -> [Tensor; N] {
        std::array::from_fn(|i| self.0[i].value())
    }

    fn reset(&self) -> Result<()> {
        self.0.iter().try_for_each(|variable| variable.assign(0.0))
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.0.iter().for_each(|variable| names.add(variable.name().unwrap_or_default(), variable));
    }
}

/// Runs `work` with errors and allocations attributed to this metric and to the caller's line. Nothing is recorded on tapes:
/// metrics are not differentiated.
fn in_metric(
    name: &'static str,
    at: Location,
    (truth, predicted): (&Tensor, &Tensor),
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    with_source_location(None, at, || without_recording(work))
        .map_err(|error| error.in_op(name, [truth.spec(), predicted.spec()]).at(source_location(at)))
}
