//! Splitting a tensor along an axis.

use super::{broadcast_to, concat, slice, stack};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples};
use crate::record::{record_completed, without_recording};
use crate::{DType, Differentiable, Gradients, Index, Saves, Set, Tensor, VjpCall, with_source_location};
use smallvec::smallvec;
use taut_memory::Location;

/// The parts of a [`split`]: their number, or their sizes (one may be -1 and is inferred).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sections {
    /// This many equal parts.
    Equal(isize),
    /// One part per size.
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

/// Each part is a tensor handle: a larger number is a mistake that would exhaust memory.
const MAX_PARTS: usize = 1 << 24;

#[cold]
fn too_many(parts: usize) -> Error {
    Error::value(format!("number of parts must be <= {MAX_PARTS}, got {parts}")).help("use reshape")
}

impl Sections {
    /// The sizes of the parts of an axis.
    fn resolve(&self, axis: usize, dim: usize) -> Result<Vec<usize>> {
        let sizes = match self {
            Sections::Equal(parts) if *parts < 1 => {
                return Err(Error::value(format!("number of parts must be >= 1, got {parts}")));
            }
            Sections::Equal(parts) if *parts as usize > MAX_PARTS => return Err(too_many(*parts as usize)),
            Sections::Equal(parts) if !dim.is_multiple_of(*parts as usize) => {
                return Err(Error::shape(format!("size {dim} of axis {axis} must be divisible by {parts}"))
                    .help("pass the sizes of the parts"));
            }
            Sections::Equal(parts) => return Ok(vec![dim / *parts as usize; *parts as usize]),
            Sections::Sizes(sizes) => sizes,
        };
        if let Some(size) = sizes.iter().find(|&&size| size < -1) {
            return Err(Error::value(format!("sizes must be >= 0, or -1 to be inferred, got {size}")));
        }
        let open = sizes.iter().filter(|&&size| size == -1).count();
        if open > 1 {
            return Err(Error::value(format!("only one size can be -1, got {sizes:?}")));
        }
        let known = (sizes.iter().filter(|&&size| size != -1))
            .try_fold(0usize, |sum, &size| sum.checked_add(size as usize));
        let rest = known.and_then(|known| dim.checked_sub(known)).filter(|&rest| open == 1 || rest == 0);
        let Some(rest) = rest else {
            return Err(Error::shape(format!(
                "sizes must sum to {dim}, the size of axis {axis}, got {sizes:?}"
            )));
        };
        Ok(sizes.iter().map(|&size| if size == -1 { rest } else { size as usize }).collect())
    }
}

/// The tensor indexed on one axis.
fn part(value: &Tensor, axis: usize, index: Index) -> Result<Tensor> {
    let mut indices = vec![Index::from(..); axis];
    indices.push(index);
    slice(value, &indices)
}

/// The split as recorded on tapes: its gradient is one concatenation, where one slice op per part would make a gradient
/// of the input's size per part.
#[derive(Clone, Debug)]
struct RecordedSplit {
    axis: usize,
    /// Whether the axis is removed from the parts.
    unstacked: bool,
    specs: Specs,
}

impl Op for RecordedSplit {
    fn name(&self) -> &'static str {
        if self.unstacked { "unstack" } else { "split" }
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.specs.clone())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for RecordedSplit {
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

/// Splits with `cut` and records the split as one op on the tapes that track `value`.
fn record_split(
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
    record_completed(&RecordedSplit { axis, unstacked, specs }, &mut [value], parts, Vec::new(), at)
}

/// Splits a tensor along an axis into equal parts, or into parts of given sizes, as views.
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
    record_split(value, axis, false, at, |value| {
        let (mut parts, mut start) = (Vec::new(), 0);
        for size in sizes {
            let range = Index::Range { start: Some(start), end: Some(start + size as isize), step: 1 };
            parts.push(part(value, axis, range)?);
            start += size as isize;
        }
        Ok(parts)
    })
}

/// Unstacks a tensor along an axis into its slices, without that axis, as views.
#[track_caller]
pub fn unstack(value: impl Into<Tensor>, axis: isize) -> Result<Vec<Tensor>> {
    let (value, at) = (value.into(), Location::caller());
    let axis = value.shape().axis(axis).map_err(|e| e.in_op("unstack", [value.spec()]).at(at))?;
    let count = value.shape()[axis];
    if count > MAX_PARTS {
        return Err(too_many(count).in_op("unstack", [value.spec()]).at(at));
    }
    record_split(value, axis, true, at, |value| {
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
            for &dtype in dtypes::EVERY {
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
            InvalidArgs::new(vec![f32s(&[4]), parts, ArgValue::Int(axis)], kind, message)
        };
        let ints = |v: &[i64]| ArgValue::Ints(v.to_vec());
        vec![
            bad(ArgValue::Int(3), 0, ErrorKind::Shape, "size 4 of axis 0 must be divisible by 3"),
            bad(ArgValue::Int(0), 0, ErrorKind::Value, "number of parts must be >= 1, got 0"),
            bad(ArgValue::Int(-2), 0, ErrorKind::Value, "number of parts must be >= 1, got -2"),
            bad(ArgValue::Int(2), 1, ErrorKind::Axis, "axis must be in [-1, 1), got 1"),
            bad(ints(&[1, 2]), 0, ErrorKind::Shape, "sizes must sum to 4, the size of axis 0, got [1, 2]"),
            bad(ints(&[5, -1]), 0, ErrorKind::Shape, "sizes must sum to 4, the size of axis 0"),
            bad(
                ints(&[i64::MAX, i64::MAX, 6]),
                0,
                ErrorKind::Shape,
                "sizes must sum to 4, the size of axis 0",
            ),
            bad(ints(&[-1, -1]), 0, ErrorKind::Value, "only one size can be -1"),
            bad(ints(&[6, -2]), 0, ErrorKind::Value, "sizes must be >= 0, or -1 to be inferred, got -2"),
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
            dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
        }),
    )
    .refuses(|| {
        vec![
            InvalidArgs::new(
                vec![f32s(&[2]), ArgValue::Int(1)],
                ErrorKind::Axis,
                "axis must be in [-1, 1), got 1",
            ),
            InvalidArgs::new(vec![f32s(&[]), ArgValue::Int(0)], ErrorKind::Axis, "a scalar has no axes"),
        ]
    }),
];
