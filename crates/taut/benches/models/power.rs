//! A high power of a matrix, one product at a time: a loop with nothing but products, and so much to keep for its gradient that
//! it matters how much of it is kept.

use taut::{DenseGradient, GradientTape, Loops, Result, Tensor};

/// `a` times itself, `steps` times.
pub fn power(loops: &Loops, a: &Tensor, steps: i64) -> Result<Tensor> {
    loops.fori_loop(0..steps, |_, x| taut::matmul(x, a), a.clone())
}

/// As [`power`], by a loop that learns only as it runs how many steps it makes.
pub fn power_while(loops: &Loops, a: &Tensor, steps: &Tensor) -> Result<Tensor> {
    let begin = (Tensor::scalar(0i64)?, a.clone());
    let step = |(i, x): (Tensor, Tensor)| Ok(((i + 1i64)?, taut::matmul(x, a)?));
    Ok(loops.while_loop(|(i, _)| taut::less(i, steps), step, begin)?.1)
}

/// The gradient of the sum of all elements that a power of `a` has.
pub fn gradient(a: &Tensor, power: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let tape = GradientTape::new();
    tape.watch(a);
    let total = taut::sum(power(a)?, None, false)?;
    tape.gradient(&total, a)?.dense()
}
