//! Histograms of integers.

use super::segment::Segments;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::TracingSuspension;
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::creation::ones;
use crate::ops::index::gather_dense;
use crate::ops::indices::{check_integers, integer_item};
use crate::ops::reduce::max;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply};
use taut_kernels::index::{self, Empty, Segment};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct Bincount {
    bins: usize,
}

impl Op for Bincount {
    fn name(&self) -> &'static str {
        "bincount"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check(inputs[0], inputs.get(1).copied())?;
        let dtype = inputs.get(1).map_or(DType::I64, |weights| weights.dtype);
        Ok(Spec::new(dtype, [self.bins]).into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        Ok(index::bincount(inputs[0].view(), inputs.get(1).map(Arg::view), false, outputs[0].reborrow())?)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        // The segment sum of the weights (ones without weights), with the elements as segment ids.
        let [x, weights] = match call.inputs {
            [x, weights] => [x.clone(), weights.clone()],
            _ => [call.inputs[0].clone(), ones(call.inputs[0].shape().clone(), DType::I64)?],
        };
        let mapped = [call.mapped[call.mapped.len() - 1], call.mapped[0]];
        let sums = Segments {
            name: "unsorted_segment_sum",
            code: Segment::Sum,
            count: self.bins,
            sorted: false,
            empty: Empty::Zero,
        };
        sums.vmap(&VmapCall { inputs: &[weights, x], mapped: &mapped, size: call.size })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("bins={}", self.bins)
    }
}

impl RowRule for Bincount {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let axis = Some(call.first_rows()?.1.axis);
        call.independent(&vec![axis; call.inputs.len()], &[None])
    }
}

impl Differentiable for Bincount {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        // Counts are not differentiable; sums of weights are, in the weights.
        wanted.has(1).then_some(Saves::INPUT)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut gradients = Gradients::new();
        if let Some(g) = call.take_gradient(0)
            && call.wants(1)
        {
            gradients.extend([None, Some(gather_dense(g, call.input(0)?, 0)?.into())]);
        }
        Ok(gradients)
    }
}

fn check(x: &Spec, weights: Option<&Spec>) -> Result<()> {
    check_integers("elements", x)?;
    if let Some(weights) = weights {
        if weights.dtype == DType::Bool {
            return Err(Error::dtype("weights must be numbers, got bool").help("cast them first"));
        }
        if weights.shape != x.shape {
            let message = format!("weights must have the shape of x, {}, got {}", x.shape, weights.shape);
            return Err(Error::shape(message));
        }
    }
    Ok(())
}

/// Counts the occurrences of each integer from 0 to the maximum (`int64`), or sums `weights` per integer, in their dtype.
///
/// The result has `max(max(x) + 1, minlength)` elements; a negative integer is an error. Differentiable in the weights.
///
/// ```
/// use taut_core::{Tensor, ops::index::bincount};
/// let x = Tensor::from_slice(&[1, 3, 1], [3])?;
/// assert_eq!(bincount(&x, None, 0)?.to_vec::<i64>()?, [0, 2, 0, 1]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn bincount(x: impl Into<Tensor>, weights: Option<&Tensor>, minlength: usize) -> Result<Tensor> {
    let (x, at) = (x.into(), Location::caller());
    let bins = bins(&x, weights, minlength).map_err(|error| {
        error.in_op("bincount", [x.spec()].into_iter().chain(weights.map(Tensor::spec))).at(at)
    })?;
    match weights {
        None => apply(&Bincount { bins }, [x]),
        Some(weights) => apply(&Bincount { bins }, [x, weights.clone()]),
    }
}

#[track_caller]
fn bins(x: &Tensor, weights: Option<&Tensor>, minlength: usize) -> Result<usize> {
    check(x.spec(), weights.map(Tensor::spec))?;
    if x.is_empty() {
        return Ok(minlength);
    }
    if x.is_traced() {
        return Err(Error::dynamic_shape(x.spec()));
    }
    // The value is known, also while tracing.
    let suspended = TracingSuspension::enter();
    let largest = integer_item(&max(x, None::<&[isize]>, false)?)?;
    drop(suspended);
    let needed = usize::try_from(largest.max(-1) + 1)
        .map_err(|_| Error::shape(format!("the number of bins for the maximum {largest} overflows")))?;
    Ok(needed.max(minlength))
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "bincount",
    &[
        Param::tensor("x"),
        Param::optional("weights", ParamKind::Tensor, "None"),
        Param::optional("minlength", ParamKind::Int, "0"),
    ],
    |a| {
        let least = a.int_or(2)?.unwrap_or(0);
        let least = usize::try_from(least)
            .map_err(|_| Error::value(format!("minlength must be >= 0, got {least}")))?;
        one(bincount(a.tensor(0)?, a.tensor_or(1)?.as_ref(), least))
    },
    // NumPy's bincount takes one-dimensional signed integers only.
    Reference::Numpy(
        "(lambda b: b if weights is None else b.astype(weights.dtype))(np.bincount(x.ravel().astype(np.int64), None if \
         weights is None else weights.ravel(), minlength or 0))",
    ),
    Samples::List(|| {
        let mut list = Vec::new();
        for &dtype in dtypes::INTEGERS {
            for (shape, minlength) in [(&[][..], 0), (&[0], 3), (&[0], 0), (&[20], 0), (&[2, 3, 4], 12)] {
                let weights = ramp(DType::F64, shape, -1.0, 1.0);
                for weights in [ArgValue::None, weights] {
                    list.push(vec![ramp(dtype, shape, 0.0, 9.0), weights, ArgValue::Int(minlength)]);
                }
            }
        }
        for &dtype in dtypes::NUMBERS {
            let weights = ramp(dtype, &[6], 0.0, 5.0);
            list.push(vec![ramp(DType::I32, &[6], 0.0, 3.0), weights, ArgValue::Int(0)]);
        }
        list
    }),
)
.refuses(|| {
    let bad = |x: ArgValue, weights, minlength, kind, message| {
        InvalidArgs::new(vec![x, weights, ArgValue::Int(minlength)], kind, message)
    };
    let x = || ramp(DType::I32, &[3], 0.0, 3.0);
    let negative = |values: &[f64]| of(DType::I64, &[values.len()], values);
    let bools = ramp(DType::Bool, &[3], 0.0, 1.0);
    let few = ramp(DType::F32, &[2], 0.0, 1.0);
    vec![
        bad(ramp(DType::F32, &[3], 0.0, 1.0), ArgValue::None, 0, ErrorKind::DType, "elements must be integers, got float32"),
        bad(negative(&[1.0, -1.0]), ArgValue::None, 0, ErrorKind::Index, "got -1 at position 1"),
        bad(negative(&[-5.0]), ArgValue::None, 0, ErrorKind::Index, "got -5 at position 0"),
        bad(negative(&[9e18]), ArgValue::None, 0, ErrorKind::Shape, "more elements than memory has addresses"),
        bad(x(), bools, 0, ErrorKind::DType, "weights must be numbers, got bool"),
        bad(x(), few, 0, ErrorKind::Shape, "must have the shape of x, [3], got [2]"),
        bad(x(), ArgValue::None, -1, ErrorKind::Value, "minlength must be >= 0, got -1"),
    ]
})
.with_data_dependent_shape()];
