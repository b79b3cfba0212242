//! Gradient clipping.

use super::compute_dtype;
use super::rows::SparseRows;
use taut_core::ops::binary::{add, clip_by_value, div, maximum, mul, sub};
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{cast, sqrt, square};
use taut_core::{DType, Error, Result, Tensor};
use taut_distribute::{Group, ReduceOp, all_reduce};

/// How gradients are clipped.
///
/// A norm that is not finite makes every gradient that it scales NaN, so the failure is visible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// Each element is clipped to `[-limit, limit]`.
    Value(f64),
    /// The gradient of each variable is scaled down so that its norm is at most the limit.
    Norm(f64),
    /// All gradients are scaled down together so that their global norm is at most the limit.
    GlobalNorm(f64),
}

impl Clip {
    /// Rejects a limit that is not finite and positive.
    pub(super) fn check(self) -> Result<()> {
        let (Clip::Value(limit) | Clip::Norm(limit) | Clip::GlobalNorm(limit)) = self;
        if limit.is_finite() && limit > 0.0 {
            return Ok(());
        }
        Err(Error::value(format!("the clipping limit must be finite and > 0, got {limit}")))
    }
}

/// A gradient, prepared for an update.
#[derive(Clone, Debug)]
pub(super) enum UpdateGradient {
    /// A value for every element.
    Dense(Tensor),
    /// Values for some rows.
    Sparse(SparseRows),
    /// This rank's part of the values, in row-major order.
    Shard(Tensor, Group),
}

impl UpdateGradient {
    /// The sum of its squares: a scalar `float64`.
    fn squares(&self) -> Result<Tensor> {
        let total = match self {
            UpdateGradient::Dense(tensor) => {
                sum(square(cast(tensor, compute_dtype(tensor.dtype()))?)?, None, false)?
            }
            UpdateGradient::Sparse(rows) => rows.squares()?,
            UpdateGradient::Shard(tensor, group) => {
                let own = sum(square(cast(tensor, compute_dtype(tensor.dtype()))?)?, None, false)?;
                all_reduce(cast(own, DType::F64)?, ReduceOp::Sum, group)?
            }
        };
        cast(total, DType::F64)
    }
}

/// Scale and limit of a gradient, applied inside the update: clipped gradients are never stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Clipping {
    scale: Option<Tensor>,
    limit: Option<f64>,
}

impl Clipping {
    /// Scales and clips elements, which have the dtype in which updates are computed.
    pub(super) fn apply(&self, elements: Tensor) -> Result<Tensor> {
        let dtype = elements.dtype();
        let scaled = match &self.scale {
            Some(scale) => mul(elements, cast(scale, dtype)?)?,
            None => elements,
        };
        match self.limit {
            Some(limit) => clip_by_value(scaled, -limit, limit),
            None => Ok(scaled),
        }
    }

    /// The factor of the gradients: a scalar `float64`.
    pub(super) fn scale(&self) -> Result<Tensor> {
        self.scale.clone().map_or_else(|| Tensor::constant(1.0, DType::F64), Ok)
    }

    /// Multiplies gradients by `scale`, then clips their elements if `clip` is [`Clip::Value`].
    pub(super) fn scaled(scale: Tensor, clip: Option<Clip>) -> Clipping {
        let limit = match clip {
            Some(Clip::Value(limit)) => Some(limit),
            _ => None,
        };
        Clipping { scale: Some(scale), limit }
    }

    /// The clipping of each gradient, after all gradients are multiplied by `times`.
    pub(super) fn for_gradients(
        clip: Option<Clip>,
        parts: &[Option<UpdateGradient>],
        times: f64,
    ) -> Result<Vec<Clipping>> {
        let scale = |squares: Tensor, limit: f64| -> Result<Tensor> {
            let norm = mul(sqrt(squares)?, times)?;
            // The difference is zero, and NaN if the norm is not finite.
            let scale = add(div(limit, maximum(&norm, limit)?)?, sub(&norm, &norm)?)?;
            if times == 1.0 { Ok(scale) } else { mul(scale, times) }
        };
        let plain = || -> Result<Option<Tensor>> {
            if times == 1.0 { Ok(None) } else { Tensor::constant(times, DType::F64).map(Some) }
        };
        let each = |part: &Option<UpdateGradient>| -> Result<Clipping> {
            Ok(match (clip, part) {
                (_, None) => Clipping::default(),
                (Some(Clip::Norm(limit)), Some(part)) => {
                    Clipping { scale: Some(scale(part.squares()?, limit)?), limit: None }
                }
                (Some(Clip::Value(limit)), _) => Clipping { scale: plain()?, limit: Some(limit) },
                _ => Clipping { scale: plain()?, limit: None },
            })
        };
        if let Some(Clip::GlobalNorm(limit)) = clip {
            let mut squares = None;
            for part in parts.iter().flatten() {
                let own = part.squares()?;
                squares = Some(match squares {
                    Some(sum) => add(sum, own)?,
                    None => own,
                });
            }
            let scale = squares.map(|squares| scale(squares, limit)).transpose()?;
            return Ok(vec![Clipping { scale, limit: None }; parts.len()]);
        }
        parts.iter().map(each).collect()
    }
}
