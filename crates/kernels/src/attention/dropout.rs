//! Dropout of attention weights, drawn tile by tile.

use crate::math::Real;
use crate::norm::float::real;
use crate::random::{Key, bernoulli_part};
use crate::{Bool, multiversion};

/// Dropout of attention weights: each is set to zero with probability `rate`, and the others are divided by `1 - rate`.
///
/// Whether a weight is kept is a function of the key and the weight's position, as for [`bernoulli`](crate::random::bernoulli)
/// of shape `[b, h, n, m]`. So every tile can draw its part, in the forward and in the backward pass.
#[derive(Clone, Copy, Debug)]
pub struct AttentionDropout {
    /// The probability of a weight to be dropped, in `[0, 1)`.
    pub rate: f64,
    /// The key of the random numbers.
    pub key: Key,
    /// The position of the first weight among those that the key determines.
    pub first: u64,
}

impl AttentionDropout {
    /// The factor of the weights that are kept.
    pub(super) fn factor(&self) -> f64 {
        1.0 / (1.0 - self.rate)
    }

    /// Fills `kept` with whether consecutive weights are kept, from number `start` on.
    pub(super) fn draw<'a>(&self, start: usize, kept: &'a mut [Bool]) -> &'a [Bool] {
        bernoulli_part(self.key, self.first + start as u64, 1.0 - self.rate, kept);
        kept
    }
}

multiversion! {
    /// Sets weights that are not kept to zero and multiplies the others by `factor`.
    pub(super) fn drop_weights[W: Real](weights: &mut [W], kept: &[Bool], factor: W) {
        let zero: W = real(0.0);
        for (weight, kept) in weights.iter_mut().zip(kept) {
            *weight = if kept.get() { *weight * factor } else { zero };
        }
    }
}
