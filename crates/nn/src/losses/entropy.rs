//! Losses of probabilities.

use super::{EPSILON, Loss, mean_of, named, paired, weighted, wide};
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

/// Labels moved towards indifference: a share of the truth is spread evenly over as many classes.
fn smoothed(truth: Tensor, share: f64, classes: usize) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&share) {
        return Err(Error::value(format!("a label smoothing of {share} is not from 0 to 1")));
    }
    if share == 0.0 {
        return Ok(truth);
    }
    add(mul(truth, 1.0 - share)?, share / classes as f64)
}

/// Probabilities whose logarithms are finite.
fn inside(p: impl Into<Tensor>) -> Result<Tensor> {
    clip_by_value(p.into(), EPSILON, 1.0 - EPSILON)
}

/// The cost of yes-or-no predictions, element by element.
fn binary(truth: &Tensor, p: &Tensor) -> Result<Tensor> {
    let p = inside(p)?;
    let yes = mul(truth, log(&p)?)?;
    let no = mul(sub(1.0, truth)?, log(sub(1.0, p)?)?)?;
    neg(add(yes, no)?)
}

/// The mean cross-entropy of yes-or-no predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BinaryCrossentropy {
    /// Whether predictions are any numbers, of which a sigmoid makes probabilities.
    pub from_logits: bool,
    /// How much of the truth is replaced by one half.
    pub label_smoothing: f64,
}

impl BinaryCrossentropy {
    /// For predictions that are not yet probabilities.
    pub fn from_logits() -> BinaryCrossentropy {
        BinaryCrossentropy { from_logits: true, ..BinaryCrossentropy::default() }
    }
}

impl Loss for BinaryCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("BinaryCrossentropy", Location::caller(), (truth, predicted), |t, p| {
            let t = smoothed(t, self.label_smoothing, 2)?;
            let each =
                if self.from_logits { sigmoid_cross_entropy_with_logits(t, p)? } else { binary(&t, &p)? };
            mean(each, -1, false)
        })
    }
}

/// [`BinaryCrossentropy`] times `(1 - p)^gamma`, where `p` is the probability of what is true: what is easy counts less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinaryFocalCrossentropy {
    /// The weight of class 1, and one minus that of class 0; `None` weighs them equally.
    pub alpha: Option<f64>,
    /// How much less easy ones count.
    pub gamma: f64,
    /// Whether predictions are any numbers, of which a sigmoid makes probabilities.
    pub from_logits: bool,
    /// How much of the truth is replaced by one half.
    pub label_smoothing: f64,
}

impl Default for BinaryFocalCrossentropy {
    fn default() -> BinaryFocalCrossentropy {
        BinaryFocalCrossentropy { alpha: None, gamma: 2.0, from_logits: false, label_smoothing: 0.0 }
    }
}

impl Loss for BinaryFocalCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("BinaryFocalCrossentropy", Location::caller(), (truth, predicted), |t, p| {
            let t = smoothed(t, self.label_smoothing, 2)?;
            let p = if self.from_logits { sigmoid(p)? } else { p };
            let likely = add(mul(&t, &p)?, mul(sub(1.0, &t)?, sub(1.0, &p)?)?)?;
            let mut each = mul(pow(sub(1.0, likely)?, self.gamma)?, binary(&t, &p)?)?;
            if let Some(alpha) = self.alpha {
                let weight = add(mul(&t, alpha)?, mul(sub(1.0, t)?, 1.0 - alpha)?)?;
                each = mul(weight, each)?;
            }
            mean(each, -1, false)
        })
    }
}

/// The cross-entropy of classes, of which the truth has the probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CategoricalCrossentropy {
    /// Whether predictions are any numbers, of which a softmax makes probabilities.
    pub from_logits: bool,
    /// How much of the truth is spread over all classes.
    pub label_smoothing: f64,
}

impl CategoricalCrossentropy {
    /// For predictions that are not yet probabilities.
    pub fn from_logits() -> CategoricalCrossentropy {
        CategoricalCrossentropy { from_logits: true, ..CategoricalCrossentropy::default() }
    }
}

impl Loss for CategoricalCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("CategoricalCrossentropy", Location::caller(), (truth, predicted), |t, p| {
            let classes = p.shape()[p.rank() - 1];
            let t = smoothed(t, self.label_smoothing, classes)?;
            if self.from_logits {
                return softmax_cross_entropy_with_logits(t, p);
            }
            neg(sum(mul(t, log(normalised(p)?)?)?, -1, false)?)
        })
    }
}

/// Probabilities of sum 1 whose logarithms are finite.
fn normalised(p: Tensor) -> Result<Tensor> {
    inside(div(&p, sum(&p, -1, true)?)?)
}

/// [`CategoricalCrossentropy`] where what is easy counts less: each term is multiplied by `alpha * (1 - p)^gamma`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CategoricalFocalCrossentropy {
    /// What every term is multiplied by.
    pub alpha: f64,
    /// How much less easy ones count.
    pub gamma: f64,
    /// Whether predictions are any numbers, of which a softmax makes probabilities.
    pub from_logits: bool,
    /// How much of the truth is spread over all classes.
    pub label_smoothing: f64,
}

impl Default for CategoricalFocalCrossentropy {
    fn default() -> CategoricalFocalCrossentropy {
        CategoricalFocalCrossentropy { alpha: 0.25, gamma: 2.0, from_logits: false, label_smoothing: 0.0 }
    }
}

impl Loss for CategoricalFocalCrossentropy {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("CategoricalFocalCrossentropy", Location::caller(), (truth, predicted), |t, p| {
            let t = smoothed(t, self.label_smoothing, p.shape()[p.rank() - 1])?;
            let p = normalised(if self.from_logits { softmax(p, -1)? } else { p })?;
            let factor = mul(pow(sub(1.0, &p)?, self.gamma)?, -self.alpha)?;
            sum(mul(factor, mul(t, log(p)?)?)?, -1, false)
        })
    }
}

/// The cross-entropy of classes, of which the truth names the right one: an integer per row of predictions. One that is
/// no class is an error that says which label it is, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SparseCategoricalCrossentropy {
    /// Whether predictions are any numbers, of which a softmax makes probabilities.
    pub from_logits: bool,
    /// A label that stands for nothing: such rows cost nothing, and do not count in the mean.
    pub ignore_class: Option<i64>,
}

impl SparseCategoricalCrossentropy {
    /// For predictions that are not yet probabilities.
    pub fn from_logits() -> SparseCategoricalCrossentropy {
        SparseCategoricalCrossentropy { from_logits: true, ignore_class: None }
    }

    /// The losses, and which of them count.
    fn each(&self, truth: &Tensor, predicted: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
        let same_rank = truth.rank() == predicted.rank() && truth.shape().last() == Some(&1);
        let mut labels = if same_rank { squeeze(truth, &[-1][..])? } else { truth.clone() };
        let mut p = wide(predicted)?;
        let counted = match self.ignore_class {
            None => None,
            Some(class) => {
                let counted = not_equal(&labels, class)?;
                labels = where_(&counted, labels, 0)?;
                // What does not count must not reach the result, not even as NaN.
                p = where_(expand_dims(&counted, -1)?, p, 0)?;
                Some(counted)
            }
        };
        let logits = if self.from_logits { p } else { log(inside(p)?)? };
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
        named(SPARSE, Location::caller(), (truth, predicted), each)
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

/// `sum(truth * log(truth / predicted))`: how much longer a code for the predicted probabilities is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KlDivergence;

impl Loss for KlDivergence {
    fn call(&self, truth: &Tensor, predicted: &Tensor) -> Result<Tensor> {
        paired("KlDivergence", Location::caller(), (truth, predicted), |t, p| {
            let (t, p) = (clip_by_value(t, EPSILON, 1.0)?, clip_by_value(p, EPSILON, 1.0)?);
            sum(mul(&t, log(div(&t, p)?)?)?, -1, false)
        })
    }
}
