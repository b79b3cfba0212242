//! Adding and removing axes of size one.

use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::reshape::{reshape_gradient, reshape_op};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit, view_rows};
use crate::{Axes, DType, Layout, Outputs, Shape, Tensor, apply, normalize_axis};
use std::sync::Arc;

#[derive(Clone, Debug)]
struct ExpandDims {
    axis: isize,
}

impl Op for ExpandDims {
    fn name(&self) -> &'static str {
        "expand_dims"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        let axis = normalize_axis(self.axis, shape.rank() + 1)?;
        Ok(Spec { dtype: *dtype, shape: shape.clone().with_inserted(axis, 1) }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let axis = normalize_axis(self.axis, call.shape(0).rank() + 1)? as isize + 1;
        call.apply_as_is(&ExpandDims { axis })
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }
}

impl ViewOp for ExpandDims {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        Some(input.insert_axis(normalize_axis(self.axis, input.shape.rank() + 1).ok()?))
    }
}

impl Differentiable for ExpandDims {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        reshape_gradient(call)
    }
}

/// Inserts an axis of size one as axis `axis` of the result, as a view.
///
/// ```
/// use taut_core::{Tensor, ops::shape::{expand_dims, squeeze}};
/// let x = Tensor::from_slice(&[1, 2], [2])?;
/// let row = expand_dims(&x, 0)?;
/// assert_eq!(row.shape(), &[1, 2]);
/// assert_eq!(squeeze(&row, None)?.shape(), &[2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn expand_dims(input: impl Into<Tensor>, axis: isize) -> Result<Tensor> {
    apply(&ExpandDims { axis }, [input.into()])
}

#[derive(Clone, Debug)]
struct Squeeze {
    axes: Option<Vec<isize>>,
}

impl Squeeze {
    /// The axes to remove, in ascending order.
    fn resolve(&self, shape: &Shape) -> Result<Axes> {
        let Some(axes) = &self.axes else {
            return Ok((0..shape.rank()).filter(|&axis| shape[axis] == 1).collect());
        };
        let axes = shape.axes(axes)?;
        match axes.iter().find(|&&axis| shape[axis] != 1) {
            None => Ok(axes),
            Some(&axis) => Err(Error::shape(format!("axis {axis} must have size 1, got {}", shape[axis]))),
        }
    }
}

impl Op for Squeeze {
    fn name(&self) -> &'static str {
        "squeeze"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        let removed = self.resolve(shape)?;
        let kept = (0..shape.rank()).filter(|axis| !removed.contains(axis));
        Ok(Spec { dtype: *dtype, shape: kept.map(|axis| shape[axis]).collect() }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let axes = self.resolve(&call.shape(0))?.into_iter().map(|axis| axis as isize + 1);
        call.apply_as_is(&Squeeze { axes: Some(axes.collect()) })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        self.axes.as_ref().map_or_else(String::new, |axes| format!("axis={axes:?}"))
    }
}

impl RowRule for Squeeze {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        // By strides, as every view.
        view_rows(self, call)
    }

    fn resized(&self, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        // A part may have one row, and without axes this op would remove it.
        Some(reshape_op(&part.outputs[0].shape))
    }
}

impl ViewOp for Squeeze {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        let removed = self.resolve(&input.shape).ok()?;
        Some(removed.iter().rev().fold(input.clone(), |layout, &axis| layout.remove_axis(axis)))
    }
}

impl Differentiable for Squeeze {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        reshape_gradient(call)
    }
}

/// Removes axes of size one, as a view: the given ones, or all if none are given.
#[track_caller]
pub fn squeeze<'a>(input: impl Into<Tensor>, axis: impl Into<Option<&'a [isize]>>) -> Result<Tensor> {
    apply(&Squeeze { axes: axis.into().map(<[isize]>::to_vec) }, [input.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "expand_dims",
        &[Param::tensor("input"), Param::new("axis", ParamKind::Int)],
        |a| one(expand_dims(a.tensor(0)?, a.int(1)? as isize)),
        Reference::Numpy("np.expand_dims(input, axis)"),
        Samples::List(|| {
            let cases: [(&[usize], i64); 7] =
                [(&[], 0), (&[], -1), (&[3], 1), (&[2, 3], -1), (&[2, 3, 4], 1), (&[2, 3], -3), (&[0, 2], 2)];
            let with = |dtype| cases.map(|(x, axis)| vec![ramp(dtype, x, -4.0, 4.0), ArgValue::Int(axis)]);
            dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
        }),
    )
    .refuses(|| {
        let bad = |axis, message| {
            InvalidArgs::new(
                vec![ramp(DType::F32, &[2], 0.0, 1.0), ArgValue::Int(axis)],
                ErrorKind::Axis,
                message,
            )
        };
        vec![bad(2, "axis must be in [-2, 2), got 2"), bad(-3, "axis must be in [-2, 2), got -3")]
    }),
    OpEntry::new(
        "squeeze",
        &[Param::tensor("input"), Param::optional("axis", ParamKind::Ints, "None")],
        |a| one(squeeze(a.tensor(0)?, a.axes(1)?.as_deref())),
        Reference::Numpy("np.squeeze(input, axis)"),
        Samples::List(|| {
            let cases: [(&[usize], Option<&[i64]>); 9] = [
                (&[], None),
                (&[1], None),
                (&[3], None),
                (&[1, 2, 1, 3], None),
                (&[1, 2, 1, 3], Some(&[0])),
                (&[1, 2, 1, 1], Some(&[-1, 0])),
                (&[2, 1], Some(&[])),
                (&[1, 1], Some(&[0, 1])),
                (&[0, 1], None),
            ];
            let axes =
                |axes: Option<&[i64]>| axes.map_or(ArgValue::None, |axes| ArgValue::Ints(axes.to_vec()));
            let with = |dtype| cases.map(|(x, axis)| vec![ramp(dtype, x, -4.0, 4.0), axes(axis)]);
            dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
        }),
    )
    .refuses(|| {
        let bad = |axes: &[i64], kind, message| {
            InvalidArgs::new(
                vec![ramp(DType::F32, &[1, 3], 0.0, 1.0), ArgValue::Ints(axes.to_vec())],
                kind,
                message,
            )
        };
        vec![
            bad(&[1], ErrorKind::Shape, "axis 1 must have size 1, got 3"),
            bad(&[2], ErrorKind::Axis, "axis must be in [-2, 2), got 2"),
            bad(&[0, -2], ErrorKind::Axis, "axes must be distinct, got 0 twice"),
        ]
    }),
];
