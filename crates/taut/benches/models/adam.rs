//! Adam, written with plain ops: what a traced function makes of it is what is measured.

use taut::{DType, Dense, GradientTape, Result, Tensor, Variable};

// The numbers of `workloads.ADAM` in `benches/peers`.
const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-12;

/// Moments of the gradients, one pair per variable, and how many steps were taken.
#[derive(Clone)]
pub struct Adam {
    rate: f64,
    steps: Variable,
    moments: Vec<(Variable, Variable)>,
}

impl Adam {
    pub fn new(variables: &[Variable], rate: f64) -> Result<Adam> {
        let zeros =
            |shape: &[usize]| Variable::builder().trainable(false).build(taut::zeros(shape, DType::F32)?);
        let pair = |variable: &Variable| Ok((zeros(variable.shape())?, zeros(variable.shape())?));
        let moments = variables.iter().map(pair).collect::<Result<_>>()?;
        Ok(Adam { rate, steps: zeros(&[])?, moments })
    }

    /// One step: `gradients` are those of `variables`, in the same order.
    pub fn update(&self, variables: &[Variable], gradients: &[Tensor]) -> Result<()> {
        self.steps.assign_add(1.0)?;
        let steps = self.steps.read();
        let correction = |beta: f64| taut::sub(1.0, taut::pow(beta, &steps)?);
        let rate = ((taut::sqrt(correction(BETA2)?)? * self.rate)? / correction(BETA1)?)?;
        for ((w, (m, v)), g) in variables.iter().zip(&self.moments).zip(gradients) {
            m.assign((taut::mul(m, BETA1)? + (g * (1.0 - BETA1))?)?)?;
            v.assign((taut::mul(v, BETA2)? + (taut::square(g)? * (1.0 - BETA2))?)?)?;
            w.assign_sub((taut::mul(m, &rate)? / (taut::sqrt(v)? + EPSILON)?)?)?;
        }
        Ok(())
    }

    /// The gradients that a tape knows of a loss, and one step with them.
    pub fn minimize(&self, tape: &GradientTape, loss: &Tensor, variables: &[Variable]) -> Result<()> {
        let gradients = tape.gradient(loss, variables)?.into_iter().map(Dense::dense);
        self.update(variables, &gradients.collect::<Result<Vec<_>>>()?)
    }
}
