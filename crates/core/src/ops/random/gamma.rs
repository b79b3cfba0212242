//! The gamma and exponential distributions.

use crate::error::{ErrorKind, Result};
use crate::op::Spec;
use crate::ops::draw::{Distribution, KEY, draw, invalid_keys, key, shapes};
use crate::ops::sample::dtypes;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Shape, Tensor};

/// Samples from the gamma distribution with shape parameter `alpha` and rate `beta`, of mean `alpha / beta`. A function
/// of the key.
#[track_caller]
pub fn stateless_gamma(
    key: impl Into<Tensor>,
    shape: impl Into<Shape>,
    alpha: f64,
    beta: f64,
    dtype: DType,
) -> Result<Tensor> {
    draw("stateless_gamma", key.into(), Spec::new(dtype, shape), Distribution::Gamma { alpha, beta })
}

/// Samples from the exponential distribution with this rate, of mean `1 / rate`. A function of the key.
///
/// ```
/// use taut_core::{DType, Tensor, ops::random::stateless_exponential};
/// let key = Tensor::from_slice(&[7u64, 0], [2])?;
/// let x = stateless_exponential(&key, [100], 2.0, DType::F32)?.to_vec::<f32>()?;
/// assert!(x.iter().all(|&x| x >= 0.0));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stateless_exponential(
    key: impl Into<Tensor>,
    shape: impl Into<Shape>,
    rate: f64,
    dtype: DType,
) -> Result<Tensor> {
    draw("stateless_exponential", key.into(), Spec::new(dtype, shape), Distribution::Exponential { rate })
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "stateless_gamma",
        &[
            KEY,
            Param::new("shape", ParamKind::Ints),
            Param::new("alpha", ParamKind::Float),
            Param::optional("beta", ParamKind::Float, "1.0"),
            Param::optional("dtype", ParamKind::DType, "float32"),
        ],
        |a| {
            let (beta, dtype) = (a.float_or(3)?.unwrap_or(1.0), a.dtype_or(4)?.unwrap_or(DType::F32));
            one(stateless_gamma(a.tensor(0)?, a.shape(1)?, a.float(2)?, beta, dtype))
        },
        Reference::Property(
            "out.shape == shape and np.all(out >= 0) and np.all(np.isfinite(out)) and (out.size < 1000 or \
             abs(out.mean(dtype=float) * beta - alpha) < 5 * np.sqrt(alpha / out.size) + 0.005 * alpha)",
        ),
        Samples::List(|| {
            let mut list = Vec::new();
            for &dtype in dtypes::FLOATS {
                for (alpha, beta) in [(0.5, 1.0), (1.0, 2.0), (7.5, 0.5)] {
                    let with = [ArgValue::Float(alpha), ArgValue::Float(beta), ArgValue::DType(dtype)];
                    list.extend(shapes().map(|shape| [&[key(6.0), shape], &with[..]].concat()));
                }
            }
            list
        }),
    )
    .refuses(|| {
        let bad = |alpha: f64, beta: f64, dtype, kind, message| {
            let with = [ArgValue::Float(alpha), ArgValue::Float(beta), ArgValue::DType(dtype)];
            InvalidArgs::new([&[key(1.0), ArgValue::Ints(vec![2])], &with[..]].concat(), kind, message)
        };
        let mut list = invalid_keys(&[ArgValue::Ints(vec![2]), ArgValue::Float(1.0)]);
        list.push(bad(1.0, 1.0, DType::I64, ErrorKind::DType, "int64 is not supported"));
        list.push(bad(0.0, 1.0, DType::F32, ErrorKind::Value, "alpha must be > 0, got 0"));
        list.push(bad(1.0, -1.0, DType::F32, ErrorKind::Value, "beta must be > 0, got -1"));
        list.push(bad(
            f64::NAN,
            1.0,
            DType::F32,
            ErrorKind::Value,
            "alpha must be finite in float32, got NaN",
        ));
        list
    }),
    OpEntry::new(
        "stateless_exponential",
        &[
            KEY,
            Param::new("shape", ParamKind::Ints),
            Param::optional("rate", ParamKind::Float, "1.0"),
            Param::optional("dtype", ParamKind::DType, "float32"),
        ],
        |a| {
            let (rate, dtype) = (a.float_or(2)?.unwrap_or(1.0), a.dtype_or(3)?.unwrap_or(DType::F32));
            one(stateless_exponential(a.tensor(0)?, a.shape(1)?, rate, dtype))
        },
        Reference::Property(
            "out.shape == shape and np.all(out >= 0) and np.all(np.isfinite(out)) and (out.size < 1000 or \
             abs(out.mean(dtype=float) * rate - 1) < 5 / np.sqrt(out.size))",
        ),
        Samples::List(|| {
            let with = |&dtype: &DType| {
                shapes().map(|shape| vec![key(8.0), shape, ArgValue::Float(2.5), ArgValue::DType(dtype)])
            };
            dtypes::FLOATS.iter().flat_map(with).collect()
        }),
    )
    .refuses(|| {
        let bad = |rate: f64, dtype, kind, message| {
            let with = [ArgValue::Float(rate), ArgValue::DType(dtype)];
            InvalidArgs::new([&[key(1.0), ArgValue::Ints(vec![2])], &with[..]].concat(), kind, message)
        };
        let mut list = invalid_keys(&[ArgValue::Ints(vec![2])]);
        list.push(bad(1.0, DType::Bool, ErrorKind::DType, "bool is not supported"));
        list.push(bad(0.0, DType::F32, ErrorKind::Value, "rate must be > 0, got 0"));
        list
    }),
];
