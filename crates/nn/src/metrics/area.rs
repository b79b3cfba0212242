//! The area under a curve.

use super::{Metric, MetricSums, in_metric};
use crate::NamedVariables;
use crate::losses::{EPSILON, align, broadcast_weights};
use taut_core::ops::binary::{
    add, div, div_no_nan, greater, logical_and, maximum, minimum, mul, sub, where_,
};
use taut_core::ops::index::{searchsorted, unsorted_segment_sum};
use taut_core::ops::reduce::{cumsum, sum};
use taut_core::ops::shape::{broadcast_to, reshape, strided_slice};
use taut_core::ops::unary::{cast, log, sigmoid};
use taut_core::{DType, Error, Result, Spec, Tensor};
use taut_memory::{Category, Location};

/// The curve whose area is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curve {
    /// The receiver operating characteristic: true-positive rate over false-positive rate.
    #[default]
    Roc,
    /// Precision over recall.
    Pr,
}

/// How the area between two neighbouring points of the curve is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Summation {
    /// The trapezoidal rule; for precision and recall, the interpolation of true positives between the points.
    #[default]
    Interpolation,
    /// The lower of the two heights.
    Minoring,
    /// The higher of the two heights.
    Majoring,
}

/// The area under the ROC or precision-recall curve, approximated with thresholds on predictions in [0, 1].
#[derive(Debug)]
pub struct AUC {
    thresholds: Tensor,
    curve: Curve,
    summation: Summation,
    from_logits: bool,
    sums: MetricSums<4>,
}

impl AUC {
    /// The metric, with 200 thresholds.
    #[track_caller]
    pub fn new(curve: Curve) -> Result<AUC> {
        AUC::with_thresholds(200, curve, Summation::default())
    }

    /// The metric, with `count` evenly spaced thresholds.
    #[track_caller]
    pub fn with_thresholds(count: usize, curve: Curve, summation: Summation) -> Result<AUC> {
        let caller = Location::caller();
        if count < 2 {
            return Err(Error::value(format!("the number of thresholds must be >= 2, got {count}"))
                .in_op("AUC", [])
                .at(caller));
        }
        // The first and last thresholds are outside [0, 1], so that rounding moves no prediction past them.
        let at = |i: usize| match i {
            0 => -EPSILON,
            i if i == count - 1 => 1.0 + EPSILON,
            i => i as f64 / (count - 1) as f64,
        };
        let names = ["true_positives", "false_positives", "true_negatives", "false_negatives"];
        let spec = Spec::new(DType::F64, [count]);
        let thresholds = Tensor::build(spec, Category::Tensor, caller, |out| {
            out.slice::<f64>().iter_mut().enumerate().for_each(|(i, threshold)| *threshold = at(i));
        });
        let thresholds = thresholds.map_err(|error| error.in_op("AUC", []).at(caller))?;
        Ok(AUC { thresholds, curve, summation, from_logits: false, sums: MetricSums::new(names, [count])? })
    }

    /// Whether predictions are logits, to which a sigmoid is applied. Default: false.
    #[must_use]
    pub fn from_logits(self, on: bool) -> AUC {
        AUC { from_logits: on, ..self }
    }

    /// The area under the precision-recall curve, with true positives interpolated linearly between two thresholds.
    fn interpolated(&self) -> Result<Tensor> {
        let [hits, wrong, _, missed] = self.sums.read();
        let predicted = add(&hits, wrong)?;
        let (above, below) = (adjacent(&hits)?, adjacent(&predicted)?);
        let gained = sub(&above.0, &above.1)?;
        let slope = div_no_nan(&gained, maximum(sub(&below.0, &below.1)?, 0.0)?)?;
        let intercept = sub(&above.1, mul(&slope, &below.1)?)?;
        let some = logical_and(greater(&below.0, 0.0)?, greater(&below.1, 0.0)?)?;
        let ratio = where_(some, div_no_nan(&below.0, &below.1)?, 1.0)?;
        let area = mul(slope, add(gained, mul(intercept, log(ratio)?)?)?)?;
        let all = add(above.1, adjacent(&missed)?.1)?;
        sum(div_no_nan(area, maximum(all, 0.0)?)?, None, false)
    }
}

/// All but the last, and all but the first.
fn adjacent(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let n = x.len() as isize;
    Ok((strided_slice(x, &[0], &[n - 1], &[1])?, strided_slice(x, &[1], &[n], &[1])?))
}

impl Metric for AUC {
    fn name(&self) -> &'static str {
        "auc"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        in_metric("AUC", Location::caller(), (truth, predicted), || {
            let (truth, predicted) = align(truth, predicted)?;
            let predicted = if self.from_logits { sigmoid(predicted)? } else { predicted };
            let shape = predicted.shape().clone();
            let weights = match weights {
                Some(weights) => broadcast_weights(&cast(&predicted, DType::F64)?, weights)?,
                None => Tensor::scalar(1.0f64)?,
            };
            let flat = |x: Tensor| reshape(x, &[-1]);
            let weights = flat(broadcast_to(weights, shape)?)?;
            let yes = cast(cast(flat(truth)?, DType::Bool)?, DType::F64)?;
            // The bin of a prediction is the number of thresholds below it; a sum over thresholds is then a cumulative sum over bins.
            let count = self.thresholds.len();
            let bins = searchsorted(&self.thresholds, flat(cast(predicted, DType::F64)?)?, false)?;
            for (of, above, below) in [(mul(&weights, &yes)?, 0, 3), (mul(&weights, sub(1.0, yes)?)?, 1, 2)] {
                let each = unsorted_segment_sum(of, &bins, count + 1)?;
                let reached = cumsum(&each, 0, true, true)?;
                let reached = strided_slice(reached, &[0], &[count as isize], &[1])?;
                self.sums.add(below, sub(sum(each, None, false)?, &reached)?)?;
                self.sums.add(above, reached)?;
            }
            Ok(())
        })
    }

    fn result(&self) -> Result<Tensor> {
        if (self.curve, self.summation) == (Curve::Pr, Summation::Interpolation) {
            return self.interpolated();
        }
        let [hits, wrong, rejected, missed] = self.sums.read();
        let recall = div_no_nan(&hits, add(&hits, missed)?)?;
        let (x, y) = match self.curve {
            Curve::Roc => (div_no_nan(&wrong, add(&wrong, rejected)?)?, recall),
            Curve::Pr => (recall, div_no_nan(&hits, add(&hits, wrong)?)?),
        };
        let ((left, right), (from, to)) = (adjacent(&x)?, adjacent(&y)?);
        let height = match self.summation {
            Summation::Interpolation => div(add(from, to)?, 2.0)?,
            Summation::Minoring => minimum(from, to)?,
            Summation::Majoring => maximum(from, to)?,
        };
        sum(mul(sub(left, right)?, height)?, None, false)
    }

    fn reset(&self) -> Result<()> {
        self.sums.reset()
    }

    fn variables(&self, names: &mut NamedVariables) {
        self.sums.variables(names);
    }
}
