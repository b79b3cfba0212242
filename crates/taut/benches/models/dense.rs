//! Dense layers: a matrix and a bias each, with a ReLU between them.

use taut::{Result, Tensor, Variable, nn};

/// What the layers make of `x`.
pub fn forward(layers: &[Variable], x: &Tensor) -> Result<Tensor> {
    let mut h = x.clone();
    for (i, layer) in layers.chunks(2).enumerate() {
        if i > 0 {
            h = taut::relu(h)?;
        }
        h = (taut::matmul(h, &layer[0])? + &layer[1])?;
    }
    Ok(h)
}

/// The mean cross-entropy of logits, given the right classes.
pub fn cross_entropy(labels: &Tensor, logits: Tensor) -> Result<Tensor> {
    taut::mean(nn::sparse_softmax_cross_entropy_with_logits(labels, logits)?, None, false)
}
