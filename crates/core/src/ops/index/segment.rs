//! Segment reductions with sorted ids.

use crate::error::{Error, ErrorKind, Result};
use crate::graph::TracingSuspension;
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::binary::{
    add, div, equal, greater_equal, less, less_equal, logical_and, maximum, mul, where_,
};
use crate::ops::creation::ones;
use crate::ops::index::{
    gather_dense, keep_bits, pack_bits, unpack_bits, unsorted_segment_prod, unsorted_segment_sum,
};
use crate::ops::indices::{check_integers, integer_item, steps};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::{moveaxis, reshape_to, slice};
use crate::ops::unary::cast;
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::rows::{RowAxis, RowCall, RowRule, RowSplit};
use crate::shape::Shape;
use crate::{DType, Differentiable, Gradients, Index, Outputs, Saves, Set, Tensor, VjpCall, apply};
use taut_kernels::index::{self, Empty, Segment};
use taut_kernels::norm::statistics_dtype;
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

#[derive(Clone, Debug)]
pub(super) struct Segments {
    pub(super) name: &'static str,
    pub(super) code: Segment,
    pub(super) count: usize,
    pub(super) sorted: bool,
    pub(super) empty: Empty,
}

impl Segments {
    fn shape(&self, data: &Shape, ids: &Shape) -> Shape {
        std::iter::once(self.count).chain(data[ids.rank()..].iter().copied()).collect()
    }

    /// The reciprocal size of every segment, in a shape that broadcasts against the result.
    fn inverse_counts(&self, ids: &Tensor, result: &Shape, dtype: DType) -> Result<Tensor> {
        let counts =
            unsorted_segment_sum(ones(ids.shape().clone(), statistics_dtype(dtype))?, ids, self.count)?;
        let inverse = cast(div(1.0, maximum(counts, 1.0)?)?, dtype)?;
        reshape_to(inverse, &std::iter::once(self.count).chain(vec![1; result.rank() - 1]).collect())
    }

    /// The gradient of products: the product of the other elements of the segment, correct also where elements are zero.
    fn product_gradient(&self, call: &VjpCall<'_>, g: Tensor) -> Result<Tensor> {
        let (data, ids, product) = (call.input(0)?, call.input(1)?, call.output(0)?);
        let zero = equal(data, 0.0)?;
        let zeros = unsorted_segment_sum(cast(&zero, DType::I64)?, ids, self.count)?;
        let divisors = where_(&zero, 1.0, data)?;
        let without = gather_dense(unsorted_segment_prod(&divisors, ids, self.count)?, ids, 0)?;
        let others = where_(zero, without, div(gather_dense(product, ids, 0)?, divisors)?)?;
        // With two zeros in a segment, the product of the others is always zero.
        let g = where_(less_equal(zeros, 1)?, g, 0.0)?;
        mul(gather_dense(g, ids, 0)?, others)
    }
}

impl Op for Segments {
    fn name(&self) -> &'static str {
        self.name
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (data, ids) = (inputs[0], inputs[1]);
        check_integers("segment ids", ids)?;
        if data.dtype == DType::Bool {
            return Err(Error::dtype("bool is not supported").help("cast to a number dtype first"));
        }
        if data.dtype.is_complex() && !matches!(self.code, Segment::Sum | Segment::Mean) {
            return Err(Error::dtype(format!("{} is not supported", data.dtype)));
        }
        if self.sorted && ids.shape.rank() != 1 {
            let message = format!("sorted segment ids must have rank 1, got shape {}", ids.shape);
            return Err(Error::shape(message));
        }
        if !data.shape.starts_with(&ids.shape) {
            let message = format!(
                "the shape of segment ids must be a prefix of the shape of data, got {} and {}",
                ids.shape, data.shape
            );
            return Err(Error::shape(message));
        }
        let shape = self.shape(&data.shape, &ids.shape);
        // The scratch buffer has eight bytes per segment, also if rows have no elements.
        if shape.checked_len().is_none() || self.count > isize::MAX as usize / 8 {
            return Err(Error::shape(format!("{} segments exceed the address space", self.count)));
        }
        Ok(Spec { dtype: data.dtype, shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (data, ids, out) = (inputs[0].view(), inputs[1].view(), outputs[0].reborrow());
        Ok(index::segment(self.code, data, ids, self.sorted, self.empty, out, scratch)?)
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        index::segment_scratch(inputs[0].dtype, &self.shape(&inputs[0].shape, &inputs[1].shape))
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        if !call.mapped[1] {
            // The batch axis goes behind the segmented axes.
            let rows = moveaxis(&call.inputs[0], &[0], &[call.shape(1).rank() as isize])?;
            return single_output(moveaxis(apply(self, [rows, call.inputs[1].clone()])?, &[1], &[0]));
        }
        // The number of sorted segments was read from the ids, so it may differ between examples: no rule.
        let Some(count) = self.count.checked_mul(call.size).filter(|_| !self.sorted) else { return Ok(None) };
        let shape: Shape = call.batched_shape(&self.shape(&call.shape(0), &call.shape(1)));
        // Every example has its own range of segments. An id out of range must not fall into another example's.
        let ids = cast(&call.inputs[1], DType::I64)?;
        let column: Shape = (0..ids.rank()).map(|axis| if axis == 0 { call.size } else { 1 }).collect();
        let own = add(&ids, reshape_to(steps(call.size, self.count)?, &column)?)?;
        let inside = logical_and(greater_equal(&ids, 0)?, less(ids, self.count as i64)?)?;
        let ids = where_(inside, own, -1)?;
        single_output(reshape_to(
            apply(&Segments { count, ..self.clone() }, [call.batched_input(0)?, ids])?,
            &shape,
        ))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("segments={}", self.count)
    }
}

impl RowRule for Segments {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let (input, RowAxis { axis, .. }) = call.first_rows()?;
        let lead = call.inputs[1].shape.rank();
        if axis >= lead {
            return if input == 0 {
                call.independent(&[Some(axis), None], &[Some(axis - lead + 1)])
            } else {
                None
            };
        }
        let sums = self.code == Segment::Sum && self.empty == Empty::Zero;
        if sums { call.independent(&[Some(axis); 2], &[None]) } else { None }
    }
}

impl Differentiable for Segments {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let ids = Saves::inputs([1]);
        Some(match self.code {
            Segment::Sum | Segment::Mean => ids,
            Segment::Max | Segment::Min => ids.and(Saves::residual_of([0, 1])),
            Segment::Prod => ids.and(Saves::INPUT).and(Saves::OUTPUT),
        })
    }

    /// For max and min: the mask of elements that equal the extremum.
    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        let extrema = gather_dense(call.output(0)?, call.input(1)?, 0)?;
        pack_bits(equal(call.input(0)?, extrema)?).map(Some)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let ids = call.input(1)?;
            match self.code {
                Segment::Sum => gather_dense(g, ids, 0),
                Segment::Mean => {
                    let inverse_counts = self.inverse_counts(ids, g.shape(), g.dtype())?;
                    gather_dense(mul(g, inverse_counts)?, ids, 0)
                }
                Segment::Max | Segment::Min => {
                    // Equal extrema share the gradient.
                    let (bits, dtype) = (call.residual()?, g.dtype());
                    let chosen =
                        cast(unpack_bits(bits, call.input_shape(0).clone())?, statistics_dtype(dtype))?;
                    let count = maximum(unsorted_segment_sum(chosen, ids, self.count)?, 1.0)?;
                    keep_bits(gather_dense(div(g, cast(count, dtype)?)?, ids, 0)?, bits, false)
                }
                Segment::Prod => self.product_gradient(call, g),
            }
        })
    }
}

/// Applies a reduction of sorted segments; the last id gives their number.
#[track_caller]
fn segment(
    name: &'static str,
    code: Segment,
    empty: Empty,
    data: impl Into<Tensor>,
    ids: impl Into<Tensor>,
) -> Result<Tensor> {
    let (data, ids, at) = (data.into(), ids.into(), Location::caller());
    let count = count(&ids).map_err(|error| error.in_op(name, [data.spec(), ids.spec()]).at(at))?;
    apply(&Segments { name, code, count, sorted: true, empty }, [data, ids])
}

#[track_caller]
fn count(ids: &Tensor) -> Result<usize> {
    if ids.rank() != 1 || ids.is_empty() || !ids.dtype().is_integer() {
        // No id to read; `infer` reports the error.
        return Ok(0);
    }
    if ids.is_traced() {
        return Err(Error::dynamic_shape(ids.spec()));
    }
    // Concrete ids are readable during tracing too.
    let suspended = TracingSuspension::enter();
    let last = integer_item(&slice(ids, &[Index::At(-1)])?)?;
    drop(suspended);
    // The kernel, which reads all ids, rejects negative ones.
    usize::try_from(last.max(-1) + 1)
        .map_err(|_| Error::shape(format!("the number of segments for the last id {last} overflows")))
}

/// Sums the rows of `data` with equal ids: row `i` of the result reduces those with id `i`. Ids must be sorted; an id
/// that does not occur gives zero.
///
/// ```
/// use taut_core::{Tensor, ops::index::segment_sum};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [4])?;
/// let ids = Tensor::from_slice(&[0, 0, 2, 2], [4])?;
/// assert_eq!(segment_sum(&x, &ids)?.to_vec::<i32>()?, [3, 0, 7]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn segment_sum(data: impl Into<Tensor>, segment_ids: impl Into<Tensor>) -> Result<Tensor> {
    segment("segment_sum", Segment::Sum, Empty::Zero, data, segment_ids)
}

/// The mean of the rows of `data` with equal ids: row `i` of the result reduces those with id `i`. Ids must be sorted; an
/// id that does not occur gives zero.
#[track_caller]
pub fn segment_mean(data: impl Into<Tensor>, segment_ids: impl Into<Tensor>) -> Result<Tensor> {
    segment("segment_mean", Segment::Mean, Empty::Zero, data, segment_ids)
}

/// The product of the rows of `data` with equal ids: row `i` of the result reduces those with id `i`. Ids must be sorted;
/// an id that does not occur gives one.
#[track_caller]
pub fn segment_prod(data: impl Into<Tensor>, segment_ids: impl Into<Tensor>) -> Result<Tensor> {
    segment("segment_prod", Segment::Prod, Empty::Identity, data, segment_ids)
}

/// The maximum of the rows of `data` with equal ids: row `i` of the result reduces those with id `i`. Ids must be sorted;
/// an id that does not occur gives zero.
#[track_caller]
pub fn segment_max(data: impl Into<Tensor>, segment_ids: impl Into<Tensor>) -> Result<Tensor> {
    segment("segment_max", Segment::Max, Empty::Zero, data, segment_ids)
}

/// The minimum of the rows of `data` with equal ids: row `i` of the result reduces those with id `i`. Ids must be sorted;
/// an id that does not occur gives zero.
#[track_caller]
pub fn segment_min(data: impl Into<Tensor>, segment_ids: impl Into<Tensor>) -> Result<Tensor> {
    segment("segment_min", Segment::Min, Empty::Zero, data, segment_ids)
}

const PARAMS: &[Param] = &[Param::tensor("data"), Param::tensor("segment_ids")];

fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], &[f64]); 7] = [
        (&[0], &[]),
        (&[1], &[0.0]),
        (&[5], &[0.0, 0.0, 1.0, 1.0, 1.0]),
        (&[4], &[1.0, 3.0, 3.0, 4.0]),
        (&[3, 2], &[0.0, 2.0, 2.0]),
        (&[4, 2, 3], &[0.0, 0.0, 0.0, 1.0]),
        (&[2, 0], &[0.0, 1.0]),
    ];
    let with = |dtype, id| cases.map(|(x, ids)| vec![ramp(dtype, x, -4.0, 4.0), of(id, &[ids.len()], ids)]);
    let mut list: Vec<_> = dtypes::NUMBERS.iter().flat_map(|&dtype| with(dtype, DType::I64)).collect();
    list.extend(with(DType::F32, DType::U8));
    list.extend(with(DType::F32, DType::I32));
    list
}

fn invalid() -> Vec<InvalidArgs> {
    let data = |shape: &[usize]| ramp(DType::F32, shape, 0.0, 1.0);
    let ids = |values: &[f64]| of(DType::I64, &[values.len()], values);
    let bad = |data, ids, kind, message| InvalidArgs::new(vec![data, ids], kind, message);
    vec![
        bad(data(&[2]), data(&[2]), ErrorKind::DType, "segment ids must be integers, got float32"),
        bad(ramp(DType::Bool, &[2], 0.0, 1.0), ids(&[0.0, 1.0]), ErrorKind::DType, "bool is not supported"),
        bad(
            data(&[3]),
            ids(&[0.0, 2.0, 1.0]),
            ErrorKind::Index,
            "segment ids must be sorted, but the one at position 2",
        ),
        bad(
            data(&[2]),
            ids(&[-1.0, 0.0]),
            ErrorKind::Index,
            "segment ids must be in [0, 1), got -1 at position 0",
        ),
        bad(data(&[2]), ids(&[-2.0, -2.0]), ErrorKind::Index, "got -2 at position 0"),
        bad(
            data(&[3]),
            ids(&[0.0, 1.0]),
            ErrorKind::Shape,
            "must be a prefix of the shape of data, got [2] and [3]",
        ),
        bad(
            data(&[]),
            ids(&[0.0]),
            ErrorKind::Shape,
            "must be a prefix of the shape of data, got [1] and []",
        ),
        bad(
            data(&[1, 2]),
            of(DType::I64, &[1, 2], &[0.0, 1.0]),
            ErrorKind::Shape,
            "segment ids must have rank 1, got shape [1, 2]",
        ),
        bad(data(&[1]), ids(&[9e18]), ErrorKind::Shape, "segments exceed the address space"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "segment_sum",
        PARAMS,
        |a| one(segment_sum(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy(
            "(lambda n: np.array([data[segment_ids == i].sum(0, dtype=data.dtype) for i in \
             range(n)]).reshape((n,) + data.shape[1:]).astype(data.dtype))(([-1] + segment_ids.tolist())[-1] + \
             1)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid)
    .with_data_dependent_shape(),
    OpEntry::new(
        "segment_mean",
        PARAMS,
        |a| one(segment_mean(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy(
            "(lambda n: np.array([data[segment_ids == i].sum(0, dtype=np.float64) / max((segment_ids == \
             i).sum(), 1) for i in range(n)]).reshape((n,) + data.shape[1:]).astype(data.dtype))(([-1] + \
             segment_ids.tolist())[-1] + 1)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid)
    .with_data_dependent_shape(),
    OpEntry::new(
        "segment_prod",
        PARAMS,
        |a| one(segment_prod(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy(
            "(lambda n: np.array([data[segment_ids == i].prod(0, dtype=data.dtype) for i in \
             range(n)]).reshape((n,) + data.shape[1:]).astype(data.dtype))(([-1] + segment_ids.tolist())[-1] + \
             1)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid)
    .with_data_dependent_shape(),
    OpEntry::new(
        "segment_max",
        PARAMS,
        |a| one(segment_max(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy(
            "(lambda n: np.array([data[segment_ids == i].max(0) if (segment_ids == i).any() else \
             np.zeros(data.shape[1:]) for i in range(n)]).reshape((n,) + \
             data.shape[1:]).astype(data.dtype))(([-1] + segment_ids.tolist())[-1] + 1)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid)
    .with_data_dependent_shape(),
    OpEntry::new(
        "segment_min",
        PARAMS,
        |a| one(segment_min(a.tensor(0)?, a.tensor(1)?)),
        Reference::Numpy(
            "(lambda n: np.array([data[segment_ids == i].min(0) if (segment_ids == i).any() else \
             np.zeros(data.shape[1:]) for i in range(n)]).reshape((n,) + \
             data.shape[1:]).astype(data.dtype))(([-1] + segment_ids.tolist())[-1] + 1)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid)
    .with_data_dependent_shape(),
];
