//! What is taken for what.

use super::{Metric, State, accuracy, named};
use crate::Names;
use crate::losses::{EPSILON, pair, spread_weights};
use taut_autodiff::Variable;
use taut_core::ops::binary::{add, div, div_no_nan, greater, greater_equal, logical_and, mul, sub};
use taut_core::ops::creation::zeros;
use taut_core::ops::reduce::{argmax, max, mean, sum};
use taut_core::ops::shape::{broadcast_to, reshape, stack};
use taut_core::ops::unary::{abs, cast};
use taut_core::{DType, Error, Result, Tensor};
use taut_memory::Location;

/// Values that count, times the weights.
fn counted(hits: Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
    let hits = cast(hits, DType::F64)?;
    match weights {
        None => Ok(hits),
        Some(weights) => mul(hits.clone(), spread_weights(&hits, weights)?),
    }
}

/// Yes-or-no truth and predictions: true is what is not zero, and what is above the threshold.
fn sides(truth: &Tensor, predicted: &Tensor, threshold: f64) -> Result<(Tensor, Tensor)> {
    let (truth, predicted) = pair(truth, predicted)?;
    Ok((cast(truth, DType::Bool)?, greater(predicted, threshold)?))
}

macro_rules! shares {
    ($(#[$doc:meta])* $name:ident, $text:literal, $missed:literal, |$truth:ident, $yes:ident| $wrong:expr;) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            threshold: f64,
            state: State<2>,
        }

        impl $name {
            /// The metric, for predictions above or below 0.5.
            #[track_caller]
            pub fn new() -> Result<$name> {
                $name::at(0.5)
            }

            /// The metric, for predictions above or below this threshold. That of logits is 0.
            #[track_caller]
            pub fn at(threshold: f64) -> Result<$name> {
                Ok($name { threshold, state: State::new(["true_positives", $missed], ())? })
            }
        }

        impl Metric for $name {
            fn name(&self) -> &'static str {
                $text
            }

            fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
                named(stringify!($name), Location::caller(), (truth, predicted), || {
                    let ($truth, $yes) = sides(truth, predicted, self.threshold)?;
                    let both = counted(logical_and(&$truth, &$yes)?, weights)?;
                    self.state.add(0, sum(both, None, false)?)?;
                    let wrong = counted($wrong, weights)?;
                    self.state.add(1, sum(wrong, None, false)?)
                })
            }

            fn result(&self) -> Result<Tensor> {
                let [right, wrong] = self.state.read();
                div_no_nan(&right, add(&right, wrong)?)
            }

            fn reset(&self) -> Result<()> {
                self.state.reset()
            }

            fn variables(&self, names: &mut Names) {
                self.state.variables(names);
            }
        }
    };
}

shares! {
    /// Of what was predicted, the share that is true.
    Precision, "precision", "false_positives", |truth, yes| greater(yes, truth)?;
}

shares! {
    /// Of what is true, the share that was predicted.
    Recall, "recall", "false_negatives", |truth, yes| greater(truth, yes)?;
}

/// What becomes of the scores of several classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// One per class.
    None,
    /// One score of all classes' hits and misses together.
    Micro,
    /// Their mean.
    Macro,
    /// Their mean, weighted by how often each class is true.
    Weighted,
}

/// The harmonic mean of precision and recall, per class.
#[derive(Debug)]
pub struct F1Score {
    average: Average,
    threshold: Option<f64>,
    state: State<4>,
}

impl F1Score {
    /// The metric, for truth and predictions `[batch, classes]`. A prediction counts if it is above the threshold; without
    /// one, if it is the highest of its row.
    #[track_caller]
    pub fn new(classes: usize, average: Average, threshold: Option<f64>) -> Result<F1Score> {
        let names = ["true_positives", "false_positives", "false_negatives", "intermediate_weights"];
        Ok(F1Score { average, threshold, state: State::new(names, [classes])? })
    }
}

impl Metric for F1Score {
    fn name(&self) -> &'static str {
        "f1_score"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        named("F1Score", Location::caller(), (truth, predicted), || {
            let (truth, predicted) = pair(truth, predicted)?;
            let classes = self.state.0[0].shape()[0];
            if truth.rank() != 2 || truth.shape()[1] != classes {
                return Err(Error::shape(format!("built for [batch, {classes}], and got {}", truth.spec())));
            }
            let yes = match self.threshold {
                Some(threshold) => greater(predicted, threshold)?,
                None => {
                    let highest = greater_equal(&predicted, max(&predicted, -1, true)?)?;
                    logical_and(highest, greater(abs(predicted)?, 1e-9)?)?
                }
            };
            let (truth, yes) = (cast(truth, DType::F64)?, cast(yes, DType::F64)?);
            let add = |i, hits: Tensor| self.state.add(i, sum(counted(hits, weights)?, 0, false)?);
            add(0, mul(&yes, &truth)?)?;
            add(1, mul(&yes, sub(1.0, &truth)?)?)?;
            add(2, mul(sub(1.0, yes)?, &truth)?)?;
            add(3, truth)
        })
    }

    fn result(&self) -> Result<Tensor> {
        let mut sums = self.state.read();
        if self.average == Average::Micro {
            for total in &mut sums {
                *total = sum(&*total, None, false)?;
            }
        }
        let [hits, wrong, missed, often] = sums;
        let precision = div(&hits, add(add(&hits, wrong)?, EPSILON)?)?;
        let recall = div(&hits, add(add(&hits, missed)?, EPSILON)?)?;
        let both = div(mul(&precision, &recall)?, add(add(precision, recall)?, EPSILON)?)?;
        let scores = mul(both, 2.0)?;
        match self.average {
            Average::None | Average::Micro => Ok(scores),
            Average::Macro => mean(scores, None, false),
            Average::Weighted => {
                let share = div(&often, add(sum(&often, None, false)?, EPSILON)?)?;
                sum(mul(scores, share)?, None, false)
            }
        }
    }

    fn reset(&self) -> Result<()> {
        self.state.reset()
    }

    fn variables(&self, names: &mut Names) {
        self.state.variables(names);
    }
}

/// How often each class (a row) was taken for each class (a column).
#[derive(Debug)]
pub struct ConfusionMatrix {
    counts: Variable,
}

impl ConfusionMatrix {
    /// The metric, for labels of this many classes, and predictions that have a score per class.
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
        named("ConfusionMatrix", Location::caller(), (truth, predicted), || {
            let classes = self.counts.shape()[0];
            if predicted.shape().last() != Some(&classes) {
                let message =
                    format!("built for predictions [batch, .., {classes}], and got {}", predicted.spec());
                return Err(Error::shape(message));
            }
            let labels = accuracy::labels(truth, predicted)?;
            let taken = cast(argmax(predicted, -1)?, DType::I64)?;
            let weights = match weights {
                Some(weights) => spread_weights(&cast(&labels, DType::F64)?, weights)?,
                None => Tensor::scalar(1.0f64)?,
            };
            let weights = broadcast_to(weights, labels.shape())?;
            let flat = |x: Tensor| reshape(x, &[-1]);
            let places = stack(&[flat(labels)?, flat(taken)?], 1)?;
            self.counts.scatter_add(places, flat(weights)?)
        })
    }

    fn result(&self) -> Result<Tensor> {
        Ok(self.counts.value())
    }

    fn reset(&self) -> Result<()> {
        self.counts.assign(0.0)
    }

    fn variables(&self, names: &mut Names) {
        names.add("counts", &self.counts);
    }
}
