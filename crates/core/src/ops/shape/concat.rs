//! Concatenation and stacking.

use super::{expand_dims, slice};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Effects, Op, Spec, Specs, VmapCall};
use crate::ops::sample::{dtypes, tensor};
use crate::ops::unary::cast;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::common_dtype;
use crate::rows::{RowAxis, RowCall, RowRule, RowSplit};
use crate::{
    DType, Differentiable, Gradients, Index, Outputs, Saves, Set, Tensor, VjpCall, apply_many, promote,
};
use smallvec::SmallVec;
use taut_kernels::{Arg, View, ViewMut, index};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct Concat {
    axis: isize,
}

impl Op for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let [first, rest @ ..] = inputs else {
            return Err(Error::value("expected at least one tensor, got an empty list"));
        };
        let axis = first.shape.axis(self.axis)?;
        let mut size = first.shape[axis];
        for (i, other) in (1..).zip(rest) {
            if other.dtype != first.dtype {
                let message = format!(
                    "tensors must have the same dtype, got {} at position 0 and {} at position {i}",
                    first.dtype, other.dtype
                );
                return Err(Error::dtype(message).help("cast one of them"));
            }
            if other.shape.rank() != first.shape.rank() {
                let message = format!(
                    "tensors must have the same rank, got shape {} at position 0 and {} at position {i}",
                    first.shape, other.shape
                );
                return Err(Error::shape(message).help("add axes with expand_dims"));
            }
            if other.shape.clone().with(axis, 0) != first.shape.clone().with(axis, 0) {
                return Err(Error::shape(format!(
                    "shapes must be equal except on axis {axis}, got {} at position 0 and {} at position {i}",
                    first.shape, other.shape
                )));
            }
            size = (size.checked_add(other.shape[axis]))
                .ok_or_else(|| Error::shape("the result has more elements than memory has addresses"))?;
        }
        Ok(Spec { dtype: first.dtype, shape: first.shape.clone().with(axis, size) }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let inputs: SmallVec<[View<'_>; 4]> = inputs.iter().map(Arg::view).collect();
        let axis = crate::normalize_axis(self.axis, inputs[0].shape().len())?;
        index::concat(&inputs, axis, outputs[0].reborrow());
        Ok(())
    }

    fn effects(&self) -> Effects {
        Effects::NONE
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_batched(&Concat { axis: call.axis(self.axis)? })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }
}

impl RowRule for Concat {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        if let Some((_, RowAxis { axis, .. })) = call.first_rows() {
            let own = call.inputs[0].shape.axis(self.axis).ok()?;
            return (axis != own)
                .then(|| call.independent(&vec![Some(axis); call.inputs.len()], &[Some(axis)]))?;
        }
        let sums = (0..call.inputs.len()).all(|i| call.is_partial_sum(i));
        if sums { call.linear() } else { None }
    }
}

impl Differentiable for Concat {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let Some(g) = call.take_gradient(0) else { return Ok(Gradients::new()) };
        let axis = g.shape().axis(self.axis)?;
        let (mut gradients, mut start) = (Gradients::new(), 0);
        for i in 0..call.inputs.len() {
            let end = start + call.input_shape(i)[axis] as isize;
            let mut part = vec![Index::from(..); axis];
            part.push(Index::Range { start: Some(start), end: Some(end), step: 1 });
            gradients.push(if call.wants(i) { Some(slice(&g, &part)?.into()) } else { None });
            start = end;
        }
        Ok(gradients)
    }
}

/// Concatenates tensors along an existing axis; dtypes promote as in arithmetic. A single tensor is returned unchanged.
///
/// ```
/// use taut_core::{Tensor, ops::shape::{concat, stack}};
/// let (x, y) = (Tensor::from_slice(&[1, 2], [2])?, Tensor::from_slice(&[3, 4], [2])?);
/// assert_eq!(concat(&[x.clone(), y.clone()], 0)?.to_vec::<i32>()?, [1, 2, 3, 4]);
/// assert_eq!(stack(&[x, y], 1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn concat(values: &[Tensor], axis: isize) -> Result<Tensor> {
    let dtype = common_dtype("concat", values)?;
    if let [only] = values
        && only.shape().axis(axis).is_ok()
    {
        return Ok(only.clone());
    }
    let mut inputs = Vec::with_capacity(values.len());
    for value in values {
        inputs.push(cast(value, dtype)?);
    }
    Ok(apply_many(&Concat { axis }, inputs)?.swap_remove(0))
}

/// Stacks tensors of one shape along a new axis, which is axis `axis` of the result; dtypes promote as in arithmetic.
#[track_caller]
pub fn stack(values: &[Tensor], axis: isize) -> Result<Tensor> {
    let at = Location::caller();
    if let Some(other) = values.iter().find(|value| value.shape() != values[0].shape()) {
        let message =
            format!("tensors must have the same shape, got {} and {}", values[0].shape(), other.shape());
        return Err(Error::shape(message).in_op("stack", values.iter().map(Tensor::spec)).at(at));
    }
    let mut rows = Vec::with_capacity(values.len());
    for value in values {
        rows.push(expand_dims(value, axis)?);
    }
    concat(&rows, axis)
}

const PARAMS: &[Param] =
    &[Param::new("values", ParamKind::Tensors), Param::optional("axis", ParamKind::Int, "0")];

fn case(dtypes: &[DType], shapes: &[&[usize]], axis: i64) -> Vec<ArgValue> {
    let values =
        shapes.iter().zip(dtypes.iter().cycle()).map(|(shape, &dtype)| tensor(dtype, shape, -4.0, 4.0));
    vec![ArgValue::Tensors(values.collect()), ArgValue::Int(axis)]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "concat",
        PARAMS,
        |a| one(concat(&a.tensors(0)?, a.int_or(1)?.unwrap_or(0) as isize)),
        Reference::Numpy("np.concatenate(values, axis)"),
        Samples::List(|| {
            let cases: [(&[&[usize]], i64); 7] = [
                (&[&[3]], 0),
                (&[&[3], &[0], &[2]], 0),
                (&[&[2, 3], &[1, 3]], 0),
                (&[&[2, 3], &[2, 1], &[2, 4]], -1),
                (&[&[2, 1, 3], &[2, 4, 3]], 1),
                (&[&[0, 2], &[0, 3]], 1),
                (&[&[1], &[1], &[1], &[1], &[1], &[1]], -1),
            ];
            let mut list: Vec<_> = dtypes::EVERY
                .iter()
                .flat_map(|&d| cases.map(|(shapes, axis)| case(&[d], shapes, axis)))
                .collect();
            for pair in dtypes::EVERY.windows(2).filter(|pair| promote(pair[0], pair[1]).is_ok()) {
                list.push(case(pair, &[&[2], &[3]], 0));
            }
            list
        }),
    )
    .refuses(|| {
        let bad = |shapes: &[&[usize]], axis, kind, message| {
            InvalidArgs::new(case(&[DType::F32], shapes, axis), kind, message)
        };
        let no_common_type = case(&[DType::U64, DType::I8], &[&[2], &[3]], 0);
        vec![
            InvalidArgs::new(no_common_type, ErrorKind::DType, "holds the values of both uint64 and int8"),
            bad(&[], 0, ErrorKind::Value, "expected at least one tensor"),
            bad(&[&[2]], 1, ErrorKind::Axis, "axis must be in [-1, 1), got 1"),
            bad(&[&[], &[]], 0, ErrorKind::Axis, "a scalar has no axes, got axis 0"),
            bad(
                &[&[2], &[2, 1]],
                0,
                ErrorKind::Shape,
                "must have the same rank, got shape [2] at position 0 and [2, 1]",
            ),
            bad(
                &[&[2, 3], &[3, 3]],
                1,
                ErrorKind::Shape,
                "must be equal except on axis 1, got [2, 3] at position 0 and [3, 3]",
            ),
        ]
    }),
    OpEntry::new(
        "stack",
        PARAMS,
        |a| one(stack(&a.tensors(0)?, a.int_or(1)?.unwrap_or(0) as isize)),
        Reference::Numpy("np.stack(values, axis)"),
        Samples::List(|| {
            let cases: [(&[&[usize]], i64); 7] = [
                (&[&[]], 0),
                (&[&[], &[], &[]], -1),
                (&[&[3], &[3]], 0),
                (&[&[3], &[3]], 1),
                (&[&[2, 3], &[2, 3], &[2, 3]], -2),
                (&[&[2, 1, 3], &[2, 1, 3]], 3),
                (&[&[0, 2], &[0, 2]], 1),
            ];
            let mut list: Vec<_> = dtypes::EVERY
                .iter()
                .flat_map(|&d| cases.map(|(shapes, axis)| case(&[d], shapes, axis)))
                .collect();
            list.push(case(&[DType::I32, DType::F32], &[&[2], &[2]], 0));
            list
        }),
    )
    .refuses(|| {
        let bad = |shapes: &[&[usize]], axis, kind, message| {
            InvalidArgs::new(case(&[DType::F32], shapes, axis), kind, message)
        };
        vec![
            bad(&[], 0, ErrorKind::Value, "expected at least one tensor"),
            bad(&[&[2], &[3]], 0, ErrorKind::Shape, "must have the same shape, got [2] and [3]"),
            bad(&[&[2], &[2]], 2, ErrorKind::Axis, "axis must be in [-2, 2), got 2"),
        ]
    }),
];
