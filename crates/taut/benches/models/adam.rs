//! Adam as every peer computes it.

use taut::optimizers::{Adam, Optimizer};
use taut::{GradientTape, Result, Tensor, Variable};

/// With the numbers of `workloads.ADAM` in `benches/peers`.
pub fn adam(variables: &[Variable], rate: f64) -> Result<Optimizer> {
    let rule = Adam { rate: rate.into(), beta_1: 0.9, beta_2: 0.999, epsilon: 1e-12, amsgrad: false };
    Optimizer::new(rule, variables)
}

/// One step with the gradients that a tape knows of a loss.
pub fn minimize(optimizer: &Optimizer, tape: GradientTape, loss: &Tensor) -> Result<()> {
    let gradients = tape.gradient(loss, &optimizer.variables())?;
    drop(tape);
    optimizer.apply(&gradients)
}
