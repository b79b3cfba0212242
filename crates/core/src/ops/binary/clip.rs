//! Clipping to bounds.

use crate::error::{ErrorKind, Result};
use crate::ops::binary::{greater, less, logical_and, logical_or, maximum};
use crate::ops::elementwise::promoted_dtype;
use crate::ops::index::{keep_bits, pack_bits};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::{concat, slice};
use crate::ops::unary::logical_not;
use crate::ops::{
    ArgValue, Code, ComputeDType, Elementwise, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples,
    one,
};
use crate::{DType, Operand, Saves, Set, Tensor, apply, s};

static CLIP: Elementwise = Elementwise::new("clip_by_value", Code::Clip, ComputeDType::Same).grad_with(
    |wanted| if wants_bounds(wanted) { Saves::residual_of([0, 1]) } else { Saves::residual_of([0]) },
    |call| {
        let (t, out) = (call.input(0)?, call.output(0)?);
        let raised = greater(out, t)?;
        if !wants_bounds(call.wanted) {
            return pack_bits(logical_or(raised, less(out, t)?)?);
        }
        // The upper bound takes precedence, so an element it lowered may still be above t.
        let lowered = less(out, maximum(t, call.input(1)?)?)?;
        let raised = logical_and(raised, logical_not(&lowered)?)?;
        concat(&[pack_bits(lowered)?, pack_bits(raised)?], 0)
    },
    |call, g, i| {
        let bits = call.residual()?;
        let bytes = bits.len() / 2;
        // The residual has one mask or two, depending on whether any recorder wanted the gradient of a bound.
        if bits.len() == call.output_shape(0).len().div_ceil(8) {
            return keep_bits(g, bits, true);
        }
        let (lowered, raised) = (slice(bits, &s![..bytes as isize])?, slice(bits, &s![bytes as isize..])?);
        match i {
            0 => keep_bits(keep_bits(g, lowered, true)?, raised, true),
            1 => keep_bits(g, raised, false),
            _ => keep_bits(g, lowered, false),
        }
    },
);

/// Whether the gradient of one of the bounds is wanted.
fn wants_bounds(wanted: Set) -> bool {
    wanted.has(1) || wanted.has(2)
}

/// Clips each element to `[clip_value_min, clip_value_max]`. Where the minimum exceeds the maximum, the result is the
/// maximum; NaN stays NaN.
///
/// ```
/// use taut_core::{Tensor, ops::binary::clip_by_value};
/// let t = Tensor::from_slice(&[-3, 1, 8], [3])?;
/// assert_eq!(clip_by_value(&t, 0, 5)?.to_vec::<i32>()?, [0, 1, 5]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn clip_by_value(
    t: impl Into<Operand>,
    clip_value_min: impl Into<Operand>,
    clip_value_max: impl Into<Operand>,
) -> Result<Tensor> {
    let (t, min, max) = (t.into(), clip_value_min.into(), clip_value_max.into());
    let dtype = promoted_dtype(&CLIP, &[&t, &min, &max])?;
    apply(&CLIP, [CLIP.input(t, dtype)?, CLIP.input(min, dtype)?, CLIP.input(max, dtype)?])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "clip_by_value",
    &[
        Param::new("t", ParamKind::Operand),
        Param::new("clip_value_min", ParamKind::Operand),
        Param::new("clip_value_max", ParamKind::Operand),
    ],
    |a| one(clip_by_value(a.operand(0)?, a.operand(1)?, a.operand(2)?)),
    Reference::Numpy("np.clip(t, clip_value_min, clip_value_max)"),
    Samples::List(|| {
        let shapes: [[&[usize]; 3]; 6] = [
            [&[], &[], &[]],
            [&[5], &[], &[]],
            [&[2, 3], &[3], &[2, 1]],
            [&[], &[2, 1, 1], &[4]],
            [&[3, 1, 4], &[1], &[]],
            [&[2, 0], &[], &[1]],
        ];
        let mut list = Vec::new();
        for &dtype in dtypes::NUMBERS {
            for [t, low, high] in shapes {
                list.push(vec![
                    ramp(dtype, t, -9.0, 9.0),
                    ramp(dtype, low, -4.0, 3.0),
                    ramp(dtype, high, 2.0, 5.0),
                ]);
            }
            list.push(vec![ramp(dtype, &[4], -9.0, 9.0), ArgValue::Int(1), ArgValue::Int(4)]);
        }
        for &dtype in dtypes::FLOATS {
            let special = of(dtype, &[5], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 3.0]);
            list.push(vec![special.clone(), ArgValue::Float(-1.5), ArgValue::Float(2.5)]);
            list.push(vec![ramp(dtype, &[5], -9.0, 9.0), special, ArgValue::Float(2.5)]);
        }
        list.push(vec![ramp(DType::I32, &[4], -9.0, 9.0), ArgValue::Float(-0.5), ArgValue::Float(2.5)]);
        list
    }),
)
.refuses(|| {
    let f32s = |shape: &[usize]| ramp(DType::F32, shape, 0.0, 1.0);
    let bools = || ramp(DType::Bool, &[2], 0.0, 1.0);
    let bytes = ramp(DType::U8, &[2], 0.0, 1.0);
    vec![
        InvalidArgs::new(
            vec![f32s(&[2]), f32s(&[3]), f32s(&[])],
            ErrorKind::Shape,
            "shapes [2] and [3] do not broadcast",
        ),
        InvalidArgs::new(vec![bools(), bools(), bools()], ErrorKind::DType, "bool is not supported"),
        InvalidArgs::new(
            vec![bytes, ArgValue::Int(-1), ArgValue::Int(9)],
            ErrorKind::Value,
            "-1 does not fit uint8",
        ),
    ]
})];
