//! Stochastic gradient descent.

use super::{LearningRate, SlotSpec, UpdateContext, UpdateRule};
use taut_core::ops::binary::{add, mul, sub};
use taut_core::{Error, Result, Spec, Tensor};

/// Stochastic gradient descent, with optional momentum.
///
/// ```
/// use taut_autodiff::Variable;
/// use taut_core::Tensor;
/// use taut_nn::optimizers::{Optimizer, Sgd};
/// let w = Variable::new(Tensor::scalar(1.0f32)?)?;
/// let optimizer = Optimizer::new(Sgd { rate: 0.5.into(), momentum: 0.9, ..Sgd::default() }, &[w.clone()])?;
/// optimizer.apply(&[Some(Tensor::scalar(1.0f32)?.into())])?;
/// assert_eq!(w.read().item::<f32>()?, 0.5);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sgd {
    /// The learning rate.
    pub rate: LearningRate,
    /// The share of the previous step that is added to the next one.
    pub momentum: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
}

impl Default for Sgd {
    fn default() -> Sgd {
        Sgd { rate: 0.01.into(), momentum: 0.0, nesterov: false }
    }
}

impl UpdateRule for Sgd {
    fn rate(&self) -> LearningRate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        if self.momentum == 0.0 { Vec::new() } else { vec![SlotSpec::zeros("momentum", value)] }
    }

    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor> {
        let step = mul(gradient, context.rate_as(&value)?)?;
        let [m] = slots else { return sub(value, step) };
        *m = sub(mul(&*m, self.momentum)?, &step)?;
        if self.nesterov { add(value, sub(mul(&*m, self.momentum)?, step)?) } else { add(value, &*m) }
    }

    fn check(&self) -> Result<()> {
        if (0.0..=1.0).contains(&self.momentum) {
            return Ok(());
        }
        Err(Error::value(format!("momentum must be in [0, 1], got {}", self.momentum)))
    }
}
