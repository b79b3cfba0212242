//! The uniform distribution.

use crate::error::{ErrorKind, Result};
use crate::op::Spec;
use crate::ops::draw::{Distribution, KEY, draw, invalid_keys, key, shapes};
use crate::ops::sample::dtypes;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Shape, Tensor};

/// Samples from the uniform distribution on `[low, high)`. A function of the key.
///
/// ```
/// use taut_core::{DType, Tensor, ops::random::stateless_uniform};
/// let key = Tensor::from_slice(&[7u64, 0], [2])?;
/// let x = stateless_uniform(&key, [1000], -1.0, 1.0, DType::F32)?.to_vec::<f32>()?;
/// assert!(x.iter().all(|x| (-1.0..1.0).contains(x)));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stateless_uniform(
    key: impl Into<Tensor>,
    shape: impl Into<Shape>,
    low: f64,
    high: f64,
    dtype: DType,
) -> Result<Tensor> {
    draw("stateless_uniform", key.into(), Spec::new(dtype, shape), Distribution::Uniform { low, high })
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "stateless_uniform",
    &[
        KEY,
        Param::new("shape", ParamKind::Ints),
        Param::optional("low", ParamKind::Float, "0.0"),
        Param::optional("high", ParamKind::Float, "1.0"),
        Param::optional("dtype", ParamKind::DType, "float32"),
    ],
    |a| {
        let (low, high) = (a.float_or(2)?.unwrap_or(0.0), a.float_or(3)?.unwrap_or(1.0));
        let dtype = a.dtype_or(4)?.unwrap_or(DType::F32);
        one(stateless_uniform(a.tensor(0)?, a.shape(1)?, low, high, dtype))
    },
    Reference::Property(
        "out.shape == shape and np.all((low <= out) & (out < high)) and (out.size == 0 or \
         abs(out.mean(dtype=float) - (low + high) / 2) < 5 * (high - low) / np.sqrt(12 * out.size))",
    ),
    Samples::List(|| {
        let mut list = Vec::new();
        for &dtype in dtypes::FLOATS {
            for (i, shape) in shapes().into_iter().enumerate() {
                let (low, high) = (-1.0 - i as f64, 0.5 + i as f64);
                list.push(vec![
                    key(i as f64),
                    shape,
                    ArgValue::Float(low),
                    ArgValue::Float(high),
                    ArgValue::DType(dtype),
                ]);
            }
        }
        list
    }),
)
.refuses(|| {
    let bad = |low: f64, high: f64, dtype, kind, message| {
        let args = vec![
            key(1.0),
            ArgValue::Ints(vec![2]),
            ArgValue::Float(low),
            ArgValue::Float(high),
            ArgValue::DType(dtype),
        ];
        InvalidArgs::new(args, kind, message)
    };
    let mut list = invalid_keys(&[ArgValue::Ints(vec![2])]);
    list.push(InvalidArgs::new(
        vec![key(1.0), ArgValue::Ints(vec![-2])],
        ErrorKind::Shape,
        "dimension must be >= 0, got -2",
    ));
    let huge = vec![key(1.0), ArgValue::Ints(vec![i64::MAX, 2])];
    list.push(InvalidArgs::new(huge, ErrorKind::Shape, "more elements than memory has addresses"));
    list.push(bad(0.0, 1.0, DType::I32, ErrorKind::DType, "int32 is not supported"));
    list.push(bad(2.0, 1.0, DType::F32, ErrorKind::Value, "low must be <= high, got low=2 and high=1"));
    list.push(bad(f64::NAN, 1.0, DType::F32, ErrorKind::Value, "low must be finite in float32, got NaN"));
    list.push(bad(0.0, 1e6, DType::F16, ErrorKind::Value, "high must be finite in float16, got 1000000"));
    list
})];
