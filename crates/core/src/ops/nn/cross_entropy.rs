//! Cross-entropy losses on logits.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::along_axis::subtract_along_axis;
use crate::ops::binary::{mul, sub};
use crate::ops::nn::{log_softmax, softmax};
use crate::ops::reduce::sum;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::{expand_dims, reshape};
use crate::ops::unary::{cast, neg, sigmoid};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::promote::common_dtype;
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply_at, promote};
use taut_kernels::elementwise::{self, Binary, Unary};
use taut_kernels::norm::{self, statistics_dtype};
use taut_kernels::{Arg, View, ViewMut};
use taut_memory::Location;

/// Outputs per row of `[rows, classes]`: the loss, and the logsumexp of the logits.
#[derive(Clone, Debug)]
struct CrossEntropy {
    /// Whether labels are class indices instead of one weight per class.
    sparse: bool,
}

impl CrossEntropy {
    /// Applies it to logits `[.., classes]`; returns the loss of each row.
    #[track_caller]
    fn apply(&self, logits: Tensor, labels: Tensor) -> Result<Tensor> {
        let at = Location::caller();
        let with_context = |e: Error| e.in_op(self.name(), [labels.spec(), logits.spec()]).at(at);
        let Some((&classes, lead)) = logits.shape().split_last() else {
            return Err(with_context(Error::shape("logits must have shape [.., classes], got a scalar")));
        };
        let wanted = if self.sparse { lead } else { &logits.shape()[..] };
        if labels.shape() != wanted {
            let message = format!(
                "labels must have shape {wanted:?} for logits {}, got {}",
                logits.shape(),
                labels.shape()
            );
            return Err(with_context(Error::shape(message)));
        }
        let rows = lead.iter().product::<usize>() as isize;
        let lead_shape: Vec<isize> = lead.iter().map(|&dim| dim as isize).collect();
        let flat = if self.sparse { vec![rows] } else { vec![rows, classes as isize] };
        let (logits, labels) = (reshape(logits, &[rows, classes as isize])?, reshape(labels, &flat)?);
        let mut results = apply_at(self, &mut [logits, labels], at)?;
        reshape(results.swap_remove(0), &lead_shape)
    }
}

impl Op for CrossEntropy {
    fn name(&self) -> &'static str {
        if self.sparse {
            "sparse_softmax_cross_entropy_with_logits"
        } else {
            "softmax_cross_entropy_with_logits"
        }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (logits, labels) = (inputs[0], inputs[1]);
        if !logits.dtype.is_float() {
            return Err(Error::dtype(format!("logits must be floats, got {}", logits.dtype))
                .help("cast them to a float dtype"));
        }
        let fits = if self.sparse {
            matches!(labels.dtype, DType::I32 | DType::I64)
        } else {
            labels.dtype == logits.dtype
        };
        if !fits {
            let message = if self.sparse {
                format!("labels must be integers, got {}", labels.dtype)
            } else {
                format!("labels must have the dtype of the logits, {}, got {}", logits.dtype, labels.dtype)
            };
            return Err(Error::dtype(message));
        }
        let [rows, _] = logits.shape[..] else {
            return Err(Error::shape("logits must have shape [rows, classes]"));
        };
        let per_row = Spec::new(logits.dtype, [rows]);
        let lse = Spec::new(statistics_dtype(logits.dtype), [rows]);
        Ok(Specs::from_iter([per_row, lse]))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (logits, labels) = (inputs[0].view(), inputs[1].view());
        let [loss, lse] = outputs else { return Err(Error::new(ErrorKind::Graph, "expected 2 outputs")) };
        if !self.sparse {
            norm::softmax_cross_entropy(logits, labels, loss.reborrow(), lse.reborrow());
            return Ok(());
        }
        norm::sparse_softmax_cross_entropy(logits, labels, loss.reborrow(), lse.reborrow())
            .map_err(|bad| Error::index(bad.to_string()))
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_merged(self)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }
}

impl RowRule for CrossEntropy {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let (_, rows) = call.first_rows()?;
        (rows.axis == 0).then(|| call.independent(&[Some(0); 2], &[Some(0); 2]))?
    }
}

impl Differentiable for CrossEntropy {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        Some(if wanted.has(0) { Saves::inputs([0, 1]) } else { Saves::INPUT })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut gradients = Gradients::from_elem(None, 2);
        let Some(g) = call.take_gradient(0) else { return Ok(gradients) };
        let logits = call.input(0)?;
        if call.wants(1) {
            gradients[1] = Some(mul(log_softmax(logits, -1)?, neg(expand_dims(&g, 1)?)?)?.into());
        }
        if call.wants(0) {
            let (labels, column) = (call.input(1)?, expand_dims(&g, 1)?);
            // The softmax is recomputed from the logits, not saved.
            gradients[0] = Some(if self.sparse {
                let scaled = mul(softmax(logits, -1)?, &column)?;
                subtract_along_axis(scaled, expand_dims(labels, 1)?, column, 1)?.into()
            } else {
                let predicted = mul(softmax(logits, -1)?, sum(labels, -1, true)?)?;
                mul(sub(predicted, labels)?, column)?.into()
            });
        }
        Ok(gradients)
    }
}

/// Inputs: logits and labels of one shape.
#[derive(Clone, Debug)]
struct SigmoidCrossEntropy;

impl Op for SigmoidCrossEntropy {
    fn name(&self) -> &'static str {
        "sigmoid_cross_entropy_with_logits"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (logits, labels) = (inputs[0], inputs[1]);
        if labels.shape != logits.shape {
            let message =
                format!("labels must have the shape of the logits, {}, got {}", logits.shape, labels.shape);
            return Err(Error::shape(message));
        }
        if labels.dtype != logits.dtype {
            return Err(Error::dtype(format!(
                "logits and labels must have the same dtype, got {} and {}",
                logits.dtype, labels.dtype
            )));
        }
        Ok(logits.clone().into())
    }

    /// `max(x, 0) - x * labels + log(1 + e^-|x|)`.
    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (x, out) = (inputs[0], &mut outputs[0]);
        let (dtype, shape) = (out.dtype(), out.shape());
        let strides = crate::Shape::from(shape).strides();
        elementwise::unary(Unary::Relu, x, out.reborrow());
        elementwise::binary(Binary::Mul, x, inputs[1], ViewMut::new(dtype, scratch, shape));
        let term = Arg::View(View::new(dtype, scratch, 0, shape, &strides));
        elementwise::binary(Binary::Sub, Arg::InPlace(0), term, out.reborrow());
        elementwise::unary(Unary::Abs, x, ViewMut::new(dtype, scratch, shape));
        elementwise::unary(Unary::Neg, Arg::InPlace(0), ViewMut::new(dtype, scratch, shape));
        elementwise::unary(Unary::Softplus, Arg::InPlace(0), ViewMut::new(dtype, scratch, shape));
        let term = Arg::View(View::new(dtype, scratch, 0, shape, &strides));
        elementwise::binary(Binary::Add, Arg::InPlace(0), term, out.reborrow());
        Ok(())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        inputs[0].bytes()
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_batched(self)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }
}

impl RowRule for SigmoidCrossEntropy {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let axis = Some(call.first_rows()?.1.axis);
        call.independent(&[axis; 2], &[axis])
    }
}

impl Differentiable for SigmoidCrossEntropy {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        Some(if wanted.has(0) { Saves::inputs([0, 1]) } else { Saves::INPUT })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut gradients = Gradients::from_elem(None, 2);
        let Some(g) = call.take_gradient(0) else { return Ok(gradients) };
        let logits = call.input(0)?;
        if call.wants(1) {
            gradients[1] = Some(neg(mul(&g, logits)?)?.into());
        }
        if call.wants(0) {
            gradients[0] = Some(mul(sub(sigmoid(logits)?, call.input(1)?)?, g)?.into());
        }
        Ok(gradients)
    }
}

/// Softmax cross-entropy, `-sum(labels * log_softmax(logits))` over the last axis. Labels and logits have the same shape
/// `[.., classes]`: one probability per class, and unnormalized log-probabilities.
///
/// ```
/// use taut_core::{Tensor, ops::nn::softmax_cross_entropy_with_logits};
/// let labels = Tensor::from_slice(&[1.0f64, 0.0], [1, 2])?;
/// let logits = Tensor::from_slice(&[3.0f64, 3.0], [1, 2])?;
/// let loss = softmax_cross_entropy_with_logits(&labels, &logits)?;
/// assert!((loss.item::<f64>()? - 2.0f64.ln()).abs() < 1e-15);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn softmax_cross_entropy_with_logits(
    labels: impl Into<Tensor>,
    logits: impl Into<Tensor>,
) -> Result<Tensor> {
    let (labels, logits) = (labels.into(), logits.into());
    let dtype = common_dtype("softmax_cross_entropy_with_logits", [&labels, &logits])?;
    CrossEntropy { sparse: false }.apply(cast(logits, dtype)?, cast(labels, dtype)?)
}

/// Softmax cross-entropy with class indices as labels: `-log_softmax(logits)[label]` for each row of `[.., classes]`.
/// Labels must be in `[0, classes)`.
#[track_caller]
pub fn sparse_softmax_cross_entropy_with_logits(
    labels: impl Into<Tensor>,
    logits: impl Into<Tensor>,
) -> Result<Tensor> {
    let labels = labels.into();
    let labels = match labels.dtype() {
        dtype if dtype.is_integer() && dtype != DType::I32 => cast(labels, DType::I64)?,
        _ => labels,
    };
    CrossEntropy { sparse: true }.apply(logits.into(), labels)
}

/// Elementwise binary cross-entropy of labels and `sigmoid(logits)`, computed as
/// `max(x, 0) - x * labels + log(1 + e^-|x|)`, which does not overflow.
#[track_caller]
pub fn sigmoid_cross_entropy_with_logits(
    labels: impl Into<Tensor>,
    logits: impl Into<Tensor>,
) -> Result<Tensor> {
    let (labels, logits, at) = (labels.into(), logits.into(), Location::caller());
    let with_context = |e: Error| {
        let specs = [labels.spec(), logits.spec()];
        e.in_op("sigmoid_cross_entropy_with_logits", specs).at(at)
    };
    if labels.shape() != logits.shape() {
        let message =
            format!("labels must have the shape of the logits, {}, got {}", logits.shape(), labels.shape());
        return Err(with_context(Error::shape(message)));
    }
    if !logits.dtype().is_float() {
        let message = format!("logits must be floats, got {}", logits.dtype());
        return Err(with_context(Error::dtype(message)).help("cast them to a float dtype"));
    }
    // The terms cancel, which 16-bit floats are not precise enough for.
    let dtype = common_dtype("sigmoid_cross_entropy_with_logits", [&labels, &logits])?;
    let wide = promote(dtype, DType::F32)?;
    let (labels, logits) = (cast(labels, wide)?, cast(logits, wide)?);
    let loss = apply_at(&SigmoidCrossEntropy, &mut [logits, labels], at)?.swap_remove(0);
    cast(loss, dtype)
}

const PARAMS: &[Param] = &[Param::tensor("labels"), Param::tensor("logits")];

fn dense_samples() -> Vec<Vec<ArgValue>> {
    let shapes: [&[usize]; 5] = [&[3], &[2, 3], &[2, 1, 4], &[0, 3], &[2, 3, 5]];
    let with = |dtype| shapes.map(|s| vec![ramp(dtype, s, 0.0, 1.0), ramp(dtype, s, -6.0, 6.0)]);
    dtypes::FLOATS.iter().flat_map(|&dtype| with(dtype)).collect()
}

fn sparse_samples() -> Vec<Vec<ArgValue>> {
    let shapes: [&[usize]; 4] = [&[3], &[4, 3], &[2, 2, 4], &[0, 3]];
    let with = |labels, dtype, shape: &[usize]| {
        vec![ramp(labels, &shape[..shape.len() - 1], 0.0, 2.9), ramp(dtype, shape, -6.0, 6.0)]
    };
    let mut samples: Vec<_> =
        dtypes::FLOATS.iter().flat_map(|&dtype| shapes.map(|s| with(DType::I32, dtype, s))).collect();
    samples.extend(dtypes::INTEGERS.iter().map(|&labels| with(labels, DType::F32, &[4, 3])));
    samples
}

fn invalid_dense() -> Vec<InvalidArgs> {
    let with = |labels: &[usize], dtype, logits: &[usize]| {
        vec![ramp(dtype, labels, 0.0, 1.0), ramp(dtype, logits, 0.0, 1.0)]
    };
    vec![
        InvalidArgs::new(
            with(&[2, 3], DType::F32, &[3]),
            ErrorKind::Shape,
            "labels must have shape [3] for logits [3], got [2, 3]",
        ),
        InvalidArgs::new(
            with(&[], DType::F32, &[]),
            ErrorKind::Shape,
            "must have shape [.., classes], got a scalar",
        ),
        InvalidArgs::new(with(&[3], DType::I32, &[3]), ErrorKind::DType, "logits must be floats, got int32"),
    ]
}

fn invalid_sparse() -> Vec<InvalidArgs> {
    let logits = || ramp(DType::F32, &[2, 3], 0.0, 1.0);
    let labels = |values: &[f64]| of(DType::I64, &[values.len()], values);
    let floats = ramp(DType::F32, &[2], 0.0, 1.0);
    vec![
        InvalidArgs::new(
            vec![labels(&[0.0, 3.0]), logits()],
            ErrorKind::Index,
            "label 3 of row 1 is outside 0..3",
        ),
        InvalidArgs::new(
            vec![labels(&[-1.0, 0.0]), logits()],
            ErrorKind::Index,
            "label -1 of row 0 is outside 0..3",
        ),
        InvalidArgs::new(
            vec![labels(&[0.0]), logits()],
            ErrorKind::Shape,
            "labels must have shape [2] for logits [2, 3], got [1]",
        ),
        InvalidArgs::new(vec![floats, logits()], ErrorKind::DType, "labels must be integers, got float32"),
    ]
}

fn invalid_sigmoid() -> Vec<InvalidArgs> {
    let with = |labels: &[usize], dtype| vec![ramp(dtype, labels, 0.0, 1.0), ramp(dtype, &[3], 0.0, 1.0)];
    vec![
        InvalidArgs::new(
            with(&[2], DType::F32),
            ErrorKind::Shape,
            "labels must have the shape of the logits, [3], got [2]",
        ),
        InvalidArgs::new(with(&[3], DType::I32), ErrorKind::DType, "logits must be floats, got int32"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "softmax_cross_entropy_with_logits",
        PARAMS,
        |a| one(softmax_cross_entropy_with_logits(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy(
            "-np.sum(labels * sp.log_softmax(logits.astype(np.float64), -1), -1).astype(logits.dtype)",
        ),
        Samples::List(dense_samples),
    )
    .refuses(invalid_dense),
    OpEntry::new(
        "sparse_softmax_cross_entropy_with_logits",
        PARAMS,
        |a| one(sparse_softmax_cross_entropy_with_logits(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy(
            "-np.take_along_axis(sp.log_softmax(logits.astype(np.float64), -1), \
             labels.astype(np.int64)[..., None], -1)[..., 0].astype(logits.dtype)",
        ),
        Samples::List(sparse_samples),
    )
    .refuses(invalid_sparse),
    OpEntry::new(
        "sigmoid_cross_entropy_with_logits",
        PARAMS,
        |a| one(sigmoid_cross_entropy_with_logits(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy(
            "[z := labels.astype(np.float64), x := logits.astype(np.float64), \
             (-z * np.log(sp.expit(x)) - (1 - z) * np.log(sp.expit(-x))).astype(logits.dtype)][-1]",
        ),
        Samples::List(dense_samples),
    )
    .refuses(invalid_sigmoid),
];
