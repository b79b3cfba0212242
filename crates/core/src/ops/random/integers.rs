//! The uniform distribution on integers.

use crate::error::{ErrorKind, Result};
use crate::op::Spec;
use crate::ops::draw::{Distribution, KEY, draw, invalid_keys, key, shapes};
use crate::ops::sample::dtypes;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Shape, Tensor};

/// Samples from the uniform distribution on the integers in `[low, high)`. A function of the key.
///
/// ```
/// use taut_core::{DType, Tensor, ops::random::stateless_integers};
/// let key = Tensor::from_slice(&[7u64, 0], [2])?;
/// let dice = stateless_integers(&key, [100], 1, 7, DType::U8)?.to_vec::<u8>()?;
/// assert!(dice.iter().all(|eyes| (1..=6).contains(eyes)));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stateless_integers(
    key: impl Into<Tensor>,
    shape: impl Into<Shape>,
    low: impl Into<i128>,
    high: impl Into<i128>,
    dtype: DType,
) -> Result<Tensor> {
    let distribution = Distribution::Integers { low: low.into(), high: high.into() };
    draw("stateless_integers", key.into(), Spec::new(dtype, shape), distribution)
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "stateless_integers",
    &[
        KEY,
        Param::new("shape", ParamKind::Ints),
        Param::new("low", ParamKind::Int),
        Param::new("high", ParamKind::Int),
        Param::optional("dtype", ParamKind::DType, "int64"),
    ],
    |a| {
        let dtype = a.dtype_or(4)?.unwrap_or(DType::I64);
        one(stateless_integers(a.tensor(0)?, a.shape(1)?, a.int(2)?, a.int(3)?, dtype))
    },
    // 2000 samples of a small range contain every value.
    Reference::Property(
        "out.shape == shape and out.dtype == dtype and np.all(out >= low) and np.all(out <= high - 1) and \
         (out.size < 1000 or high - low > 100 or len(np.unique(out)) == high - low)",
    ),
    Samples::List(|| {
        let mut list = Vec::new();
        for &dtype in dtypes::INTEGERS {
            let low = if dtype.is_unsigned_integer() { 0 } else { -5 };
            for (i, shape) in shapes().into_iter().enumerate() {
                let range = [ArgValue::Int(low), ArgValue::Int(low + 10)];
                list.push([&[key(i as f64), shape], &range[..], &[ArgValue::DType(dtype)]].concat());
            }
        }
        let whole = |low, high, dtype| {
            vec![
                key(9.0),
                ArgValue::Ints(vec![2000]),
                ArgValue::Int(low),
                ArgValue::Int(high),
                ArgValue::DType(dtype),
            ]
        };
        list.extend([
            whole(0, 256, DType::U8),
            whole(-128, 128, DType::I8),
            whole(i64::MIN, i64::MAX, DType::I64),
            whole(4, 5, DType::I32),
        ]);
        list
    }),
)
.refuses(|| {
    let bad = |low, high, dtype, kind, message| {
        let range = [ArgValue::Int(low), ArgValue::Int(high), ArgValue::DType(dtype)];
        InvalidArgs::new([&[key(1.0), ArgValue::Ints(vec![2])], &range[..]].concat(), kind, message)
    };
    let mut list = invalid_keys(&[ArgValue::Ints(vec![2]), ArgValue::Int(0), ArgValue::Int(1)]);
    list.push(bad(0, 1, DType::F32, ErrorKind::DType, "float32 is not supported"));
    list.push(bad(0, 1, DType::Bool, ErrorKind::DType, "bool is not supported"));
    list.push(bad(3, 3, DType::I32, ErrorKind::Value, "low must be < high, got low=3 and high=3"));
    list.push(bad(-1, 3, DType::U8, ErrorKind::Value, "range [-1, 3) does not fit uint8"));
    list.push(bad(0, 257, DType::U8, ErrorKind::Value, "range [0, 257) does not fit uint8"));
    list
})];
