//! Work that is measured with a tape alone, and beside other engines.

use taut::{Result, Tensor, Variable};

/// The mean square of what `relu(x @ w)` is off by.
pub fn loss(x: &Tensor, w: &Variable, y: &Tensor) -> Result<Tensor> {
    let off = (taut::relu(taut::matmul(x, w)?)? - y)?;
    taut::mean(taut::square(off)?, None, false)
}

/// How many products [`power`] is made of.
pub const POWERS: usize = 2000;

/// The sum of a high power of `a`, one product at a time.
pub fn power(a: &Tensor) -> Result<Tensor> {
    let mut result = a.clone();
    for _ in 0..POWERS {
        result = taut::matmul(result, a)?;
    }
    taut::sum(result, None, false)
}
