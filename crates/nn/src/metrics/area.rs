//! The area under a curve.

use super::{Metric, State, named};
use crate::Names;
use crate::losses::{EPSILON, pair, spread_weights};
use taut_core::ops::binary::{
    add, div, div_no_nan, greater, logical_and, maximum, minimum, mul, sub, where_,
};
use taut_core::ops::index::{searchsorted, unsorted_segment_sum};
use taut_core::ops::reduce::{cumsum, sum};
use taut_core::ops::shape::{broadcast_to, reshape, strided_slice};
use taut_core::ops::unary::{cast, log, sigmoid};
use taut_core::{DType, Error, Result, Spec, Tensor};
use taut_memory::{Category, Location};

/// Which curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curve {
    /// The share of what is true that was predicted, over the share of what is false that was.
    #[default]
    Roc,
    /// Precision over recall.
    Pr,
}

/// How the area between two points of the curve is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Summation {
    /// Under the line between them; for precision and recall, as hits and misses lie between them.
    #[default]
    Interpolation,
    /// Under the lower one.
    Minoring,
    /// Under the higher one.
    Majoring,
}

/// The area under the curve of hits and false alarms as a threshold goes from 0 to 1, over predictions from 0 to 1.
#[derive(Debug)]
pub struct AUC {
    thresholds: Tensor,
    curve: Curve,
    summation: Summation,
    from_logits: bool,
    state: State<4>,
}

impl AUC {
    /// The metric, with 200 thresholds.
    #[track_caller]
    pub fn new(curve: Curve) -> Result<AUC> {
        AUC::with_thresholds(200, curve, Summation::default())
    }

    /// The metric, with this many thresholds, evenly spread.
    #[track_caller]
    pub fn with_thresholds(count: usize, curve: Curve, summation: Summation) -> Result<AUC> {
        let caller = Location::caller();
        if count < 2 {
            return Err(Error::value(format!("{count} thresholds make no curve"))
                .help("there are 2 at least")
                .in_op("AUC", [])
                .at(caller));
        }
        // The ends lie outside, so that rounding takes nothing past them.
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
        Ok(AUC { thresholds, curve, summation, from_logits: false, state: State::new(names, [count])? })
    }

    /// Whether predictions are any numbers, of which a sigmoid makes probabilities. They are not, unless it is said here.
    #[must_use]
    pub fn from_logits(self, on: bool) -> AUC {
        AUC { from_logits: on, ..self }
    }

    /// The area under precision over recall, where hits between two thresholds come evenly with predictions.
    fn interpolated(&self) -> Result<Tensor> {
        let [hits, wrong, _, missed] = self.state.read();
        let predicted = add(&hits, wrong)?;
        let (above, below) = (ends(&hits)?, ends(&predicted)?);
        let gained = sub(&above.0, &above.1)?;
        let slope = div_no_nan(&gained, maximum(sub(&below.0, &below.1)?, 0.0)?)?;
        let intercept = sub(&above.1, mul(&slope, &below.1)?)?;
        let some = logical_and(greater(&below.0, 0.0)?, greater(&below.1, 0.0)?)?;
        let ratio = where_(some, div_no_nan(&below.0, &below.1)?, 1.0)?;
        let area = mul(slope, add(gained, mul(intercept, log(ratio)?)?)?)?;
        let all = add(above.1, ends(&missed)?.1)?;
        sum(div_no_nan(area, maximum(all, 0.0)?)?, None, false)
    }
}

/// All but the last, and all but the first.
fn ends(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let n = x.len() as isize;
    Ok((strided_slice(x, &[0], &[n - 1], &[1])?, strided_slice(x, &[1], &[n], &[1])?))
}

impl Metric for AUC {
    fn name(&self) -> &'static str {
        "auc"
    }

    fn update_with(&self, truth: &Tensor, predicted: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        named("AUC", Location::caller(), (truth, predicted), || {
            let (truth, predicted) = pair(truth, predicted)?;
            let predicted = if self.from_logits { sigmoid(predicted)? } else { predicted };
            let shape = predicted.shape().clone();
            let weights = match weights {
                Some(weights) => spread_weights(&cast(&predicted, DType::F64)?, weights)?,
                None => Tensor::scalar(1.0f64)?,
            };
            let flat = |x: Tensor| reshape(x, &[-1]);
            let weights = flat(broadcast_to(weights, shape)?)?;
            let yes = cast(cast(flat(truth)?, DType::Bool)?, DType::F64)?;
            // How many thresholds each prediction is above; from there on, sums over thresholds are sums over bins.
            let count = self.thresholds.len();
            let bins = searchsorted(&self.thresholds, flat(cast(predicted, DType::F64)?)?, false)?;
            for (of, above, below) in [(mul(&weights, &yes)?, 0, 3), (mul(&weights, sub(1.0, yes)?)?, 1, 2)] {
                let each = unsorted_segment_sum(of, &bins, count + 1)?;
                let reached = cumsum(&each, 0, true, true)?;
                let reached = strided_slice(reached, &[0], &[count as isize], &[1])?;
                self.state.add(below, sub(sum(each, None, false)?, &reached)?)?;
                self.state.add(above, reached)?;
            }
            Ok(())
        })
    }

    fn result(&self) -> Result<Tensor> {
        if (self.curve, self.summation) == (Curve::Pr, Summation::Interpolation) {
            return self.interpolated();
        }
        let [hits, wrong, rejected, missed] = self.state.read();
        let recall = div_no_nan(&hits, add(&hits, missed)?)?;
        let (x, y) = match self.curve {
            Curve::Roc => (div_no_nan(&wrong, add(&wrong, rejected)?)?, recall),
            Curve::Pr => (recall, div_no_nan(&hits, add(&hits, wrong)?)?),
        };
        let ((left, right), (from, to)) = (ends(&x)?, ends(&y)?);
        let height = match self.summation {
            Summation::Interpolation => div(add(from, to)?, 2.0)?,
            Summation::Minoring => minimum(from, to)?,
            Summation::Majoring => maximum(from, to)?,
        };
        sum(mul(sub(left, right)?, height)?, None, false)
    }

    fn reset(&self) -> Result<()> {
        self.state.reset()
    }

    fn variables(&self, names: &mut Names) {
        self.state.variables(names);
    }
}
