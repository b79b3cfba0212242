//! Accuracies.

use super::{MeanMetric, Measure};
use crate::losses::align;
use taut_core::ops::binary::{equal, greater, less, logical_and};
use taut_core::ops::index::take_along_axis;
use taut_core::ops::reduce::{all, argmax, sum};
use taut_core::ops::shape::{expand_dims, squeeze};
use taut_core::ops::unary::{cast, is_finite};
use taut_core::{DType, Error, Result, Tensor};

/// The share of predictions that equal the target.
pub type Accuracy = MeanMetric<ExactMatch>;
/// The share of predictions on the correct side of a threshold.
pub type BinaryAccuracy = MeanMetric<BinaryMatch>;
/// The share of samples whose class index is the argmax of the prediction.
pub type SparseCategoricalAccuracy = MeanMetric<SparseCategoricalMatch>;
/// The share of samples whose one-hot target and prediction have the same argmax.
pub type CategoricalAccuracy = MeanMetric<CategoricalMatch>;
/// The share of samples whose class index is among the `k` highest predictions.
pub type SparseTopKCategoricalAccuracy = MeanMetric<SparseTopKMatch>;
/// The share of samples whose one-hot target is among the `k` highest predictions.
pub type TopKCategoricalAccuracy = MeanMetric<TopKMatch>;

/// Whether a prediction equals the target.
#[derive(Clone, Copy, Debug)]
pub struct ExactMatch;

impl Accuracy {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<Accuracy> {
        MeanMetric::of_measure(ExactMatch)
    }
}

impl Measure for ExactMatch {
    fn name(&self) -> &'static str {
        "accuracy"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let predicted = if predicted.dtype().is_float() { predicted } else { &cast(predicted, DType::F64)? };
        let (truth, predicted) = align(truth, predicted)?;
        equal(truth, predicted)
    }
}

/// Whether a prediction is on the correct side of a threshold.
#[derive(Clone, Copy, Debug)]
pub struct BinaryMatch {
    threshold: f64,
}

impl BinaryAccuracy {
    /// The metric with a threshold of 0.5.
    #[track_caller]
    pub fn new() -> Result<BinaryAccuracy> {
        BinaryAccuracy::at(0.5)
    }

    /// The metric with this threshold; for logits, use 0.
    #[track_caller]
    pub fn at(threshold: f64) -> Result<BinaryAccuracy> {
        MeanMetric::of_measure(BinaryMatch { threshold })
    }
}

impl Measure for BinaryMatch {
    fn name(&self) -> &'static str {
        "binary_accuracy"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let (truth, predicted) = align(truth, predicted)?;
        let side = cast(greater(&predicted, self.threshold)?, predicted.dtype())?;
        equal(truth, side)
    }
}

/// Labels `[..]` for predictions `[.., classes]`; labels may have a last axis of size 1.
pub(super) fn labels(truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    let same_rank = truth.rank() == predicted.rank() && truth.shape().last() == Some(&1);
    let labels = if same_rank { squeeze(truth, &[-1][..])? } else { truth.clone() };
    if predicted.rank() > 0 && labels.shape()[..] == predicted.shape()[..predicted.rank() - 1] {
        return cast(labels, DType::I64);
    }
    let (truth, predicted) = (truth.shape(), predicted.shape());
    Err(Error::shape(format!(
        "labels must have one element per row of predictions, got labels {truth} and predictions {predicted}"
    ))
    .help("sparse metrics take class indices, not one-hot rows"))
}

/// Whether the class index is the argmax of the prediction.
#[derive(Clone, Copy, Debug)]
pub struct SparseCategoricalMatch;

impl SparseCategoricalAccuracy {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<SparseCategoricalAccuracy> {
        MeanMetric::of_measure(SparseCategoricalMatch)
    }
}

impl Measure for SparseCategoricalMatch {
    fn name(&self) -> &'static str {
        "sparse_categorical_accuracy"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        equal(labels(truth, predicted)?, cast(argmax(predicted, -1)?, DType::I64)?)
    }
}

/// Whether target and prediction have the same argmax.
#[derive(Clone, Copy, Debug)]
pub struct CategoricalMatch;

impl CategoricalAccuracy {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<CategoricalAccuracy> {
        MeanMetric::of_measure(CategoricalMatch)
    }
}

impl Measure for CategoricalMatch {
    fn name(&self) -> &'static str {
        "categorical_accuracy"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let (truth, predicted) = align(truth, predicted)?;
        equal(argmax(truth, -1)?, argmax(predicted, -1)?)
    }
}

/// Whether fewer than `k` classes have a higher prediction than the labelled class.
fn in_top(labels: Tensor, predicted: &Tensor, k: usize) -> Result<Tensor> {
    let right = take_along_axis(predicted, expand_dims(labels, -1)?, -1)?;
    let higher = sum(cast(less(&right, predicted)?, DType::I64)?, -1, false)?;
    // A comparison with NaN is false, which must not count as a match.
    logical_and(less(higher, k as i64)?, all(is_finite(right)?, -1, false)?)
}

/// Whether the class index is among the `k` highest predictions.
#[derive(Clone, Copy, Debug)]
pub struct SparseTopKMatch {
    k: usize,
}

impl SparseTopKCategoricalAccuracy {
    /// The metric for the `k` highest predictions.
    #[track_caller]
    pub fn new(k: usize) -> Result<SparseTopKCategoricalAccuracy> {
        MeanMetric::of_measure(SparseTopKMatch { k })
    }
}

impl Measure for SparseTopKMatch {
    fn name(&self) -> &'static str {
        "sparse_top_k_categorical_accuracy"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_top(labels(truth, predicted)?, predicted, self.k)
    }
}

/// Whether the argmax of the target is among the `k` highest predictions.
#[derive(Clone, Copy, Debug)]
pub struct TopKMatch {
    k: usize,
}

impl TopKCategoricalAccuracy {
    /// The metric for the `k` highest predictions.
    #[track_caller]
    pub fn new(k: usize) -> Result<TopKCategoricalAccuracy> {
        MeanMetric::of_measure(TopKMatch { k })
    }
}

impl Measure for TopKMatch {
    fn name(&self) -> &'static str {
        "top_k_categorical_accuracy"
    }

    fn per_sample(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let (truth, predicted) = align(truth, predicted)?;
        in_top(cast(argmax(truth, -1)?, DType::I64)?, &predicted, self.k)
    }
}
