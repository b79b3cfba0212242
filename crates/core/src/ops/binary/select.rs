//! Elementwise selection between two tensors.

use crate::error::{ErrorKind, Result};
use crate::ops::elementwise::promoted_dtype;
use crate::ops::index::{keep_where, pack_bits};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{
    ArgValue, Code, ComputeDType, Elementwise, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples,
    one,
};
use crate::{DType, Operand, Saves, Tensor, apply, promote};

static WHERE: Elementwise = Elementwise::new("where", Code::Select, ComputeDType::Same).grad_with(
    |_| Saves::residual_of([0]),
    |call| pack_bits(call.input(0)?),
    |call, g, i| keep_where(g, call.residual()?, call.input_shape(0), i == 2),
);

/// Selects elements: `x` where the condition is true, `y` where it is false. All three broadcast.
///
/// ```
/// use taut_core::{Tensor, ops::binary::where_};
/// let condition = Tensor::from_slice(&[true, false], [2])?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// assert_eq!(where_(&condition, &x, 0.0)?.to_vec::<f32>()?, [1.0, 0.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn where_(condition: impl Into<Tensor>, x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    let (x, y) = (x.into(), y.into());
    let dtype = promoted_dtype(&WHERE, &[&x, &y])?;
    apply(&WHERE, [condition.into(), WHERE.input(x, dtype)?, WHERE.input(y, dtype)?])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "where",
    &[Param::tensor("condition"), Param::new("x", ParamKind::Operand), Param::new("y", ParamKind::Operand)],
    |a| one(where_(a.tensor(0)?, a.operand(1)?, a.operand(2)?)),
    Reference::Numpy("np.where(condition, x, y)"),
    Samples::List(|| {
        let condition = |shape: &[usize]| ramp(DType::Bool, shape, 0.0, 1.0);
        let shapes: [[&[usize]; 3]; 6] = [
            [&[], &[], &[]],
            [&[5], &[5], &[5]],
            [&[2, 3], &[3], &[]],
            [&[3], &[2, 1], &[2, 1, 1]],
            [&[], &[2, 2], &[2]],
            [&[1], &[0], &[1]],
        ];
        let mut list = Vec::new();
        for &dtype in dtypes::EVERY {
            for [c, x, y] in shapes {
                list.push(vec![condition(c), ramp(dtype, x, -9.0, 9.0), ramp(dtype, y, 0.0, 5.0)]);
            }
        }
        for pair in dtypes::EVERY.windows(2).filter(|pair| promote(pair[0], pair[1]).is_ok()) {
            list.push(vec![condition(&[4]), ramp(pair[0], &[4], -9.0, 9.0), ramp(pair[1], &[4], 0.0, 5.0)]);
        }
        list.push(vec![condition(&[4]), ramp(DType::F32, &[4], -9.0, 9.0), ArgValue::Float(0.5)]);
        list.push(vec![condition(&[4]), ArgValue::Int(7), ramp(DType::U8, &[4], 0.0, 9.0)]);
        list
    }),
)
.refuses(|| {
    let f32s = |shape: &[usize]| ramp(DType::F32, shape, 0.0, 1.0);
    let condition = |shape: &[usize]| ramp(DType::Bool, shape, 0.0, 1.0);
    vec![
        InvalidArgs::new(
            vec![f32s(&[2]), f32s(&[2]), f32s(&[2])],
            ErrorKind::DType,
            "condition must be bool, got float32",
        ),
        InvalidArgs::new(
            vec![condition(&[2]), f32s(&[3]), f32s(&[])],
            ErrorKind::Shape,
            "shapes [2] and [3] do not broadcast",
        ),
        InvalidArgs::new(
            vec![condition(&[2]), ramp(DType::I8, &[2], 0.0, 1.0), ArgValue::Int(128)],
            ErrorKind::Value,
            "128 does not fit int8",
        ),
    ]
})];
