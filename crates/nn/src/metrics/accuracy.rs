//! How often predictions are right.

use super::{MeanOf, Measure};
use crate::losses::pair;
use taut_core::ops::binary::{equal, greater, less, logical_and};
use taut_core::ops::index::take_along_axis;
use taut_core::ops::reduce::{all, argmax, sum};
use taut_core::ops::shape::{expand_dims, squeeze};
use taut_core::ops::unary::{cast, is_finite};
use taut_core::{DType, Error, Result, Tensor};

/// How often predictions equal the truth.
pub type Accuracy = MeanOf<Equal>;
/// How often a prediction is on the right side of a threshold.
pub type BinaryAccuracy = MeanOf<Above>;
/// How often the class with the highest prediction is the one that the truth names.
pub type SparseCategoricalAccuracy = MeanOf<NamedHit>;
/// How often the class with the highest prediction is the one with the highest truth.
pub type CategoricalAccuracy = MeanOf<Hit>;
/// How often the class that the truth names is among the `k` with the highest predictions.
pub type SparseTopKCategoricalAccuracy = MeanOf<NamedHitTop>;
/// How often the class with the highest truth is among the `k` with the highest predictions.
pub type TopKCategoricalAccuracy = MeanOf<HitTop>;

/// Whether a prediction equals the truth.
#[derive(Clone, Copy, Debug)]
pub struct Equal;

impl Accuracy {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<Accuracy> {
        MeanOf::measuring(Equal)
    }
}

impl Measure for Equal {
    fn name(&self) -> &'static str {
        "accuracy"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let predicted = if predicted.dtype().is_float() { predicted } else { &cast(predicted, DType::F64)? };
        let (truth, predicted) = pair(truth, predicted)?;
        equal(truth, predicted)
    }
}

/// Whether a prediction is on the right side of a threshold.
#[derive(Clone, Copy, Debug)]
pub struct Above {
    threshold: f64,
}

impl BinaryAccuracy {
    /// The metric, for predictions above or below 0.5.
    #[track_caller]
    pub fn new() -> Result<BinaryAccuracy> {
        BinaryAccuracy::at(0.5)
    }

    /// The metric, for predictions above or below this threshold. That of logits is 0.
    #[track_caller]
    pub fn at(threshold: f64) -> Result<BinaryAccuracy> {
        MeanOf::measuring(Above { threshold })
    }
}

impl Measure for Above {
    fn name(&self) -> &'static str {
        "binary_accuracy"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let (truth, predicted) = pair(truth, predicted)?;
        let side = cast(greater(&predicted, self.threshold)?, predicted.dtype())?;
        equal(truth, side)
    }
}

/// Labels `[..]` for predictions `[.., classes]`; a last axis of size 1 may be there.
pub(super) fn labels(truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
    let same_rank = truth.rank() == predicted.rank() && truth.shape().last() == Some(&1);
    let labels = if same_rank { squeeze(truth, &[-1][..])? } else { truth.clone() };
    if predicted.rank() > 0 && labels.shape()[..] == predicted.shape()[..predicted.rank() - 1] {
        return cast(labels, DType::I64);
    }
    let (truth, predicted) = (truth.shape(), predicted.shape());
    Err(Error::shape(format!("labels {truth} do not go with predictions {predicted}"))
        .help("there is one per row of predictions"))
}

/// Whether the class with the highest prediction is the one that the truth names.
#[derive(Clone, Copy, Debug)]
pub struct NamedHit;

impl SparseCategoricalAccuracy {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<SparseCategoricalAccuracy> {
        MeanOf::measuring(NamedHit)
    }
}

impl Measure for NamedHit {
    fn name(&self) -> &'static str {
        "sparse_categorical_accuracy"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        equal(labels(truth, predicted)?, cast(argmax(predicted, -1)?, DType::I64)?)
    }
}

/// Whether the class with the highest prediction is the one with the highest truth.
#[derive(Clone, Copy, Debug)]
pub struct Hit;

impl CategoricalAccuracy {
    /// The metric.
    #[track_caller]
    pub fn new() -> Result<CategoricalAccuracy> {
        MeanOf::measuring(Hit)
    }
}

impl Measure for Hit {
    fn name(&self) -> &'static str {
        "categorical_accuracy"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let (truth, predicted) = pair(truth, predicted)?;
        equal(argmax(truth, -1)?, argmax(predicted, -1)?)
    }
}

/// Whether fewer than `k` classes have a higher prediction than the one that labels name.
fn in_top(labels: Tensor, predicted: &Tensor, k: usize) -> Result<Tensor> {
    let right = take_along_axis(predicted, expand_dims(labels, -1)?, -1)?;
    let higher = sum(cast(less(&right, predicted)?, DType::I64)?, -1, false)?;
    // A comparison with NaN is false, which must not pass for a hit.
    logical_and(less(higher, k as i64)?, all(is_finite(right)?, -1, false)?)
}

/// Whether the class that the truth names is among those with the highest predictions.
#[derive(Clone, Copy, Debug)]
pub struct NamedHitTop {
    k: usize,
}

impl SparseTopKCategoricalAccuracy {
    /// The metric, for the `k` highest.
    #[track_caller]
    pub fn new(k: usize) -> Result<SparseTopKCategoricalAccuracy> {
        MeanOf::measuring(NamedHitTop { k })
    }
}

impl Measure for NamedHitTop {
    fn name(&self) -> &'static str {
        "sparse_top_k_categorical_accuracy"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_top(labels(truth, predicted)?, predicted, self.k)
    }
}

/// Whether the class with the highest truth is among those with the highest predictions.
#[derive(Clone, Copy, Debug)]
pub struct HitTop {
    k: usize,
}

impl TopKCategoricalAccuracy {
    /// The metric, for the `k` highest.
    #[track_caller]
    pub fn new(k: usize) -> Result<TopKCategoricalAccuracy> {
        MeanOf::measuring(HitTop { k })
    }
}

impl Measure for HitTop {
    fn name(&self) -> &'static str {
        "top_k_categorical_accuracy"
    }

    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let (truth, predicted) = pair(truth, predicted)?;
        in_top(cast(argmax(truth, -1)?, DType::I64)?, &predicted, self.k)
    }
}
