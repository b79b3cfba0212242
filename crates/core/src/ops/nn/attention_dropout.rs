//! Scaled dot-product attention with dropout of the attention weights.

use super::attention::Attention;
use crate::error::{ErrorKind, Result};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Tensor, apply_at};
use taut_memory::Location;

/// Scaled dot-product attention with dropout of the attention weights, without materializing them.
///
/// As [`attention`](super::attention()), but each weight is set to zero with probability `rate`, and the others are divided by
/// `1 - rate`. Which ones is a function of the key (`uint64[2]`) and of their position in `[b, h, n, m]`: the same as for
/// [`dropout`](super::dropout()) of the matrix of weights.
#[track_caller]
pub fn attention_with_dropout(
    q: impl Into<Tensor>,
    k: impl Into<Tensor>,
    v: impl Into<Tensor>,
    rate: f64,
    key: impl Into<Tensor>,
    mask: Option<&Tensor>,
    causal: bool,
    scale: Option<f64>,
) -> Result<Tensor> {
    let op = Attention { causal, scale, masked: mask.is_some(), dropout: Some(rate) };
    let mut inputs = vec![q.into(), k.into(), v.into()];
    inputs.extend(mask.cloned());
    inputs.push(key.into());
    Ok(apply_at(&op, &mut inputs, Location::caller())?.swap_remove(0))
}

/// The values are unit vectors, so that the result is the matrix of weights.
fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [([usize; 5], f64, bool, bool); 6] = [
        ([1, 1, 2, 4, 3], 0.5, false, false),
        ([2, 2, 3, 3, 2], 0.3, true, false),
        ([2, 1, 3, 5, 4], 0.5, false, true),
        ([1, 2, 4, 3, 2], 0.0, false, false),
        ([0, 1, 2, 3, 2], 0.5, false, false),
        ([2, 2, 16, 16, 2], 0.4, false, false),
    ];
    let with = |dtype, ([b, h, n, m, d], rate, causal, masked): ([usize; 5], f64, bool, bool)| {
        let unit: Vec<f64> = (0..b * h * m * m).map(|i| f64::from(u8::from(i / m % m == i % m))).collect();
        vec![
            ramp(dtype, &[b, h, n, d], -1.0, 1.0),
            ramp(dtype, &[b, h, m, d], -1.0, 1.0),
            of(dtype, &[b, h, m, m], &unit),
            ArgValue::Float(rate),
            of(DType::U64, &[2], &[3.0, 7.0]),
            if masked { ramp(dtype, &[n, m], -1.0, 1.0) } else { ArgValue::None },
            ArgValue::Bool(causal),
        ]
    };
    dtypes::FLOATS.iter().flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect()
}

fn invalid() -> Vec<InvalidArgs> {
    let args = |rate: f64, key: ArgValue| {
        let x = || ramp(DType::F32, &[1, 1, 2, 2], 0.0, 1.0);
        vec![x(), x(), x(), ArgValue::Float(rate), key]
    };
    let key = || of(DType::U64, &[2], &[1.0, 2.0]);
    let signed = of(DType::I64, &[2], &[1.0, 2.0]);
    vec![
        InvalidArgs::new(args(1.0, key()), ErrorKind::Value, "rate must be in [0, 1), got 1"),
        InvalidArgs::new(args(f64::NAN, key()), ErrorKind::Value, "rate must be in [0, 1), got NaN"),
        InvalidArgs::new(args(0.5, signed), ErrorKind::DType, "key must be uint64, got int64"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "attention_with_dropout",
    &[
        Param::tensor("q"),
        Param::tensor("k"),
        Param::tensor("v"),
        Param::new("rate", ParamKind::Float),
        Param::tensor("key"),
        Param::optional("mask", ParamKind::Tensor, "None"),
        Param::optional("causal", ParamKind::Bool, "False"),
        Param::optional("scale", ParamKind::Float, "None"),
    ],
    |a| {
        let (q, k, v, key, mask) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.tensor(4)?, a.tensor_or(5)?);
        let (causal, scale) = (a.bool_or(6)?.unwrap_or(false), a.float_or(7)?);
        one(attention_with_dropout(q, k, v, a.float(3)?, key, mask.as_ref(), causal, scale))
    },
    // Each weight is dropped or scaled; at rate 0 none is dropped, and of many about the right fraction.
    Reference::Property(
        "[s := q.astype(np.float64) @ np.swapaxes(k.astype(np.float64), -1, -2) * q.shape[-1] ** -0.5 \
         + (0 if mask is None else mask), \
         keep := np.ones(s.shape, bool) & (np.tri(*s.shape[-2:], dtype=bool) if causal else True), \
         e := np.where(keep, np.exp(s), 0), p := e / np.maximum(np.sum(e, -1, keepdims=True), 1e-300), \
         z := out.astype(np.float64), kept := np.mean(z != 0) if z.size else 1, \
         z.shape == p.shape and np.all((z == 0) | np.isclose(z, p / (1 - rate), 3e-2, 1e-6)) \
         and (rate > 0 or np.all((z != 0) == keep)) and (z.size < 500 or abs(kept - (1 - rate)) < 0.08)][-1]",
    ),
    Samples::List(samples),
)
.refuses(invalid)];
