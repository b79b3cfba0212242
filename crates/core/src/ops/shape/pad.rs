//! A margin around a tensor.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::binary::add;
use crate::ops::elementwise::must_fit;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{reverse, slice};
use crate::ops::{ArgValue, Args, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{
    DType, Differentiable, Gradients, Index, Outputs, Saves, Scalar, Set, Shape, Tensor, VjpCall, apply,
};
use smallvec::SmallVec;
use taut_kernels::{Arg, ViewMut, index};

/// What [`pad`] surrounds a tensor with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// One value.
    Constant(Scalar),
    /// The tensor mirrored at its edge, without the edge itself: `c b | a b c | b a`.
    Reflect,
    /// The tensor mirrored at its edge, edge included: `b a | a b c | c b`.
    Symmetric,
}

#[derive(Clone, Debug)]
struct Pad {
    paddings: Vec<[usize; 2]>,
    margin: Margin,
}

impl Pad {
    /// How wide a margin may be along an axis.
    fn limit(&self, dim: usize) -> usize {
        match self.margin {
            Margin::Constant(_) => usize::MAX,
            Margin::Reflect => dim.saturating_sub(1),
            Margin::Symmetric => dim,
        }
    }

    /// The gradient along one axis, which had `dim` elements: what is inside, and the margins folded back onto it.
    fn unpadded(&self, g: Tensor, axis: usize, dim: usize) -> Result<Tensor> {
        let [before, after] = self.paddings[axis];
        if before + after == 0 {
            return Ok(g);
        }
        let inside = part(&g, axis, before, dim)?;
        let edge = match self.margin {
            Margin::Constant(_) => return Ok(inside),
            Margin::Reflect => 1,
            Margin::Symmetric => 0,
        };
        let folded = |start: usize, count: usize, place: usize| {
            let mirrored = reverse(part(&g, axis, start, count)?, &[axis as isize])?;
            padded(mirrored, axis, place, dim - place - count)
        };
        let mut sum = inside;
        if before > 0 {
            sum = add(sum, folded(0, before, edge)?)?;
        }
        if after > 0 {
            sum = add(sum, folded(before + dim, after, dim - edge - after)?)?;
        }
        Ok(sum)
    }
}

/// `count` elements of an axis from `start` on.
#[track_caller]
fn part(x: &Tensor, axis: usize, start: usize, count: usize) -> Result<Tensor> {
    let mut indices = vec![Index::from(..); axis];
    let end = (start + count) as isize;
    indices.push(Index::Range { start: Some(start as isize), end: Some(end), step: 1 });
    slice(x, &indices)
}

/// Zeros before and after on one axis.
#[track_caller]
pub(super) fn padded(x: Tensor, axis: usize, before: usize, after: usize) -> Result<Tensor> {
    if before + after == 0 {
        return Ok(x);
    }
    let mut paddings = vec![[0, 0]; x.rank()];
    paddings[axis] = [before, after];
    pad(x, &paddings, Margin::Constant(Scalar::Int(0)))
}

impl Op for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if self.paddings.len() != shape.rank() {
            let message = format!("{} paddings for rank {}", self.paddings.len(), shape.rank());
            return Err(Error::shape(message).help("give a pair [before, after] per axis"));
        }
        if let Margin::Constant(value) = self.margin {
            must_fit(value, *dtype)?;
        }
        let mut dims = Shape::default();
        for (axis, (&dim, &[before, after])) in shape.iter().zip(&self.paddings).enumerate() {
            let (widest, limit) = (before.max(after), self.limit(dim));
            if widest > limit {
                let message = format!("axis {axis} of size {dim} has no {widest} elements to mirror");
                return Err(Error::shape(message).help(format!("at most {limit} can be mirrored")));
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
        match self.margin {
            Margin::Constant(value) => {
                index::pad(x, &before, index::Pad::Constant(&value.to_bytes(x.dtype())), out);
            }
            Margin::Reflect => index::pad(x, &before, index::Pad::Reflect, out),
            Margin::Symmetric => index::pad(x, &before, index::Pad::Symmetric, out),
        }
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let paddings = [&[[0, 0]], &self.paddings[..]].concat();
        call.plain(&Pad { paddings, ..self.clone() })
    }

    fn attributes(&self) -> String {
        format!("paddings={:?}, margin={:?}", self.paddings, self.margin)
    }
}

impl Differentiable for Pad {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let shape = call.input_shape(0);
            if let Margin::Constant(_) = self.margin {
                let inside = |(&[before, _], &dim): (&[usize; 2], &usize)| Index::Range {
                    start: Some(before as isize),
                    end: Some((before + dim) as isize),
                    step: 1,
                };
                return slice(g, &self.paddings.iter().zip(shape.iter()).map(inside).collect::<Vec<_>>());
            }
            shape.iter().enumerate().try_fold(g, |g, (axis, &dim)| self.unpadded(g, axis, dim))
        })
    }
}

/// A margin around a tensor: `paddings` holds a pair `[before, after]` per axis. It is filled with a constant, or
/// with the tensor mirrored at its edge (`REFLECT` leaves the edge out, `SYMMETRIC` repeats it).
///
/// ```
/// use taut_core::{Tensor, ops::shape::{Margin, pad}};
/// let x = Tensor::from_slice(&[1, 2, 3], [3])?;
/// assert_eq!(pad(&x, &[[1, 2]], Margin::Constant(0.into()))?.to_vec::<i32>()?, [0, 1, 2, 3, 0, 0]);
/// assert_eq!(pad(&x, &[[1, 2]], Margin::Reflect)?.to_vec::<i32>()?, [2, 1, 2, 3, 2, 1]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn pad(tensor: impl Into<Tensor>, paddings: &[[usize; 2]], margin: Margin) -> Result<Tensor> {
    apply(&Pad { paddings: paddings.to_vec(), margin }, [tensor.into()])
}

/// The margin that a mode names.
fn margin(a: &Args<'_>) -> Result<Margin> {
    let mode = a.str_or(2)?.unwrap_or("CONSTANT");
    let value = a.scalar_or(3)?;
    let margin = match mode.to_ascii_uppercase().as_str() {
        "CONSTANT" => return Ok(Margin::Constant(value.unwrap_or(Scalar::Int(0)))),
        "REFLECT" => Margin::Reflect,
        "SYMMETRIC" => Margin::Symmetric,
        _ => {
            return Err(Error::value(format!("mode {mode:?} does not exist"))
                .help("it is \"CONSTANT\", \"REFLECT\" or \"SYMMETRIC\""));
        }
    };
    match value {
        None => Ok(margin),
        Some(value) => Err(Error::value(format!("mode {mode:?} has no use for the constant {value}"))),
    }
}

fn args(x: ArgValue, paddings: &[i64], mode: &'static str, value: ArgValue) -> Vec<ArgValue> {
    vec![x, ArgValue::Ints(paddings.to_vec()), ArgValue::Str(mode), value]
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "pad",
    &[
        Param::tensor("tensor"),
        Param::new("paddings", ParamKind::Pairs),
        Param::optional("mode", ParamKind::Str, "\"CONSTANT\""),
        Param::optional("constant_values", ParamKind::Scalar, "None"),
    ],
    |a| one(pad(a.tensor(0)?, &a.pairs(1)?, margin(a)?)),
    Reference::Numpy(
        "tensor if tensor.ndim == 0 else np.pad(tensor, np.array(paddings, int).reshape(-1, 2), mode.lower(), \
         **({} if constant_values is None else {'constant_values': constant_values}))",
    ),
    Samples::List(|| {
        let mut list = Vec::new();
        for &dtype in dtypes::ALL {
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
        Bad::new(args(x(DType::F32, shape), paddings, mode, ArgValue::None), kind, message)
    };
    let too_many = "more elements than memory has addresses";
    vec![
        bad(&[2, 3], &[1, 1], "CONSTANT", ErrorKind::Shape, "1 paddings for rank 2"),
        bad(&[2], &[1], "CONSTANT", ErrorKind::Value, "must be a list of pairs"),
        bad(&[2], &[-1, 1], "CONSTANT", ErrorKind::Value, "-1 is negative and counts nothing"),
        bad(&[2], &[i64::MAX, i64::MAX], "CONSTANT", ErrorKind::Shape, too_many),
        bad(&[3], &[3, 0], "REFLECT", ErrorKind::Shape, "axis 0 of size 3 has no 3 elements to mirror"),
        bad(&[3], &[0, 4], "SYMMETRIC", ErrorKind::Shape, "axis 0 of size 3 has no 4 elements to mirror"),
        bad(&[0], &[0, 1], "SYMMETRIC", ErrorKind::Shape, "axis 0 of size 0 has no 1 elements to mirror"),
        bad(&[3], &[1, 1], "EDGE", ErrorKind::Value, "mode \"EDGE\" does not exist"),
        Bad::new(
            args(x(DType::F32, &[3]), &[1, 1], "REFLECT", ArgValue::Int(1)),
            ErrorKind::Value,
            "has no use for the constant 1",
        ),
        Bad::new(
            args(x(DType::U8, &[3]), &[1, 1], "CONSTANT", ArgValue::Int(-1)),
            ErrorKind::Value,
            "-1 does not fit uint8",
        ),
    ]
})];
