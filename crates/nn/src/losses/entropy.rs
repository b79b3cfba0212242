//! Cross-entropy losses.

use super::{EPSILON, Loss, at_least_f32, in_loss, in_loss_aligned, mean_of, weighted};
use taut_core::ops::binary::{add, clip_by_value, div, mul, not_equal, pow, sub, where_};
use taut_core::ops::nn::{
    sigmoid_cross_entropy_with_logits, softmax, softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
};
use taut_core::ops::reduce::{mean, sum};
use taut_core::ops::shape::{expand_dims, squeeze};
use taut_core::ops::unary::{log, neg, sigmoid};
use taut_core::{Error, Result, Tensor, source_location, with_source_location};
use taut_memory::Location;

/// Label smoothing: a share of each label is spread evenly over the classes.
fn smooth_labels(truth: Tensor, share: f64, classes: usize) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&share) {
        return Err(Error::value(format!("label_smoothing must be in [0, 1], got {share}")));
    }
    if share == 0.0 {
        return Ok(truth);
    }
    add(mul(truth, 1.0 - share)?, share / classes as f64)
}

/// Probabilities clipped so that their logarithms are finite.
fn clip_probabilities(p: impl Into<Tensor>) -> Result<Tensor> {
    clip_by_value(p.into(), EPSILON, 1.0 - EPSILON)
}

/// Elementwise binary cross-entropy of probabilities.
fn binary_cross_entropy(truth: &Tensor, p: &Tensor) -> Result<Tensor> {
    let p = clip_probabilities(p)?;
    let yes = mul(truth, log(&p)?)?;
    let no = mul(sub(1.0, truth)?, log(sub(1.0, p)?)?)?;
    neg(add(yes, no)?)
}

/// The mean binary cross-entropy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BinaryCrossentropy {
    /// Whether predictions are logits, to which a sigmoid is applied.
    pub from_logits: bool,
    /// The share of each label that is replaced by one half.
    pub label_smoothing: f64,
}

impl BinaryCrossentropy {
    /// The loss for predictions that are logits.
    pub fn from_logits() -> BinaryCrossentropy {
        BinaryCrossentropy { from_logits: true, ..BinaryCrossentropy::default() }
    }
}

impl Loss for BinaryCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("BinaryCrossentropy", Location::caller(), (truth, predicted), |t, p| {
            let t = smooth_labels(t, self.label_smoothing, 2)?;
            let each = if self.from_logits {
                sigmoid_cross_entropy_with_logits(t, p)?
            } else {
                binary_cross_entropy(&t, &p)?
            };
            mean(each, -1, false)
        })
    }
}

/// [`BinaryCrossentropy`] times `(1 - p)^gamma`, where `p` is the probability of the true class: easy examples weigh less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinaryFocalCrossentropy {
    /// The weight of class 1; class 0 has `1 - alpha`. `None` weighs both equally.
    pub alpha: Option<f64>,
    /// The focusing exponent: larger values weigh easy examples less.
    pub gamma: f64,
    /// Whether predictions are logits, to which a sigmoid is applied.
    pub from_logits: bool,
    /// The share of each label that is replaced by one half.
    pub label_smoothing: f64,
}

impl Default for BinaryFocalCrossentropy {
    fn default() -> BinaryFocalCrossentropy {
        BinaryFocalCrossentropy { alpha: None, gamma: 2.0, from_logits: false, label_smoothing: 0.0 }
    }
}

impl Loss for BinaryFocalCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("BinaryFocalCrossentropy", Location::caller(), (truth, predicted), |t, p| {
            let t = smooth_labels(t, self.label_smoothing, 2)?;
            let p = if self.from_logits { sigmoid(p)? } else { p };
            let likely = add(mul(&t, &p)?, mul(sub(1.0, &t)?, sub(1.0, &p)?)?)?;
            let mut each = mul(pow(sub(1.0, likely)?, self.gamma)?, binary_cross_entropy(&t, &p)?)?;
            if let Some(alpha) = self.alpha {
                let weight = add(mul(&t, alpha)?, mul(sub(1.0, t)?, 1.0 - alpha)?)?;
                each = mul(weight, each)?;
            }
            mean(each, -1, false)
        })
    }
}

/// The cross-entropy of classes; targets are probabilities (or one-hot).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CategoricalCrossentropy {
    /// Whether predictions are logits, to which a softmax is applied.
    pub from_logits: bool,
    /// The share of each label that is spread over all classes.
    pub label_smoothing: f64,
}

impl CategoricalCrossentropy {
    /// The loss for predictions that are logits.
    pub fn from_logits() -> CategoricalCrossentropy {
        CategoricalCrossentropy { from_logits: true, ..CategoricalCrossentropy::default() }
    }
}

impl Loss for CategoricalCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("CategoricalCrossentropy", Location::caller(), (truth, predicted), |t, p| {
            let classes = p.shape()[p.rank() - 1];
            let t = smooth_labels(t, self.label_smoothing, classes)?;
            if self.from_logits {
                return softmax_cross_entropy_with_logits(t, p);
            }
            neg(sum(mul(t, log(normalize_probabilities(p)?)?)?, -1, false)?)
        })
    }
}

/// Probabilities scaled to sum 1 and clipped so that their logarithms are finite.
fn normalize_probabilities(p: Tensor) -> Result<Tensor> {
    clip_probabilities(div(&p, sum(&p, -1, true)?)?)
}

/// [`CategoricalCrossentropy`] with each term multiplied by `alpha * (1 - p)^gamma`: easy examples weigh less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CategoricalFocalCrossentropy {
    /// The factor of every term.
    pub alpha: f64,
    /// The focusing exponent: larger values weigh easy examples less.
    pub gamma: f64,
    /// Whether predictions are logits, to which a softmax is applied.
    pub from_logits: bool,
    /// The share of each label that is spread over all classes.
    pub label_smoothing: f64,
}

impl Default for CategoricalFocalCrossentropy {
    fn default() -> CategoricalFocalCrossentropy {
        CategoricalFocalCrossentropy { alpha: 0.25, gamma: 2.0, from_logits: false, label_smoothing: 0.0 }
    }
}

impl Loss for CategoricalFocalCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("CategoricalFocalCrossentropy", Location::caller(), (truth, predicted), |t, p| {
            let t = smooth_labels(t, self.label_smoothing, p.shape()[p.rank() - 1])?;
            let p = normalize_probabilities(if self.from_logits { softmax(p, -1)? } else { p })?;
            let factor = mul(pow(sub(1.0, &p)?, self.gamma)?, -self.alpha)?;
            sum(mul(factor, mul(t, log(p)?)?)?, -1, false)
        })
    }
}

/// The cross-entropy of classes; targets are class indices, one integer per row of predictions. A label outside the range of
/// classes is an error that names the label and its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SparseCategoricalCrossentropy {
    /// Whether predictions are logits, to which a softmax is applied.
    pub from_logits: bool,
    /// A label to ignore: such rows have loss 0 and are left out of the mean.
    pub ignore_class: Option<i64>,
}

impl SparseCategoricalCrossentropy {
    /// The loss for predictions that are logits.
    pub fn from_logits() -> SparseCategoricalCrossentropy {
        SparseCategoricalCrossentropy { from_logits: true, ignore_class: None }
    }

    /// The losses, and which of them count in the mean.
    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
        let same_rank = truth.rank() == predicted.rank() && truth.shape().last() == Some(&1);
        let mut labels = if same_rank { squeeze(truth, &[-1][..])? } else { truth.clone() };
        let mut p = at_least_f32(predicted)?;
        let counted = match self.ignore_class {
            None => None,
            Some(class) => {
                let counted = not_equal(&labels, class)?;
                labels = where_(&counted, labels, 0)?;
                // An ignored row must not reach the result, not even as NaN.
                p = where_(expand_dims(&counted, -1)?, p, 0)?;
                Some(counted)
            }
        };
        let logits = if self.from_logits { p } else { log(clip_probabilities(p)?)? };
        let losses = sparse_softmax_cross_entropy_with_logits(labels, logits)?;
        Ok(match counted {
            None => (losses, None),
            Some(counted) => (where_(&counted, losses, 0)?, Some(counted)),
        })
    }
}

const SPARSE: &str = "SparseCategoricalCrossentropy";

impl Loss for SparseCategoricalCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        let each = || Ok(self.each(truth, predicted)?.0);
        in_loss(SPARSE, Location::caller(), (truth, predicted), each)
    }

    fn mean(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
        let at = Location::caller();
        let work = || {
            let (mut losses, counted) = self.each(truth, predicted)?;
            if let Some(weights) = weights {
                losses = weighted(losses, weights)?;
            }
            counted.map_or_else(|| mean(&losses, None, false), |counted| mean_of(losses.clone(), counted))
        };
        with_source_location(None, at, work)
            .map_err(|error| error.in_op(SPARSE, [truth.spec(), predicted.spec()]).at(source_location(at)))
    }
}

/// The Kullback-Leibler divergence, `sum(truth * log(truth / predicted))`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KlDivergence;

impl Loss for KlDivergence {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        in_loss_aligned("KlDivergence", Location::caller(), (truth, predicted), |t, p| {
            let (t, p) = (clip_by_value(t, EPSILON, 1.0)?, clip_by_value(p, EPSILON, 1.0)?);
            sum(mul(&t, log(div(&t, p)?)?)?, -1, false)
        })
    }
}
