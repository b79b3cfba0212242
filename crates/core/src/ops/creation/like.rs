//! Constant tensors in the shape of another tensor.

use super::fill::full;
use crate::error::{ErrorKind, Result};
use crate::ops::sample::{SHAPES, dtypes, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Scalar, Tensor};

/// A tensor of `input`'s shape whose elements are all `value`. `dtype` defaults to `input`'s.
///
/// ```
/// use taut_core::{Tensor, ops::creation::full_like};
/// let x = Tensor::from_slice(&[1u8, 2], [2])?;
/// assert_eq!(full_like(&x, 7, None)?.to_vec::<u8>()?, [7, 7]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn full_like(
    input: impl Into<Tensor>,
    value: impl Into<Scalar>,
    dtype: impl Into<Option<DType>>,
) -> Result<Tensor> {
    let input = input.into();
    full(input.shape(), value, dtype.into().unwrap_or(input.dtype()))
}

/// Zeros in `input`'s shape. `dtype` defaults to `input`'s.
#[track_caller]
pub fn zeros_like(input: impl Into<Tensor>, dtype: impl Into<Option<DType>>) -> Result<Tensor> {
    full_like(input, 0, dtype)
}

/// Ones in `input`'s shape. `dtype` defaults to `input`'s.
#[track_caller]
pub fn ones_like(input: impl Into<Tensor>, dtype: impl Into<Option<DType>>) -> Result<Tensor> {
    full_like(input, 1, dtype)
}

const INPUT_DTYPE: &[Param] = &[Param::tensor("input"), Param::optional("dtype", ParamKind::DType, "None")];

fn inputs() -> Vec<Vec<ArgValue>> {
    let mut list: Vec<_> =
        SHAPES.iter().map(|s| vec![ramp(DType::F32, s, 1.0, 2.0), ArgValue::None]).collect();
    for &dtype in dtypes::EVERY {
        list.push(vec![ramp(dtype, &[2, 3], 1.0, 2.0), ArgValue::None]);
        list.push(vec![ramp(DType::I64, &[3], 1.0, 2.0), ArgValue::DType(dtype)]);
    }
    list
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "zeros_like",
        INPUT_DTYPE,
        |a| one(zeros_like(a.tensor(0)?, a.dtype_or(1)?)),
        Reference::Numpy("np.zeros_like(input, dtype)"),
        Samples::List(inputs),
    ),
    OpEntry::new(
        "ones_like",
        INPUT_DTYPE,
        |a| one(ones_like(a.tensor(0)?, a.dtype_or(1)?)),
        Reference::Numpy("np.ones_like(input, dtype)"),
        Samples::List(inputs),
    ),
    OpEntry::new(
        "full_like",
        &[
            Param::tensor("input"),
            Param::new("value", ParamKind::Scalar),
            Param::optional("dtype", ParamKind::DType, "None"),
        ],
        |a| one(full_like(a.tensor(0)?, a.scalar(1)?, a.dtype_or(2)?)),
        Reference::Numpy("np.full_like(input, value, dtype)"),
        Samples::List(|| {
            let mut list = inputs();
            for (i, args) in list.iter_mut().enumerate() {
                args.insert(1, if i % 2 == 0 { ArgValue::Int(3) } else { ArgValue::Float(1.5) });
            }
            list
        }),
    )
    .refuses(|| {
        let x = ramp(DType::I8, &[2], 0.0, 1.0);
        vec![
            InvalidArgs::new(vec![x.clone(), ArgValue::Int(128)], ErrorKind::Value, "128 does not fit int8"),
            InvalidArgs::new(
                vec![x, ArgValue::Int(-1), ArgValue::DType(DType::U16)],
                ErrorKind::Value,
                "-1 does not fit uint16",
            ),
        ]
    }),
];
