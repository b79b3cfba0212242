//! Distinct values.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::TracingSuspension;
use crate::op::{Op, Spec, Specs};
use crate::ops::binary::{div, maximum, mul};
use crate::ops::creation::ones;
use crate::ops::index::{gather_dense, unsorted_segment_sum};
use crate::ops::sample::dtypes;
use crate::ops::shape::{identity, slice};
use crate::ops::unary::cast;
use crate::ops::{OpEntry, Param, Reference, Samples};
use crate::{DType, Differentiable, Gradients, Saves, Set, Shape, Tensor, VjpCall, apply_many, s};
use taut_kernels::norm::statistics_dtype;
use taut_kernels::{Arg, ViewMut, sort};
use taut_memory::Location;

/// Values and counts have the size of the input, and the last output is the number of distinct values, so that one sort
/// computes all outputs.
#[derive(Clone, Debug)]
struct Unique;

impl Op for Unique {
    fn name(&self) -> &'static str {
        "unique"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        let capacity = Shape::from([shape.len()]);
        let indices = |shape| Spec { dtype: DType::I64, shape };
        let values = Spec { dtype: *dtype, shape: capacity.clone() };
        Ok([values, indices(shape.clone()), indices(capacity), indices(Shape::scalar())]
            .into_iter()
            .collect())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let [values, inverse, counts, number] = outputs else {
            return Err(Error::new(ErrorKind::Graph, format!("expected 4 outputs, got {}", outputs.len())));
        };
        let x = inputs[0].view();
        let count = sort::unique_count(x, scratch);
        number.slice::<i64>()[0] = count as i64;
        // The elements beyond the distinct values are not read, but must be deterministic.
        values.bytes().fill(0);
        counts.bytes().fill(0);
        let (inverse, counts) = (Some(inverse.reborrow()), Some(counts.reborrow()));
        sort::unique_fill(
            x,
            scratch,
            sort::Unique { values: values.reborrow(), first: None, inverse, counts },
        );
        Ok(())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        // Includes a copy of the input, needed if it is not contiguous.
        inputs[0].shape.len().saturating_mul(8 + inputs[0].dtype.size())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for Unique {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::outputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            // Equal elements share the gradient of their value.
            let inverse = call.output(1)?;
            let counts = unsorted_segment_sum(
                ones(inverse.shape().clone(), statistics_dtype(g.dtype()))?,
                inverse,
                g.len(),
            )?;
            let share = cast(div(1.0, maximum(counts, 1.0)?)?, g.dtype())?;
            gather_dense(mul(g, share)?, inverse, 0)
        })
    }
}

/// The distinct values in ascending order, for each element the index of its value, and the count of each value (both
/// `int64`). NaNs come last, and none of them is equal to another.
///
/// ```
/// use taut_core::{Tensor, ops::index::unique};
/// let (values, inverse, counts) = unique(Tensor::from_slice(&[5, 2, 5], [3])?)?;
/// assert_eq!(values.to_vec::<i32>()?, [2, 5]);
/// assert_eq!(inverse.to_vec::<i64>()?, [1, 0, 1]);
/// assert_eq!(counts.to_vec::<i64>()?, [1, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn unique(x: impl Into<Tensor>) -> Result<(Tensor, Tensor, Tensor)> {
    let (x, at) = (x.into(), Location::caller());
    let spec = x.spec().clone();
    if x.is_traced() {
        return Err(Error::dynamic_shape(&spec).in_op("unique", [&spec]).at(at));
    }
    // The value is known, also while tracing.
    let _suspended = TracingSuspension::enter();
    let outputs = apply_many(&Unique, vec![x])?;
    let number = outputs[3].item::<i64>().map_err(|error| error.in_op("unique", [&spec]).at(at))?;
    Ok((take_first(&outputs[0], number)?, outputs[1].clone(), take_first(&outputs[2], number)?))
}

/// The first `count` elements.
#[track_caller]
fn take_first(all: &Tensor, count: i64) -> Result<Tensor> {
    let part = slice(all, &s![..count as isize])?;
    // A copy: a view would keep the whole buffer alive.
    if part.len() < all.len() { identity(part) } else { Ok(part) }
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "unique",
    Param::X,
    |a| {
        let (values, inverse, counts) = unique(a.tensor(0)?)?;
        Ok(vec![values, inverse, counts])
    },
    Reference::Numpy(
        "(lambda u, i, c: (u, i.reshape(x.shape), c))(*np.unique(x, return_inverse=True, return_counts=True, equal_nan=False))",
    ),
    Samples::Unary(dtypes::ALL, -3.0, 3.0),
)
.with_data_dependent_shape()];
