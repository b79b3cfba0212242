//! What training begins with.

use taut::random::Generator;
use taut::{DType, Result, Tensor, Variable};

/// Normal numbers, others for every seed.
pub fn normal(seed: u64, shape: &[usize], deviation: f64) -> Result<Tensor> {
    Generator::from_seed(seed).normal(shape, 0.0, deviation, DType::F32)
}

/// The matrices and biases of layers of these sizes.
pub fn layers(sizes: &[usize]) -> Result<Vec<Variable>> {
    let mut variables = Vec::new();
    for (i, pair) in sizes.windows(2).enumerate() {
        let deviation = (2.0 / pair[0] as f64).sqrt();
        variables.push(Variable::new(normal(10 + i as u64, pair, deviation)?)?);
        variables.push(Variable::new(taut::zeros([pair[1]], DType::F32)?)?);
    }
    Ok(variables)
}
