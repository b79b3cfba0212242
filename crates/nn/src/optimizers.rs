//! Optimizers: what becomes of variables, given gradients.
//!
//! A [`Rule`] is the arithmetic of one update, written with ops; an [`Optimizer`] keeps the state that rules need and applies
//! them to variables. In a traced function the update of each variable becomes one pass over memory, in place, and so it is outside of
//! functions, where the optimizer traces one by itself.

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

pub use crate::schedules::{self, Rate};

use std::fmt::Debug;
use taut_core::ops::unary::cast;
use taut_core::{DType, Error, Result, Shape, Spec, Tensor};

/// The arithmetic of one update, for values of any shape.
///
/// Everything is made of ops and reads no values, so that it can be traced. Values, gradients and slots are `float32` or `float64`: halves
/// are widened before and narrowed after, in the same pass.
///
/// ```
/// use taut_autodiff::Variable;
/// use taut_core::ops::{binary::{mul, sub}, unary::sign};
/// use taut_core::{Result, Spec, Tensor};
/// use taut_nn::optimizers::{Now, Optimizer, Rate, Rule};
///
/// /// Steps of one size, whatever the size of the gradient.
/// #[derive(Debug)]
/// struct Signs(f64);
///
/// impl Rule for Signs {
///     fn rate(&self) -> Rate {
///         self.0.into()
///     }
///
///     fn update(&self, now: &Now, value: Tensor, gradient: Tensor, _: &mut [Tensor]) -> Result<Tensor> {
///         let step = mul(sign(gradient)?, now.rate_as(&value)?)?;
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
pub trait Rule: Debug + Send + Sync + 'static {
    /// The learning rate: a number, or a schedule.
    fn rate(&self) -> Rate;

    /// What is kept per variable of this spec between updates, in the order in which [`Rule::update`] sees it.
    fn slots(&self, value: &Spec) -> Vec<Slot> {
        let _ = value;
        Vec::new()
    }

    /// Numbers that all variables share, with their first values.
    fn shared(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The shared numbers (`float64`) for the update that is about to be made; `now` has those of the update before.
    fn advance(&self, now: &Now) -> Result<Vec<Tensor>> {
        Ok(now.shared.clone())
    }

    /// The new value. The new slots are left in `slots`.
    fn update(&self, now: &Now, value: Tensor, gradient: Tensor, slots: &mut [Tensor]) -> Result<Tensor>;

    /// Whether the update of a row depends on that row alone, of the value, the gradient and every slot. Then rows without a gradient can
    /// be left alone.
    fn is_rowwise(&self) -> bool {
        true
    }

    /// How much of a value is taken away at each update, per learning rate, unless [`Optimizer::weight_decay`] says otherwise.
    fn decay(&self) -> f64 {
        0.0
    }

    /// Refuses settings that make no sense.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Something that is kept per variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Its name, as checkpoints have it.
    pub name: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// Every element's first value.
    pub first: f64,
}

impl Slot {
    /// A slot of the variable's shape, zero at first.
    pub fn zeros(name: &'static str, value: &Spec) -> Slot {
        Slot { name, shape: value.shape.clone(), first: 0.0 }
    }
}

/// What all variables of one update have in common.
#[derive(Clone, Debug)]
pub struct Now {
    /// The learning rate: a single `float64`.
    pub rate: Tensor,
    /// Which update this is, counted from one: a single `float64`.
    pub step: Tensor,
    /// What [`Rule::shared`] asked for: single `float64`s.
    pub shared: Vec<Tensor>,
}

impl Now {
    /// The learning rate in the type of a value.
    pub fn rate_as(&self, value: &Tensor) -> Result<Tensor> {
        cast(&self.rate, value.dtype())
    }
}

/// The type that updates of a variable are computed in.
fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// Refuses a setting outside of `low..high`; `low` itself is allowed.
fn within(name: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if value >= low && value < high {
        return Ok(());
    }
    let limit = if high.is_finite() {
        format!("{low} or more and less than {high}")
    } else {
        format!("{low} or more")
    };
    Err(Error::value(format!("{name} is {value}")).help(format!("it must be {limit}")))
}
