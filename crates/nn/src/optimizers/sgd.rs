//! Steps against the gradient, with or without momentum.

use super::{Now, Rate, Rule, Slot, within};
use taut_core::ops::binary::{add, mul, sub};
use taut_core::{Result, Spec, Tensor};

/// Stochastic gradient descent: each step goes against the gradient, and with momentum on along the steps before.
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
    pub rate: Rate,
    /// How much of the last step is added to the next one.
    pub momentum: f64,
    /// Whether the step is the one that momentum will make of it next time (Nesterov).
    pub nesterov: bool,
}

impl Default for Sgd {
    fn default() -> Sgd {
        Sgd { rate: 0.01.into(), momentum: 0.0, nesterov: false }
    }
}

impl Rule for Sgd {
    fn rate(&self) -> Rate {
        self.rate.clone()
    }

    fn slots(&self, value: &Spec) -> Vec<Slot> {
        if self.momentum == 0.0 { Vec::new() } else { vec![Slot::zeros("momentum", value)] }
    }

    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor> {
        let step = mul(gradient, now.rate_as(&value)?)?;
        let [m] = slots else { return sub(value, step) };
        *m = sub(mul(&*m, self.momentum)?, &step)?;
        if self.nesterov { add(value, sub(mul(&*m, self.momentum)?, step)?) } else { add(value, &*m) }
    }

    fn check(&self) -> Result<()> {
        if self.momentum == 1.0 { Ok(()) } else { within("momentum", self.momentum, 0.0, 1.0) }
    }
}
