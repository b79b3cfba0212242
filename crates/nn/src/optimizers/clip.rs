//! Gradients kept within bounds.

use super::rows::Rows;
use super::wide;
use taut_core::ops::binary::{add, clip_by_value, div, maximum, mul, sub};
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::{cast, sqrt, square};
use taut_core::{DType, Error, Result, Tensor};

/// How gradients are kept within bounds before they are used.
///
/// A norm that is not finite makes every gradient that it scales NaN, so that it does not go unseen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clip {
    /// Each element between this and its negative.
    Value(f64),
    /// The gradient of each variable scaled down so that its norm is at most this.
    Norm(f64),
    /// All gradients scaled down together so that their common norm is at most this.
    GlobalNorm(f64),
}

impl Clip {
    /// Refuses a bound that leaves nothing.
    pub(super) fn check(self) -> Result<()> {
        let (Clip::Value(limit) | Clip::Norm(limit) | Clip::GlobalNorm(limit)) = self;
        if limit.is_finite() && limit > 0.0 {
            return Ok(());
        }
        Err(Error::value(format!("gradients cannot be clipped to {limit}"))
            .help("give a finite limit, more than zero"))
    }
}

/// A gradient as updates use it.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// All of it.
    Dense(Tensor),
    /// The rows that there are.
    Sparse(Rows),
}

impl Part {
    /// The sum of its squares: a single `float64`.
    fn squares(&self) -> Result<Tensor> {
        let total = match self {
            Part::Dense(tensor) => sum(square(cast(tensor, wide(tensor.dtype()))?)?, None, false)?,
            Part::Sparse(rows) => rows.squares()?,
        };
        cast(total, DType::F64)
    }
}

/// What is done to the elements of a gradient while it is used: no array of clipped gradients is ever made.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    scale: Option<Tensor>,
    limit: Option<f64>,
}

impl Bounds {
    /// Of elements of the type that updates are computed in.
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

    /// What gradients are multiplied by: a single `float64`.
    pub(super) fn scale(&self) -> Result<Tensor> {
        self.scale.clone().map_or_else(|| Tensor::constant(1.0, DType::F64), Ok)
    }

    /// Gradients multiplied by this, and then kept within bounds of another kind than norms.
    pub(super) fn scaled(scale: Tensor, clip: Option<Clip>) -> Bounds {
        let limit = match clip {
            Some(Clip::Value(limit)) => Some(limit),
            _ => None,
        };
        Bounds { scale: Some(scale), limit }
    }

    /// Those of each gradient. Gradients count `times` what they are.
    pub(super) fn of(clip: Option<Clip>, parts: &[Option<Part>], times: f64) -> Result<Vec<Bounds>> {
        let scale = |squares: Tensor, limit: f64| -> Result<Tensor> {
            let norm = mul(sqrt(squares)?, times)?;
            // The difference is zero, and NaN if the norm is not finite.
            let scale = add(div(limit, maximum(&norm, limit)?)?, sub(&norm, &norm)?)?;
            if times == 1.0 { Ok(scale) } else { mul(scale, times) }
        };
        let plain = || -> Result<Option<Tensor>> {
            if times == 1.0 { Ok(None) } else { Tensor::constant(times, DType::F64).map(Some) }
        };
        let each = |part: &Option<Part>| -> Result<Bounds> {
            Ok(match (clip, part) {
                (_, None) => Bounds::default(),
                (Some(Clip::Norm(limit)), Some(part)) => {
                    Bounds { scale: Some(scale(part.squares()?, limit)?), limit: None }
                }
                (Some(Clip::Value(limit)), _) => Bounds { scale: plain()?, limit: Some(limit) },
                _ => Bounds { scale: plain()?, limit: None },
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
            return Ok(vec![Bounds { scale, limit: None }; parts.len()]);
        }
        parts.iter().map(each).collect()
    }
}
