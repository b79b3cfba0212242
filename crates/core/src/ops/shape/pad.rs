//! Padding.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::binary::add;
use crate::ops::elementwise::check_fits;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{reverse, slice};
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowClass, RowRule, RowSplit};
use crate::{
    DType, Differentiable, Gradients, Index, Outputs, Saves, Scalar, Set, Shape, Tensor, VjpCall, apply,
};
use smallvec::SmallVec;
use taut_kernels::{Arg, ViewMut, index};

/// The values that [`pad`] adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// A constant.
    Constant(Scalar),
    /// Mirror images that exclude the edge: `c b | a b c | b a`.
    Reflect,
    /// Mirror images that include the edge: `b a | a b c | c b`.
    Symmetric,
}

#[derive(Clone, Debug)]
struct Pad {
    paddings: Vec<[usize; 2]>,
    mode: PadMode,
}

impl Pad {
    /// The largest padding of one side of an axis of size `dim`.
    fn limit(&self, dim: usize) -> usize {
        match self.mode {
            PadMode::Constant(_) => usize::MAX,
            PadMode::Reflect => dim.saturating_sub(1),
            PadMode::Symmetric => dim,
        }
    }

    /// The gradient along one axis of size `dim`: the interior, plus the mirrored gradients of the padding.
    fn unpad_axis(&self, g: Tensor, axis: usize, dim: usize) -> Result<Tensor> {
        let [before, after] = self.paddings[axis];
        if before + after == 0 {
            return Ok(g);
        }
        let inside = part(&g, axis, before, dim)?;
        let edge = match self.mode {
            PadMode::Constant(_) => return Ok(inside),
            PadMode::Reflect => 1,
            PadMode::Symmetric => 0,
        };
        let mirrored_back = |start: usize, count: usize, place: usize| {
            let mirrored = reverse(part(&g, axis, start, count)?, &[axis as isize])?;
            pad_axis(mirrored, axis, place, dim - place - count)
        };
        let mut sum = inside;
        if before > 0 {
            sum = add(sum, mirrored_back(0, before, edge)?)?;
        }
        if after > 0 {
            sum = add(sum, mirrored_back(before + dim, after, dim - edge - after)?)?;
        }
        Ok(sum)
    }
}

/// The range `start..start + count` of an axis.
#[track_caller]
fn part(x: &Tensor, axis: usize, start: usize, count: usize) -> Result<Tensor> {
    let mut indices = vec![Index::from(..); axis];
    let end = (start + count) as isize;
    indices.push(Index::Range { start: Some(start as isize), end: Some(end), step: 1 });
    slice(x, &indices)
}

/// Zero padding of one axis.
#[track_caller]
pub(super) fn pad_axis(x: Tensor, axis: usize, before: usize, after: usize) -> Result<Tensor> {
    if before + after == 0 {
        return Ok(x);
    }
    let mut paddings = vec![[0, 0]; x.rank()];
    paddings[axis] = [before, after];
    pad(x, &paddings, PadMode::Constant(Scalar::Int(0)))
}

impl Op for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if self.paddings.len() != shape.rank() {
            let message = format!(
                "paddings must have {} pairs (before, after), one per axis, got {}",
                shape.rank(),
                self.paddings.len()
            );
            return Err(Error::shape(message));
        }
        if let PadMode::Constant(value) = self.mode {
            check_fits(value, *dtype)?;
        }
        let mut dims = Shape::default();
        for (axis, (&dim, &[before, after])) in shape.iter().zip(&self.paddings).enumerate() {
            let (widest, limit) = (before.max(after), self.limit(dim));
            if widest > limit {
                let message = format!(
                    "padding of axis {axis} of size {dim} must be <= {limit} in this mode, got {widest}"
                );
                return Err(Error::shape(message));
            }
            let total = dim.checked_add(before).and_then(|sum| sum.checked_add(after));
            let total = total
                .ok_or_else(|| Error::shape("the result has more elements than memory has addresses"))?;
            dims = dims.with_inserted(axis, total);
        }
        Ok(Spec { dtype: *dtype, shape: dims }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (x, out) = (inputs[0].view(), outputs[0].reborrow());
        let before: SmallVec<[usize; 4]> = self.paddings.iter().map(|&[before, _]| before).collect();
        match self.mode {
            PadMode::Constant(value) => {
                index::pad(x, &before, index::Pad::Constant(&value.to_bytes(x.dtype())), out);
            }
            PadMode::Reflect => index::pad(x, &before, index::Pad::Reflect, out),
            PadMode::Symmetric => index::pad(x, &before, index::Pad::Symmetric, out),
        }
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let paddings = [&[[0, 0]], &self.paddings[..]].concat();
        call.apply_as_is(&Pad { paddings, ..self.clone() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("paddings={:?}, mode={:?}", self.paddings, self.mode)
    }
}

impl RowRule for Pad {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        if call.classes[0] == RowClass::PartialSum {
            let zeros = matches!(self.mode, PadMode::Constant(value) if value.is_zero());
            return zeros.then(|| call.linear())?;
        }
        call.independent_axis(|axis| self.paddings[axis] == [0, 0])
    }
}

impl Differentiable for Pad {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let shape = call.input_shape(0);
            if let PadMode::Constant(_) = self.mode {
                let inside = |(&[before, _], &dim): (&[usize; 2], &usize)| Index::Range {
                    start: Some(before as isize),
                    end: Some((before + dim) as isize),
                    step: 1,
                };
                return slice(g, &self.paddings.iter().zip(shape.iter()).map(inside).collect::<Vec<_>>());
            }
            shape.iter().enumerate().try_fold(g, |g, (axis, &dim)| self.unpad_axis(g, axis, dim))
        })
    }
}

/// Pads a tensor by `paddings[i] = [before, after]` elements along each axis `i`.
///
/// The padding is a constant, or the tensor mirrored at its edges: `REFLECT` excludes the edge, `SYMMETRIC` repeats it.
///
/// ```
/// use taut_core::{Tensor, ops::shape::{PadMode, pad}};
/// let x = Tensor::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(pad(&x, &[[1, 2]], PadMode::Constant(0.into()))?.to_vec::<i32>()?, [0, 1, 2, 3, 0, 0]);
/// assert_eq!(pad(&x, &[[1, 2]], PadMode::Reflect)?.to_vec::<i32>()?, [2, 1, 2, 3, 2, 1]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn pad(tensor: impl Into<Tensor>, paddings: &[[usize; 2]], mode: PadMode) -> Result<Tensor> {
    apply(&Pad { paddings: paddings.to_vec(), mode }, [tensor.into()])
}

/// The mode argument, with the value of the constant.
fn pad_mode(a: &Args<'_>) -> Result<PadMode> {
    let name = a.str_or(2)?.unwrap_or("CONSTANT");
    let value = a.scalar_or(3)?;
    let mode = match name.to_ascii_uppercase().as_str() {
        "CONSTANT" => return Ok(PadMode::Constant(value.unwrap_or(Scalar::Int(0)))),
        "REFLECT" => PadMode::Reflect,
        "SYMMETRIC" => PadMode::Symmetric,
        _ => {
            return Err(Error::value(format!(
                "mode must be \"CONSTANT\", \"REFLECT\" or \"SYMMETRIC\", got {name:?}"
            )));
        }
    };
    match value {
        None => Ok(mode),
        Some(value) => Err(Error::value(format!(
            "constant_values needs mode \"CONSTANT\", got {value} with mode {name:?}"
        ))),
    }
}

fn args(x: ArgValue, paddings: &[i64], mode: &'static str, value: ArgValue) -> Vec<ArgValue> {
    vec![x, ArgValue::Ints(paddings.to_vec()), ArgValue::Str(mode.into()), value]
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "pad",
    &[
        Param::tensor("tensor"),
        Param::new("paddings", ParamKind::Pairs),
        Param::optional("mode", ParamKind::Str, "\"CONSTANT\""),
        Param::optional("constant_values", ParamKind::Scalar, "None"),
    ],
    |a| one(pad(a.tensor(0)?, &a.pairs(1)?, pad_mode(a)?)),
    Reference::Numpy(
        "tensor if tensor.ndim == 0 else np.pad(tensor, np.array(paddings, int).reshape(-1, 2), mode.lower(), \
         **({} if constant_values is None else {'constant_values': constant_values}))",
    ),
    Samples::List(|| {
        let mut list = Vec::new();
        for &dtype in dtypes::EVERY {
            let x = |shape: &[usize]| ramp(dtype, shape, -4.0, 4.0);
            list.push(args(x(&[]), &[], "CONSTANT", ArgValue::None));
            list.push(args(x(&[3]), &[1, 2], "CONSTANT", ArgValue::None));
            list.push(args(x(&[2, 3]), &[1, 0, 0, 2], "constant", ArgValue::Int(1)));
            list.push(args(x(&[2, 0]), &[1, 1, 1, 2], "CONSTANT", ArgValue::Int(1)));
            list.push(args(x(&[2, 1, 3]), &[0, 0, 1, 1, 2, 1], "CONSTANT", ArgValue::Bool(true)));
            list.push(args(x(&[2, 2]), &[0, 0, 0, 0], "CONSTANT", ArgValue::None));
            list.push(args(x(&[4]), &[3, 2], "REFLECT", ArgValue::None));
            list.push(args(x(&[2, 3]), &[1, 1, 2, 0], "REFLECT", ArgValue::None));
            list.push(args(x(&[2, 1, 3]), &[0, 1, 0, 0, 2, 2], "reflect", ArgValue::None));
            list.push(args(x(&[4]), &[4, 2], "SYMMETRIC", ArgValue::None));
            list.push(args(x(&[2, 3]), &[2, 1, 0, 3], "SYMMETRIC", ArgValue::None));
            list.push(args(x(&[2, 1, 3]), &[1, 1, 1, 1, 0, 0], "SYMMETRIC", ArgValue::None));
            list.push(args(x(&[0, 3]), &[0, 0, 1, 1], "SYMMETRIC", ArgValue::None));
        }
        list.push(args(ramp(DType::F32, &[2], 0.0, 1.0), &[1, 1], "CONSTANT", ArgValue::Float(f64::NAN)));
        list
    }),
)
.refuses(|| {
    let x = |dtype, shape: &[usize]| ramp(dtype, shape, 0.0, 1.0);
    let bad = |shape: &[usize], paddings: &[i64], mode, kind, message| {
        InvalidArgs::new(args(x(DType::F32, shape), paddings, mode, ArgValue::None), kind, message)
    };
    let too_many = "more elements than memory has addresses";
    vec![
        bad(&[2, 3], &[1, 1], "CONSTANT", ErrorKind::Shape, "must have 2 pairs (before, after), one per axis, got 1"),
        bad(&[2], &[1], "CONSTANT", ErrorKind::Value, "must be a list of pairs"),
        bad(&[2], &[-1, 1], "CONSTANT", ErrorKind::Value, "must be >= 0, got -1"),
        bad(&[2], &[i64::MAX, i64::MAX], "CONSTANT", ErrorKind::Shape, too_many),
        bad(&[3], &[3, 0], "REFLECT", ErrorKind::Shape, "axis 0 of size 3 must be <= 2 in this mode, got 3"),
        bad(&[3], &[0, 4], "SYMMETRIC", ErrorKind::Shape, "axis 0 of size 3 must be <= 3 in this mode, got 4"),
        bad(&[0], &[0, 1], "SYMMETRIC", ErrorKind::Shape, "axis 0 of size 0 must be <= 0 in this mode, got 1"),
        bad(&[3], &[1, 1], "EDGE", ErrorKind::Value, "\"REFLECT\" or \"SYMMETRIC\", got \"EDGE\""),
        InvalidArgs::new(
            args(x(DType::F32, &[3]), &[1, 1], "REFLECT", ArgValue::Int(1)),
            ErrorKind::Value,
            "got 1 with mode \"REFLECT\"",
        ),
        InvalidArgs::new(
            args(x(DType::U8, &[3]), &[1, 1], "CONSTANT", ArgValue::Int(-1)),
            ErrorKind::Value,
            "-1 does not fit uint8",
        ),
    ]
})];
