//! The normal distribution.

use crate::error::{ErrorKind, Result};
use crate::op::Spec;
use crate::ops::draw::{Distribution, KEY, draw, invalid_keys, key, shapes};
use crate::ops::sample::dtypes;
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Shape, Tensor};

/// Samples from the normal distribution with this mean and standard deviation. A function of the key.
///
/// ```
/// use taut_core::{DType, Tensor, ops::random::stateless_normal};
/// let key = Tensor::from_slice(&[7u64, 0], [2])?;
/// let x = stateless_normal(&key, [2, 3], 10.0, 0.5, DType::F64)?;
/// assert_eq!(x.shape(), &[2, 3]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stateless_normal(
    key: impl Into<Tensor>,
    shape: impl Into<Shape>,
    mean: f64,
    std: f64,
    dtype: DType,
) -> Result<Tensor> {
    draw("stateless_normal", key.into(), Spec::new(dtype, shape), Distribution::Normal { mean, std })
}

/// Samples from the normal distribution truncated at two standard deviations from the mean. A function of the key.
#[track_caller]
pub fn stateless_truncated_normal(
    key: impl Into<Tensor>,
    shape: impl Into<Shape>,
    mean: f64,
    std: f64,
    dtype: DType,
) -> Result<Tensor> {
    let distribution = Distribution::TruncatedNormal { mean, std };
    draw("stateless_truncated_normal", key.into(), Spec::new(dtype, shape), distribution)
}

const PARAMS: &[Param] = &[
    KEY,
    Param::new("shape", ParamKind::Ints),
    Param::optional("mean", ParamKind::Float, "0.0"),
    Param::optional("std", ParamKind::Float, "1.0"),
    Param::optional("dtype", ParamKind::DType, "float32"),
];

fn moments(a: &Args<'_>) -> Result<(f64, f64, DType)> {
    let (mean, std) = (a.float_or(2)?.unwrap_or(0.0), a.float_or(3)?.unwrap_or(1.0));
    Ok((mean, std, a.dtype_or(4)?.unwrap_or(DType::F32)))
}

fn samples() -> Vec<Vec<ArgValue>> {
    let mut list = Vec::new();
    for &dtype in dtypes::FLOATS {
        for (i, shape) in shapes().into_iter().enumerate() {
            let (mean, std) = (ArgValue::Float(1.0 - i as f64), ArgValue::Float(0.5 + i as f64));
            list.push(vec![key(i as f64), shape, mean, std, ArgValue::DType(dtype)]);
        }
    }
    list
}

fn invalid() -> Vec<InvalidArgs> {
    let bad = |mean: f64, std: f64, dtype, kind, message| {
        let moments = [ArgValue::Float(mean), ArgValue::Float(std), ArgValue::DType(dtype)];
        InvalidArgs::new([&[key(1.0), ArgValue::Ints(vec![2])], &moments[..]].concat(), kind, message)
    };
    let mut list = invalid_keys(&[ArgValue::Ints(vec![2])]);
    list.push(bad(0.0, 1.0, DType::U8, ErrorKind::DType, "uint8 is not supported"));
    list.push(bad(0.0, -1.0, DType::F32, ErrorKind::Value, "std must be >= 0, got -1"));
    list.push(bad(
        f64::INFINITY,
        1.0,
        DType::F64,
        ErrorKind::Value,
        "mean must be finite in float64, got inf",
    ));
    list.push(bad(0.0, f64::NAN, DType::F64, ErrorKind::Value, "std must be finite in float64, got NaN"));
    list
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "stateless_normal",
        PARAMS,
        |a| {
            let (mean, std, dtype) = moments(a)?;
            one(stateless_normal(a.tensor(0)?, a.shape(1)?, mean, std, dtype))
        },
        Reference::Property(
            "out.shape == shape and np.all(np.isfinite(out)) and (out.size == 0 or \
             abs(out.mean(dtype=float) - mean) < 5 * std / np.sqrt(out.size)) and (out.size < 1000 or \
             abs(out.std(dtype=float) / std - 1) < 5 / np.sqrt(2 * out.size))",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "stateless_truncated_normal",
        PARAMS,
        |a| {
            let (mean, std, dtype) = moments(a)?;
            one(stateless_truncated_normal(a.tensor(0)?, a.shape(1)?, mean, std, dtype))
        },
        // The standard deviation of the normal distribution truncated at two standard deviations is 0.8796.
        Reference::Property(
            "out.shape == shape and np.all(abs(out - mean) <= 2 * std) and (out.size == 0 or \
             abs(out.mean(dtype=float) - mean) < 5 * 0.88 * std / np.sqrt(out.size)) and (out.size < 1000 or \
             abs(out.std(dtype=float) / std - 0.8796) < 0.06)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
];
