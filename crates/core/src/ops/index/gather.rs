//! Gathering of slices and elements by index.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::along_axis::add_along_axis;
use crate::ops::index::tensor_scatter_add;
use crate::ops::indices::{
    add_slices, check_batch, check_coordinates, check_integers, prepend_batch_coordinate, read_cost,
    sum_or_zeros, sum_slices,
};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::{moveaxis, reshape_to};
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowAxis, RowCall, RowClass, RowRule, RowSplit};
use crate::shape::Shape;
use crate::{DType, Differentiable, Gradients, IndexedSlices, Outputs, Saves, Set, Tensor, VjpCall, apply};
use taut_kernels::{Arg, ViewMut, index};

#[derive(Clone, Debug)]
struct Gather {
    axis: isize,
    batch_dims: isize,
    /// Whether the gradient is always dense; otherwise it is sparse along the first axis.
    dense: bool,
}

impl Gather {
    fn resolve(&self, x: &Shape, indices: &Shape) -> Result<(usize, usize)> {
        let axis = x.axis(self.axis)?;
        let batch = check_batch(x, indices, self.batch_dims)?;
        if axis < batch {
            return Err(Error::new(
                ErrorKind::Axis,
                format!("axis must be >= batch_dims, got axis {axis} and batch_dims {batch}"),
            ));
        }
        Ok((axis, batch))
    }
}

impl Op for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (x, indices) = (&inputs[0].shape, &inputs[1].shape);
        check_integers("indices", inputs[1])?;
        let (axis, batch) = self.resolve(x, indices)?;
        let shape = [&x[..axis], &indices[batch..], &x[axis + 1..]].into_iter().flatten().copied().collect();
        Ok(Spec { dtype: inputs[0].dtype, shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (x, indices) = (inputs[0].view(), inputs[1].view());
        let (axis, batch) = self.resolve(&x.shape().into(), &indices.shape().into())?;
        Ok(index::gather(x, indices, axis, batch, outputs[0].reborrow())?)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        read_cost(inputs[1], &outputs[0])
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let (axis, batch) = self.resolve(&call.shape(0), &call.shape(1))?;
        let along = |axis: usize, batch: usize| Gather {
            axis: axis as isize,
            batch_dims: batch as isize,
            dense: self.dense,
        };
        match call.mapped {
            [false, _] if batch == 0 => {
                // The batch axis of the indices replaces the gathered axis.
                let taken = apply(&along(axis, 0), [call.inputs[0].clone(), call.inputs[1].clone()])?;
                single_output(if axis == 0 { Ok(taken) } else { moveaxis(taken, &[axis as isize], &[0]) })
            }
            [_, false] if batch == 0 => call.apply_as_is(&along(axis + 1, 0)),
            _ => call.apply_batched(&along(axis + 1, batch + 1)),
        }
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axis={}, batch_dims={}", self.axis, self.batch_dims)
    }
}

impl RowRule for Gather {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let (x, indices) = (&call.inputs[0].shape, &call.inputs[1].shape);
        let (axis, batch) = self.resolve(x, indices).ok()?;
        if let (None, Some(wanted)) = (call.first_rows(), call.wanted) {
            return wanted_rows(call, wanted, (batch, axis));
        }
        let (input, RowAxis { axis: rows, .. }) = call.first_rows()?;
        match input {
            _ if rows < batch => call.independent(&[Some(rows); 2], &[Some(rows)]),
            0 if rows == axis => None,
            0 if rows < axis => call.independent(&[Some(rows), None], &[Some(rows)]),
            0 => call.independent(&[Some(rows), None], &[Some(rows - 1 + indices.rank() - batch)]),
            _ => call.independent(&[None, Some(rows)], &[Some(axis + rows - batch)]),
        }
    }
}

/// How a part computes rows that are wanted of the result, of inputs that are the same for all parts.
fn wanted_rows(call: &RowCall<'_>, wanted: RowAxis, (batch, axis): (usize, usize)) -> Option<RowSplit> {
    let index_axes = call.inputs[1].shape.rank() - batch;
    let (x, indices) = match wanted.axis {
        rows if rows < batch => (Some(rows), Some(rows)),
        rows if rows < axis => (Some(rows), None),
        rows if rows < axis + index_axes => (None, Some(rows - axis + batch)),
        rows => (Some(rows + 1 - index_axes), None),
    };
    let mut split = call.with_outputs([RowClass::Rows(wanted)])?;
    for (input, rows) in [x, indices].into_iter().enumerate() {
        if let Some(axis) = rows {
            split.inputs[input] = call.rows_of(input, RowAxis { axis, ..wanted })?;
        }
    }
    Some(split)
}

impl Differentiable for Gather {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (axis, batch) = self.resolve(call.input_shape(0), call.input_shape(1))?;
        if axis == 0 && !self.dense {
            return row_gradient(call);
        }
        let sum = call.take_sum(0);
        call.first(|call, g| {
            let (shape, indices) = (call.input_shape(0), call.input(1)?);
            match sum {
                Some(sum) => add_slices(sum, g, indices, (batch, axis)),
                None => sum_slices(g, indices, (batch, axis, shape[axis]), shape),
            }
        })
    }

    fn adds_to_sums(&self) -> bool {
        true
    }
}

/// Gathers slices along an axis: the axis of `params` is replaced by the dimensions of `indices`.
///
/// The result has shape `params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]`. The first
/// `batch_dims` dimensions of both are batch dimensions. Indices must be in `[0, size)`. The gradient along axis 0 is
/// sparse.
///
/// ```
/// use taut_core::{Tensor, ops::index::gather};
/// let x = Tensor::from_slice(&[10, 20, 30, 40, 50, 60], [3, 2])?;
/// let rows = Tensor::from_slice(&[2, 0], [2])?;
/// assert_eq!(gather(&x, &rows, 0, 0)?.to_vec::<i32>()?, [50, 60, 10, 20]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn gather(
    params: impl Into<Tensor>,
    indices: impl Into<Tensor>,
    axis: isize,
    batch_dims: isize,
) -> Result<Tensor> {
    apply(&Gather { axis, batch_dims, dense: false }, [params.into(), indices.into()])
}

/// As [`gather`], with a dense gradient: for results that are rarely much smaller than the tensor.
#[track_caller]
pub(crate) fn gather_dense(
    params: impl Into<Tensor>,
    indices: impl Into<Tensor>,
    axis: isize,
) -> Result<Tensor> {
    apply(&Gather { axis, batch_dims: 0, dense: true }, [params.into(), indices.into()])
}

/// The sparse gradient of rows (the first input) gathered by index (the second).
pub(crate) fn row_gradient(call: &mut VjpCall<'_>) -> Result<Gradients> {
    let mut gradients = Gradients::new();
    if let Some(g) = call.take_gradient(0)
        && call.wants(0)
    {
        let (dense_shape, count) = (call.input_shape(0).clone(), call.input_shape(1).len());
        let values = reshape_to(g, &dense_shape.clone().with(0, count))?;
        let indices = reshape_to(call.input(1)?, &[count].into())?;
        gradients.push(Some(IndexedSlices { values, indices, dense_shape }.into()));
    }
    Ok(gradients)
}

#[derive(Clone, Debug)]
struct GatherNd {
    batch_dims: isize,
}

impl Op for GatherNd {
    fn name(&self) -> &'static str {
        "gather_nd"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (x, indices) = (&inputs[0].shape, &inputs[1].shape);
        check_integers("indices", inputs[1])?;
        let batch = check_batch(x, indices, self.batch_dims)?;
        let k = check_coordinates(x, indices, batch)?;
        if batch == indices.rank() {
            let message = format!(
                "batch_dims must be < the rank of indices, whose last axis holds coordinates, got {batch} and shape {indices}"
            );
            return Err(Error::value(message));
        }
        let heads = &indices[..indices.rank() - 1];
        let shape = [heads, &x[batch + k..]].into_iter().flatten().copied().collect();
        Ok(Spec { dtype: inputs[0].dtype, shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (x, indices) = (inputs[0].view(), inputs[1].view());
        let batch = check_batch(&x.shape().into(), &indices.shape().into(), self.batch_dims)?;
        Ok(index::gather_nd(x, indices, batch, outputs[0].reborrow())?)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        read_cost(inputs[1], &outputs[0])
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        match check_batch(&call.shape(0), &call.shape(1), self.batch_dims)? {
            0 if !call.mapped[0] => call.apply_as_is(&GatherNd { batch_dims: 0 }),
            batch => call.apply_batched(&GatherNd { batch_dims: batch as isize + 1 }),
        }
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("batch_dims={}", self.batch_dims)
    }
}

impl RowRule for GatherNd {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let (x, indices) = (&call.inputs[0].shape, &call.inputs[1].shape);
        let batch = check_batch(x, indices, self.batch_dims).ok()?;
        let (input, RowAxis { axis: rows, .. }) = call.first_rows()?;
        match input {
            _ if rows < batch => call.independent(&[Some(rows); 2], &[Some(rows)]),
            1 if rows + 1 < indices.rank() => call.independent(&[None, Some(rows)], &[Some(rows)]),
            _ => None,
        }
    }
}

impl Differentiable for GatherNd {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let sum = call.take_sum(0);
        call.first(|call, g| {
            let (shape, indices) = (call.input_shape(0), call.input(1)?);
            let sum = sum_or_zeros(sum, shape, g.dtype())?;
            match check_batch(shape, indices.shape(), self.batch_dims)? {
                0 => tensor_scatter_add(sum, indices, g),
                batch => add_batches(sum, indices, g, batch),
            }
        })
    }

    fn adds_to_sums(&self) -> bool {
        true
    }
}

/// Gathers slices at coordinate vectors: the last axis of `indices`, of size `k`, holds coordinates of the first `k` axes
/// of `params` after the batch dimensions.
///
/// The result has shape `indices.shape[:-1] + params.shape[batch_dims + k:]`.
#[track_caller]
pub fn gather_nd(params: impl Into<Tensor>, indices: impl Into<Tensor>, batch_dims: isize) -> Result<Tensor> {
    apply(&GatherNd { batch_dims }, [params.into(), indices.into()])
}

/// [`tensor_scatter_add`] to a tensor with `batch` batch dimensions.
fn add_batches(sum: Tensor, indices: &Tensor, g: Tensor, batch: usize) -> Result<Tensor> {
    let (shape, own) = (sum.shape().clone(), indices.shape());
    let count = own[..batch].iter().product::<usize>();
    let merged = |of: &Shape| -> Shape { [&[count], &of[batch..]].into_iter().flatten().copied().collect() };
    // The index of the batch element becomes the first coordinate.
    let coordinates = prepend_batch_coordinate(reshape_to(indices, &merged(own))?)?;
    let updates = merged(g.shape());
    let sum = reshape_to(sum, &merged(&shape))?;
    reshape_to(tensor_scatter_add(sum, coordinates, reshape_to(g, &updates)?)?, &shape)
}

#[derive(Clone, Debug)]
struct TakeAlongAxis {
    axis: isize,
}

impl Op for TakeAlongAxis {
    fn name(&self) -> &'static str {
        "take_along_axis"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (x, indices) = (&inputs[0].shape, &inputs[1].shape);
        check_integers("indices", inputs[1])?;
        let axis = x.axis(self.axis)?;
        if indices.rank() != x.rank() || indices.clone().with(axis, x[axis]) != *x {
            let message =
                format!("indices must have the shape of x, {x}, except on axis {axis}, got shape {indices}");
            return Err(Error::shape(message));
        }
        Ok(Spec { dtype: inputs[0].dtype, shape: indices.clone() }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let x = inputs[0].view();
        let axis = crate::normalize_axis(self.axis, x.shape().len())?;
        Ok(index::take_along_axis(x, inputs[1].view(), axis, outputs[0].reborrow())?)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        read_cost(inputs[1], &outputs[0])
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_batched(&TakeAlongAxis { axis: call.axis(self.axis)? })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }
}

impl RowRule for TakeAlongAxis {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let (rows, own) = (call.first_rows()?.1.axis, call.inputs[0].shape.axis(self.axis).ok()?);
        if rows == own { None } else { call.independent(&[Some(rows); 2], &[Some(rows)]) }
    }
}

impl Differentiable for TakeAlongAxis {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let sum = call.take_sum(0);
        call.first(|call, g| {
            let shape = call.input_shape(0);
            let sum = sum_or_zeros(sum, shape, g.dtype())?;
            add_along_axis(sum, call.input(1)?.clone(), g, shape.axis(self.axis)?)
        })
    }

    fn adds_to_sums(&self) -> bool {
        true
    }
}

/// Gathers one element per index along an axis: `out[.., j, ..] = x[.., indices[.., j, ..], ..]`. The indices have the
/// shape of `x` except on the axis, such as those of `argsort`.
#[track_caller]
pub fn take_along_axis(x: impl Into<Tensor>, indices: impl Into<Tensor>, axis: isize) -> Result<Tensor> {
    apply(&TakeAlongAxis { axis }, [x.into(), indices.into()])
}

fn axis_of(a: &crate::ops::Args<'_>, position: usize, default: isize) -> Result<isize> {
    Ok(a.int_or(position)?.map_or(default, |axis| axis as isize))
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "gather",
        &[
            Param::tensor("params"),
            Param::tensor("indices"),
            Param::optional("axis", ParamKind::Int, "0"),
            Param::optional("batch_dims", ParamKind::Int, "0"),
        ],
        |a| one(gather(a.tensor(0)?, a.tensor(1)?, axis_of(a, 2, 0)?, axis_of(a, 3, 0)?)),
        Reference::Numpy(
            "(lambda f: f(f, params, indices, axis % params.ndim, batch_dims % (indices.ndim + 1) if batch_dims >= 0 \
             else batch_dims + indices.ndim))(lambda f, p, i, a, b: np.take(p, i, a) if b == 0 else \
             np.stack([f(f, q, j, a - 1, b - 1) for q, j in zip(p, i)]))",
        ),
        Samples::List(|| {
            let cases: [(&[usize], &[usize], f64, i64, i64); 10] = [
                (&[5], &[], 5.0, 0, 0),
                (&[5], &[3], 5.0, -1, 0),
                (&[1], &[2, 2], 1.0, 0, 0),
                (&[4, 3], &[2, 3], 4.0, 0, 0),
                (&[4, 3], &[7], 3.0, 1, 0),
                (&[2, 3, 4], &[2, 2], 3.0, -2, 0),
                (&[2, 3, 4], &[2, 5], 4.0, 2, 1),
                (&[2, 3, 4], &[2, 3], 4.0, 2, 2),
                (&[0, 3], &[0], 1.0, 0, 0),
                (&[2, 5, 2], &[2, 3], 5.0, 1, -1),
            ];
            let with = |dtype, ids| {
                cases.map(|(x, i, limit, axis, batch)| {
                    let (x, i) = (ramp(dtype, x, -9.0, 9.0), ramp(ids, i, 0.0, limit));
                    vec![x, i, ArgValue::Int(axis), ArgValue::Int(batch)]
                })
            };
            let mut list: Vec<_> = dtypes::EVERY.iter().flat_map(|&dtype| with(dtype, DType::I64)).collect();
            for &ids in dtypes::INTEGERS {
                list.push(with(DType::F32, ids)[5].clone());
            }
            list
        }),
    )
    .refuses(|| {
        let bad = |x: &[usize], i: ArgValue, axis, batch, kind, message| {
            let args = vec![ramp(DType::F32, x, 0.0, 1.0), i, ArgValue::Int(axis), ArgValue::Int(batch)];
            InvalidArgs::new(args, kind, message)
        };
        let ids = |shape: &[usize]| ramp(DType::I64, shape, 0.0, 1.0);
        vec![
            bad(&[3], of(DType::F32, &[1], &[f64::NAN]), 0, 0, ErrorKind::DType, "must be integers, got float32"),
            bad(&[3], of(DType::Bool, &[1], &[1.0]), 0, 0, ErrorKind::DType, "must be integers, got bool"),
            bad(&[3], of(DType::I32, &[2], &[0.0, 3.0]), 0, 0, ErrorKind::Index, "got 3 at position 1"),
            bad(&[3], of(DType::I32, &[1], &[-1.0]), 0, 0, ErrorKind::Index, "got -1 at position 0"),
            bad(&[3], of(DType::U64, &[1], &[1.8e19]), 0, 0, ErrorKind::Index, "indices of axis 0 must be in [0, 3)"),
            bad(&[0], ids(&[1]), 0, 0, ErrorKind::Index, "indices of axis 0 must be in [0, 0)"),
            bad(&[3], ids(&[1]), 1, 0, ErrorKind::Axis, "axis must be in [-1, 1), got 1"),
            bad(&[], ids(&[1]), 0, 0, ErrorKind::Axis, "a scalar has no axes, got axis 0"),
            bad(&[2, 3], ids(&[2, 1]), 0, 1, ErrorKind::Axis, "axis must be >= batch_dims, got axis 0 and batch_dims 1"),
            bad(&[2, 3], ids(&[3, 1]), 1, 1, ErrorKind::Shape, "the 1 batch dimensions must be equal, got shapes [2, 3] and [3, 1]"),
            bad(&[2, 3], ids(&[2, 1]), 1, 3, ErrorKind::Value, "batch_dims 3 is out of range for ranks 2 and 2"),
            bad(&[2, 3], ids(&[2, 1]), 1, -3, ErrorKind::Value, "batch_dims -3 is out of range for ranks 2 and 2"),
        ]
    }),
    OpEntry::new(
        "gather_nd",
        &[
            Param::tensor("params"),
            Param::tensor("indices"),
            Param::optional("batch_dims", ParamKind::Int, "0"),
        ],
        |a| one(gather_nd(a.tensor(0)?, a.tensor(1)?, axis_of(a, 2, 0)?)),
        Reference::Numpy(
            "(lambda f: f(f, params, indices, batch_dims))(lambda f, p, i, b: \
             np.stack([f(f, q, j, b - 1) for q, j in zip(p, i)]) if b else \
             p[tuple(np.moveaxis(i, -1, 0))] if i.shape[-1] else np.broadcast_to(p, i.shape[:-1] + p.shape))",
        ),
        Samples::List(|| {
            let cases: [(&[usize], &[usize], f64, i64); 8] = [
                (&[5], &[1], 5.0, 0),
                (&[3, 4], &[2, 2], 3.0, 0),
                (&[3, 4], &[2, 3, 1], 3.0, 0),
                (&[2, 3, 4], &[5, 3], 2.0, 0),
                (&[3, 2], &[4, 0], 1.0, 0),
                (&[3, 2], &[0, 2], 1.0, 0),
                (&[2, 3, 4], &[2, 5, 1], 3.0, 1),
                (&[2, 3, 4], &[2, 2], 3.0, 1),
            ];
            let with = |dtype, ids| {
                cases.map(|(x, i, limit, batch)| {
                    vec![ramp(dtype, x, -9.0, 9.0), ramp(ids, i, 0.0, limit), ArgValue::Int(batch)]
                })
            };
            let mut list: Vec<_> = dtypes::EVERY.iter().flat_map(|&dtype| with(dtype, DType::I32)).collect();
            list.extend(with(DType::F32, DType::U8));
            list
        }),
    )
    .refuses(|| {
        let bad = |x: &[usize], i: ArgValue, batch, kind, message| {
            InvalidArgs::new(vec![ramp(DType::F32, x, 0.0, 1.0), i, ArgValue::Int(batch)], kind, message)
        };
        let ids = |shape: &[usize]| ramp(DType::I64, shape, 0.0, 1.0);
        vec![
            bad(&[3], of(DType::F64, &[1], &[0.0]), 0, ErrorKind::DType, "must be integers, got float64"),
            bad(&[2, 3], of(DType::I32, &[2], &[1.0, 3.0]), 0, ErrorKind::Index, "indices of axis 1 must be in [0, 3)"),
            bad(&[2, 3], ids(&[1, 3]), 0, ErrorKind::Shape, "at most 2 coordinates, one per axis, got 3"),
            bad(&[2, 3], ids(&[]), 0, ErrorKind::Shape, "rank >= 1 with coordinates on the last axis, got a scalar"),
            bad(&[2, 3], ids(&[2]), 1, ErrorKind::Shape, "at most 1 coordinates, one per axis, got 2"),
            bad(&[1, 3], ids(&[1]), 1, ErrorKind::Value, "batch_dims must be < the rank of indices"),
            bad(&[2, 3], ids(&[1, 1]), 1, ErrorKind::Shape, "the 1 batch dimensions must be equal"),
        ]
    }),
    OpEntry::new(
        "take_along_axis",
        &[Param::tensor("x"), Param::tensor("indices"), Param::optional("axis", ParamKind::Int, "-1")],
        |a| one(take_along_axis(a.tensor(0)?, a.tensor(1)?, axis_of(a, 2, -1)?)),
        Reference::Numpy("np.take_along_axis(x, indices, axis)"),
        Samples::List(|| {
            let cases: [(&[usize], &[usize], f64, i64); 7] = [
                (&[5], &[3], 5.0, 0),
                (&[1], &[4], 1.0, -1),
                (&[3, 4], &[3, 2], 4.0, -1),
                (&[3, 4], &[5, 4], 3.0, 0),
                (&[2, 3, 4], &[2, 6, 4], 3.0, 1),
                (&[3, 0], &[3, 0], 1.0, 1),
                (&[2, 3], &[0, 3], 1.0, 0),
            ];
            let with = |dtype, ids| {
                cases.map(|(x, i, limit, axis)| {
                    vec![ramp(dtype, x, -9.0, 9.0), ramp(ids, i, 0.0, limit), ArgValue::Int(axis)]
                })
            };
            let mut list: Vec<_> = dtypes::EVERY.iter().flat_map(|&dtype| with(dtype, DType::I64)).collect();
            list.extend(with(DType::F32, DType::U16));
            list
        }),
    )
    .refuses(|| {
        let bad = |x: &[usize], i: ArgValue, axis, kind, message| {
            InvalidArgs::new(vec![ramp(DType::F32, x, 0.0, 1.0), i, ArgValue::Int(axis)], kind, message)
        };
        let ids = |shape: &[usize]| ramp(DType::I64, shape, 0.0, 1.0);
        vec![
            bad(&[3], of(DType::BF16, &[1], &[0.0]), 0, ErrorKind::DType, "must be integers, got bfloat16"),
            bad(&[3], of(DType::I8, &[1], &[-3.0]), 0, ErrorKind::Index, "must be in [0, 3), got -3"),
            bad(&[2, 3], ids(&[3, 1]), 1, ErrorKind::Shape, "the shape of x, [2, 3], except on axis 1, got shape [3, 1]"),
            bad(&[2, 3], ids(&[2]), 1, ErrorKind::Shape, "got shape [2]"),
            bad(&[2, 3], ids(&[2, 1]), 2, ErrorKind::Axis, "got 2"),
        ]
    }),
];
