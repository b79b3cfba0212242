//! Optimizers.
//!
//! An [`UpdateRule`] is the arithmetic of one update, written with ops; an [`Optimizer`] holds the state that rules need and applies
//! them to variables. In a traced function the update of each variable is one fused pass over memory, in place. Outside of functions
//! the optimizer traces a function itself, so it is the same there.

mod adadelta;
mod adafactor;
mod adagrad;
mod adam;
mod adamax;
mod clip;
mod ftrl;
mod lion;
mod nadam;
mod optimizer;
mod rmsprop;
mod rows;
mod sgd;
mod step;

pub use adadelta::Adadelta;
pub use adafactor::Adafactor;
pub use adagrad::Adagrad;
pub use adam::{Adam, AdamW};
pub use adamax::Adamax;
pub use clip::Clip;
pub use ftrl::Ftrl;
pub use lion::Lion;
pub use nadam::Nadam;
pub use optimizer::Optimizer;
pub use rmsprop::RmsProp;
pub use sgd::Sgd;

pub use crate::schedules::{self, LearningRate};

use std::fmt::Debug;
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, Result, Shape, Spec, Tensor};

/// The arithmetic of one update, for values of any shape.
///
/// A rule is written with ops and reads no values, so it can be traced. Values, gradients and slots are `float32` or `float64`: half
/// precision is cast to `float32` before and back after the update, in the same pass.
///
/// ```
/// use taut_autodiff::Variable;
/// use taut_core::ops::{binary::{mul, sub}, unary::sign};
/// use taut_core::{Result, Spec, Tensor};
/// use taut_nn::optimizers::{LearningRate, Optimizer, UpdateContext, UpdateRule};
///
/// /// The sign of the gradient as the direction of a step of fixed size.
/// #[derive(Debug)]
/// struct Signs(f64);
///
/// impl UpdateRule for Signs {
///     fn rate(&self) -> LearningRate {
///         self.0.into()
///     }
///
///     fn update(&self, context: &UpdateContext, value: Tensor, gradient: Tensor, _: &mut [Tensor]) -> Result<Tensor> {
///         let step = mul(sign(gradient)?, context.rate_as(&value)?)?;
///         sub(value, step)
///     }
/// }
///
/// let w = Variable::new(Tensor::from_slice(&[1.0f32, 2.0], [2])?)?;
/// let optimizer = Optimizer::new(Signs(0.5), &[w.clone()])?;
/// optimizer.apply(&[Some(Tensor::from_slice(&[9.0f32, -0.1], [2])?.into())])?;
/// assert_eq!(w.read().to_vec::<f32>()?, [0.5, 2.5]);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub trait UpdateRule: Debug + Send + Sync + 'static {
    /// The learning rate: a number, or a schedule.
    fn rate(&self) -> LearningRate;

    /// The slot variables of a variable of this spec, in the order in which [`UpdateRule::update`] receives them.
    fn slots(&self, value: &Spec) -> Vec<SlotSpec> {
        let _ = value;
        Vec::new()
    }

    /// Names and initial values of the numbers that all variables share.
    fn shared(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The shared numbers (`float64`) of the next update; `context` has those of the previous one.
    fn advance(&self, context: &UpdateContext) -> Result<Vec<Tensor>> {
        Ok(context.shared.clone())
    }

    /// Returns the new value, and writes the new slots to `slots`.
    fn update(
        &self,
        context: &UpdateContext,
        value: Tensor,
        gradient: Tensor,
        slots: &mut [Tensor],
    ) -> Result<Tensor>;

    /// Whether the update of a row depends only on that row of the value, the gradient and every slot. Then a sparse gradient updates
    /// only its own rows.
    fn is_rowwise(&self) -> bool {
        true
    }

    /// The default weight decay; [`Optimizer::weight_decay`] changes it.
    fn decay(&self) -> f64 {
        0.0
    }

    /// Rejects invalid settings.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// A slot variable of an optimizer: state that is kept per variable.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotSpec {
    /// Its name in checkpoints.
    pub name: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// The initial value of every element.
    pub initial: f64,
}

impl SlotSpec {
    /// A slot of the variable's shape, initially zero.
    pub fn zeros(name: &'static str, value: &Spec) -> SlotSpec {
        SlotSpec { name, shape: value.shape.clone(), initial: 0.0 }
    }
}

/// What the updates of all variables in one step share.
#[derive(Clone, Debug)]
pub struct UpdateContext {
    /// The learning rate: a scalar `float64`.
    pub rate: Tensor,
    /// The number of the update, from 1: a scalar `float64`.
    pub step: Tensor,
    /// The numbers of [`UpdateRule::shared`]: scalar `float64`s.
    pub shared: Vec<Tensor>,
}

impl UpdateContext {
    /// The learning rate in the dtype of a value.
    pub fn rate_as(&self, value: &Tensor) -> Result<Tensor> {
        cast(&self.rate, value.dtype())
    }
}

/// The dtype in which the updates of a variable are computed.
fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// Rejects a setting outside of `low..high`.
fn check_range(name: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if value >= low && value < high {
        return Ok(());
    }
    let range = if high.is_finite() {
        format!("in [{low}, {high})")
    } else if low == f64::MIN_POSITIVE {
        "finite and > 0".to_owned()
    } else {
        format!("finite and >= {low}")
    };
    Err(Error::value(format!("{name} must be {range}, got {value}")))
}
