//! Precision, recall, F1 score and the confusion matrix.

use super::{Metric, MetricSums, accuracy, in_metric};
use crate::NamedVariables;
use crate::losses::{EPSILON, align, broadcast_weights};
use taut_autodiff::Variable;
use taut_core::ops::binary::{add, div, div_no_nan, greater, greater_equal, logical_and, mul, sub};
use taut_core::ops::creation::zeros;
use taut_core::ops::reduce::{argmax, max, mean, sum};
use taut_core::ops::shape::{broadcast_to, reshape, stack};
use taut_core::ops::unary::{abs, cast};
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::Location;

/// Counts times the weights, in float64.
fn weighted(hits: Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
    let hits = cast(hits, DType::F64)?;
    match weights {
        None => Ok(hits),
        Some(weights) => mul(hits.clone(), broadcast_weights(&hits, weights)?),
    }
}

/// Targets and predictions as booleans: a target that is not zero, a prediction above the threshold.
fn binarized(truth: &Tensor, predicted: &Tensor, threshold: f64) -> Result<(Tensor, Tensor)> {
    let (truth, predicted) = align(truth, predicted)?;
    Ok((cast(truth, DType::Bool)?, greater(predicted, threshold)?))
}

macro_rules! ratio_metric {
    ($(#[$doc:meta])* $name:ident, $text:literal, $missed:literal, |$truth:ident, $yes:ident| $wrong:expr;) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            threshold: f64,
            sums: MetricSums<2>,
        }

        impl $name {
            /// The metric with a threshold of 0.5.
            #[track_caller]
            pub fn new() -> Result<$name> {
                $name::at(0.5)
            }

            /// The metric with this threshold; for logits, use 0.
            #[track_caller]
            pub fn at(threshold: f64) -> Result<$name> {
                Ok($name { threshold, sums: MetricSums::new(["true_positives", $missed], ())? })
            }
        }

        impl Metric for $name {
            fn name(&self) -> &'static str {
                $text
            }

            fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
                in_metric(stringify!($name), Location::caller(), (truth, predicted), || {
                    let ($truth, $yes) = binarized(truth, predicted, self.threshold)?;
                    let both = weighted(logical_and(&$truth, &$yes)?, weights)?;
                    self.sums.add(0, sum(both, None, false)?)?;
                    let wrong = weighted($wrong, weights)?;
                    self.sums.add(1, sum(wrong, None, false)?)
                })
            }

            fn result(&self) -> Result<Tensor> {
                let [right, wrong] = self.sums.read();
                div_no_nan(&right, add(&right, wrong)?)
            }

            fn reset(&self) -> Result<()> {
                self.sums.reset()
            }

            fn variables(&self, names: &mut NamedVariables) {
                self.sums.variables(names);
            }
        }
    };
}

ratio_metric! {
    /// True positives divided by all predicted positives.
    Precision, "precision", "false_positives", |truth, yes| greater(yes, truth)?;
}

ratio_metric! {
    /// True positives divided by all actual positives.
    Recall, "recall", "false_negatives", |truth, yes| greater(truth, yes)?;
}

/// How the scores of several classes are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// No average: one score per class.
    None,
    /// One score from the counts of all classes together.
    Micro,
    /// The mean of the classes' scores.
    Macro,
    /// The mean of the classes' scores, weighted by the number of targets of each class.
    Weighted,
}

/// The harmonic mean of precision and recall, per class.
#[derive(Debug)]
pub struct F1Score {
    average: Average,
    threshold: Option<f64>,
    sums: MetricSums<4>,
}

impl F1Score {
    /// The metric, for targets and predictions `[batch, classes]`. A prediction is positive if it is above the threshold; without a
    /// threshold, if it is the maximum of its row.
    #[track_caller]
    pub fn new(classes: usize, average: Average, threshold: Option<f64>) -> Result<F1Score> {
        let names = ["true_positives", "false_positives", "false_negatives", "intermediate_weights"];
        Ok(F1Score { average, threshold, sums: MetricSums::new(names, [classes])? })
    }
}

impl Metric for F1Score {
    fn name(&self) -> &'static str {
        "f1_score"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        in_metric("F1Score", Location::caller(), (truth, predicted), || {
            let (truth, predicted) = align(truth, predicted)?;
            let classes = self.sums.0[0].shape()[0];
            if truth.rank() != 2 || truth.shape()[1] != classes {
                return Err(Error::shape(format!("expected [batch, {classes}], got {}", truth.spec())));
            }
            let yes = match self.threshold {
                Some(threshold) => greater(predicted, threshold)?,
                None => {
                    let highest = greater_equal(&predicted, max(&predicted, -1, true)?)?;
                    logical_and(highest, greater(abs(predicted)?, 1e-9)?)?
                }
            };
            let (truth, yes) = (cast(truth, DType::F64)?, cast(yes, DType::F64)?);
            let add = |i, hits: Tensor| self.sums.add(i, sum(weighted(hits, weights)?, 0, false)?);
            add(0, mul(&yes, &truth)?)?;
            add(1, mul(&yes, sub(1.0, &truth)?)?)?;
            add(2, mul(sub(1.0, yes)?, &truth)?)?;
            add(3, truth)
        })
    }

    fn result(&self) -> Result<Tensor> {
        let mut sums = self.sums.read();
        if self.average == Average::Micro {
            for total in &mut sums {
                *total = sum(&*total, None, false)?;
            }
        }
        let [hits, wrong, missed, targets] = sums;
        let precision = div(&hits, add(add(&hits, wrong)?, EPSILON)?)?;
        let recall = div(&hits, add(add(&hits, missed)?, EPSILON)?)?;
        let both = div(mul(&precision, &recall)?, add(add(precision, recall)?, EPSILON)?)?;
        let scores = mul(both, 2.0)?;
        match self.average {
            Average::None | Average::Micro => Ok(scores),
            Average::Macro => mean(scores, None, false),
            Average::Weighted => {
                let share = div(&targets, add(sum(&targets, None, false)?, EPSILON)?)?;
                sum(mul(scores, share)?, None, false)
            }
        }
    }

    fn reset(&self) -> Result<()> {
        self.sums.reset()
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.sums.variables(names);
    }
}

/// Counts of target class (row) and predicted class (column).
#[derive(Debug)]
pub struct ConfusionMatrix {
    counts: Variable,
}

impl ConfusionMatrix {
    /// The metric, for class indices and predictions `[.., classes]`.
    #[track_caller]
    pub fn new(classes: usize) -> Result<ConfusionMatrix> {
        let builder = Variable::builder().name("counts").trainable(false);
        Ok(ConfusionMatrix { counts: builder.build(zeros([classes, classes], DType::F64)?)? })
    }
}

impl Metric for ConfusionMatrix {
    fn name(&self) -> &'static str {
        "confusion_matrix"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        in_metric("ConfusionMatrix", Location::caller(), (truth, predicted), || {
            let classes = self.counts.shape()[0];
            if predicted.shape().last() != Some(&classes) {
                let message =
                    format!("expected predictions [batch, .., {classes}], got {}", predicted.spec());
                return Err(Error::shape(message));
            }
            let labels = accuracy::labels(truth, predicted)?;
            let chosen = cast(argmax(predicted, -1)?, DType::I64)?;
            let weights = match weights {
                Some(weights) => broadcast_weights(&cast(&labels, DType::F64)?, weights)?,
                None => Tensor::scalar(1.0f64)?,
            };
            let weights = broadcast_to(weights, labels.shape())?;
            let flat = |x: Tensor| reshape(x, &[-1]);
            let indices = stack(&[flat(labels)?, flat(chosen)?], 1)?;
            self.counts.scatter_add(indices, flat(weights)?)
        })
    }

    fn result(&self) -> Result<Tensor> {
        Ok(self.counts.value())
    }

    fn reset(&self) -> Result<()> {
        self.counts.assign(0.0)
    }

    fn variables(&self, names: &mut NamedVariables) {
        names.add("counts", &self.counts);
    }
}
