//! Cutting a tensor into parts along an axis.

use super::{broadcast_to, concat, slice, stack};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{ArgValue, Bad, OpEntry, Param, ParamKind, Reference, Samples};
use crate::record::{record_completed, without_recording};
use crate::{DType, Differentiable, Gradients, Index, Saves, Set, Tensor, VjpCall, with_source_location};
use smallvec::smallvec;
use taut_memory::Location;

/// How [`split`] cuts: into so many equal parts, or into parts of these sizes (one may be -1 and is worked out).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sections {
    /// Equal parts.
    Equal(isize),
    /// A part per size.
    Sizes(Vec<isize>),
}

impl From<usize> for Sections {
    fn from(parts: usize) -> Sections {
        Sections::Equal(parts.try_into().unwrap_or(isize::MAX))
    }
}

impl<const N: usize> From<[isize; N]> for Sections {
    fn from(sizes: [isize; N]) -> Sections {
        Sections::Sizes(sizes.to_vec())
    }
}

impl From<&[isize]> for Sections {
    fn from(sizes: &[isize]) -> Sections {
        Sections::Sizes(sizes.to_vec())
    }
}

/// Each part is a tensor of its own: more of them than this is a mistake that would exhaust memory.
const MOST_PARTS: usize = 1 << 24;

#[cold]
fn too_many(parts: usize) -> Error {
    Error::value(format!("{parts} parts are more than {MOST_PARTS}")).help("reshape instead")
}

impl Sections {
    /// The sizes of the parts of an axis.
    fn resolve(&self, axis: usize, dim: usize) -> Result<Vec<usize>> {
        let sizes = match self {
            Sections::Equal(parts) if *parts < 1 => {
                return Err(Error::value(format!("an axis cannot be cut into {parts} parts")));
            }
            Sections::Equal(parts) if *parts as usize > MOST_PARTS => return Err(too_many(*parts as usize)),
            Sections::Equal(parts) if !dim.is_multiple_of(*parts as usize) => {
                return Err(Error::shape(format!("axis {axis} of size {dim} has no {parts} equal parts"))
                    .help("give the sizes of the parts"));
            }
            Sections::Equal(parts) => return Ok(vec![dim / *parts as usize; *parts as usize]),
            Sections::Sizes(sizes) => sizes,
        };
        if let Some(size) = sizes.iter().find(|&&size| size < -1) {
            return Err(Error::value(format!("a part of size {size} does not exist")));
        }
        let open = sizes.iter().filter(|&&size| size == -1).count();
        if open > 1 {
            return Err(Error::value("only one size can be -1"));
        }
        let known = (sizes.iter().filter(|&&size| size != -1))
            .try_fold(0usize, |sum, &size| sum.checked_add(size as usize));
        let rest = known.and_then(|known| dim.checked_sub(known)).filter(|&rest| open == 1 || rest == 0);
        let Some(rest) = rest else {
            return Err(Error::shape(format!(
                "parts of sizes {sizes:?} do not make up axis {axis} of size {dim}"
            )));
        };
        Ok(sizes.iter().map(|&size| if size == -1 { rest } else { size as usize }).collect())
    }
}

/// The part of a tensor that an index picks on one axis.
fn part(value: &Tensor, axis: usize, index: Index) -> Result<Tensor> {
    let mut indices = vec![Index::from(..); axis];
    indices.push(index);
    slice(value, &indices)
}

/// All parts of a tensor at once, to those who follow it: one gradient put together from theirs, where a slice each would
/// be a gradient of the whole's size each.
#[derive(Clone, Debug)]
struct Parts {
    axis: usize,
    /// Whether the parts have lost the axis.
    unstacked: bool,
    specs: Specs,
}

impl Op for Parts {
    fn name(&self) -> &'static str {
        if self.unstacked { "unstack" } else { "split" }
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.specs.clone())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for Parts {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut parts = Vec::new();
        for i in 0..call.outputs.len() {
            parts.push(match call.take_gradient(i) {
                Some(gradient) => gradient,
                None => {
                    let Spec { dtype, shape } = &call.outputs[i].spec;
                    broadcast_to(Tensor::constant(0, *dtype)?, shape.clone())?
                }
            });
        }
        let axis = self.axis as isize;
        let whole = if self.unstacked { stack(&parts, axis)? } else { concat(&parts, axis)? };
        Ok(smallvec![Some(whole.into())])
    }
}

/// Makes parts that are followed together.
fn together(
    value: Tensor,
    axis: usize,
    unstacked: bool,
    at: Location,
    cut: impl FnOnce(&Tensor) -> Result<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    if !value.is_tracked() {
        return with_source_location(None, at, || cut(&value));
    }
    let parts = without_recording(|| with_source_location(None, at, || cut(&value)))?;
    if parts.is_empty() {
        return Ok(parts);
    }
    let specs = parts.iter().map(|part| part.spec().clone()).collect();
    record_completed(&Parts { axis, unstacked, specs }, &mut [value], parts, Vec::new(), at)
}

/// Cuts a tensor along an axis into equal parts, or into parts of given sizes, without copying.
///
/// ```
/// use taut_core::{Tensor, ops::shape::split};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [4])?;
/// assert_eq!(split(&x, 2, 0)?[1].to_vec::<i32>()?, [3, 4]);
/// assert_eq!(split(&x, [1, -1], 0)?[1].to_vec::<i32>()?, [2, 3, 4]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn split(
    value: impl Into<Tensor>,
    num_or_size_splits: impl Into<Sections>,
    axis: isize,
) -> Result<Vec<Tensor>> {
    let (value, sections, at) = (value.into(), num_or_size_splits.into(), Location::caller());
    let resolve = || {
        let axis = value.shape().axis(axis)?;
        Ok((axis, sections.resolve(axis, value.shape()[axis])?))
    };
    let (axis, sizes) = resolve().map_err(|e: Error| e.in_op("split", [value.spec()]).at(at))?;
    together(value, axis, false, at, |value| {
        let (mut parts, mut start) = (Vec::new(), 0);
        for size in sizes {
            let range = Index::Range { start: Some(start), end: Some(start + size as isize), step: 1 };
            parts.push(part(value, axis, range)?);
            start += size as isize;
        }
        Ok(parts)
    })
}

/// The slices of a tensor along an axis, which they no longer have. Without copying.
#[track_caller]
pub fn unstack(value: impl Into<Tensor>, axis: isize) -> Result<Vec<Tensor>> {
    let (value, at) = (value.into(), Location::caller());
    let axis = value.shape().axis(axis).map_err(|e| e.in_op("unstack", [value.spec()]).at(at))?;
    let count = value.shape()[axis];
    if count > MOST_PARTS {
        return Err(too_many(count).in_op("unstack", [value.spec()]).at(at));
    }
    together(value, axis, true, at, |value| {
        (0..count).map(|i| part(value, axis, Index::At(i as isize))).collect()
    })
}

fn f32s(shape: &[usize]) -> ArgValue {
    ramp(DType::F32, shape, 0.0, 1.0)
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "split",
        &[
            Param::tensor("value"),
            Param::new("num_or_size_splits", ParamKind::Ints),
            Param::optional("axis", ParamKind::Int, "0"),
        ],
        |a| {
            let sections = match a.0.get(1) {
                Some(ArgValue::Int(parts)) => Sections::Equal(*parts as isize),
                _ => Sections::Sizes(a.ints(1)?.into_iter().map(|size| size as isize).collect()),
            };
            split(a.tensor(0)?, sections, a.int_or(2)?.unwrap_or(0) as isize)
        },
        Reference::Numpy(
            "np.split(value, num_or_size_splits if isinstance(num_or_size_splits, int) else np.cumsum(\
             [s if s >= 0 else value.shape[axis] - sum(num_or_size_splits) - 1 for s in num_or_size_splits]\
             )[:-1], axis)",
        ),
        Samples::List(|| {
            let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
            let mut list = Vec::new();
            for &dtype in dtypes::ALL {
                let cases: [(&[usize], ArgValue, i64); 8] = [
                    (&[6], ArgValue::Int(3), 0),
                    (&[1], ArgValue::Int(1), -1),
                    (&[2, 4], ArgValue::Int(2), 1),
                    (&[0, 2], ArgValue::Int(3), 0),
                    (&[6], ints(&[1, 0, 5]), 0),
                    (&[2, 5], ints(&[2, -1, 1]), -1),
                    (&[2, 4, 3], ints(&[3, 1]), 1),
                    (&[3], ints(&[3, -1]), 0),
                ];
                let with = |(x, parts, axis)| vec![ramp(dtype, x, -4.0, 4.0), parts, ArgValue::Int(axis)];
                list.extend(cases.map(with));
            }
            list
        }),
    )
    .refuses(|| {
        let bad = |parts, axis, kind, message| {
            Bad::new(vec![f32s(&[4]), parts, ArgValue::Int(axis)], kind, message)
        };
        let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
        vec![
            bad(ArgValue::Int(3), 0, ErrorKind::Shape, "axis 0 of size 4 has no 3 equal parts"),
            bad(ArgValue::Int(0), 0, ErrorKind::Value, "cannot be cut into 0 parts"),
            bad(ArgValue::Int(-2), 0, ErrorKind::Value, "cannot be cut into -2 parts"),
            bad(ArgValue::Int(2), 1, ErrorKind::Axis, "axis must be in [-1, 1), got 1"),
            bad(ints(&[1, 2]), 0, ErrorKind::Shape, "parts of sizes [1, 2] do not make up axis 0 of size 4"),
            bad(ints(&[5, -1]), 0, ErrorKind::Shape, "do not make up axis 0 of size 4"),
            bad(ints(&[i64::MAX, i64::MAX, 6]), 0, ErrorKind::Shape, "do not make up axis 0 of size 4"),
            bad(ints(&[-1, -1]), 0, ErrorKind::Value, "only one size can be -1"),
            bad(ints(&[6, -2]), 0, ErrorKind::Value, "a part of size -2 does not exist"),
        ]
    }),
    OpEntry::new(
        "unstack",
        &[Param::tensor("value"), Param::optional("axis", ParamKind::Int, "0")],
        |a| unstack(a.tensor(0)?, a.int_or(1)?.unwrap_or(0) as isize),
        Reference::Numpy("[np.take(value, i, axis) for i in range(value.shape[axis])]"),
        Samples::List(|| {
            let cases: [(&[usize], i64); 6] =
                [(&[3], 0), (&[1], -1), (&[2, 3], 1), (&[2, 3, 4], -2), (&[2, 0], 0), (&[0, 2], 0)];
            let with = |dtype| cases.map(|(x, axis)| vec![ramp(dtype, x, -4.0, 4.0), ArgValue::Int(axis)]);
            dtypes::ALL.iter().flat_map(|&dtype| with(dtype)).collect()
        }),
    )
    .refuses(|| {
        vec![
            Bad::new(vec![f32s(&[2]), ArgValue::Int(1)], ErrorKind::Axis, "axis must be in [-1, 1), got 1"),
            Bad::new(vec![f32s(&[]), ArgValue::Int(0)], ErrorKind::Axis, "a scalar has no axes"),
        ]
    }),
];
