//! Keeping values within bounds.

use crate::error::{ErrorKind, Result};
use crate::ops::elementwise::meeting_dtype;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{Bad, Code, Elementwise, Entry, Kind, Param, Reference, Samples, Types, Value, one};
use crate::{DType, Operand, Tensor, apply};

static CLIP: Elementwise = Elementwise::new("clip_by_value", Code::Clip, Types::Same);

/// Each element, or the bound that it exceeds; the upper bound wins where the two contradict each other. NaN stays NaN.
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
    let dtype = meeting_dtype(&[&t, &min, &max]);
    apply(&CLIP, [CLIP.input(t, dtype)?, CLIP.input(min, dtype)?, CLIP.input(max, dtype)?])
}

pub(crate) const ENTRIES: &[Entry] = &[Entry::new(
    "clip_by_value",
    &[
        Param::new("t", Kind::Operand),
        Param::new("clip_value_min", Kind::Operand),
        Param::new("clip_value_max", Kind::Operand),
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
            list.push(vec![ramp(dtype, &[4], -9.0, 9.0), Value::Int(1), Value::Int(4)]);
        }
        for &dtype in dtypes::FLOATS {
            let special = of(dtype, &[5], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 3.0]);
            list.push(vec![special.clone(), Value::Float(-1.5), Value::Float(2.5)]);
            list.push(vec![ramp(dtype, &[5], -9.0, 9.0), special, Value::Float(2.5)]);
        }
        list.push(vec![ramp(DType::I32, &[4], -9.0, 9.0), Value::Float(-0.5), Value::Float(2.5)]);
        list
    }),
)
.refuses(|| {
    let f32s = |shape: &[usize]| ramp(DType::F32, shape, 0.0, 1.0);
    let bools = || ramp(DType::Bool, &[2], 0.0, 1.0);
    let bytes = ramp(DType::U8, &[2], 0.0, 1.0);
    vec![
        Bad::new(
            vec![f32s(&[2]), f32s(&[3]), f32s(&[])],
            ErrorKind::Shape,
            "shapes [2] and [3] do not broadcast",
        ),
        Bad::new(vec![bools(), bools(), bools()], ErrorKind::DType, "bool is not supported"),
        Bad::new(vec![bytes, Value::Int(-1), Value::Int(9)], ErrorKind::Value, "-1 does not fit uint8"),
    ]
})];
