//! Tiling and repeating.

use super::{reshape, reshape_to};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Layout;
use crate::op::{Form, Op, Spec, Specs, VmapCall};
use crate::ops::indices::sum_slices;
use crate::ops::reduce::sum;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowAxis, RowCall, RowClass, RowRule, RowSplit};
use crate::shape::Strides;
use crate::{
    DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply, normalize_axis,
};
use taut_kernels::{Arg, ViewMut, index};

#[cold]
fn too_large() -> Error {
    Error::shape("the result has more elements than memory has addresses")
}

#[derive(Clone, Debug)]
struct Tile {
    multiples: Vec<usize>,
}

impl Op for Tile {
    fn name(&self) -> &'static str {
        "tile"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if self.multiples.len() != shape.rank() {
            let message = format!(
                "multiples must have {} values, one per axis, got {}",
                shape.rank(),
                self.multiples.len()
            );
            return Err(Error::shape(message));
        }
        let dims = shape.iter().zip(&self.multiples).map(|(&dim, &multiple)| dim.checked_mul(multiple));
        let shape: Shape = dims.collect::<Option<Vec<_>>>().ok_or_else(too_large)?.into();
        Ok(Spec { dtype: *dtype, shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        index::tile(inputs[0].view(), outputs[0].reborrow());
        Ok(())
    }

    fn form(&self, inputs: &[&Spec]) -> Form<'_> {
        let shape = &inputs[0].shape;
        let whole = Layout::contiguous(shape.clone());
        let (mut dims, mut strides) = (Vec::new(), Strides::new());
        for (axis, &multiple) in self.multiples.iter().enumerate() {
            dims.extend([multiple, shape[axis]]);
            strides.extend([0, whole.strides[axis]]);
        }
        Form::Repeat(Layout { shape: dims.into(), strides, offset: 0 })
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&Tile { multiples: [&[1], &self.multiples[..]].concat() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("multiples={:?}", self.multiples)
    }
}

impl RowRule for Tile {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        if call.classes[0] == RowClass::PartialSum {
            return call.linear();
        }
        call.independent_axis(|axis| self.multiples[axis] == 1)
    }
}

impl Differentiable for Tile {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let shape = call.input_shape(0);
            // The copies get their own axes, which are summed.
            let (mut split, mut copies) = (Vec::new(), Vec::new());
            for (&dim, &multiple) in shape.iter().zip(&self.multiples) {
                if multiple != 1 {
                    copies.push(split.len() as isize);
                    split.push(multiple);
                }
                split.push(dim);
            }
            if copies.is_empty() {
                Ok(g)
            } else {
                sum(reshape_to(g, &split.into())?, copies.as_slice(), false)
            }
        })
    }
}

/// Tiles a tensor: `multiples[i]` copies along each axis `i`.
///
/// ```
/// use taut_core::{Tensor, ops::shape::{repeat, tile}};
/// let x = Tensor::from_slice(&[1, 2], [2])?;
/// assert_eq!(tile(&x, &[2])?.to_vec::<i32>()?, [1, 2, 1, 2]);
/// assert_eq!(repeat(&x, &[2], 0)?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn tile(input: impl Into<Tensor>, multiples: &[usize]) -> Result<Tensor> {
    apply(&Tile { multiples: multiples.to_vec() }, [input.into()])
}

#[derive(Clone, Debug)]
struct Repeat {
    repeats: Vec<usize>,
    axis: isize,
}

impl Op for Repeat {
    fn name(&self) -> &'static str {
        "repeat"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        let axis = shape.axis(self.axis)?;
        let dim = shape[axis];
        let total = match self.repeats[..] {
            [count] => dim.checked_mul(count),
            _ if self.repeats.len() != dim => {
                let message = format!(
                    "repeats must have 1 or {dim} values, the size of axis {axis}, got {}",
                    self.repeats.len()
                );
                return Err(Error::shape(message));
            }
            _ => self.repeats.iter().try_fold(0usize, |sum, &count| sum.checked_add(count)),
        };
        Ok(Spec { dtype: *dtype, shape: shape.clone().with(axis, total.ok_or_else(too_large)?) }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let x = inputs[0].view();
        let axis = normalize_axis(self.axis, x.shape().len())?;
        index::repeat(x, &self.repeats, axis, outputs[0].reborrow());
        Ok(())
    }

    fn form(&self, inputs: &[&Spec]) -> Form<'_> {
        let shape = &inputs[0].shape;
        let (&[count], Ok(axis)) = (&self.repeats[..], shape.axis(self.axis)) else { return Form::Opaque };
        let mut strides = Layout::contiguous(shape.clone()).strides;
        strides.insert(axis + 1, 0);
        Form::Repeat(Layout { shape: shape.clone().with_inserted(axis + 1, count), strides, offset: 0 })
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&Repeat { axis: call.axis(self.axis)?, ..self.clone() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("repeats={:?}, axis={}", self.repeats, self.axis)
    }
}

impl RowRule for Repeat {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let own = call.inputs[0].shape.axis(self.axis).ok()?;
        match (call.classes[0], &self.repeats[..]) {
            (RowClass::PartialSum, _) => call.linear(),
            (RowClass::Rows(rows), &[count]) if rows.axis == own && count > 0 => {
                let per_row = rows.per_row * count;
                call.with_outputs([RowClass::Rows(RowAxis { per_row, ..rows })])
            }
            _ => call.independent_axis(|axis| axis != own),
        }
    }
}

impl Differentiable for Repeat {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let shape = call.input_shape(0);
            let axis = shape.axis(self.axis)?;
            let dim = shape[axis];
            if let [count] = self.repeats[..] {
                let split = shape.clone().with_inserted(axis + 1, count);
                return sum(reshape_to(g, &split)?, axis as isize + 1, false);
            }
            let ids = self.repeats.iter().enumerate().flat_map(|(i, &n)| std::iter::repeat_n(i as i64, n));
            let ids = Tensor::from_vec(ids.collect::<Vec<_>>(), [g.shape()[axis]])?;
            sum_slices(g, &ids, (0, axis, dim), shape)
        })
    }
}

/// Repeats each element along an axis: `repeats` is one count for all elements, or one per element. Without an axis, the
/// tensor is flattened first.
#[track_caller]
pub fn repeat(input: impl Into<Tensor>, repeats: &[usize], axis: impl Into<Option<isize>>) -> Result<Tensor> {
    let (repeats, input) = (repeats.to_vec(), input.into());
    match axis.into() {
        Some(axis) => apply(&Repeat { repeats, axis }, [input]),
        None => apply(&Repeat { repeats, axis: 0 }, [reshape(input, &[-1])?]),
    }
}

fn f32s(shape: &[usize]) -> ArgValue {
    ramp(DType::F32, shape, 0.0, 1.0)
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "tile",
        &[Param::tensor("input"), Param::new("multiples", ParamKind::Ints)],
        |a| one(tile(a.tensor(0)?, &a.counts(1)?)),
        Reference::Numpy("np.tile(input, multiples)"),
        Samples::List(|| {
            let cases: [(&[usize], &[i64]); 8] = [
                (&[], &[]),
                (&[3], &[2]),
                (&[1], &[4]),
                (&[3], &[0]),
                (&[2, 3], &[2, 1]),
                (&[2, 3], &[3, 2]),
                (&[2, 1, 3], &[1, 4, 2]),
                (&[0, 2], &[3, 2]),
            ];
            let with =
                |dtype| cases.map(|(x, m)| vec![ramp(dtype, x, -4.0, 4.0), ArgValue::Ints(m.to_vec())]);
            dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
        }),
    )
    .refuses(|| {
        let bad = |multiples: &[i64], message| {
            InvalidArgs::new(
                vec![f32s(&[2, 3]), ArgValue::Ints(multiples.to_vec())],
                ErrorKind::Shape,
                message,
            )
        };
        let args = vec![f32s(&[2, 3]), ArgValue::Ints(vec![1, -1])];
        vec![
            InvalidArgs::new(args, ErrorKind::Value, "must be >= 0, got -1"),
            bad(&[2], "must have 2 values, one per axis, got 1"),
            bad(&[i64::MAX, 1], "more elements than memory has addresses"),
            bad(&[i64::MAX, i64::MAX], "more elements than memory has addresses"),
            bad(&[1 << 40, 1 << 40], "more elements than memory has addresses"),
        ]
    }),
    OpEntry::new(
        "repeat",
        &[
            Param::tensor("input"),
            Param::new("repeats", ParamKind::Ints),
            Param::optional("axis", ParamKind::Int, "None"),
        ],
        |a| one(repeat(a.tensor(0)?, &a.counts(1)?, a.int_or(2)?.map(|axis| axis as isize))),
        Reference::Numpy("np.repeat(input, repeats, axis)"),
        Samples::List(|| {
            let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
            let mut list = Vec::new();
            for &dtype in dtypes::EVERY {
                let cases: [(&[usize], ArgValue, Option<i64>); 10] = [
                    (&[], ArgValue::Int(3), None),
                    (&[3], ArgValue::Int(2), Some(0)),
                    (&[2, 3], ArgValue::Int(2), None),
                    (&[2, 3], ArgValue::Int(0), Some(1)),
                    (&[2, 3], ints(&[2]), Some(1)),
                    (&[2, 3], ints(&[1, 0, 2]), Some(-1)),
                    (&[2, 3, 2], ints(&[0, 2, 1]), Some(1)),
                    (&[2, 2], ints(&[1, 2, 0, 3]), None),
                    (&[0, 2], ArgValue::Int(2), Some(0)),
                    (&[2, 0], ints(&[2, 1]), Some(0)),
                ];
                let with = |(x, repeats, axis): (&[usize], ArgValue, Option<i64>)| {
                    vec![ramp(dtype, x, -4.0, 4.0), repeats, axis.map_or(ArgValue::None, ArgValue::Int)]
                };
                list.extend(cases.map(with));
            }
            list
        }),
    )
    .refuses(|| {
        let bad = |repeats: &[i64], axis, kind, message| {
            InvalidArgs::new(
                vec![f32s(&[2, 3]), ArgValue::Ints(repeats.to_vec()), ArgValue::Int(axis)],
                kind,
                message,
            )
        };
        vec![
            bad(&[1, 2], 1, ErrorKind::Shape, "must have 1 or 3 values, the size of axis 1, got 2"),
            bad(&[], 1, ErrorKind::Shape, "must have 1 or 3 values, the size of axis 1, got 0"),
            bad(&[-1], 1, ErrorKind::Value, "must be >= 0, got -1"),
            bad(&[1], 2, ErrorKind::Axis, "axis must be in [-2, 2), got 2"),
            bad(&[i64::MAX], 1, ErrorKind::Shape, "more elements than memory has addresses"),
            bad(&[i64::MAX, i64::MAX, 2], 1, ErrorKind::Shape, "more elements than memory has addresses"),
        ]
    }),
];
